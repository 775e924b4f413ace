--TEST--
TERM: a job finishes and sees it; a second TERM throws StopException, uncounted (rules C11, H1)
--EXTENSIONS--
jobqueue
posix
--SKIPIF--
<?php if (!extension_loaded('pcntl')) die('skip no pcntl'); ?>
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, StopException, Worker};

$queue = new Queue($dsn = store());
$worker = new Worker($queue, timeout: 60, processes: 2, output: 'quiet');
$worker->handle('polite', function (Job $job) use ($dsn) {
    note($dsn, 'begin');
    wait_until(fn () => $job->isStopping(), 'isStopping');
    note($dsn, 'seen');
});
$worker->handle('stubborn', function (Job $job) use ($dsn) {
    note($dsn, 'begin');
    try {
        sleep(30);
    } finally {
        note($dsn, 'finally');
    }
});
$worker->handle('thrower', function () use ($dsn) {
    note($dsn, 'begin');
    try {
        sleep(30);
    } catch (StopException $e) {
        throw new DomainException('another');
    }
});
foreach (['polite' => 1, 'stubborn' => 2, 'thrower' => 2] as $name => $terms) {
    @unlink(notes($dsn));
    $queue->push($name, id: $name);
    $pid = pcntl_fork();
    if (!$pid) {
        exit($worker->run());
    }
    wait_until(fn () => in_array('begin', noted($dsn)), "$name begins");
    posix_kill($pid, SIGTERM);
    if ($terms > 1) {
        usleep(300000); // two signals of one instant count once
        posix_kill($pid, SIGTERM);
    }
    pcntl_waitpid($pid, $status);
    echo pcntl_wexitstatus($status), ' ', implode(' ', noted($dsn)), ' ', line($queue->find($name)), "\n";
    $queue->find($name) && $queue->reserve()?->delete();
}
?>
--EXPECT--
0 begin seen gone
0 begin finally stubborn ready - stopped failures=0 crashes=0 releases=0
0 begin thrower delayed - failed failures=1 crashes=0 releases=0

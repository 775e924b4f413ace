--TEST--
A cancelled job: isCancelled(), checkpoint(), a return is done, a throw is dead, by force (rule L3)
--EXTENSIONS--
jobqueue
posix
--SKIPIF--
<?php if (!extension_loaded('pcntl')) die('skip no pcntl'); ?>
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, StopException, Worker};

$queue = new Queue($dsn = store());
$worker = new Worker($queue, timeout: 60, timeoutGrace: 1, processes: 1, output: 'quiet');
$worker->handle('returns', function (Job $job) use ($dsn) {
    note($dsn, 'begin');
    wait_until(fn () => $job->isCancelled(), 'isCancelled');
    note($dsn, 'seen');
});
$worker->handle('checks', function (Job $job) use ($dsn) {
    note($dsn, 'begin');
    for (;;) {
        usleep(5000);
        try {
            $job->checkpoint();
        } catch (StopException $e) {
            note($dsn, $e->getMessage());
            throw $e;
        }
    }
});
$worker->handle('throws', function (Job $job) use ($dsn) {
    note($dsn, 'begin');
    wait_until(fn () => $job->isCancelled(), 'isCancelled');
    throw new DomainException('not wanted');
});
$worker->handle('sleeps', function () use ($dsn) {
    note($dsn, 'begin');
    try {
        sleep(30);
    } catch (StopException $e) {
        note($dsn, $e->getMessage());
        throw $e;
    }
});

$pid = pcntl_fork();
if (!$pid) {
    exit($worker->run());
}
foreach (['returns' => false, 'checks' => false, 'throws' => false, 'sleeps' => true] as $name => $hard) {
    @unlink(notes($dsn));
    $queue->push($name, id: $name);
    wait_until(fn () => in_array('begin', noted($dsn)), "$name begins");
    $queue->cancel($name, $hard);
    wait_until(fn () => $queue->stats('default')->reserved === 0, "$name ends");
    $info = $queue->find($name);
    echo "$name: ", implode(', ', noted($dsn)), '; ', $info ? $info->state->value . ' ' . $info->reason : 'gone', "\n";
}
$queue->push('sleeps', id: 'waits', delay: 60);
$queue->cancel('waits');
echo $queue->find('waits')->state->value, ' ', $queue->find('waits')->reason, "\n";
$queue->push('throws', id: 'loan', queue: 'other');
$job = $queue->reserve('other');
var_dump($job->isCancelled());
$queue->cancel('loan');
wait_until(fn () => $job->isCancelled(), 'the loan is cancelled');
echo refused_as(fn () => $job->checkpoint()), "\n";
$job->retry();
echo $queue->find('loan')->state->value, ' ', $queue->find('loan')->reason, "\n";
posix_kill($pid, SIGTERM);
pcntl_waitpid($pid, $status);
echo pcntl_wexitstatus($status), "\n";
?>
--EXPECT--
returns: begin, seen; gone
checks: begin, the job is cancelled; dead cancelled
throws: begin; dead cancelled
sleeps: begin, the job is cancelled; dead cancelled
dead cancelled
bool(false)
JobQueue\StopException
dead cancelled
0

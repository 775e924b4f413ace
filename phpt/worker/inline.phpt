--TEST--
processes 0: everything in one process, with its events, time limits, exit and fatal errors recorded (rules D4, D5, G8)
--EXTENSIONS--
jobqueue
--INI--
display_errors=0
log_errors=0
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$queue = new Queue($dsn = store());
$make = function () use ($queue, $dsn): Worker {
    $worker = new Worker($queue, processes: 0, output: 'quiet', timeout: 0.3);
    foreach (['worker.starting', 'child.started', 'child.stopping', 'worker.stopping'] as $name) {
        $worker->on($name, fn ($e) => note($dsn, $e->name . ' ' . ($e->data['code'] ?? '')));
    }
    return $worker->handle('ok', fn (Job $job) => note($dsn, "ok $job->attempt"), timeout: 20)
        ->handle('throws', fn () => throw new DomainException('x'))->handle('slow', fn () => sleep(9))
        ->handle('exits', fn () => exit(4))->handle('fatal', fn () => trigger_error('fatal', E_USER_ERROR))
        ->handle('dirty', fn (Job $job) => $job->defer(fn () => throw new DomainException('dirty')))
        ->handle('stops', fn () => $worker->stop(), timeout: 20)
        ->handle('extends', fn (Job $job) => $job->extend() ?? note($dsn, 'extended ' . var_export($job->isStopping(), true)), timeout: 0);
};
foreach (['dirty', 'throws', 'slow', 'extends', 'stops', 'ok'] as $i => $name) {
    $queue->push($name, null, id: "$name$i");
}
var_dump($make()->run());
echo implode(' | ', noted($dsn)), "\n";
foreach (['throws1', 'slow2', 'ok5'] as $id) {
    echo line($queue->find($id)), "\n";
}
echo line($queue->find('dirty0')), "\n";
unlink(notes($dsn));
var_dump($make()->run(stopWhenEmpty: true), $queue->stats('default')->ready);

// exit and a fatal error end the process; the jobs are recorded
foreach (['exits', 'fatal'] as $name) {
    $queue->push($name, null, id: $name, queue: $name);
    $pid = pcntl_fork();
    if (!$pid) {
        $make()->run($name, stopWhenEmpty: true);
        exit(99);
    }
    pcntl_waitpid($pid, $status);
    echo pcntl_wexitstatus($status), ' ', line($info = $queue->find($name)), ' ', preg_replace('/ in .*/', '', $info->lastError['message']), "\n";
}
?>
--SKIPIF--
<?php if (!extension_loaded('pcntl')) die('skip no pcntl'); ?>
--EXPECT--
int(0)
worker.starting  | child.started  | extended false | child.stopping  | worker.stopping 0
throws delayed - failed failures=1 crashes=0 releases=0
slow delayed - timed_out failures=1 crashes=0 releases=0
ok ready - no history failures=0 crashes=0 releases=0
dirty delayed - cleanup_failed failures=1 crashes=0 releases=0
int(0)
int(0)
4 exits delayed - exited failures=1 crashes=0 releases=0 the handler called exit(4)
255 fatal delayed - crashed failures=0 crashes=1 releases=0 fatal

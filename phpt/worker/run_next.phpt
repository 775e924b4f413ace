--TEST--
runNext: one job inline and silent; exit ends the process after the job is recorded (rules D4, G2, G8)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

register_shutdown_function(function () use (&$dsn) {
    echo "shutdown\n", line((new Queue($dsn))->find('last')), "\n";
});
$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, timeout: 0.3);
$worker->handle('ok', fn (Job $job) => print("ok $job->id " . var_export($job->remaining() <= 0.3, true) . "\n"));
$worker->handle('throws', fn () => throw new DomainException('no'));
$worker->handle('slow', fn () => sleep(10));
$worker->handle('nested', function () use ($worker, $queue) {
    refused(fn () => $worker->runNext());
    refused(fn () => $worker->run());
    $inner = (new Worker($queue))->handle('inner', fn () => print("inner\n"));
    refused(fn () => $inner->runNext('inner'));
}, timeout: 10);
$worker->handle('keeps', function (Job $job) { $GLOBALS['kept'] = $job; });
$worker->handle('exits', fn () => exit(7));
var_dump($worker->runNext());
$queue->push('ok', id: 'first');
var_dump($worker->runNext(), $queue->find('first'));
$queue->push('throws', id: 'second');
var_dump($worker->runNext('default'), $queue->find('second')->failures);
$queue->push('slow', id: 'third', queue: 'slow');
var_dump($worker->runNext(['slow']), line($queue->find('third')));
$queue->push('inner', queue: 'inner');
$queue->push('nested', queue: 'nested');
$worker->runNext('nested');
$queue->push('keeps', queue: 'kept');
$worker->runNext('kept');
refused(fn () => $kept->release());
refused(fn () => $kept->age());
var_dump($kept->name);
$queue->push('exits', id: 'last', queue: 'exits');
$worker->runNext('exits');
echo "not reached\n";
?>
--EXPECT--
bool(false)
ok first true
bool(true)
NULL
bool(true)
int(1)
bool(true)
string(56) "slow delayed - timed_out failures=1 crashes=0 releases=0"
LogicException: a worker is running in this process already
LogicException: a worker is running in this process already
LogicException: a worker is running in this process already
LogicException: the job has ended
LogicException: the job has ended
string(5) "keeps"
shutdown
exits delayed - exited failures=1 crashes=0 releases=0

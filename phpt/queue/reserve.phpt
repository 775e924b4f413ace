--TEST--
Queue::reserve: settled by the caller, in priority order, fenced (rules C1, C3, D3, O3)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State};

$queue = new Queue(store());
var_dump($queue->reserve());
foreach ([['low', 0], ['high', 5], ['low2', 0]] as [$name, $priority]) {
    $queue->push($name, $name, priority: $priority, queue: 'work', context: ['k' => 'v']);
}
$job = $queue->reserve('empty,work', lease: 10);
echo "{$job->name} {$job->queue} {$job->attempt} {$job->deliveries} {$job->context['k']} {$job->payload}\n";
var_dump($queue->find($job->id)->state === State::Reserved, $job->age() >= 0, $job->isCancelled(), $job->isStopping());
$job->extend();
$job->checkpoint();
$job->done();
refused(fn () => $job->release());
var_dump($queue->find($job->id));

$job = $queue->reserve(['work']);
$job->retry(0.001, new DomainException('again'));
$info = $queue->find($job->id);
echo line($info), ' ', $info->lastError['class'], ' ', $info->lastError['message'], "\n";

$job = $queue->reserve('work');
$job->fail(new LogicException('never', 0, new RuntimeException('deeper')));
echo line($info = $queue->find($job->id)), "\n";
var_dump(str_contains($info->lastError['trace'], 'Previous: RuntimeException: deeper'), basename($info->lastError['where']));

wait_until(fn () => ($job = $queue->reserve('work')) !== null, 'the retried job is due');
refused(fn () => $queue->reserve('a', -1));
refused(fn () => $queue->reserve([5]));
refused(fn () => $queue->reserve(','));
refused(fn () => clone $job);
refused(fn () => serialize($queue));
refused(fn () => (new ReflectionClass(JobQueue\Job::class))->newInstanceWithoutConstructor());
unset($job);

// a lapsed lease: the old holder changes nothing
putenv('JOBQUEUE_TEST_SHORT_LEASE=1');
$queue->push('fenced', null, queue: 'fence');
$stale = $queue->reserve('fence', lease: 1);
$fresh = null;
wait_until(function () use ($queue, &$fresh) { return $fresh = $queue->reserve('fence'); }, 'the lease to lapse');
var_dump($fresh->fence > $stale->fence, $fresh->id === $stale->id);
foreach (['done', 'release', 'delete', 'extend'] as $method) {
    echo $method, ' ', refused_as(fn () => $stale->$method()), "\n";
}
$fresh->done();
?>
--EXPECTF--
NULL
high work 1 1 v high
bool(true)
bool(true)
bool(false)
bool(false)
LogicException: release(): the job's end is decided already (done)
NULL
low %s - failed failures=1 crashes=0 releases=0 DomainException again
low2 dead failed_by_handler failed failures=%d crashes=0 releases=0
bool(true)
string(%d) "reserve.php:%d"
ValueError: lease must be a number of seconds, 0 or more
TypeError: queues: a list of strings is expected, int in it
ValueError: queues: a queue's name has 1 to 128 bytes and no control characters
Error: Trying to clone an uncloneable object of class JobQueue\Job
Exception: Serialization of 'JobQueue\Queue' is not allowed
ReflectionException: Class JobQueue\Job is an internal class marked as final that cannot be instantiated without invoking its constructor
bool(true)
bool(true)
done JobQueue\LeaseLost
release JobQueue\LeaseLost
delete JobQueue\LeaseLost
extend JobQueue\LeaseLost

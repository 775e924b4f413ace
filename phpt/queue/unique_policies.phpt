--TEST--
Unique keys: keep, replace with one follower, error, until_started; idempotent pushes (rules B5, B6)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{DuplicateJob, Queue, Worker};

$queue = new Queue($dsn = store());
$first = $queue->push('sync', 1, unique: 'account 7');
var_dump($queue->push('sync', 2, unique: 'account 7') === $first, $queue->find($first)->payload);
try {
    $queue->push('sync', 3, unique: 'account 7', onDuplicate: 'error');
} catch (DuplicateJob $e) {
    var_dump($e->id === $first);
}

// debounce: what is carried and when is the last one's
var_dump($queue->push('sync', 4, unique: 'account 7', onDuplicate: 'replace', maxWait: 600, delay: 60) === $first);
$info = $queue->find($first);
echo $info->state->value, ' ', $info->payload, "\n";
$queue->push('sync', 5, unique: 'account 7', onDuplicate: 'replace', maxWait: 600);
$job = $queue->reserve();
echo $job->id === $first ? 'the first' : 'another', ' ', $job->payload, "\n";

// while the holder runs, one follower is kept
$follower = $queue->push('sync', 6, unique: 'account 7', onDuplicate: 'replace');
var_dump($follower !== $first, $queue->push('sync', 7, unique: 'account 7', onDuplicate: 'replace') === $follower);
var_dump($queue->reserve());
$job->done();
$job = $queue->reserve();
echo $job->id === $follower ? 'the follower' : 'another', ' ', $job->payload, "\n";
$job->done();

// until_started: free from the first start on, a retry does not take it again
$worker = new Worker($queue, processes: 1, output: 'quiet');
$worker->handle('scan', function ($job, $n) use ($dsn) {
    $other = new Queue($dsn);
    $n > 1 || $other->push('scan', 2, unique: 'disk', uniqueScope: 'until_started');
    note($dsn, "scan $n");
});
$queue->push('scan', 1, unique: 'disk', uniqueScope: 'until_started');
work($worker);
echo implode(', ', noted($dsn)), "\n";

// an id may be pushed again and again
$id = $queue->push('bill', 1, id: 'bill-7', idempotent: true);
var_dump($queue->push('bill', 1, id: 'bill-7', idempotent: true), $queue->stats('default')->ready);
echo refused_as(fn () => $queue->push('bill', 1, id: 'bill-7')), "\n";
$queue->reserve()->done();
var_dump($queue->push('bill', 1, id: 'bill-7', idempotent: true), $queue->stats('default')->ready);

foreach ([['onDuplicate' => 'replace'], ['uniqueScope' => 'until_started'], ['unique' => 'k', 'maxWait' => 5], ['idempotent' => true],
    ['id' => 'x', 'idempotentFor' => 5], ['unique' => 'k', 'onDuplicate' => 'drop']] as $options) {
    refused(fn () => $queue->push('x', null, ...$options));
}
?>
--EXPECTF--
bool(true)
int(1)
bool(true)
bool(true)
delayed 4
the first 5
bool(true)
bool(true)
NULL
the follower 7
scan 1, scan 2
string(6) "bill-7"
int(1)
JobQueue\DuplicateJob
string(6) "bill-7"
int(0)
ValueError: %Aunique%A
ValueError: %Aunique%A
ValueError: %Areplace%A
ValueError: %Aid%A
ValueError: %Aidempotent%A
ValueError: %Akeep%A

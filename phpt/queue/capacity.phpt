--TEST--
A queue's capacity: QueueFull, what counts, who sets it (rules B4, F4)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, QueueFull};

$queue = new Queue($dsn = store());
$queue->capacity('small', 3);
$queue->push('a', null, queue: 'small', tries: 1);
$queue->push('b', null, queue: 'small', delay: 60);
$queue->push('c', null, queue: 'small');
try {
    $queue->push('d', null, queue: 'small');
} catch (QueueFull $e) {
    echo "$e->queue $e->capacity $e->errorCode ", json_encode($e->isRetryable()), "\n", $e->getMessage(), "\n";
}
$queue->push('elsewhere', null, queue: 'other');

// held and dead jobs count, finished ones do not; a replay is not blocked
$queue->reserve('small')->fail('no');
$held = $queue->reserve('small');
echo refused_as(fn () => $queue->push('d', null, queue: 'small')), "\n";
$held->done();
$id = $queue->push('d', null, queue: 'small');
echo refused_as(fn () => $queue->push('e', null, queue: 'small')), "\n";
echo $queue->retry(name: 'a'), ' ', $queue->stats('small')->capacity, ' ', $queue->stats('other')->capacity, "\n";

// of many, those that fit are stored
$queue->capacity('bulk', 2);
$results = $queue->pushMany(array_map(fn ($i) => ['n', $i, 'queue' => 'bulk'], range(1, 4)));
echo implode(' ', array_map(fn ($r) => is_string($r) ? 'stored' : $r::class, $results)), "\n";
$queue->capacity('bulk', 0);
echo strlen($queue->push('n', 5, queue: 'bulk')), "\n";

// a connection's value holds where none was ever set
$limited = new Queue($dsn, ['capacity' => 1]);
$limited->push('x', null, queue: 'fresh');
echo refused_as(fn () => $limited->push('x', null, queue: 'fresh')), ' ', $queue->stats('fresh')->capacity, "\n";
$limited->push('n', 6, queue: 'bulk');
echo $queue->stats('bulk')->ready, ' ', $queue->stats('bulk')->capacity, "\n";
refused(fn () => $queue->capacity('small', -1));
refused(fn () => $queue->capacity('', 1));
?>
--EXPECTF--
small 3 queue_full %s
%A"small"%A3%A
JobQueue\QueueFull
JobQueue\QueueFull
1 3 0
stored stored JobQueue\QueueFull JobQueue\QueueFull
36
JobQueue\QueueFull 1
4 0
ValueError: %Acapacity%A
ValueError: %Aqueue%A

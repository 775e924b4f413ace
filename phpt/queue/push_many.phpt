--TEST--
pushMany: results in order, bad items judged singly, generators in constant memory (rule B3)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, QueueException, PayloadException};

$queue = new Queue(store('?synchronous=normal'));
$results = $queue->pushMany([
    ['a', 1], ['b', fn () => 1], ['c', 3, 'queue' => 'other', 'priority' => 2, 'retryUntil' => 60], ['d', 4, 'id' => 'twice'], ['e', 5, 'id' => 'twice'],
    ['f', 6, 'prio' => 1], [], 'g', 5, ['h', 1, 2, 3], ['i', null, 'context' => ['t' => 'x']],
]);
foreach ($results as $i => $result) {
    echo $i, ' ', is_string($result) ? strlen($result) : get_class($result) . ' ' . $result->errorCode, "\n";
}
var_dump($results[3], $results[4]->id, $queue->find($results[10])->context, $queue->find($results[2])->priority);

$before = memory_get_usage();
$chunks = $most = $count = 0;
$left = $queue->pushMany((function () {
    for ($i = 0; $i < 20000; $i++) {
        yield ['bulk', ['i' => $i], 'queue' => 'bulk'];
    }
})(), function (array $chunk) use (&$chunks, &$most, &$count) {
    $chunks++;
    $most = max($most, count($chunk));
    $count += count(array_filter($chunk, 'is_string'));
});
var_dump($left, $count, $most <= 500, $chunks >= 40, memory_get_usage() - $before < 200000, $queue->stats('bulk')->ready);

// an exception of the generator comes up after what it yielded is stored
refused(fn () => $queue->pushMany((function () {
    yield ['x', 1, 'queue' => 'broken'];
    yield ['x', 2, 'queue' => 'broken'];
    throw new DomainException('no more');
})()));
var_dump($queue->stats('broken')->ready);
refused(fn () => $queue->pushMany([['x', 1, 'queue' => 'listener']], fn () => throw new DomainException('chunk')));
var_dump($queue->stats('listener')->ready, $queue->pushMany([]));
?>
--EXPECT--
0 36
1 JobQueue\PayloadException payload
2 36
3 5
4 JobQueue\DuplicateJob duplicate
5 JobQueue\QueueException invalid_argument
6 JobQueue\QueueException invalid_argument
7 36
8 JobQueue\QueueException invalid_argument
9 JobQueue\QueueException invalid_argument
10 36
string(5) "twice"
string(5) "twice"
array(1) {
  ["t"]=>
  string(1) "x"
}
int(2)
array(0) {
}
int(20000)
bool(true)
bool(true)
bool(true)
int(20000)
DomainException: no more
int(2)
DomainException: chunk
int(1)
array(0) {
}

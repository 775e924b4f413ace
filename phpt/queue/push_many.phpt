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
    ['f', 6, 'prio' => 1], ['f', 6, 'tries' => -1], 'g', [5], ['h', 1, 2, 3], ['u', 1, 'unique' => 5], ['v', 1, 'guard' => 'neither SQL nor Lua'], ['i', null, 'context' => ['t' => 'x']],
]);
foreach ($results as $i => $result) {
    echo $i, ' ', is_string($result) ? strlen($result) : get_class($result) . ' ' . ($result->errorCode ?? '-'), "\n";
}
var_dump($results[3], $results[4]->id, $queue->find($results[12])->context, $queue->find($results[2])->priority);

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

// the same mistake is the same exception from push
foreach ([['prio' => 1], ['tries' => -1], ['guard' => 'neither SQL nor Lua']] as $options) {
    try {
        $queue->push('same', null, ...$options);
    } catch (Throwable $e) {
        $among = $queue->pushMany([['same', null] + $options])[0];
        var_dump($among::class === $e::class && $among->getMessage() === $e->getMessage());
    }
}
// what is no job at all is refused at once; what came before it is stored
foreach ([array_fill(0, 20000, ['name' => 'x', 'payload' => 1]), [5], [null], [[]], [['x', 1, 'queue' => 'first'], 5]] as $jobs) {
    refused(fn () => $queue->pushMany($jobs));
}
refused(fn () => $queue->pushMany([new stdClass()]));
var_dump($queue->stats('first')->ready);
?>
--EXPECT--
0 36
1 JobQueue\PayloadException payload
2 36
3 5
4 JobQueue\DuplicateJob duplicate
5 ValueError -
6 ValueError -
7 36
8 TypeError -
9 ValueError -
10 TypeError -
11 ValueError -
12 36
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
bool(true)
bool(true)
bool(true)
TypeError: a job to push is [name, payload, option: value ...] or a job object, an array without a name given
TypeError: a job to push is [name, payload, option: value ...] or a job object, int given
TypeError: a job to push is [name, payload, option: value ...] or a job object, null given
TypeError: a job to push is [name, payload, option: value ...] or a job object, an array without a name given
TypeError: a job to push is [name, payload, option: value ...] or a job object, int given
ValueError: class stdClass is no job: it has no attribute #[JobQueue\AsJob]
int(1)

--TEST--
Memory of a child stays flat over many jobs of every kind (case B144; tests/bench/leak.php does a million)
--EXTENSIONS--
jobqueue
--SKIPIF--
<?php if (getenv('JOBQUEUE_SANITIZED') || getenv('USE_ZEND_ALLOC') === '0') die('skip memory is not PHP\'s own here'); ?>
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$dsn = store('?synchronous=normal');
$queue = new Queue($dsn);
$make = function (int $n, string $phase) {
    for ($i = 0; $i < $n; $i++) {
        yield ['mixed', ['i' => $i, 'short' => 'x', 'long' => str_repeat('y', 300), 'deep' => [[['a' => 1.5]], "\xff"], 'when' => new DateTime], 'queue' => $phase,
            'context' => ['k' => 'v']];
    }
    yield ['memory', $phase, 'queue' => $phase];
};
$worker = new Worker($queue, processes: 1, recycleJobs: 0, memory: 0);
$worker->middleware(fn (Job $job, $payload, $next) => $next());
$worker->on('job.processed', fn () => null);
$worker->handle('mixed', function (Job $job, array $payload) {
    $job->defer(fn () => null);
    if ($payload['i'] % 20 === 0) throw new RuntimeException('one in twenty', 0, new LogicException('inner'));
    if ($payload['i'] % 33 === 0) $job->release(3600);
}, tries: 1);
$worker->handle('memory', function (Job $job, string $phase) use ($dsn) {
    gc_collect_cycles();
    preg_match('/^RssAnon:\s+(\d+)/m', file_get_contents('/proc/self/status'), $m);
    note($dsn, "$phase " . memory_get_usage() . " $m[1]");
});
$queue->pushMany($make(3000, 'warm'), fn () => null);
$queue->pushMany($make(6000, 'run'), fn () => null);
work($worker, 'warm,run');
[$warm, $run] = array_map(fn ($line) => explode(' ', $line), noted($dsn));
echo $run[1] - $warm[1] < 6000 ? "zend flat\n" : 'grew by ' . ($run[1] - $warm[1]) . "\n", $run[2] - $warm[2] < 600 ? "rss flat\n" : "rss grew by " . ($run[2] - $warm[2]) . " KB\n";
?>
--EXPECT--
zend flat
rss flat

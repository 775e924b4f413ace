--TEST--
Interrupts in hot loops with opcache and JIT: many time limits, no wrong frame, the next job untouched (case B070)
--EXTENSIONS--
jobqueue
opcache
--SKIPIF--
<?php
if (getenv('JOBQUEUE_SANITIZED') || getenv('USE_ZEND_ALLOC') === '0') die('skip JIT code under a checker');
?>
--INI--
error_log=/dev/null
opcache.enable_cli=1
opcache.jit=tracing
opcache.jit_buffer_size=16M
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

function step(array $a, int $i): int { return ($a[$i % 3] ?? 0) + strlen((string) $i); }
function hot(): int { $sum = 0; for ($i = 0;; $i++) { $sum = (step([1, 2, 3], $i) + $sum) % 1000; } }
$dsn = store('?synchronous=normal');
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 2, timeout: 0.02, timeoutGrace: 2, backoff: 100);
$worker->handle('hot', fn () => hot(), tries: 1);
$worker->handle('generator', function () { foreach ((function () { for ($i = 0;; $i++) yield $i => step([$i], 0); })() as $x); }, tries: 1);
$worker->handle('quick', fn () => note($dsn, 'quick'), timeout: 30);
foreach (range(1, 40) as $i) {
    $queue->push($i % 2 ? 'hot' : 'generator');
    $queue->push('quick');
}
var_dump(work($worker), count(noted($dsn)));
$reasons = array_count_values(array_map(fn ($info) => "$info->reason $info->crashes", $queue->dead(limit: 100)));
var_dump($reasons);
?>
--EXPECT--
int(0)
int(40)
array(1) {
  ["timed_out 0"]=>
  int(40)
}

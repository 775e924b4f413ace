--TEST--
A payload beyond memory_limit is a crash of its job, in any case not "undecodable"; the worker goes on (rules A7, C5, D5)
--EXTENSIONS--
jobqueue
--SKIPIF--
<?php
if (getenv('JOBQUEUE_SANITIZED') || getenv('USE_ZEND_ALLOC') === '0') {
    die('skip memory_limit does not bind here');
}
?>
--INI--
error_log=/dev/null
display_errors=0
memory_limit=1G
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, Worker};

$dsn = store('?max_payload=33554432&synchronous=normal');
$queue = new Queue($dsn);
$large = $queue->push('any', array_fill(0, 7000000, null), tries: 2, backoff: 0);
$queue->push('any', 'after');
$worker = (new Worker($queue, processes: 1))->handle('any', fn ($job, $payload) => note($dsn, gettype($payload)));
gc_mem_caches();
ini_set('memory_limit', '64M');
var_dump(work($worker));
ini_set('memory_limit', '1G');
echo implode("\n", noted($dsn)), "\n", line($queue->find($large)), "\n";
echo $queue->find($large)->lastError['message'], "\n";
?>
--EXPECTF--
error: the failed hook of job %s ("any") failed, attempt 1/3, retrying in 1 s: Allowed memory size of 67108864 bytes exhausted %s
error: the failed hook of job %s ("any") failed, attempt 2/3, retrying in 2 s: Allowed memory size of 67108864 bytes exhausted %s
int(0)
string
any dead crashed crashed failures=0 crashes=2 releases=0
Allowed memory size of 67108864 bytes exhausted %s

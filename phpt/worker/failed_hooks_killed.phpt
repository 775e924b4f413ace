--TEST--
A failed hook whose process is killed keeps its payload at the next try; the last of three does without (rule F6)
--EXTENSIONS--
jobqueue
posix
--CAPTURE_STDIO--
STDOUT
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{JobInfo, Queue, Worker};

$dsn = store();
ini_set('error_log', folder($dsn) . '/errors');
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 1, tries: 1, output: folder($dsn) . '/said');
$worker->handle('once', fn () => throw new DomainException('no'), failed: function (JobInfo $info) use ($dsn) {
    note($dsn, "once $info->reason " . json_encode($info->payload));
    count(preg_grep('/^once/', noted($dsn))) > 1 || posix_kill(getmypid(), 9);
});
$worker->handle('ever', fn () => throw new DomainException('no'), failed: function (JobInfo $info) use ($dsn) {
    note($dsn, "ever $info->reason " . json_encode($info->payload) . ' ' . ($info->payloadError ?? 'null'));
    posix_kill(getmypid(), 9);
});
$queue->push('once', ['invoice' => 7]);
$queue->push('ever', ['invoice' => 8]);
var_dump(work($worker));
$all = noted($dsn);
echo implode("\n", preg_grep('/^once/', $all)), "\n", implode("\n", preg_grep('/^ever/', $all)), "\n";
var_dump(count($queue->dead()));
?>
--EXPECT--
int(0)
once attempts_exhausted {"invoice":7}
once attempts_exhausted {"invoice":7}
ever attempts_exhausted {"invoice":8} null
ever attempts_exhausted {"invoice":8} null
ever attempts_exhausted null the payload is left out: an earlier try has died of it
int(2)

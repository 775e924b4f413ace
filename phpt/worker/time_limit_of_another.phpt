--TEST--
set_time_limit() of one handler does not reach the next one (rules C5, D7)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
$queue->push('limits');
$id = $queue->push('loops');
$worker = new Worker($queue, processes: 1, output: 'quiet', stopWhenEmpty: true);
$worker->handle('limits', function () { set_time_limit(1); });
$worker->handle('loops', function () { // the limit counts processor time
    $used = fn () => ($u = getrusage())['ru_utime.tv_sec'] + $u['ru_utime.tv_usec'] / 1e6;
    for ($end = $used() + 1.3; $used() < $end;);
}, keepDone: 60);
echo $worker->run(), ' ', $queue->find($id)->state->value, ' ', $queue->find($id)->crashes, "\n";
?>
--EXPECT--
0 done 0

--TEST--
Time limits: an exception out of sleep and loops, the kill when it is swallowed (rules I1, I2, D1)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, TimeoutException, Worker};

$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 4, timeout: 0.3, timeoutGrace: 2);
$cleaned = fn (Job $job) => $job->defer(fn () => note($dsn, "cleaned $job->name"));
$worker->handle('sleeps', function (Job $job) use ($cleaned) { $cleaned($job); sleep(20); });
$worker->handle('loops', function (Job $job) use ($cleaned) { $cleaned($job); for ($i = 0;; $i++); });
$worker->handle('wraps', function () { try { usleep(9000000); } catch (TimeoutException $e) { throw new RuntimeException('wrapped', 0, $e); } });
$worker->handle('swallows', function () { while (true) { try { usleep(9000000); } catch (TimeoutException $e) { } } });
$worker->handle('finishes', function () use ($dsn) { try { sleep(20); } catch (TimeoutException $e) { note($dsn, $e->getMessage() . ' ' . $e->errorCode); } });
$worker->handle('fiber', function () { (new Fiber(function () { while (true); }))->start(); });
$worker->handle('own limit', function (Job $job) use ($dsn) { usleep(600000); note($dsn, 'own ' . var_export($job->remaining() > 5, true)); }, timeout: 10);
$worker->handle('no limit', function (Job $job) use ($dsn) { usleep(600000); note($dsn, 'none ' . var_export($job->remaining(), true)); });
$worker->handle('dies of it', fn () => sleep(20), failOnTimeout: true);
$ids = [];
foreach (['sleeps', 'loops', 'wraps', 'swallows', 'finishes', 'fiber', 'own limit', 'dies of it'] as $name) {
    $ids[$name] = $queue->push($name);
}
$ids['no limit'] = $queue->push('no limit', timeout: 0);
var_dump(work($worker));
foreach ($ids as $name => $id) {
    echo str_pad($name, 12), line($queue->find($id)), "\n";
}
$notes = noted($dsn);
sort($notes);
echo implode("\n", $notes), "\n";
?>
--EXPECT--
int(0)
sleeps      sleeps delayed - timed_out failures=1 crashes=0 releases=0
loops       loops delayed - timed_out failures=1 crashes=0 releases=0
wraps       wraps delayed - timed_out failures=1 crashes=0 releases=0
swallows    swallows delayed - timed_out failures=1 crashes=0 releases=0
finishes    gone
fiber       fiber delayed - timed_out failures=1 crashes=0 releases=0
own limit   gone
dies of it  dies of it dead timed_out timed_out failures=1 crashes=0 releases=0
no limit    gone
cleaned loops
cleaned sleeps
none NULL
own true
the job is over its time limit of 0.3 s timed_out

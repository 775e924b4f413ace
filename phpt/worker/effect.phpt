--TEST--
effect(): the caller's statement under the job's lease; fingerprint (rules O1, O2, C11)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, LeaseLost, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
$queue->migrate();
$table = 'app_' . bin2hex(random_bytes(4));
$key = kind() === 'redis' ? json_encode($table) : '';
if (kind() !== 'redis') {
    pdo($dsn)->exec("CREATE TABLE " . ($table = (kind() === 'postgres' ? 'public.' : '') . $table) . " (n BIGINT)");
}
$add = fn (int $n) => statement("INSERT INTO $table (n) VALUES (?)", "return redis.call('RPUSH', $key, ARGV[1])", $n);
$sum = statement("SELECT coalesce(sum(n), 0) FROM $table", "local s = 0 for _, n in ipairs(redis.call('LRANGE', $key, 0, -1)) do s = s + n end return s");
foreach ([0, 1] as $processes) {
    $worker = new Worker($queue, processes: $processes, output: 'quiet');
    $worker->handle('book', function (Job $job, $n) use ($add, $sum, $dsn) {
        note($dsn, json_encode([$job->effect($add($n)), (int) $job->effect($sum)]));
    });
    $queue->push('book', 5);
    $queue->push('book', 6);
    work($worker);
}
echo implode(' ', noted($dsn)), "\n";

// not under a lease that is lost, and not when the statement itself is wrong
putenv('JOBQUEUE_TEST_SHORT_LEASE=1');
$queue->push('fenced', ['a' => 1], queue: 'fence', id: 'one');
$stale = $queue->reserve('fence', lease: 1);
wait_until(function () use ($queue, &$fresh) { return $fresh = $queue->reserve('fence'); }, 'the lease to lapse');
echo refused_as(fn () => $stale->effect($add(1000))), "\n";
echo refused_as(fn () => $fresh->effect(['neither SQL nor Lua'])), "\n";
var_dump((int) $fresh->effect($sum));
refused(fn () => $fresh->effect(['SELECT 1', 'x']));
$same = $fresh->fingerprint();
var_dump(strlen($same), $stale->fingerprint() === $same);
$fresh->done();
foreach ([['fenced', ['a' => 1], true], ['fenced', ['a' => 2], false], ['other', ['a' => 1], false]] as [$name, $payload, $equal]) {
    $queue->push($name, $payload);
    $job = $queue->reserve();
    var_dump(($job->fingerprint() === $same) === $equal);
    $job->done();
}
?>
--EXPECTF--
[%d,5] [%d,11] [%d,16] [%d,22]
JobQueue\LeaseLost
%r(ValueError|JobQueue\\[A-Za-z]+)%r
int(22)
TypeError: effect: [text of the statement, [parameter, ...]] is expected
int(64)
bool(true)
bool(true)
bool(true)
bool(true)

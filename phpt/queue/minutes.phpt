--TEST--
Counts per minute, and the audit (rules N1, N5)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$dsn = store();
ini_set('error_log', folder($dsn) . '/errors');
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 2, tries: 2, backoff: 0, output: 'quiet');
$worker->handle('good', fn () => null);
$worker->handle('bad', fn () => throw new Exception('no'));
$worker->handle('again', fn (Job $job) => $job->releases ? null : $job->release());
foreach (['good', 'good', 'good', 'bad', 'again'] as $name) {
    $queue->push($name);
}
work($worker);
$total = function (string $name, string $what) use (&$queue) {
    return array_sum(array_column($queue->stats($name)->perMinute, $what));
};
foreach (['pushed', 'done', 'failed', 'retried', 'crashed', 'released', 'timedOut'] as $what) {
    echo "$what ", $total('default', $what), "\n";
}
$minute = $queue->stats('default')->perMinute[0];
echo abs($minute['at']->getTimestamp() - time()) < 300 ? 'now' : 'another time', ' ', array_sum(array_merge(...array_map(fn ($m) => array_column($m['runs'], 'count'), $queue->stats('default')->perMinute))), "\n";
$json = json_decode(json_encode($queue->stats('default')), true);
echo implode(' ', array_keys($json)), "\n", implode(' ', array_keys($json['per_minute'][0])), ' ', implode(' ', array_keys($json['per_minute'][0]['runs'][0])), "\n";

// taken by hand they count alike
(function () use ($dsn) { // told at the end of the object
    $queue = new Queue($dsn);
    $queue->push('hand', null, queue: 'hand');
    $queue->reserve('hand')->done();
})();
echo $total('hand', 'pushed'), ' ', $total('hand', 'done'), ' ', json_encode($queue->stats('hand', 0)->perMinute), ' ', json_encode($queue->allStats()['hand']->perMinute), "\n";
refused(fn () => $queue->stats('hand', 1441));

$checks = array_filter($queue->doctor(audit: true), fn ($finding) => $finding['check'] === 'audit');
echo count($checks) > 0 ? 'audited' : 'not audited', ' ', in_array('problem', array_column($checks, 'grade'), true) ? 'unwell' : 'well', "\n";
?>
--EXPECTF--
pushed 5
done 4
failed 2
retried 1
crashed 0
released 1
timedOut 0
now 7
queue ready delayed reserved dead paused backlog oldest_ready_age capacity per_minute
at pushed done failed retried crashed released timed_out runs up_to count
1 1 [] []
ValueError: minutes must be between 0 and 1440, 1441 given
audited well

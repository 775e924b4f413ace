--TEST--
Queue::workers, doctor and flush (rules N4, N5, F4)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
var_dump($queue->workers());
$worker = new Worker($queue, processes: 1, tries: 1, name: 'mailer 1');
$worker->handle('looks', function (Job $job) use ($dsn) {
    $all = (new Queue($dsn))->workers();
    $one = $all[0];
    note($dsn, count($all) . ' ' . json_encode([$one['host'] === gethostname(), $one['name'], $one['queues'], $one['names'], $one['processes'], $one['lease']]));
    note($dsn, implode(' ', array_keys($one)));
    $now = time();
    note($dsn, json_encode([$one['id'] === $job->id ? 'the job' : substr_count($one['id'], ':'), $one['held'],
        $one['startedAt']->getTimestamp() <= $now, $one['aliveUntil']->getTimestamp() >= $now, $one['pid'] !== getmypid()]));
});
$worker->handle('fails', fn () => throw new Exception('no'), version: 2);
$queue->push('looks');
foreach (range(1, 5) as $i) {
    $queue->push('fails', version: 2, queue: $i > 3 ? 'other' : 'default');
}
work($worker, 'default,other');
echo implode("\n", noted($dsn)), "\n";
var_dump($queue->workers());

echo "flush: ", $queue->flush(dryRun: true), ' ', $queue->flush(queue: 'other'), ' ', $queue->flush(reason: 'crashed'), ' ',
    $queue->flush(olderThan: 3600), ' ', $queue->flush(), ' ', $queue->flush(), "\n";
refused(fn () => $queue->flush(reason: 'because'));

$findings = array_values(array_filter($queue->doctor(), fn ($finding) => $finding['check'] !== 'durability')); // servers of tests may have none
echo json_encode(array_keys($findings[0])), ' ', in_array('problem', array_column($findings, 'grade'), true) ? 'unwell' : 'well', "\n";
$away = new Queue('sqlite:///nowhere/at/all.db');
$problems = array_filter($away->doctor(), fn ($finding) => $finding['grade'] === 'problem');
echo count($problems), ' ', str_contains(json_encode($problems, JSON_UNESCAPED_SLASHES), '/nowhere/at/all.db') ? 'named' : 'unnamed', "\n";
refused(fn () => $away->workers());
?>
--EXPECTF--
array(0) {
}
1 [true,"mailer 1",["default","other"],["looks@1","fails@2"],1,30]
id host name queues names pid processes running held startedAt aliveUntil lease
[2,%d,true,true,true]
array(0) {
}
flush: 5 2 0 0 3 0
ValueError: reason must be %s, got "because"
["grade","check","text","advice"] well
2 named
JobQueue\ConnectionException: sqlite: /nowhere/at/all.db: %s

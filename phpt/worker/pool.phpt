--TEST--
A pool runs every job exactly once; options, queues, counters, exit code (rules B1, C1, G2, G3, J1; case B151)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, Worker, State};

$dsn = store('?synchronous=normal');
$queue = new Queue($dsn);
$ids = $queue->pushMany((function () {
    for ($i = 0; $i < 300; $i++) {
        yield ['count', $i, 'queue' => $i % 3 ? 'low' : 'high'];
    }
})());
$queue->push('count', 'later', queue: 'low', delay: 60);
$worker = new Worker($queue, processes: 2);
$same = $worker->handle('count', function (JobQueue\Job $job, int $n) use ($dsn) {
    note($dsn, "$job->id $n $job->attempt $job->deliveries " . getmypid());
});
var_dump($same === $worker, work($worker, 'high,low'));
$seen = array_map(fn ($line) => explode(' ', $line), noted($dsn));
var_dump(count($seen), count(array_unique(array_column($seen, 0))), array_diff($ids, array_column($seen, 0)), array_unique(array_column($seen, 2)));
var_dump(in_array((string) getmypid(), array_column($seen, 4), true), $queue->stats('low')->delayed, $queue->stats('low')->backlog);
echo $worker->statistics()['done'], ' ', preg_match('/^[^:]+:\d+:\w+$/', $worker->id()), ' ', var_export($worker->ready(), true), "\n";

// at most that many, failures included
foreach (range(1, 10) as $i) {
    $queue->push('count', $i, queue: 'limited');
}
var_dump(work($worker, 'limited', maxJobs: 3), $queue->stats('limited')->ready);
var_dump(work($worker, ['limited'], once: true, processes: 1), $queue->stats('limited')->ready, work($worker, 'nothing', once: true));
foreach ([fn () => $worker->run(process: 1), fn () => $worker->run(processes: -1), fn () => $worker->run(timeout: 'soon'), fn () => new Worker($queue, lease: 0),
    fn () => new Worker($queue, delay: 1), fn () => $worker->run([1]), fn () => new Worker($queue, 5), fn () => new Worker(processes: 2)] as $call) {
    echo refused_as($call), "\n";
}
?>
--EXPECT--
bool(true)
int(0)
int(300)
int(300)
array(0) {
}
array(1) {
  [0]=>
  string(1) "1"
}
bool(false)
int(1)
int(1)
300 1 false
int(0)
int(7)
int(0)
int(6)
int(0)
ValueError
ValueError
ValueError
ValueError
ValueError
TypeError
ArgumentCountError
ArgumentCountError

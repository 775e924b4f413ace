--TEST--
looping before each job and while idle, its veto, idle, and what a worker is told of its store's control (rules M1, M2, L1, G3)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Event, Job, JobInfo, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
foreach (['one', 'two', 'three'] as $id) {
    $queue->push('note', id: $id);
}
$worker = new Worker($queue, processes: 1);
$worker->handle('note', fn (Job $job) => note($dsn, "run $job->id"));
foreach (['looping', 'idle'] as $name) {
    $worker->on($name, fn (Event $e) => note($dsn, $e->name . ' ' . var_export($e->job, true) . ' ' . json_encode($e->data)));
}
$worker->on('looping', fn () => throw new Exception('a throw is no veto'));
ini_set('error_log', '/dev/null');
// one that ends because the store is empty may end before its child has been idle
$worker->on('idle', fn () => in_array('run three', noted($dsn), true) && $worker->stop());
var_dump($worker->run(output: 'quiet', maxTime: 20));
$noted = noted($dsn);
foreach (['one', 'two', 'three'] as $id) {
    echo array_search("run $id", $noted) > 0 && str_starts_with($noted[array_search("run $id", $noted) - 1], 'looping') ? "asked before $id\n" : "not asked before $id\n";
}
var_dump(in_array('idle NULL []', $noted, true), count(preg_grep('/^looping NULL \[\]$/', $noted)) + count(preg_grep('/^(idle|run)/', $noted)) === count($noted));
echo "-- a veto, until the file is there\n";

unlink(notes($dsn));
$queue->push('note', id: 'four');
$open = folder($dsn) . '/open';
$worker = new Worker($queue, processes: 2, sleep: 0.02);
$worker->handle('note', fn (Job $job) => note($dsn, "run $job->id"));
$worker->on('looping', fn () => is_file($open) ?: note($dsn, 'closed') ?? false);
var_dump($worker->run(stopWhenEmpty: true, stopWhenEmptyFor: 0.5)); // its children may come one after the other: they are asked again
var_dump(in_array('run four', noted($dsn), true), count(noted($dsn)) >= 2, $queue->find('four')?->state->value, $queue->find('four')?->deliveries <= 3);
touch($open);
var_dump(work($worker), noted($dsn)[array_key_last(noted($dsn))]);
unlink($open);
echo "-- inline\n";
$queue->push('note', id: 'five');
$inline = new Worker($queue, processes: 0, sleep: 0.02);
$inline->handle('note', fn (Job $job) => note($dsn, "run $job->id"));
$inline->on('looping', fn () => is_file($open));
$inline->on('idle', fn () => note($dsn, 'idle'));
var_dump(work($inline), $queue->find('five')->state->value);
touch($open);
var_dump(work($inline), $queue->find('five')?->state->value, array_slice(noted($dsn), -2));
echo "-- paused and resumed, in order and once\n";
unlink(notes($dsn));
$queue->pause('mail');
$worker = new Worker($queue, processes: 1);
$worker->handle('stop', fn () => $worker->stop());
foreach (['queue.paused', 'queue.resumed'] as $name) {
    $worker->on($name, function (Event $e) use ($dsn, $queue) {
        note($dsn, "$e->name $e->queue");
        match ("$e->name $e->queue") {
            'queue.paused mail' => $queue->pause('sms'),
            'queue.paused sms' => $queue->resume('sms'),
            'queue.resumed sms' => $queue->push('stop', queue: 'sms'),
        };
    });
}
var_dump($worker->run(['mail', 'sms'], output: 'quiet', maxTime: 20));
echo implode("\n", noted($dsn)), "\n";
?>
--EXPECTF--
int(0)
asked before one
asked before two
asked before three
bool(true)
bool(true)
-- a veto, until the file is there
Worker %s watching default (2 processes)
Stopping: Nothing left to do (vetoed: default)
Ran 0 jobs
int(0)
bool(false)
bool(true)
string(5) "ready"
bool(true)
int(0)
string(8) "run four"
-- inline
int(0)
string(5) "ready"
int(0)
NULL
array(2) {
  [0]=>
  string(8) "run five"
  [1]=>
  string(4) "idle"
}
-- paused and resumed, in order and once
int(0)
queue.paused mail
queue.paused sms
queue.resumed sms
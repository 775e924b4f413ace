--TEST--
Queue::pause, resume, restartWorkers, cancel, clear, prune (rules L1, L2, L3, F4)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State, Worker};

$queue = new Queue(store());
$paused = fn () => implode(' ', array_map(fn ($q) => $queue->stats($q)->paused ? 'paused' : 'open', ['mail', 'other', 'never used']));
echo $paused(), "\n";
$queue->pause('mail');
echo $paused(), ' ', json_encode($queue->stats('mail')), "\n";
$queue->pause();
echo $paused(), "\n";
$queue->resume('mail');
echo $paused(), "\n";
$queue->resume();
echo $paused(), "\n";
$queue->pause('mail', ttl: 0.05);
$queue->pause('tiny', ttl: 0.0001); // rule L1: short, not for ever as 0
for ($i = 0; $i < 400 && $queue->stats('mail')->paused; $i++) {
    usleep(10_000);
}
echo 'run out: ', $paused(), $queue->stats('tiny')->paused ? ' tiny' : '', "\n";
$queue->pause('mail', 0);
$queue->pause(queue: 'mail', ttl: 3600);
$queue->resume(queue: 'mail');
$queue->resume('mail');
refused(fn () => $queue->pause('a,b'));
refused(fn () => $queue->pause('mail', -1));
refused(fn () => $queue->pause('mail', NAN));
refused(fn () => $queue->pause('mail', 1e12));
$queue->restartWorkers();

// cancel: what waits is dead; unknown ids are false
$id = $queue->push('a', ['n' => 1], queue: 'mail', unique: 'key');
var_dump($queue->find($id)->unique, $queue->find($queue->push('b', queue: 'mail', delay: 60))->unique);
var_dump($queue->cancel($id), $queue->cancel($id), $queue->cancel('unknown', hard: true), $queue->cancel("\0"));
$info = $queue->find($id);
echo $info->state->value, ' ', $info->reason, ' ', json_encode($info->payload), "\n";
$job = $queue->reserve('mail');
var_dump($job);
$queue->push('c', id: 'c', queue: 'mail');
$job = $queue->reserve('mail');
var_dump($queue->cancel('c'), $queue->find('c')->state === State::Reserved);
$job->done();

// clear: ready and delayed ones go, dead ones stay
foreach (range(1, 1200) as $i) {
    $jobs[] = ['d', $i, 'queue' => 'mail', 'delay' => $i % 2 ? 0 : 60];
}
$queue->pushMany($jobs);
var_dump($queue->clear('mail'), $queue->clear('mail'), $queue->stats('mail')->backlog, $queue->stats('mail')->dead);
refused(fn () => $queue->clear(''));

// prune: by age alone
var_dump($queue->prune(), $queue->prune(dryRun: true, olderThan: 0), $queue->prune(olderThan: 3600), $queue->prune(false, 0), $queue->prune(olderThan: 0));
refused(fn () => $queue->prune(olderThan: -1));
// a flag is true or false, never what is merely true
foreach ([-1, 'no', 0, null] as $flag) {
    refused(fn () => $queue->prune($flag));
}
refused(fn () => $queue->cancel('x', hard: 1));
refused(fn () => $queue->retry(all: 'no'));
refused(fn () => $queue->doctor(audit: 1));
// finished jobs whose time is over, in several steps
$queue->pushMany(array_map(fn ($i) => ['k', $i, 'queue' => 'keep'], range(1, 1200)));
(new Worker($queue, processes: 0, output: 'quiet', keepDone: 2))->handle('k', fn () => null)->run('keep', stopWhenEmpty: true);
$kept = count($queue->jobs('keep', State::Done, 1000));
for ($i = 0; $i < 600 && $queue->prune() === 0 && $queue->jobs('keep', State::Done, 1); $i++) {
    usleep(50_000);
}
var_dump($kept > 0, count($queue->jobs('keep', State::Done, 1)));
?>
--EXPECTF--
open open open
paused open open {"queue":"mail","ready":0,"delayed":0,"reserved":0,"dead":0,"paused":true,"backlog":0,"oldest_ready_age":null,"capacity":0,"per_minute":[]}
paused paused paused
paused paused paused
open open open
run out: open open open
ValueError: queue must be 1 to 128 bytes of UTF-8 without commas, control characters, leading or trailing blanks, got 3 bytes "a,b"
ValueError: ttl must be a number of seconds, 0 or more
ValueError: ttl must be a number of seconds, 0 or more
ValueError: ttl must be 0 (until resumed) to 315619200 seconds, got 1000000000000000 ms
string(3) "key"
NULL
bool(true)
bool(false)
bool(false)
bool(false)
dead cancelled {"n":1}
NULL
bool(true)
bool(true)
int(1201)
int(0)
int(0)
int(1)
ValueError: queue must be %s
int(0)
int(1)
int(0)
int(1)
int(0)
ValueError: olderThan must be a number of seconds, 0 or more
TypeError: JobQueue\Queue::prune(): Argument #1 ($dryRun) must be of type bool, int given
TypeError: JobQueue\Queue::prune(): Argument #1 ($dryRun) must be of type bool, string given
TypeError: JobQueue\Queue::prune(): Argument #1 ($dryRun) must be of type bool, int given
TypeError: JobQueue\Queue::prune(): Argument #1 ($dryRun) must be of type bool, null given
TypeError: JobQueue\Queue::cancel(): Argument #2 ($hard) must be of type bool, int given
TypeError: JobQueue\Queue::retry(): Argument #6 ($all) must be of type bool, string given
TypeError: JobQueue\Queue::doctor(): Argument #1 ($audit) must be of type bool, int given
bool(true)
int(0)

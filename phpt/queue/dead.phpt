--TEST--
dead, retry, forget: pages, filters, what cannot be done (rules F1, F4)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State};

$queue = new Queue($dsn = store());
$ids = [];
foreach (['a', 'a', 'b', 'c', 'u'] as $i => $name) {
    $ids[] = $queue->push($name, ['i' => $i], queue: $i < 3 ? 'one' : 'two', unique: $name === 'u' ? 'key' : null);
}
while ($job = $queue->reserve('one,two')) {
    $job->fail("no $job->name");
}
$names = fn (array $list) => implode(' ', array_map(fn ($info) => $info->name, $list));
echo $names($queue->dead()), ' | ', $names($queue->dead('one')), ' | ', $names($queue->dead(name: 'a')), ' | ',
    $names($queue->dead(reason: 'failed_by_handler', limit: 2)), ' | ', $names($queue->dead(olderThan: 3600)), "\n";
echo $queue->stats('one')->dead, ' ', $queue->stats('two')->dead, "\n";

refused(fn () => $queue->retry());
refused(fn () => $queue->retry([]));
refused(fn () => $queue->forget([], queue: 'one'));
refused(fn () => $queue->flush([])); // never all of them
refused(fn () => $queue->retry('x', name: 'a'));
var_dump($queue->retry(name: 'a', dryRun: true), $queue->stats('one')->ready);
var_dump($queue->retry(name: 'a'), $queue->stats('one')->ready);
$info = $queue->find($ids[0]);
var_dump($info->state, $info->failures, $info->payload);
try {
    $queue->forget([$ids[2], 'unknown', $ids[0]]);
} catch (JobQueue\NotFound $e) {
    echo $e->getMessage(), ' ', var_export($e->ids === ['unknown', $ids[0]], true), "\n";
}
var_dump($queue->find($ids[2]), $queue->find($ids[0])?->state->value);

// its unique key is held: skipped and reported
$holder = $queue->push('u', null, queue: 'two', unique: 'key');
try {
    $queue->retry($ids[4]);
} catch (JobQueue\DuplicateJob $e) {
    var_dump($e->id === $holder, $e->getMessage() === "job \"$ids[4]\" skipped: its unique key is held by job \"$holder\"");
}
try {
    $queue->retry([$ids[4], 'unknown']);
} catch (JobQueue\NotFound $e) {
    var_dump($e->ids === ['unknown'], str_contains($e->getMessage(), "its unique key is held: \"$ids[4]\""));
}
var_dump($queue->retry(all: true), $queue->forget(all: true), count($queue->jobs('two', State::Ready)));
// pages by the last id seen, on this handle and on another
$queue->pushMany(array_map(fn ($i) => ["p$i", null, 'queue' => 'pages'], range(1, 7)));
$pages = [];
for ($after = null; $page = $queue->jobs('pages', State::Ready, 3, $after); $after = end($page)->id) {
    $pages[] = $names($page);
}
echo implode(' | ', $pages), "\n";
while ($job = $queue->reserve('pages')) {
    $job->fail('x');
}
$first = $queue->dead('pages', limit: 2);
$other = new Queue($dsn);
echo $names($first), ' | ', $names($queue->dead('pages', limit: 4, after: $first[1]->id)), ' | ', $names($other->dead('pages', limit: 4, after: $first[1]->id)), ' | ',
    $names($other->dead('pages', after: $first[0]->id)), "\n";
refused(fn () => $queue->dead(after: 'unknown'));
refused(fn () => $queue->dead(limit: 0));
refused(fn () => $queue->dead(olderThan: -1));
echo refused_as(fn () => $queue->dead(reason: 'whatever')), "\n";
?>
--EXPECT--
u c b a a | b a a | a a | u c | 
3 2
ValueError: give ids, a filter (queue, name, reason, olderThan), or all: true
ValueError: ids: the list is empty; leave it out to go by a filter or all: true
ValueError: ids: the list is empty; leave it out to go by a filter or all: true
ValueError: ids: the list is empty; leave it out to go by a filter or all: true
ValueError: give either ids or a filter, not both
int(2)
int(0)
int(2)
int(2)
enum(JobQueue\State::Ready)
int(0)
array(1) {
  ["i"]=>
  int(0)
}
no dead job has the id "unknown" (and others) true
NULL
string(5) "ready"
bool(true)
bool(true)
bool(true)
bool(true)
int(1)
int(1)
int(2)
p1 p2 p3 | p4 p5 p6 | p7
p7 p6 | p5 p4 p3 p2 | p5 p4 p3 p2 | p6 p5 p4 p3 p2 p1
ValueError: after: the list has no job with the id "unknown"
ValueError: limit must be between 1 and 1000, 0 given
ValueError: olderThan must be a number of seconds, 0 or more
ValueError

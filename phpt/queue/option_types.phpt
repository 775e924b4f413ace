--TEST--
Options of a wrong type are refused, not guessed at: the message names the option, what it takes and what was given (rule G1)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, Worker};

$queue = new Queue('memory:');
foreach ([['track' => 'no'], ['track' => 1], ['id' => 'x', 'idempotent' => 'yes'], ['unique' => 'x', 'onDuplicate' => 3], ['expires' => [1]], ['retryUntil' => true]] as $options) {
    refused(fn () => $queue->push('never', null, ...$options));
}
$results = $queue->pushMany([['never', null, 'track' => 'no'], ['never', null, 'unique' => 5], ['stored', null, 'track' => true]]);
echo implode("\n", array_map(fn ($r) => is_string($r) ? 'stored' : $r->getMessage(), $results)), "\n";

foreach ([['once' => 'no'], ['stopWhenEmpty' => 0], ['name' => 5], ['processes' => true], ['dontRetry' => 5], ['prefetch' => 'many']] as $options) {
    refused(fn () => new Worker($queue, ...$options));
}
foreach ([['migrate' => 'no'], ['prefix' => 5]] as $options) {
    refused(fn () => new Queue('sqlite:never.db', $options));
}

// numbers may be texts, as they come from the environment
new Worker($queue, tries: '5', prefetch: 'auto', once: true, dontRetry: ['App\\NoStock']);
var_dump($queue->stats('default')->ready);
?>
--EXPECT--
TypeError: track: true or false is expected, string given
TypeError: track: true or false is expected, int given
TypeError: idempotent: true or false is expected, string given
TypeError: onDuplicate: a string is expected, int given
TypeError: expires: a number, a string or a time is expected, array given
TypeError: retryUntil: a number, a string or a time is expected, bool given
track: true or false is expected, string given
unique: a string is expected, int given
stored
TypeError: once: true or false is expected, string given
TypeError: stopWhenEmpty: true or false is expected, int given
TypeError: name: a string is expected, int given
TypeError: processes: a number is expected, bool given
TypeError: dontRetry: a string or a list of strings is expected, int given
ValueError: option "prefetch" must be auto, or 0 to 100000 (0 = none), got "many"
TypeError: migrate: true or false is expected, string given
TypeError: prefix: a string is expected, int given
int(1)

--TEST--
A push with a guard is stored only where the store finds it true (rule B7)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{GuardRefused, Queue};

$queue = new Queue($dsn = store());
$over = fn (int $n) => statement('SELECT ? > ?', 'return tonumber(ARGV[1]) > tonumber(ARGV[2])', $n, 5);
var_dump(strlen($queue->push('a', null, guard: $over(6))));
try {
    $queue->push('b', null, guard: $over(5));
} catch (GuardRefused $e) {
    echo $e->errorCode, "\n";
}
$results = $queue->pushMany([['c', 1, 'guard' => $over(1)], ['d', 2, 'guard' => $over(9)], ['e', 3]]);
echo implode(' ', array_map(fn ($r) => is_string($r) ? 'stored' : $r::class, $results)), ' ', $queue->stats('default')->ready, "\n";

// a text alone is a statement without parameters
$plain = fn (int $is) => getenv('JOBQUEUE_TEST_STORE') === 'redis' ? "return $is" : "SELECT $is";
echo strlen($queue->push('t', null, queue: 'text', guard: $plain(1))), ' ', refused_as(fn () => $queue->push('t', null, queue: 'text', guard: $plain(0))), "\n";

// what is no statement, and one that the store cannot carry out
foreach ([5, [], [1], ['SELECT 1', 2], ['SELECT 1', [], 3], ['SELECT ?', [[]]], ['SELECT ?', [new stdClass()]]] as $guard) {
    refused(fn () => $queue->push('f', null, guard: $guard));
}
echo refused_as(fn () => $queue->push('g', null, guard: ['this is neither SQL nor Lua'])), ' ', $queue->stats('default')->ready, "\n";
?>
--EXPECTF--
int(36)
guard_refused
JobQueue\GuardRefused stored stored 3
36 JobQueue\GuardRefused
TypeError: guard: a text or [text of the statement, [parameter, ...]] is expected
TypeError: guard: a text or [text of the statement, [parameter, ...]] is expected
TypeError: guard: a text or [text of the statement, [parameter, ...]] is expected
TypeError: guard: a text or [text of the statement, [parameter, ...]] is expected
TypeError: guard: a text or [text of the statement, [parameter, ...]] is expected
TypeError: guard: parameter 1: null, bool, int, float, string, Bytes or BigInt is expected, array given
TypeError: guard: parameter 1: null, bool, int, float, string, Bytes or BigInt is expected, stdClass given
ValueError 3

--TEST--
Options: a wrong name is an error whatever its value, a list is no number, a past date is now (rules B9, G1, G6; api: an option in the wrong place names the right one)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, Worker};

$queue = new Queue(store());
foreach ([null, [], new stdClass] as $value) {
    refused(fn () => $queue->push('x', dealy: $value));
    refused(fn () => $queue->push('x', processes: $value));
    refused(fn () => new Worker($queue, retry_until: $value));
    refused(fn () => (new Worker($queue))->handle('x', fn () => 1, lease: $value));
    refused(fn () => new Queue('memory:', ['delay' => $value]));
}
refused(fn () => $queue->push('x', null, ...['expires' . "\0" => 5]));
refused(fn () => new Worker($queue, processes: [2]));
echo count($queue->pushMany([['x', 1, 'tries' => null]])), "\n";
foreach ([['x', 1, "delay\0x" => 5], ['x', 1, 'tracked' => null], ['x', 1, 'delay' => [5]]] as $item) {
    echo $queue->pushMany([$item])[0]->getMessage(), "\n";
}
foreach (['0000-01-01', '-0044-03-15', '1969-12-31'] as $past) {
    echo $queue->find($queue->push('x', at: new DateTimeImmutable($past)))->state->value, "\n";
}
refused(fn () => $queue->push('x', at: new DateTimeImmutable('@253402300800')));
?>
--EXPECT--
ValueError: unknown option "dealy", did you mean "delay"?
ValueError: option "processes" belongs to the worker, not to push
ValueError: option "retryUntil" belongs to push, not to the worker
ValueError: option "lease" belongs to the worker, not to the handler
ValueError: option "delay" belongs to push, not to the connection
ValueError: unknown option "dealy", did you mean "delay"?
ValueError: option "processes" belongs to the worker, not to push
ValueError: option "retryUntil" belongs to push, not to the worker
ValueError: option "lease" belongs to the worker, not to the handler
ValueError: option "delay" belongs to push, not to the connection
ValueError: unknown option "dealy", did you mean "delay"?
ValueError: option "processes" belongs to the worker, not to push
ValueError: option "retryUntil" belongs to push, not to the worker
ValueError: option "lease" belongs to the worker, not to the handler
ValueError: option "delay" belongs to push, not to the connection
ValueError: an option's name holds a NUL byte
TypeError: processes: a number is expected, array given
1
an option's name holds a NUL byte
unknown option "tracked", did you mean "track"?
delay: a number is expected, array given
ready
ready
ready
ValueError: at: the year must be 9999 at most

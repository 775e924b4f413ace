--TEST--
Push options: what they do, and wrong ones (rules A1, B2, B6, B9; case B141)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State};

$queue = new Queue(store());
$id = $queue->push('mail.send', ['n' => 1], queue: 'mail:{fast} ünï', delay: 60, priority: 7, id: 'order:17', version: 2, unique: 'k', tries: 5,
    timeout: 1.5, backoff: [1, 2.5, 300], context: ['trace' => 'abc'], retryUntil: 3600, expires: new DateTimeImmutable('+1 day'), onExpire: 'drop');
$info = $queue->find($id);
echo "$id {$info->name} {$info->queue} {$info->version} {$info->priority} {$info->state->value} {$info->context['trace']}\n";
$options = $info->options;
ksort($options);
echo implode(' ', array_keys($options)), "\n";
var_dump($info->options['tries'], $info->options['timeout'], $info->options['backoff'] ?? null);
var_dump($info->availableAt > $info->enqueuedAt, $info->diedAt, $info->lastError, $info->history, $info->payloadError);

// the key is held: the first's id comes back
var_dump($queue->push('mail.send', ['n' => 2], queue: 'mail:{fast} ünï', unique: 'k') === $id);
var_dump($queue->push('mail.send', null, queue: 'other', unique: 'k') !== $id);
try {
    $queue->push('mail.send', null, id: 'order:17');
} catch (JobQueue\DuplicateJob $e) {
    echo get_class($e), " {$e->id} {$e->errorCode} ", var_export($e->isRetryable(), true), "\n";
}
// at in the past is now
$past = $queue->push('x', at: new DateTime('-1 hour'), queue: 'past');
echo $queue->find($past)->state->value, "\n";

foreach ([
    fn () => $queue->push(''), fn () => $queue->push("a\nb"), fn () => $queue->push(str_repeat('x', 256)), fn () => $queue->push('x', queue: 'a,b'),
    fn () => $queue->push('x', queue: ' a'), fn () => $queue->push('x', id: '-x'), fn () => $queue->push('x', priority: 10),
    fn () => $queue->push('x', delay: -1), fn () => $queue->push('x', delay: NAN), fn () => $queue->push('x', delay: 4e8),
    fn () => $queue->push('x', tries: -1), fn () => $queue->push('x', version: 0), fn () => $queue->push('x', backoff: []),
    fn () => $queue->push('x', retry_until: 5), fn () => $queue->push('x', processes: 2), fn () => $queue->push('x', track: 'perhaps'),
    fn () => $queue->push('x', context: ['a' => 1]), fn () => $queue->push('x', context: ['a' => str_repeat('x', 9000)]),
    fn () => $queue->push('x', delay: '5'), fn () => $queue->push(new stdClass), fn () => $queue->push('x', delay: 1, at: new DateTime),
] as $call) {
    echo refused_as($call), "\n";
}
var_dump($queue->stats('default')->backlog);
?>
--EXPECTF--
order:17 mail.send mail:{fast} ünï 2 7 delayed abc
%s
int(5)
float(1.5)
%s
bool(true)
NULL
NULL
array(0) {
}
NULL
bool(true)
bool(true)
JobQueue\DuplicateJob order:17 duplicate false
ready
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
TypeError
TypeError
ValueError
TypeError
ValueError
ValueError
int(0)

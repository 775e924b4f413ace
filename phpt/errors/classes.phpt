--TEST--
The exception classes: hierarchy, fields, RetryAfter (api 2)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';

foreach (['ConnectionException', 'OutcomeUnknown', 'DuplicateJob', 'QueueFull', 'GuardRefused', 'JobDead', 'WaitTimeout', 'LeaseLost', 'PayloadException', 'NotFound', 'TimeoutException', 'StopException', 'RetryAfter'] as $name) {
    $class = "JobQueue\\$name";
    echo $name, ' ', is_subclass_of($class, JobQueue\QueueException::class) && is_subclass_of($class, RuntimeException::class)
        && is_subclass_of($class, JobQueue\ExceptionInterface::class) ? 'ok' : 'no', "\n";
}
$e = new JobQueue\RetryAfter(2.5, 'later', new Exception('why'));
var_dump($e->seconds, $e->getMessage(), $e->getPrevious()->getMessage(), $e->errorCode, $e->isRetryable());
foreach ([-1, NAN, INF] as $bad) {
    refused(fn () => new JobQueue\RetryAfter($bad));
}
var_dump(interface_exists(JobQueue\NotRetryable::class));
foreach (['Queue', 'Worker', 'Job', 'JobInfo', 'Stats', 'Event', 'BigInt', 'Bytes', 'AsJob', 'Console'] as $name) {
    if (!(new ReflectionClass("JobQueue\\$name"))->isFinal()) echo "$name is not final\n";
}
echo implode(' ', array_map(fn ($case) => $case->value, JobQueue\State::cases())), "\n";

echo (new ReflectionClass(JobQueue\AsJob::class))->getAttributes()[0]->newInstance()->flags === Attribute::TARGET_CLASS ? 'classes' : 'anything', "\n";
#[JobQueue\AsJob('x', queue: 'q', backoff: [1, 2], unique: 'id')]
class Fine {}
$fine = (new ReflectionClass('Fine'))->getAttributes()[0]->newInstance();
var_dump($fine->name, $fine->queue, $fine->tries, $fine->backoff, $fine->version, $fine->unique);
refused(fn () => new JobQueue\AsJob('x', timeout: 'abc'));
?>
--EXPECT--
ConnectionException ok
OutcomeUnknown ok
DuplicateJob ok
QueueFull ok
GuardRefused ok
JobDead ok
WaitTimeout ok
LeaseLost ok
PayloadException ok
NotFound ok
TimeoutException ok
StopException ok
RetryAfter ok
float(2.5)
string(5) "later"
string(3) "why"
string(11) "retry_after"
bool(false)
ValueError: seconds must be a number of seconds, 0 or more
ValueError: seconds must be a number of seconds, 0 or more
ValueError: seconds must be a number of seconds, 0 or more
bool(true)
ready delayed reserved done dead
classes
string(1) "x"
string(1) "q"
NULL
array(2) {
  [0]=>
  int(1)
  [1]=>
  int(2)
}
int(1)
string(2) "id"
TypeError: Cannot assign string to property JobQueue\AsJob::$timeout of type int|float|null

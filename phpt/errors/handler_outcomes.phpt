--TEST--
What a handler can do and what becomes of it: throws, exit, fatal errors, signals (rules D2 - D5, E2; case B067)
--EXTENSIONS--
jobqueue
--INI--
display_errors=0
log_errors=0
memory_limit=64M
zend.max_allowed_stack_size=-1
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, NotRetryable, Queue, RetryAfter, State, Worker};

class Hopeless extends DomainException implements NotRetryable {}
$dsn = store();
file_put_contents($broken = folder($dsn) . '/broken.php', '<?php if (');
function endless() { array_map('endless', [1]); } // overflows the C stack
class Thrower { public function __construct() { throw new LogicException('built'); } public function handle() {} }

$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 1, dontRetry: ['InvalidArgumentException'], timeout: 20, backoff: 600);
$handlers = [
    'done' => fn () => 'anything',
    'throws' => fn () => throw new RuntimeException("no\nnetwork", 5, new LogicException('inner')),
    'error' => fn () => undefined_function(),
    'later' => fn () => throw new RetryAfter(120, 'busy'),
    'hopeless' => fn () => throw new Hopeless('never'),
    'dontRetry' => fn () => throw new InvalidArgumentException('listed'),
    'exit3' => fn () => exit(3),
    'die' => fn () => die(),
    'memory' => fn () => str_repeat('x', 1 << 30),
    'no memory' => function () { ini_set('memory_limit', -1); str_repeat('x', 1 << 47); }, // more than a process can have
    'user error' => fn () => trigger_error('broken for good', E_USER_ERROR),
    'compile' => fn () => eval('class Duplicate {} class Duplicate {}'),
    'parse' => fn () => include $broken,
    'time limit' => function () { set_time_limit(1); while (true); },
    'recursion' => function () { ini_set('memory_limit', -1); endless(); },
    'kill' => function () { posix_kill(getmypid(), SIGKILL); },
    'builds' => 'Thrower',
    'fork' => function (Job $job) use ($dsn) { $pid = pcntl_fork(); if (!$pid) { note($dsn, 'forked'); exit(0); } pcntl_waitpid($pid, $status); },
    'fork and return' => function (Job $job) { if ($pid = pcntl_fork()) { pcntl_waitpid($pid, $status); } },
    'release' => fn (Job $job) => $job->release(600),
    'release then throw' => function (Job $job) { $job->release(600); throw new Exception('after'); },
    'fail' => fn (Job $job) => $job->fail('by hand'),
    'delete' => fn (Job $job) => $job->delete(),
    'delete then exit' => function (Job $job) { $job->delete(); exit(1); },
    'twice' => function (Job $job) { $job->release(600); $job->fail('x'); },
];
foreach (['posix' => 'kill', 'pcntl' => 'fork', 'pcntl ' => 'fork and return'] as $extension => $name) {
    if (!extension_loaded(trim($extension))) {
        $handlers[$name] = fn () => null;
    }
}
if (getenv('JOBQUEUE_SANITIZED')) {
    $handlers['no memory'] = fn () => null; // a sanitizer ends the process itself, and has much to say
}
$ids = [];
foreach ($handlers as $name => $handler) {
    $worker->handle($name, $handler);
    $ids[$name] = $queue->push($name, null, tries: 2);
}
$ids['missing'] = $queue->push('missing');
$ids['version'] = $queue->push('done', null, version: 9);
$worker->on('job.exception', fn ($e) => note($dsn, 'exception ' . $e->job->name));
$started = time();
var_dump(work($worker));
foreach ($ids as $name => $id) {
    $info = $queue->find($id);
    $error = $info?->lastError;
    if ($name === 'kill' && !extension_loaded('posix')) {
        continue;
    }
    if ($name === 'no memory' && getenv('USE_ZEND_ALLOC') === '0') {
        echo "no memory          delayed - crashed failures=0 crashes=1 releases=0 | PHP or an extension ended the process with exit(1), as PHP does when the system has no more memory\n";
        continue;
    }
    if ($name === 'memory' && getenv('USE_ZEND_ALLOC') === '0') { // no memory limit then
        echo "memory             delayed - crashed failures=0 crashes=1 releases=0 | Allowed memory size of 67108864 bytes exhausted (tried to allocate 1 bytes)\n";
        continue;
    }
    echo str_pad($name, 18), ' ', $info ? substr(line($info), strlen($info->name) + 1) : 'gone', ' | ', $error ? trim("{$error['class']} " . preg_replace(['~ in /.*| at /.*~', '~\n~'], ['', '\n'], $error['message'])) : '', "\n";
}
$error = $queue->find($ids['throws'])->lastError;
var_dump((bool) preg_match('/^.+handler_outcomes\.php:\d+$/', $error['where']), str_contains($error['trace'], 'Previous: LogicException: inner'));
$later = $queue->find($ids['later']);
$due = $later->availableAt->getTimestamp(); // 120 s after the attempt, and up to a tenth more
var_dump($due >= $started + 120 && $due <= time() + 133);
echo implode("\n", array_filter(noted($dsn), fn ($n) => $n === 'forked' || $n === 'exception throws')), "\n";
?>
--EXPECTF--
%Aint(0)
done               gone | 
throws             delayed - failed failures=1 crashes=0 releases=0 | RuntimeException no\nnetwork
error              delayed - failed failures=1 crashes=0 releases=0 | Error Call to undefined function undefined_function()
later              delayed - failed failures=1 crashes=0 releases=0 | JobQueue\RetryAfter busy
hopeless           dead not_retryable failed failures=1 crashes=0 releases=0 | Hopeless never
dontRetry          dead not_retryable failed failures=1 crashes=0 releases=0 | InvalidArgumentException listed
exit3              delayed - exited failures=1 crashes=0 releases=0 | the handler called exit(3)
die                delayed - exited failures=1 crashes=0 releases=0 | the handler called exit(0)
memory             delayed - crashed failures=0 crashes=1 releases=0 | Allowed memory size of 67108864 bytes exhausted (tried to allocate %d bytes)
no memory          delayed - crashed failures=0 crashes=1 releases=0 | %r(PHP or an extension ended the process with exit\(1\), as PHP does when the system has no more memory|Out of memory \(allocated \d+ bytes\) \(tried to allocate \d+ bytes\))%r
user error         delayed - crashed failures=0 crashes=1 releases=0 | broken for good
compile            delayed - crashed failures=0 crashes=1 releases=0 | Cannot %Sdeclare class Duplicate%S
parse              delayed - failed failures=1 crashes=0 releases=0 | ParseError %s
time limit         delayed - crashed failures=0 crashes=1 releases=0 | Maximum execution time of 1 second exceeded
recursion          delayed - crashed failures=0 crashes=1 releases=0 | killed by signal 11 (SIGSEGV)
kill               delayed - crashed failures=0 crashes=1 releases=0 | killed by signal 9 (SIGKILL)
builds             delayed - failed failures=1 crashes=0 releases=0 | LogicException built
fork               gone | 
fork and return    gone | 
release            delayed - released failures=0 crashes=0 releases=1 | 
release then throw delayed - released failures=0 crashes=0 releases=1 | 
fail               dead failed_by_handler failed failures=%d crashes=0 releases=0 | by hand
delete             gone | 
delete then exit   gone | 
twice              delayed - released failures=0 crashes=0 releases=1 | 
missing            %r(delayed|ready)%r - %s failures=0 crashes=0 releases=0 | %S
version            %r(delayed|ready)%r - %s failures=0 crashes=0 releases=0 | %S
bool(true)
bool(true)
bool(true)
exception throws
forked

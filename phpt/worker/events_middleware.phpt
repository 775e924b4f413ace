--TEST--
Middleware order, $next, defer, events and listeners that throw (rules D1, D2, D8, M1, M2; case B140)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Event, Job, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 1);
$worker->middleware(function (Job $job, mixed $payload, callable $next) use ($dsn) {
    note($dsn, "  outer in $job->name");
    $result = $next($job, $payload);
    note($dsn, "  outer out " . json_encode($result));
    return $result;
}, function (Job $job, mixed $payload, Closure $next) use ($dsn) {
    if ($job->name === 'skipped') {
        return null;
    }
    if ($job->name === 'vetoed') {
        throw new DomainException('veto');
    }
    return $job->name === 'changed' ? $next($job, 'other') : $next();
});
foreach (['worker.starting', 'worker.stopping', 'child.started', 'child.stopping', 'job.processing', 'job.processed', 'job.released', 'job.exception'] as $name) {
    $worker->on($name, function (Event $e) use ($dsn) {
        note($dsn, $e->name . ($e->job ? " {$e->job->name}" : '') . (isset($e->data['exception']) ? ' ' . $e->data['exception']->getMessage() : '')
            . (isset($e->data['delay']) ? " {$e->data['delay']}" : '') . (isset($e->data['reason']) ? " {$e->data['reason']} {$e->data['code']}" : ''));
    });
}
$worker->on('job.processed', fn () => throw new Exception('listener'));
$worker->on('job.processing', fn (Event $e) => $e->job->name === 'unwanted' ? throw new Exception('not this one') : null);
$say = fn ($job, $payload) => note($dsn, "    run $job->name " . json_encode($payload)) ?? 'result';
foreach (['plain', 'changed', 'skipped', 'vetoed', 'unwanted'] as $name) {
    $worker->handle($name, $say);
}
$worker->handle('released', fn (Job $job) => $job->release(30) ?? $job->defer(fn () => note($dsn, '    cleanup')));
$worker->handle('defers', function (Job $job) use ($dsn) {
    foreach ([1, 2] as $i) {
        $job->defer(fn () => note($dsn, "    cleanup $i"));
    }
    throw new Exception('thrown');
});
$worker->handle('cleanup fails', function (Job $job) use ($dsn) {
    $job->defer(fn () => note($dsn, '    cleanup runs all the same'));
    $job->defer(fn () => throw new Exception('dirty'));
});
$ids = [];
foreach (['plain', 'changed', 'skipped', 'vetoed', 'unwanted', 'released', 'defers', 'cleanup fails'] as $name) {
    $ids[] = $queue->push($name, ['n' => 1]);
}
work($worker, [], maxJobs: 8);
echo implode("\n", noted($dsn)), "\n";
foreach ($ids as $id) {
    echo ($info = $queue->find($id)) ? line($info) . ' ' . ($info->lastError['message'] ?? '') . "\n" : '';
}
refused(fn () => $worker->middleware('nonsense'));
refused(fn () => $worker->on('job.pushed', 'strlen'));
?>
--EXPECTF--
worker.starting
child.started
job.processing plain
  outer in plain
    run plain {"n":1}
  outer out "result"
job.processed plain
job.processing changed
  outer in changed
    run changed "other"
  outer out "result"
job.processed changed
job.processing skipped
  outer in skipped
  outer out null
job.processed skipped
job.processing vetoed
  outer in vetoed
job.exception vetoed veto
job.processing unwanted
job.exception unwanted not this one
job.processing released
  outer in released
  outer out null
job.released released 30
    cleanup
job.processing defers
  outer in defers
job.exception defers thrown
    cleanup 2
    cleanup 1
job.processing cleanup fails
  outer in cleanup fails
  outer out null
job.processed cleanup fails
    cleanup runs all the same
%A
worker.stopping ran 8 jobs 0
vetoed delayed - failed failures=1 crashes=0 releases=0 veto
unwanted delayed - failed failures=1 crashes=0 releases=0 not this one
released delayed - released failures=0 crashes=0 releases=1 
defers delayed - failed failures=1 crashes=0 releases=0 thrown
cleanup fails delayed - cleanup_failed failures=1 crashes=0 releases=0 dirty
TypeError: JobQueue\Worker::middleware(): Argument #1 must be of type callable, string given
ValueError: "job.pushed" is an event of a Queue, not of a Worker

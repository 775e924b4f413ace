--TEST--
After the handler's end nobody decides it again: a LogicException says so; the outcome of fail() is "failed" (rules D3, F2)
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
$worker = new Worker($queue, processes: 0, tries: 1);
$say = function (string $what, callable $call) use ($dsn): void {
    try {
        $call();
        note($dsn, "$what: taken");
    } catch (Throwable $e) {
        note($dsn, "$what: " . get_class($e) . ' ' . $e->getMessage());
    }
};
$worker->handle('cleanup', fn (Job $job) => $job->defer(fn () => $say('release in a cleanup', fn () => $job->release(5))));
$worker->handle('listener', fn () => 1);
$worker->handle('by hand', fn (Job $job) => $job->fail('enough'));
$worker->on('job.processed', function (Event $event) use ($say) {
    if ($event->job->name === 'listener') {
        $say('fail in a listener', fn () => $event->job->fail('late'));
    }
});
$ids = [];
foreach (['cleanup', 'listener', 'by hand'] as $name) {
    $ids[$name] = $queue->push($name);
}
work($worker);
echo implode("\n", noted($dsn)), "\n";
foreach ($ids as $name => $id) {
    echo "$name: ", line($queue->find($id)), "\n";
}
?>
--EXPECT--
release in a cleanup: LogicException release(): the job's end is decided already (done)
fail in a listener: LogicException fail(): the job's end is decided already (done)
cleanup: gone
listener: gone
by hand: by hand dead failed_by_handler failed failures=1 crashes=0 releases=0

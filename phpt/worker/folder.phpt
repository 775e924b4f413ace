--TEST--
Folder: a handler's chdir() ends with its job, also with the handler thrown out or inline (rule D7, case B146)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
chdir(__DIR__);
foreach ([1, 0] as $processes) {
    $worker = new Worker($queue, processes: $processes, tries: 1);
    $worker->handle('walks', function (Job $job, bool $throws) use ($dsn) {
        chdir('/usr');
        chdir('/');
        $job->defer(fn () => note($dsn, 'cleans up in ' . getcwd()));
        if ($throws) {
            throw new Exception('lost');
        }
    });
    $worker->handle('looks', fn () => note($dsn, basename(getcwd())));
    foreach ([true, false] as $throws) {
        $queue->push('walks', $throws);
        $queue->push('looks');
    }
    work($worker);
}
echo implode("\n", noted($dsn)), "\n";
chdir('/');
echo getcwd(), "\n";
?>
--EXPECT--
cleans up in /
worker
cleans up in /
worker
cleans up in /
worker
cleans up in /
worker
/

--TEST--
Output that nobody takes any more ends no handler (case B149, rule D7)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 1, tries: 1);
$worker->handle('breaks', function () use ($dsn) {
    fclose(STDOUT);
    echo "nobody sees this\n";
    note($dsn, 'went on after the write failed');
});
$worker->handle('prints', function () use ($dsn) {
    print "nor this\n";
    note($dsn, 'the next one, too');
});
$queue->push('breaks');
$queue->push('prints');
echo work($worker), "\n";
echo implode("\n", noted($dsn)), "\n";
var_dump(count($queue->dead()), ini_get('ignore_user_abort'));
?>
--EXPECT--
0
went on after the write failed
the next one, too
int(0)
string(1) "0"

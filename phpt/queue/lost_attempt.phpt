--TEST--
An attempt lost with its worker is in the history, and a death by it has an error (rule F5; cases B037, B065)
--EXTENSIONS--
jobqueue
--ENV--
JOBQUEUE_TEST_SHORT_LEASE=1
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State};

$dsn = store();
$queue = new Queue($dsn);
$id = $queue->push('mail', tries: 1);
$lost = $queue->reserve('default', 0.2);
$other = new Queue($dsn);
wait_until(fn () => $other->reserve() === null && $other->find($id)->state === State::Dead, 'the job is dead');
$info = $other->find($id);
echo $info->reason, ' ', $info->crashes, ': ', $info->lastError['message'], "\n";
foreach ($info->history as $entry) {
    echo $entry['outcome'], ': ', $entry['message'], "\n";
    var_dump($entry['worker'] === $info->reservedBy, $entry['worker'] !== '', abs($entry['ended']->getTimestamp() - time()) < 60);
}
echo refused_as(fn () => $lost->done()), "\n";
?>
--EXPECT--
crashed 1: the process or the worker that ran the job died
lease_lost: the worker's lease ran out while the job was running or about to run
bool(false)
bool(true)
bool(true)
JobQueue\LeaseLost

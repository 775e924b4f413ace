--TEST--
track: progress, result, wait; what cannot be kept (rules N7, D1)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, JobDead, NotFound, Queue, WaitTimeout, Worker};

$dsn = store();
ini_set('error_log', folder($dsn) . '/errors');
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 2, tries: 1, output: 'quiet');
$worker->handle('report', function (Job $job, $rows) use ($dsn) {
    $job->progress(40, 'half of it');
    $seen = null;
    wait_until(function () use ($dsn, $job, &$seen) {
        return $seen = (new Queue($dsn))->find($job->id)?->progress;
    }, 'the progress to be seen');
    note($dsn, "{$seen['percent']} {$seen['note']}");
    return ['rows' => $rows, 'raw' => new JobQueue\Bytes("\0\xff")];
});
$worker->handle('big', fn () => str_repeat('x', 500_000));
$worker->handle('odd', fn () => fn () => 1);
$worker->handle('nothing', fn () => null);
$worker->handle('fails', fn () => throw new DomainException('no'));
$ids = [];
foreach (['report' => 7, 'big' => 1, 'odd' => 1, 'nothing' => 1, 'fails' => 1] as $name => $payload) {
    $ids[$name] = $queue->push($name, $payload, track: true);
}
$ids['untracked'] = $queue->push('nothing');
foreach (['report', 'untracked'] as $name) {
    try {
        $queue->wait($ids[$name], 0.25);
    } catch (WaitTimeout $e) {
        var_dump($e->id === $ids[$name] && str_ends_with($e->getMessage(), ' had not ended after 0.25 s'));
    }
}
var_dump(work($worker));
echo implode("\n", noted($dsn)), "\n";
$result = $queue->wait($ids['report'], 5);
echo $result['rows'], ' ', bin2hex($result['raw']), ' ', strlen($queue->wait($ids['big'], 5)), ' ', json_encode($queue->wait($ids['nothing'], 5)), "\n";
refused(fn () => $queue->wait($ids['odd'], 5));
try {
    $queue->wait($ids['fails'], 5);
} catch (JobDead $e) {
    echo $e->id === $ids['fails'] ? 'its id' : 'another', " $e->reason {$e->info->lastError['message']}\n";
}
foreach (['untracked' => $ids['untracked'], 'unknown' => 'no-such-job'] as $id) {
    try {
        $queue->wait($id, 1);
    } catch (NotFound $e) {
        var_dump($e->ids === [$id]);
    }
}
$info = $queue->find($ids['report']);
echo "{$info->state->value} {$info->progress['percent']} {$info->result['rows']} ", $info->keptUntil->getTimestamp() >= time() + 3000 ? 'an hour' : 'less', "\n";
echo $queue->find($ids['odd'])->resultError, "\n", substr_count(file_get_contents(folder($dsn) . '/errors'), 'cannot be kept'), "\n";

// after reserve: done(result); a result that cannot be queued leaves the job as it was
$id = $queue->push('by.hand', null, track: true);
$job = $queue->reserve();
$job->progress(99.5);
refused(fn () => $job->done(STDIN));
$job->done(['sum' => 12.5]);
echo json_encode($queue->wait($id, 0)), ' ', $queue->find($id)->progress['percent'], "\n";
refused(fn () => $queue->wait($id, -1));
$queue->push('other');
$job = $queue->reserve();
foreach ([101, -1, NAN] as $percent) {
    refused(fn () => $job->progress($percent));
}
?>
--EXPECTF--
bool(true)
bool(true)
int(0)
40 half of it
7 00ff 500000 null
JobQueue\PayloadException: the result could not be kept: result: a Closure cannot be queued
its id attempts_exhausted no
bool(true)
bool(true)
done 40 7 an hour
result: a Closure cannot be queued
1
JobQueue\PayloadException: payload: a resource cannot be queued
{"sum":12.5} 99.5
ValueError: timeout must be a number of seconds, 0 or more
ValueError: %Aprogress%A
ValueError: %Aprogress%A
ValueError: %Aprogress%A

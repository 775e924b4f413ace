--TEST--
job.pushed: after the store has confirmed; a throwing listener changes nothing (rule M2)
--EXTENSIONS--
jobqueue
--INI--
error_log=
log_errors_max_len=0
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, Event, Queue};

#[AsJob('mail.send')]
final class SendMail
{
    public function __construct(private int $to) {}
    public function handle(): void {}
}

$queue = new Queue('memory:');
$queue->on('job.pushed', function (Event $e) use ($queue) {
    echo "$e->name {$e->data['name']} ", strlen($e->data['id']), " $e->connection $e->queue ", var_export($e->job, true), ' ', $queue->stats('default')->ready, "\n";
});
ini_set('error_log', '/dev/null');
$queue->on('job.pushed', fn () => throw new DomainException('listener'));
echo strlen($queue->push('a')), "\n";
$queue->pushMany([['b', null, 'queue' => 'more'], ['c', fn () => 1], new SendMail(2)]);
$queue->push(new SendMail(3)); // known by its job's name, never by the class
refused(fn () => $queue->on('job.done', 'strlen'));
refused(fn () => $queue->on('job.processed', 'strlen'));
// a listener that holds the queue is a cycle the collector finds
$queue = null;
var_dump(gc_collect_cycles() > 0);
?>
--EXPECT--
job.pushed a 36 default default NULL 1
36
job.pushed b 36 default more NULL 2
job.pushed mail.send 36 default default NULL 2
job.pushed mail.send 36 default default NULL 3
ValueError: unknown event "job.done"; a Queue has job.pushed
ValueError: "job.processed" is an event of a Worker, not of a Queue
bool(true)

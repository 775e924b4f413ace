--TEST--
The failed hook: every kind of handler, every kind of death, what it is given, the line and the event (rule F6, M1, M2)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, Event, Job, JobInfo, Queue, RecordedException, Worker};

final class Mailer
{
    public function __construct() { note($GLOBALS['dsn'], 'built'); }
    public function handle(Job $job, mixed $payload): void { throw new DomainException("no route to $payload[to]"); }
    public function failed(JobInfo $info, ?Throwable $e): void
    {
        note($GLOBALS['dsn'], "Mailer::failed {$info->payload['to']} " . get_class($e) . " {$e->className} {$e->getMessage()} " . basename(explode(':', $e->place)[0]));
    }
}
final class Silent
{
    public function handle(Job $job): void { $job->fail('by its own word'); }
}
#[AsJob(name: 'report', tries: 1)]
final class Report
{
    public function __construct(public readonly int $number) {}
    public function handle(): void { throw new LogicException('nothing to report'); }
    public function failed(JobInfo $info): void { note($GLOBALS['dsn'], "Report::failed $this->number $info->reason"); }
}

$dsn = store();
ini_set('error_log', folder($dsn) . '/errors');
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 1, tries: 1, timeoutGrace: 0.3);
$hook = function (JobInfo $info, ?Throwable $e) use ($dsn) {
    note($dsn, "failed $info->name $info->reason {$info->state->value} " . json_encode($info->payload) . ' ' . ($e ? var_export($e->className, true) . " {$e->getMessage()}" : 'null'));
};
$worker->handle('throws', fn () => throw new DomainException('no', 7), failed: $hook);
$worker->handle('fails', fn (Job $job) => $job->fail('enough'), failed: $hook);
$worker->handle('crashes', fn () => posix_kill(getmypid(), SIGSEGV), failed: $hook);
$worker->handle('fatal', fn () => eval('abstract final class Impossible {}'), failed: $hook);
$worker->handle('slow', fn () => sleep(60), timeout: 0.2, failed: $hook);
$worker->handle('expired', fn () => note($dsn, 'never'), failed: $hook);
$worker->handle('cancelled', fn () => note($dsn, 'never'), failed: $hook);
$worker->handle('mail', Mailer::class);
$worker->handle('object', [new Mailer, 'handle']);
$worker->handle('silent', Silent::class);
$worker->register(Report::class);
$worker->on('job.failed', function (Event $e) use ($dsn) {
    note($dsn, "event {$e->data['info']->name} {$e->queue} {$e->data['reason']} " . ($e->data['id'] === $e->data['info']->id ? 'same id' : 'other id') . ' ' . var_export($e->job, true)
        . ' ' . ($e->data['exception'] ? $e->data['exception']->errorCode : 'null'));
});
$worker->on('job.failed', fn () => throw new Exception('a listener changes nothing'));

$ids = [];
foreach (['throws', 'fails', 'crashes', 'fatal', 'slow', 'expired', 'cancelled', 'mail', 'object', 'silent', 'misfit'] as $name) {
    $payload = ['to' => 'ada'];
    $ids[$name] = match ($name) {
        'expired' => $queue->push($name, $payload, expires: new DateTimeImmutable('@1')),
        'cancelled' => $queue->push($name, $payload, delay: 100),
        'misfit' => $queue->push('report', ['number' => 'not one']),
        default => $queue->push($name, $payload),
    };
}
$queue->push(new Report(12), id: 'r12');
$queue->cancel($ids['cancelled']);
var_dump(work($worker), $worker->statistics()['failed'], $worker->statistics()['dead']);
$all = noted($dsn);
sort($all);
echo implode("\n", $all), "\n--\n";
$log = array_filter(file(folder($dsn) . '/errors', FILE_IGNORE_NEW_LINES), fn ($line) => str_contains($line, 'permanently'));
$lines = array_map(fn ($line) => strtr(substr($line, strpos($line, '] ') + 2), array_combine($ids, array_map(fn ($id) => 'ID', $ids))), $log);
sort($lines);
echo implode("\n", $lines), "\n--\n";
var_dump(count($queue->dead()), $queue->queues());
refused(fn () => $worker->handle('other', 'strlen', failed: 'no such function'));
refused(fn () => (new Worker($queue))->handle('other', 'strlen', faild: 'strlen'));
refused(fn () => (new Worker($queue))->on('job.faild', 'strlen'));
refused(fn () => (new Worker($queue))->on('job.pushed', 'strlen'));
refused(fn () => $queue->on('job.failed', 'strlen'));
?>
--EXPECT--
int(0)
int(8)
int(11)
Mailer::failed ada JobQueue\RecordedException DomainException no route to ada failed_hooks.php
Mailer::failed ada JobQueue\RecordedException DomainException no route to ada failed_hooks.php
Report::failed 12 attempts_exhausted
built
built
built
event cancelled default cancelled same id NULL null
event crashes default crashed same id NULL recorded
event expired default expired same id NULL null
event fails default failed_by_handler same id NULL recorded
event fatal default attempts_exhausted same id NULL recorded
event mail default attempts_exhausted same id NULL recorded
event object default attempts_exhausted same id NULL recorded
event report default attempts_exhausted same id NULL recorded
event report default undecodable same id NULL recorded
event silent default failed_by_handler same id NULL recorded
event slow default timed_out same id NULL recorded
event throws default attempts_exhausted same id NULL recorded
failed cancelled cancelled dead {"to":"ada"} null
failed crashes crashed dead {"to":"ada"} NULL killed by signal 11 (SIGSEGV)
failed expired expired dead {"to":"ada"} null
failed fails failed_by_handler dead {"to":"ada"} NULL enough
failed fatal attempts_exhausted dead {"to":"ada"} 'CompileError' Cannot use the final modifier on an abstract class
failed slow timed_out dead {"to":"ada"} 'JobQueue\\TimeoutException' the job is over its time limit of 0.2 s
failed throws attempts_exhausted dead {"to":"ada"} 'DomainException' no
--
Queue job cancelled ID failed permanently: cancelled
Queue job crashes ID failed permanently: killed by signal 11 (SIGSEGV)
Queue job expired ID failed permanently: expired
Queue job fails ID failed permanently: enough
Queue job fatal ID failed permanently: Cannot use the final modifier on an abstract class
Queue job mail ID failed permanently: no route to ada
Queue job object ID failed permanently: no route to ada
Queue job report ID failed permanently: Report::__construct(): Argument #1 ($number) must be of type int, string given
Queue job report r12 failed permanently: nothing to report
Queue job silent ID failed permanently: by its own word
Queue job slow ID failed permanently: the job is over its time limit of 0.2 s
Queue job throws ID failed permanently: no
--
int(12)
array(1) {
  [0]=>
  string(7) "default"
}
TypeError: failed must be of type ?callable, string given
ValueError: unknown option "faild", did you mean "failed"?
ValueError: unknown event "job.faild", did you mean "job.failed"?
ValueError: "job.pushed" is an event of a Queue, not of a Worker
ValueError: "job.failed" is an event of a Worker, not of a Queue
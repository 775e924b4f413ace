--TEST--
Job classes: pushed by their properties, rebuilt by named arguments with declared types (rules B2, A7; api 2)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, BigInt, Bytes, Job, Queue, Worker};

enum Kind: string { case Invoice = 'inv'; }
class Day extends DateTimeImmutable {}

#[AsJob('mail.send', queue: 'mail', tries: 7, priority: 3, version: 2, unique: 'number', backoff: [1, 2])]
final class SendMail
{
    public function __construct(private int $number, protected Kind $kind, public readonly DateTime $when, private Day $day, private ?BigInt $large,
        private Bytes $raw, private float $ratio = 1.0, private array $rows = [], private Kind|string|null $either = null) {}
    public function handle(Job $job): void
    {
        global $dsn;
        note($dsn, json_encode([$job->name, $job->payload['number'], $this->number, $this->kind, get_class($this->when), $this->when->format('c'), get_class($this->day),
            (string) $this->large, bin2hex((string) $this->raw), $this->ratio, $this->rows, $this->either]));
    }
}
#[AsJob('plain')] class Plain { public function handle() { global $dsn; note($dsn, 'plain ' . func_num_args()); } }
#[AsJob('both')] class Both { public function __construct(public int $n) {} public function handle(Job $job, mixed $payload) { global $dsn; note($dsn, "both $payload[n] $this->n"); } }
#[AsJob('strict')] class Strict { public function __construct(public int $n, public ?Kind $k = null) { if ($n === 13) throw new DomainException('unlucky'); } public function handle() {} }
#[AsJob('lost')] class NoProperty { public function __construct(int $n) {} public function handle() {} }
#[AsJob('empty')] class NoHandle {}
class NoAttribute { public function handle() {} }
class Child extends Plain {}

$dsn = store();
$queue = new Queue($dsn);
$mail = new SendMail(5, Kind::Invoice, new DateTime('2026-01-02 03:04:05 UTC'), new Day('2026-01-01'), new BigInt('18446744073709551615'), new Bytes("\0\xff"), either: 'text');
$id = $queue->push($mail);
$info = $queue->find($id);
echo "$info->name $info->queue $info->version $info->priority ", json_encode($info->options), ' ', implode(' ', array_keys($info->payload)), "\n";
var_dump($queue->push($mail) === $id, $queue->find($queue->push($mail, queue: 'mail', unique: 'own', priority: 9))->priority);
foreach ([new Plain, new Both(4)] as $job) {
    $queue->push($job);
}
$ids = [
    'wrong type' => $queue->push('strict', ['n' => 'abc']), 'missing' => $queue->push('strict', []), 'unknown' => $queue->push('strict', ['n' => 1, 'x' => 2]),
    'no map' => $queue->push('strict', 5), 'no case' => $queue->push('strict', ['n' => 1, 'k' => 'nope']), 'throws' => $queue->push('strict', ['n' => 13]),
    'fits' => $queue->push('strict', ['n' => 1, 'k' => 'inv']),
];
$worker = new Worker($queue, processes: 1);
$worker->register(SendMail::class, Plain::class, Both::class)->register('Strict');
work($worker, 'mail,default');
echo implode("\n", noted($dsn)), "\n";
foreach ($ids as $what => $id) {
    $info = $queue->find($id);
    echo "$what: ", $info ? line($info) . ' | ' . $info->lastError['message'] : 'done', "\n";
}
refused(fn () => $queue->push(new NoAttribute));
refused(fn () => $queue->push(new Child));
refused(fn () => $queue->push(new NoProperty(1)));
refused(fn () => $queue->push(new Plain, 5));
refused(fn () => $worker->register(NoHandle::class));
refused(fn () => $worker->register('Missing'));
refused(fn () => $worker->register(NoAttribute::class));
?>
--EXPECTF--
mail.send mail 2 3 %s number kind when day large raw ratio rows either
bool(true)
int(9)
["mail.send",5,5,"inv","DateTime","2026-01-02T03:04:05+00:00","Day","18446744073709551615","00ff",1,[],"text"]
["mail.send",5,5,"inv","DateTime","2026-01-02T03:04:05+00:00","Day","18446744073709551615","00ff",1,[],"text"]
plain 0
both 4 4
wrong type: strict dead undecodable failed failures=0 crashes=0 releases=0 | Strict::__construct(): Argument #1 ($n) must be of type int, string given
missing: strict dead undecodable failed failures=0 crashes=0 releases=0 | payload.n: missing; the constructor of Strict needs it
unknown: strict dead undecodable failed failures=0 crashes=0 releases=0 | payload.x: the constructor of Strict has no such parameter
no map: strict dead undecodable failed failures=0 crashes=0 releases=0 | payload: a map of the constructor parameters of Strict is needed
no case: strict dead undecodable failed failures=0 crashes=0 releases=0 | Strict::__construct(): Argument #2 ($k) must be of type ?Kind, string given
throws: strict delayed - failed failures=1 crashes=0 releases=0 | unlucky
fits: done
ValueError: class NoAttribute is no job: it has no attribute #[JobQueue\AsJob]
ValueError: class Child is no job: it has no attribute #[JobQueue\AsJob]
JobQueue\PayloadException: payload.n: class NoProperty has no property for its constructor parameter $n
ValueError: a job object carries its own payload: give either the object or a name and a payload
ValueError: job class NoHandle has no method handle()
ValueError: there is no class "Missing"
ValueError: class NoAttribute is no job: it has no attribute #[JobQueue\AsJob]

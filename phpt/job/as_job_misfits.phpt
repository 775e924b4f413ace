--TEST--
Job classes: a scalar is never bent to the declared type, maps fit stdClass, no payload = no arguments (rules A5, A7; api 2)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, Queue, Worker};

#[AsJob('typed')] class Typed
{
    public function __construct(public int $i = 1, public float $f = 2.0, public bool $b = false, public string $s = '', public int|string|null $u = null,
        public ?stdClass $o = null, public $free = null) {}
    public function handle(): void { global $dsn; note($dsn, json_encode($this, JSON_PRESERVE_ZERO_FRACTION)); }
}

$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 0);
$worker->register(Typed::class);
$object = (object) ['a' => 1, '7' => (object) []];
$queue->push(new Typed(o: $object, free: 1.5));
$queue->push('typed');
$queue->push('typed', ['f' => 5, 'u' => 'x', 'o' => []]);
$ids = [];
foreach ([['i' => 1.5], ['i' => 1.0], ['i' => '5'], ['i' => true], ['b' => 1], ['b' => ''], ['s' => 5], ['s' => false], ['f' => '1'], ['u' => 1.5], ['o' => 'x']] as $payload) {
    $ids[] = $queue->push('typed', $payload);
}
work($worker);
echo implode("\n", noted($dsn)), "\n";
foreach ($ids as $id) {
    $info = $queue->find($id);
    echo json_encode($info->payload, JSON_PRESERVE_ZERO_FRACTION), ' ', $info->reason, ' ', preg_replace('/.*#\d /', '', $info->lastError['message']), "\n";
}
?>
--EXPECT--
{"i":1,"f":2.0,"b":false,"s":"","u":null,"o":{"a":1,"7":[]},"free":1.5}
{"i":1,"f":2.0,"b":false,"s":"","u":null,"o":null,"free":null}
{"i":1,"f":5.0,"b":false,"s":"","u":"x","o":{},"free":null}
{"i":1.5} undecodable ($i) must be of type int, float given
{"i":1.0} undecodable ($i) must be of type int, float given
{"i":"5"} undecodable ($i) must be of type int, string given
{"i":true} undecodable ($i) must be of type int, bool given
{"b":1} undecodable ($b) must be of type bool, int given
{"b":""} undecodable ($b) must be of type bool, string given
{"s":5} undecodable ($s) must be of type string, int given
{"s":false} undecodable ($s) must be of type string, bool given
{"f":"1"} undecodable ($f) must be of type float, string given
{"u":1.5} undecodable ($u) must be of type string|int|null, float given
{"o":"x"} undecodable ($o) must be of type ?stdClass, string given

--TEST--
Security: a message reaches only what was registered: no class, function or file by its name or payload (rule P1); extend in a child (rule O1)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, Job, Queue, Worker};

class Evil
{
    public function __construct(public mixed $x = null) { said('constructed'); }
    public function __wakeup() { said('woken'); }
    public function __destruct() { said('destroyed'); }
    public function __invoke() { said('invoked'); }
    public function handle() { said('handled'); }
    public static function run() { said('run'); }
}
#[AsJob('good')] class Good { public function __construct(public mixed $value) {} public function handle(Job $job) { $job->extend(); said(get_debug_type($this->value)); } }
function evil() { said('called'); }

$dsn = store();
function said(string $what): void { note($GLOBALS['dsn'], $what); }
spl_autoload_register(fn (string $class) => said("autoload $class"));

file_put_contents($file = dirname(notes($dsn)) . '/evil.php', '<?php said("included");');
$queue = new Queue($dsn);
$worker = (new Worker($queue, processes: 1))->register(Good::class);
$names = ['Evil', '\\Evil', 'Evil::run', 'Evil@handle', 'Evil::class', 'evil', 'said', 'Good', 'NotThere', $file, "file://$file", 'php://input', 'O:4:"Evil":0:{}'];
foreach ($names as $i => $name) {
    $queue->push($name, [], id: "job-$i");
}
// what looks like an object in a payload stays what it is
foreach ([['class' => 'Evil', '__class' => 'Evil', "\0Evil\0x" => 1], 'O:4:"Evil":1:{s:1:"x";N;}', ['$object' => 'Evil'], 'Evil::run'] as $value) {
    $queue->push('good', ['value' => $value]);
}
echo work($worker), "\n", implode("\n", noted($dsn)), "\n";
$states = array_map(function (int $i) use ($queue): string {
    $info = $queue->find("job-$i");
    return "{$info->state->value}, counted " . $info->failures + $info->crashes;
}, array_keys($names));
var_dump(array_count_values($states));
unlink($file);
?>
--EXPECTF--
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
error: no handler here for "%s" version 1 (job job-%d); put aside, next look in 10 s
0
array
string
array
string
array(1) {
  ["delayed, counted 0"]=>
  int(13)
}

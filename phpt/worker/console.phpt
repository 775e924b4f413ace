--TEST--
Console::run with a ready worker and with --bootstrap; exit codes (rules G2, J1)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Console, Queue, Worker};

$dsn = store();
$queue = new Queue($dsn);
$queue->push('hello', 'world');
$queue->push('hello', 'queue', queue: 'other');
$worker = (new Worker($queue, output: 'quiet'))->handle('hello', fn ($job, $payload) => note($dsn, "$payload"));
var_dump(Console::run(['app', 'work', '--stop-when-empty', '--queue=default,other', '--processes=1'], $worker));
print_r(noted($dsn));
file_put_contents($bootstrap = folder($dsn) . '/bootstrap.php', '<?php return (new JobQueue\Worker(new JobQueue\Queue(' . var_export($dsn, true)
    . '), output: "quiet"))->handle("hello", fn ($job, $payload) => note(' . var_export($dsn, true) . ', "bootstrap $payload"));');
$queue->push('hello', 'again');
var_dump(Console::run(['app', 'work', "--bootstrap=$bootstrap", '--once']));
print_r(array_slice(noted($dsn), 2));
var_dump(Console::run(['app', 'work', '--bootstrap=' . __DIR__, '--once']));
refused(fn () => Console::run([5]));
var_dump(Console::run(['app', 'ping', "--dsn=$dsn", '--quiet']));
?>
--EXPECTF--
int(0)
Array
(
    [0] => world
    [1] => queue
)
int(0)
Array
(
    [0] => bootstrap again
)
%Aint(2)
TypeError: argv: a list of strings without NUL bytes is expected
%Aint(0)

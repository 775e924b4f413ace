--TEST--
Kinds of handlers, resolvers, registration errors (rules F3, G6; api 2)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

class WithHandle { private int $calls = 0; public function handle(Job $job, $payload) { echo 'handle ', ++$this->calls, " $payload\n"; } }
class WithInvoke { public function __invoke(Job $job, $payload) { echo "invoke $payload\n"; } }
class Statics { public static function run(Job $job, $payload) { echo "static $payload\n"; } public function method(Job $job) { echo "method\n"; } }
class Needs { public function __construct(private string $what) {} public function handle() { echo "needs $this->what\n"; } }
class Neither {}
class Container { public function has(string $id) { return $id === 'from.container' || $id === Needs::class; } public function get(string $id) { return new Needs("container $id"); } }

$queue = new Queue('memory:');
$run = function (Worker $worker) { while ($worker->runNext()); };
$worker = new Worker($queue);
$worker->handle('a', 'WithHandle')->handle('b', WithInvoke::class)->handle('c', 'Statics::run')->handle('d', [new Statics, 'method'])
    ->handle('e', new WithInvoke)->handle('f', 'gc_enable')->handle('a', fn () => print("version 2\n"), version: 2);
foreach (['a', 'a', 'b', 'c', 'd', 'e', 'f'] as $i => $name) {
    $queue->push($name, $i);
}
$queue->push('a', version: 2);
$run($worker);
var_dump($queue->stats('default')->backlog);

$worker = (new Worker($queue))->resolver(function (string $name) {
    echo "asked for $name\n";
    return ['one' => fn ($job, $payload) => print("closure $payload\n"), 'two' => 'WithInvoke', 'three' => new WithHandle][$name] ?? null;
});
foreach (['one', 'two', 'three'] as $name) {
    $queue->push($name, $name, queue: 'resolved');
}
$id = $queue->push('four', null, queue: 'resolved');
while ($worker->runNext('resolved'));
echo line($queue->find($id)), "\n";

$worker = (new Worker($queue))->resolver(new Container)->handle('registered', Needs::class)->handle('service', 'from.container');
foreach (['from.container', 'registered', 'service'] as $name) {
    $queue->push($name, null, queue: 'container');
}
while ($worker->runNext('container'));

refused(fn () => $worker->handle('registered', 'strlen'));
refused(fn () => (new Worker($queue))->handle('x', 'no_such_thing'));
refused(fn () => $worker->handle('x', Neither::class));
refused(fn () => $worker->handle('x', [new Statics, 'nothing']));
refused(fn () => $worker->handle('x', 'strlen', version: 0));
refused(fn () => $worker->handle('x', 'strlen', asyncConcurrency: 2));
refused(fn () => $worker->resolver(new Neither));
foreach ([fn () => $worker->handle('', 'strlen'), fn () => $worker->handle('y', 'strlen', delay: 1), fn () => $worker->handle('y', 'strlen', failed: 'strlen'),
    fn () => $worker->handle('y', 'strlen', maps: 'tree')] as $call) {
    echo refused_as($call), "\n";
}
$worker = (new Worker($queue))->handle('maps', fn ($job, $payload) => print(get_class($payload) . ' ' . $payload->{'5'} . ' ' . get_class($payload->in) . "\n"), maps: 'object');
$queue->push('maps', [5 => 'five', 'in' => ['x' => 1], 'list' => []], queue: 'maps');
$worker->runNext('maps');
?>
--EXPECTF--
handle 1 0
handle 1 1
invoke 2
static 3
method
invoke 5
version 2
int(0)
asked for one
closure one
asked for two
%Ainvoke two
asked for three
handle 1 three
asked for four
four delayed - %s failures=0 crashes=0 releases=0
needs container from.container
needs container Needs
needs container from.container
ValueError: %s
ValueError: handler "no_such_thing" is neither a function nor a class (names of a container: set the resolver first)
ValueError: handler class Neither has neither handle() nor __invoke()
TypeError: JobQueue\Worker::handle(): Argument #2 ($handler) must be of type callable|string, array given
ValueError: version must be between 1 and 2147483647, 0 given
ValueError: unknown option "asyncConcurrency": Python alone has async handlers
TypeError: JobQueue\Worker::resolver(): Argument #1 ($resolver) must be a callable or a container with has() and get(), Neither given
ValueError
ValueError
ValueError
ValueError
stdClass five stdClass

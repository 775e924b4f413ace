--TEST--
Whose option wins: push, handler, command line, run(), constructor, default (rules B2, G1; api 1)
--EXTENSIONS--
jobqueue
--INI--
log_errors=0
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Console, Queue, Worker};

$queue = new Queue(store());

/** How often the job failed, with tries as given at each place. */
function failures(?int $push = null, ?int $handler = null, ?int $line = null, ?int $run = null, ?int $constructor = null): int
{
    global $queue;
    $given = fn (?int $tries) => $tries === null ? [] : ['tries' => $tries];
    $worker = new Worker($queue, ...$given($constructor), backoff: 0, output: 'quiet', stopWhenEmpty: true);
    $worker->handle('throws', fn () => throw new Exception('no'), 1, ...$given($handler));
    $id = $queue->push('throws', tries: $push);
    if ($line === null) {
        $worker->run([], ...$given($run));
    } else {
        Console::run(['x', 'work', "--tries=$line"], $worker);
    }
    return $queue->find($id)->failures;
}
echo 'default ', failures(), "\n";
echo 'constructor ', failures(constructor: 5), "\n";
echo 'run ', failures(run: 4, constructor: 5), "\n";
echo 'command line ', failures(line: 6, constructor: 5), "\n";
echo 'handler ', failures(handler: 2, run: 4, constructor: 5), "\n";
echo 'handler ', failures(handler: 2, line: 6, constructor: 5), "\n";
echo 'push ', failures(push: 1, handler: 2, run: 4, constructor: 5), "\n";
?>
--EXPECT--
default 3
constructor 5
run 4
command line 6
handler 2
handler 2
push 1

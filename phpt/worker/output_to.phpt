--TEST--
output: a stream for pool and inline, a callable inline; what it does changes nothing (rule G4)
--EXTENSIONS--
jobqueue
--INI--
display_errors=0
log_errors=1
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

ini_set('error_log', $log = tempnam(sys_get_temp_dir(), 'jobqueue-phpt-'));
$queue = new Queue($dsn = store());
$plain = fn (string $text) => preg_replace(['/^\[.*?\] /m', '/^Worker \S+/m', '/\S+ \d+ ms$/m'], ['', 'Worker ID', 'ID 0 ms'], $text);
$last = fn (string $text) => implode(' | ', explode("\n", trim($plain($text))));

// a stream, also one that is closed again: pool, then inline
$path = notes($dsn);
foreach ([1, 0] as $processes) {
    $file = fopen($path, 'w');
    fwrite($file, "before\n");
    $worker = (new Worker($queue, processes: $processes, output: $file, stopWhenEmpty: true))->handle('ok', fn () => null);
    $worker->on('worker.starting', fn () => is_resource($file) && fclose($file)); // the worker has its own
    $queue->push('ok');
    echo $worker->run(), ' ', $last(file_get_contents($path)), "\n";
}
refused(fn () => $worker->run()); // closed since

// run's own output goes before the constructor's, also as a word
$lines = [];
$hear = function (string $line) use (&$lines) { $lines[] = $line; };
$worker = (new Worker($queue, processes: 0, output: $hear, stopWhenEmpty: true))->handle('ok', fn () => null);
$queue->push('ok');
var_dump($worker->run());
echo $last(implode("\n", $lines)), "\n";
$lines = [];
$worker->run(output: 'quiet');
$worker->run(output: fopen($path, 'w'));
var_dump(count($lines), substr_count(file_get_contents($path), "\n"));
$worker->run();
var_dump(count($lines));
$queue->push('ok');
var_dump($worker->runNext(), count($lines)); // silent

// throw and exit are reported, and change nothing
$queue->push('ok');
var_dump($worker->run(output: fn (string $line) => throw new DomainException('no')));
var_dump($worker->run(output: function () { exit(3); }));
var_dump($worker->run(output: [new ArrayObject(), 'append'])); // any callable
$said = preg_replace('/^\[.*?\] /m', '', file_get_contents($log));
echo implode("\n", array_unique(explode("\n", trim($said)))), "\n", substr_count($said, 'DomainException'), "\n";
var_dump($queue->stats('default')->ready);

// a fatal error in it ends the process, and no job is charged with that
$queue->push('ok', id: 'kept');
if (!$pid = pcntl_fork()) {
    $worker->run(output: fn () => trigger_error('fatal', E_USER_ERROR));
    exit(99);
}
pcntl_waitpid($pid, $status);
echo pcntl_wexitstatus($status), ' ', line($queue->find('kept')), "\n";

refused(fn () => new Worker($queue, output: 3));
refused(fn () => new Worker($queue, output: ['a', 'b']));
refused(fn () => new Worker($queue, output: new stdClass()));
refused(fn () => new Worker($queue, output: fopen('php://memory', 'w')));
refused(fn () => $worker->run(output: $file));
refused(fn () => $worker->run(output: fopen('/dev/null', 'r')));
refused(fn () => new Worker($queue, output: 'loud'));
refused(fn () => $worker->run(processes: 2));
$memory = (new Worker($other = new Queue('memory:'), output: $hear, stopWhenEmpty: true))->handle('ok', fn () => null);
$lines = [];
$other->push('ok');
var_dump($memory->run(), count($lines));

// a cycle through the callable is collected
$worker = null;
$gone = WeakReference::create($cycle = new Worker($queue, processes: 0, output: function () use (&$cycle) {}));
$cycle = null;
gc_collect_cycles();
var_dump($gone->get());
unlink($log);
?>
--SKIPIF--
<?php if (!extension_loaded('pcntl')) die('skip no pcntl'); ?>
--EXPECTF--
0 before | Worker ID watching default (1 process) | Processed: ok ID 0 ms | Stopping: Nothing left to do | Ran 1 job
0 before | Worker ID watching default (inline) | Processed: ok ID 0 ms | Stopping: Nothing left to do | Ran 1 job
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, a closed resource, or one that is no stream, given
int(0)
Worker ID watching default (inline) | Processed: ok ID 0 ms | Stopping: Nothing left to do | Ran 1 job
int(0)
int(3)
int(3)
bool(true)
int(3)
int(0)
int(0)
int(0)
jobqueue: the output callable threw DomainException: no
jobqueue: the output callable called exit(3), which ends nothing here
4
int(0)
255 ok ready - no history failures=0 crashes=0 releases=0
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, int given
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, array given
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, stdClass given
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, a stream of kind MEMORY without one given
TypeError: output: auto, jobs, summary, json, quiet, a path with a slash, an open stream with a file descriptor, or inline a callable is expected, a closed resource, or one that is no stream, given
ValueError: output: descriptor %d is not open for writing
ValueError: option "output" must be auto, jobs, summary, json, quiet, or a path with a slash, got "loud"
ValueError: output: a function gets the lines of an inline worker only (processes = 0); with processes they go to auto, jobs, summary, json, quiet, a path with a slash, or a stream
int(0)
int(4)
NULL

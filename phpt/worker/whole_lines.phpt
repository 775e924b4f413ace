--TEST--
What handlers print: whole lines, in order, before the job's own line, nothing lost (rules D7, G4; case B149)
--EXTENSIONS--
jobqueue
--SKIPIF--
<?php
if (!function_exists('proc_open')) die('skip proc_open');
if (getenv('JOBQUEUE_SANITIZED')) die('skip a sanitizer has its own words when memory is exhausted');
?>
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

/* The worker runs in a process of its own: this one reads what it prints. */
if (($argv[1] ?? '') === 'work') {
    $worker = new Worker(new Queue($argv[2]), processes: 3, tries: 1, output: $argv[3] ?? 'jobs');
    $worker->on('child.started', function () { echo "child begins\n"; });
    $worker->handle('prints', function (Job $job) {
        for ($i = 0; $i < 20; $i++) {
            echo '<', $job->id, " $i ";
            fwrite(STDOUT, $job->id);
            echo ">\n";
        }
    });
    $worker->handle('dies', function (Job $job) {
        echo "last words of {$job->id}";
        posix_kill(getmypid(), SIGKILL);
    });
    $worker->handle('fatal', function (Job $job) {
        ini_set('display_errors', '1');
        ini_set('html_errors', '0');
        echo "so far so good, ";
        str_repeat('x', PHP_INT_MAX >> 8);
    });
    $worker->handle('program', function (Job $job) {
        echo 'begun by PHP, ';
        passthru("printf 'gone on by a program\\n'; printf 'a whole line of it\\n'");
        system('echo to standard error >&2');
    });
    $worker->handle('buffers', function (Job $job) {
        ob_start();
        echo "kept till the end\n";
    });
    $worker->handle('bytes', fn () => print("\x00\xff\x1b[1m\n"));
    exit($worker->run(stopWhenEmpty: true));
}

/* With the options that PHP was started with here. */
function run_apart(string $dsn, string $output): array
{
    $command = explode("\0", file_get_contents('/proc/self/cmdline'));
    $command = array_slice($command, 0, array_search('-f', $command, true));
    $pipes = [];
    $process = proc_open([...$command, __FILE__, 'work', $dsn, $output], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
    $out = stream_get_contents($pipes[1]);
    $err = stream_get_contents($pipes[2]);
    return [proc_close($process), explode("\n", rtrim($out, "\n")), $err];
}

function index_of(string $line, array $lines): int
{
    $found = array_filter($lines, fn ($is) => str_ends_with(preg_replace('/ \d+ ms$/', '', $is), $line));
    if (count($found) !== 1) {
        exit("$line: " . count($found) . " times in\n" . implode("\n", $lines) . "\n");
    }
    return array_key_first($found) ?? -1;
}

$dsn = store();
$queue = new Queue($dsn);
for ($i = 0; $i < 12; $i++) {
    $queue->push('prints', id: "p$i");
}
foreach (['dies', 'fatal', 'program', 'buffers', 'bytes'] as $name) {
    $queue->push($name, id: $name);
}
[$code, $lines, $err] = run_apart($dsn, 'jobs');
echo "exit code $code\n";
for ($i = 0; $i < 12; $i++) {
    $end = index_of("Processed: prints p$i", $lines);
    for ($n = 0, $at = -1; $n < 20; $n++) {
        $next = index_of("<p$i $n p$i>", $lines);
        echo $next > $at && $next < $end ? '' : "p$i $n: $at, $next, $end\n";
        $at = $next;
    }
}
$known = '/^(child begins|<p\d+ \d+ p\d+>|\[20.*|Worker .*|Stopping: .*|Ran \d+ jobs|)$/';
$others = preg_grep($known, $lines, PREG_GREP_INVERT);
sort($others);
echo json_encode($others, JSON_PRETTY_PRINT | JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES), "\n";
echo $err;

$queue->push('program');
$queue->push('prints', id: 'json');
[$code, $lines] = run_apart($dsn, 'json');
echo "exit code $code, ", count(array_filter($lines, fn ($line) => json_decode($line) === null)), " lines that are not JSON\n";
$texts = array_column(array_map(fn ($line) => json_decode($line, true), $lines), 'text');
echo in_array('begun by PHP, gone on by a program', $texts, true) ? 'whole' : implode("\n", $texts), ', ',
    count(preg_grep('/^<json \d+ json>$/', $texts)), "\n";
?>
--EXPECTF--
exit code 0
[
    "\u0000\ufffd\u001b[1m",
    "Fatal error: Allowed memory size of %s in %swhole_lines.php on line %d",
    "a whole line of it",
    "begun by PHP, gone on by a program",
    "kept till the end",
    "last words of dies",
    "so far so good, "
]
to standard error
exit code 0, 0 lines that are not JSON
whole, 20

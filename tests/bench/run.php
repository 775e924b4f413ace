<?php
/* SPDX-License-Identifier: MIT
 *
 * ./dev bench: the product beside a bare SQLite loop of the same promise, in one run on one machine. Every
 * figure is the median of three; the targets stand in TARGETS. `--json` prints the same as JSON, `--quick` takes
 * a tenth of the jobs (for trying the bench itself, not for figures).
 */
$build = $argv[1];
$options = array_slice($argv, 2);
foreach ($options as $option)
    if (!in_array($option, ['--json', '--quick'], true)) {
        fwrite(STDERR, "bench: unknown option \"$option\", known are --json and --quick\n");
        exit(2);
    }
$scale = in_array('--quick', $options, true) ? 0.1 : 1.0;

const REPEAT = 3;
/* name => [meaning, unit, what it is compared with (floor's name, another figure or null), relation, target] */
const TARGETS = [
    'push' => ['one by one, each confirmed', '/s', 'floor_push', '>=', 0.70],
    'push_many' => ['in bulk', '/s', 'floor_push_many', '>=', 0.60],
    'drain' => ['one child, PHP handler', '/s', 'floor_drain', '>=', 0.50],
    'drain2' => ['two children', '/s', 'floor_drain', '>=', 0.50],
    'latency_p50' => ['push to handler start', 'ms', null, '<', 1.0],
    'latency_p99' => ['push to handler start', 'ms', null, '<', 5.0],
    'cost' => ['CPU of the worker per 10,000 jobs', 's', null, '<=', 0.25],
    'depth' => ['drain with 1,000,000 waiting', '/s', 'depth_shallow', '>=', 0.85],
    'idle_cpu' => ['of a core, worker idle', '%', null, '<', 1.0],
];

final class Bench
{
    /** @var array<string, list<float>> */
    private array $figures = [];
    private string $folder;

    public function __construct(private string $build, private float $scale)
    {
        $this->folder = "$build/bench";
        @mkdir($this->folder);
    }

    public function run(): array
    {
        for ($i = 1; $i <= REPEAT; $i++) {
            $this->say("repetition $i of " . REPEAT);
            $this->floor();
            $this->producer();
            $this->drain(1, 'drain');
            $this->drain(2, 'drain2');
            $this->latency();
            $this->idle();
        }
        $this->depth();
        return array_map($this->median(...), $this->figures);
    }

    /* floor_sqlite prints "name value" lines */
    private function floor(): void
    {
        $folder = "$this->folder/floor";
        $this->emptyFolder($folder);
        exec(escapeshellarg("$this->build/tests/bench/floor_sqlite") . ' ' . escapeshellarg($folder), $lines, $status);
        if ($status !== 0)
            throw new RuntimeException("floor_sqlite ended with status $status");
        foreach ($lines as $line)
            if (preg_match('/^(\w+) ([\d.eE+-]+)/', $line, $m))
                $this->note("floor_$m[1]", (float) $m[2]);
    }

    private function producer(): void
    {
        $this->note('push', $this->part('push', $this->fresh(), 3000 * $this->scale)['rate']);
        $this->note('push_many', $this->part('push_many', $this->fresh(), 100_000 * $this->scale)['rate']);
    }

    private function drain(int $processes, string $name): void
    {
        $n = (int) (100_000 * $this->scale);
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        [$rate, $cpu] = $this->drained($dsn, $processes, 0, $n + 1);
        $this->note($name, $rate);
        if ($processes === 1)
            $this->note('cost', $cpu / ($n / 10_000));
    }

    /* Drains and answers [jobs per second between first and last start, CPU seconds of the whole worker]. */
    private function drained(string $dsn, int $processes, int $max, int $expected): array
    {
        $notes = "$this->folder/notes";
        @unlink($notes);
        $before = $this->cpu();
        $this->part('drain', $dsn, $processes, $max, $notes);
        $cpu = $this->cpu() - $before;
        $rows = array_map(fn ($line) => array_map('intval', explode(' ', trim($line))), file($notes));
        $count = array_sum(array_column($rows, 2));
        if ($count < $expected)
            throw new RuntimeException("$count of $expected jobs were run");
        $span = max(array_column($rows, 1)) - min(array_column($rows, 0));
        return [($count - 1) / $span * 1e9, $cpu];
    }

    private function latency(): void
    {
        $notes = "$this->folder/notes";
        @unlink($notes);
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, 0);
        $this->part('drain', $dsn, 1, 0, $notes);
        @unlink($notes);
        $server = $this->start('serve', $dsn, $notes);
        usleep(500_000);
        $this->part('ping', $dsn, 200, 20);
        usleep(200_000);
        $this->stop($server);
        $late = array_map(fn ($ns) => (int) $ns / 1e6, file($notes));
        sort($late);
        if (count($late) < 200)
            throw new RuntimeException(count($late) . ' of 200 jobs were run');
        $this->note('latency_p50', $late[(int) (count($late) * 0.50)]);
        $this->note('latency_p99', $late[(int) (count($late) * 0.99) - 1]);
    }

    private function idle(): void
    {
        $dsn = $this->fresh();
        $server = $this->start('serve', $dsn, "$this->folder/notes");
        usleep(1_000_000);
        $pid = proc_get_status($server)['pid'];
        [$before, $start] = [$this->treeCpu($pid), hrtime(true)];
        usleep(5_000_000);
        $this->note('idle_cpu', ($this->treeCpu($pid) - $before) / ((hrtime(true) - $start) / 1e9) * 100);
        $this->stop($server);
    }

    /* The same number of jobs is taken from a short queue and from a long one. */
    private function depth(): void
    {
        $this->say('depth');
        $taken = (int) (10_000 * $this->scale);
        $deep = "sqlite:$this->folder/deep.db";
        $this->emptyFolder($this->folder);
        $this->part('push_many', $deep, 1_000_000 * $this->scale);
        for ($i = 0; $i < REPEAT; $i++) {
            $shallow = "sqlite:$this->folder/shallow$i.db";
            $this->part('push_many', $shallow, $taken);
            $this->note('depth_shallow', $this->drained($shallow, 1, $taken, $taken)[0]);
            $this->note('depth', $this->drained($deep, 1, $taken, $taken)[0]);
        }
    }

    /* ---- helpers -------------------------------------------------------------------------------- */

    private function note(string $name, float $value): void
    {
        $this->figures[$name][] = $value;
    }

    private function median(array $values): float
    {
        sort($values);
        return $values[intdiv(count($values), 2)];
    }

    private function say(string $text): void
    {
        fwrite(STDERR, "bench: $text\n");
    }

    private function emptyFolder(string $folder): void
    {
        @mkdir($folder);
        foreach (glob("$folder/*") as $file)
            is_dir($file) ? $this->emptyFolder($file) : unlink($file);
    }

    private function fresh(): string
    {
        foreach (glob("$this->folder/queue.db*") as $file)
            unlink($file);
        return "sqlite:$this->folder/queue.db";
    }

    private function command(string $part, array $arguments): array
    {
        return [PHP_BINARY, '-d', "extension=$this->build/php-ext/modules/jobqueue.so", __DIR__ . '/part.php', $part,
            ...array_map('strval', $arguments)];
    }

    private function start(string $part, string ...$arguments)
    {
        return proc_open($this->command($part, $arguments), [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], STDERR], $pipes);
    }

    private function stop($process): void
    {
        proc_terminate($process, 15);
        while (proc_get_status($process)['running'])
            usleep(10_000);
        proc_close($process);
    }

    private function part(string $part, string $dsn, int|float|string ...$arguments): array
    {
        $arguments = array_map(fn ($a) => is_float($a) ? (int) round($a) : $a, $arguments);
        $process = proc_open($this->command($part, [$dsn, ...$arguments]), [['file', '/dev/null', 'r'], ['pipe', 'w'], STDERR], $pipes);
        $out = stream_get_contents($pipes[1]);
        $status = proc_close($process);
        $result = json_decode(trim((string) strrchr("\n" . trim($out), "\n")), true);
        if ($status !== 0 || !is_array($result))
            throw new RuntimeException("$part ended with status $status: $out");
        return $result;
    }

    /* CPU seconds of all ended descendants; a worker's children are waited for by their master. */
    private function cpu(): float
    {
        $r = getrusage(1);
        return $r['ru_utime.tv_sec'] + $r['ru_stime.tv_sec'] + ($r['ru_utime.tv_usec'] + $r['ru_stime.tv_usec']) / 1e6;
    }

    /* CPU seconds of a living process and its descendants. */
    private function treeCpu(int $pid): float
    {
        $stat = @file_get_contents("/proc/$pid/stat");
        if (!$stat)
            return 0;
        $fields = explode(' ', substr((string) strrchr($stat, ')'), 2));
        $seconds = ($fields[11] + $fields[12]) / 100;
        foreach (array_filter(explode(' ', (string) @file_get_contents("/proc/$pid/task/$pid/children"))) as $child)
            $seconds += $this->treeCpu((int) $child);
        return $seconds;
    }
}

/* [figure, compared with, ratio, met] of each row of TARGETS */
function judge(array $figures): array
{
    $rows = [];
    foreach (TARGETS as $name => [$meaning, $unit, $base, $relation, $target]) {
        $value = $figures[$name];
        $against = $base === null ? null : $figures[$base];
        $judged = $against === null ? $value : $value / $against;
        $met = match ($relation) { '>=' => $judged >= $target, '<=' => $judged <= $target, '<' => $judged < $target };
        $rows[$name] = ['meaning' => $meaning, 'unit' => $unit, 'floor' => $against, 'value' => $value,
            'ratio' => $against === null ? null : $judged, 'target' => "$relation $target", 'met' => $met];
    }
    return $rows;
}

function number(?float $n): string
{
    return $n === null ? '-' : number_format($n, $n < 10 ? 3 : 0, '.', '');
}

function table(array $rows): void
{
    printf("%-12s %-34s %12s %12s %8s %9s  %s\n", 'figure', 'what', 'floor', 'value', 'ratio', 'target', 'verdict');
    foreach ($rows as $name => $row)
        printf("%-12s %-34s %12s %12s %8s %9s  %s\n", $name, "$row[meaning] ($row[unit])", number($row['floor']),
            number($row['value']), $row['ratio'] === null ? '-' : sprintf('%.2f', $row['ratio']), $row['target'],
            $row['met'] ? 'met' : 'MISSED');
}

$load = sys_getloadavg()[0];
$figures = (new Bench($build, $scale))->run();
$rows = judge($figures);
if (in_array('--json', $options, true))
    echo json_encode(['store' => 'sqlite', 'synchronous' => 'full', 'scale' => $scale, 'figures' => $rows, 'raw' => $figures],
        JSON_PRETTY_PRINT), "\n";
else {
    printf("SQLite, WAL, synchronous=FULL; %d cores, load %.1f before and %.1f after%s\n", (int) shell_exec('nproc'), $load,
        sys_getloadavg()[0], $scale < 1 ? '; --quick: a tenth of the jobs, no figures to keep' : '');
    table($rows);
}

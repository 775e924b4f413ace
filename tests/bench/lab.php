<?php
/* SPDX-License-Identifier: MIT
 *
 * What measurements are made of: processes of part.php, what /proc and strace say about a worker, and the figures
 * that come out.
 */

/* A started process of part.php, or of the interpreter alone. */
final class Running
{
    private $process;
    public readonly int $pid;
    private array $pipes = [];

    public function __construct(array $command, bool $talks)
    {
        $null = ['file', '/dev/null', 'r+'];
        $this->process = proc_open($command, $talks ? [['pipe', 'r'], ['pipe', 'w'], STDERR] : [$null, $null, STDERR], $this->pipes);
        $this->pid = proc_get_status($this->process)['pid'];
    }

    /* Ends what waits for the end of its input. */
    public function release(): void
    {
        fclose($this->pipes[0]);
        proc_close($this->process);
    }

    public function line(): string
    {
        return trim((string) fgets($this->pipes[1]));
    }

    public function runs(): bool
    {
        return proc_get_status($this->process)['running'];
    }

    public function signal(int $signal): void
    {
        proc_terminate($this->process, $signal);
    }

    public function await(): void
    {
        while ($this->runs())
            usleep(5_000);
        proc_close($this->process);
    }

    public function stop(): void
    {
        $this->signal(15);
        $this->await();
    }

    /* master, dispatcher, child ...: they are forked in this order */
    public function family(): array
    {
        return [$this->pid, ...Proc::children($this->pid)];
    }
}

final class Proc
{
    public static function children(int $pid): array
    {
        $text = trim((string) @file_get_contents("/proc/$pid/task/$pid/children"));
        return $text === '' ? [] : array_map('intval', explode(' ', $text));
    }

    /* CPU seconds of a living process and its descendants, each with one thread. */
    public static function treeCpu(int $pid): float
    {
        $ns = (float) strtok((string) @file_get_contents("/proc/$pid/schedstat"), ' ');
        return $ns / 1e9 + array_sum(array_map(self::treeCpu(...), self::children($pid)));
    }

    /* CPU seconds of all threads of a process and of its ended children, in hundredths. */
    public static function everCpu(int $pid): float
    {
        $stat = (string) @file_get_contents("/proc/$pid/stat");
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));
        return array_sum(array_slice($fields, 11, 4)) / 100;
    }

    /* CPU seconds of all ended descendants; a worker's children are waited for by their master. */
    public static function endedCpu(): float
    {
        $r = getrusage(1);
        return $r['ru_utime.tv_sec'] + $r['ru_stime.tv_sec'] + ($r['ru_utime.tv_usec'] + $r['ru_stime.tv_usec']) / 1e6;
    }

    /* Megabytes: 'own' pages nobody shares, 'anonymous' ones whether shared since a fork or not, 'share': shared ones
     * divided among those that share them. */
    public static function memory(int $pid): array
    {
        preg_match_all('/^(\w+):\s+(\d+) kB/m', file_get_contents("/proc/$pid/smaps_rollup"), $m);
        $kb = array_combine($m[1], array_map('intval', $m[2]));
        return ['own' => ($kb['Private_Clean'] + $kb['Private_Dirty']) / 1024, 'anonymous' => $kb['Anonymous'] / 1024,
            'share' => $kb['Pss'] / 1024];
    }
}

abstract class Lab
{
    /** @var array<string, list<float>> */
    private array $figures = [];
    protected string $notes;
    protected string $trace;
    private string $copies;

    public function __construct(protected string $build, protected Store $store, protected bool $quick)
    {
        $this->notes = "$build/bench/notes";
        $this->trace = "$build/bench/strace";
        $this->useCopies("$build/bench/lib");
    }

    /* The folder of the library and the extension that are measured; see keep_copies of run.php. */
    protected function useCopies(string $folder): void
    {
        $this->copies = $folder;
        putenv("LD_LIBRARY_PATH=$folder");
    }

    /** @return array<string, list<float>> */
    public function figures(): array
    {
        return $this->figures;
    }

    protected function note(string $name, float $value): void
    {
        $this->figures[$name][] = $value;
    }

    protected function say(string $text): void
    {
        fwrite(STDERR, "bench: {$this->store->name}: $text\n");
    }

    protected function scaled(int $n): int
    {
        return $this->quick ? intdiv($n, 10) : $n;
    }

    /* Three to five turns, as many as begin within so many seconds; two when it has to be quick. */
    protected function turns(float $seconds): Generator
    {
        for ($i = 1, $end = microtime(true) + $seconds; $i <= ($this->quick ? 2 : 5) && ($i <= 3 || microtime(true) < $end); $i++)
            yield $i;
    }

    /* An empty queue; no notes of what was before. */
    protected function fresh(string $name = 'queue'): string
    {
        @unlink($this->notes);
        return $this->store->fresh($name);
    }

    protected function notes(): array
    {
        return is_file($this->notes) ? file($this->notes, FILE_IGNORE_NEW_LINES) : [];
    }

    protected function awaitNotes(int $lines, float $seconds): void
    {
        for ($end = microtime(true) + $seconds; count($this->notes()) < $lines; usleep(5_000))
            if (microtime(true) > $end)
                throw new RuntimeException("less than $lines jobs were started in $seconds s");
    }

    /* ---- processes ------------------------------------------------------------------------------ */

    private function command(string $part, array $arguments): array
    {
        if (str_starts_with($part, 'python_'))
            return ['env', "PYTHONPATH=$this->build/bench/python", 'PYTHONDONTWRITEBYTECODE=1', getenv('PYTHON') ?: 'python3',
                __DIR__ . '/part.py', substr($part, 7), ...array_map('strval', $arguments)];
        $extension = $part === 'bare' ? [] : ['-d', "extension=$this->copies/jobqueue.so"];
        return [PHP_BINARY, ...$extension, __DIR__ . '/part.php', $part, ...array_map('strval', $arguments)];
    }

    protected function start(string $part, mixed ...$arguments): Running
    {
        return new Running($this->command($part, $arguments), false);
    }

    protected function startTalking(string $part, mixed ...$arguments): Running
    {
        $running = new Running($this->command($part, $arguments), true);
        if ($running->line() !== 'open')
            throw new RuntimeException("$part did not start");
        return $running;
    }

    /* An idle worker whose every process is up. */
    protected function serve(string $dsn, int $processes = 1): Running
    {
        $this->part('ping', $dsn, 1, 0);
        $this->part('drain', $dsn, 1, 0, '/dev/null');
        $worker = $this->start('serve', $dsn, $this->notes, $processes);
        for ($end = microtime(true) + 10; count($worker->family()) < $processes + 2 && microtime(true) < $end;)
            usleep(5_000);
        usleep(300_000);
        return $worker;
    }

    protected function part(string $part, mixed ...$arguments): array
    {
        return $this->finish($part, $this->command($part, $arguments));
    }

    /* The same under strace. */
    protected function traced(string $part, mixed ...$arguments): array
    {
        return $this->finish($part, ['strace', '-f', '-qq', '-yy', '-o', $this->trace, ...$this->command($part, $arguments)]);
    }

    protected function trace(string $file, array $pids, array $options = []): Running
    {
        $each = array_merge(...array_map(fn ($pid) => ['-p', "$pid"], $pids));
        $strace = new Running(['strace', '-f', '-qq', '-yy', '-o', $file, ...$options, ...$each], false);
        usleep(500_000);
        return $strace;
    }

    private function finish(string $part, array $command): array
    {
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], STDERR], $pipes);
        $out = stream_get_contents($pipes[1]);
        $status = proc_close($process);
        $result = json_decode(trim((string) strrchr("\n" . trim($out), "\n")), true);
        if ($status !== 0 || !is_array($result) || ($result['code'] ?? 0) !== 0)
            throw new RuntimeException("$part ended with status $status: $out");
        return $result;
    }

    /* Drains and answers [jobs per second between first and last start, CPU seconds of the whole worker]. */
    protected function drained(string $dsn, int $processes, int $max, int $expected, string $part = 'drain'): array
    {
        @unlink($this->notes);
        $before = Proc::endedCpu();
        $this->part($part, $dsn, $processes, $max, $this->notes);
        $cpu = Proc::endedCpu() - $before;
        $rows = array_map(fn ($line) => array_map('intval', explode(' ', $line)), $this->notes());
        $count = array_sum(array_column($rows, 2));
        if ($count < $expected)
            throw new RuntimeException("$count of $expected jobs were run");
        $span = max(array_column($rows, 1)) - min(array_column($rows, 0));
        return [($count - 1) / $span * 1e9, $cpu];
    }

    /* ---- floors --------------------------------------------------------------------------------- */

    /* Runs these phases of the floor and answers its figures. */
    protected function floor(string ...$phases): array
    {
        $program = "$this->build/tests/bench/floor_{$this->store->floor}";
        $command = [$program, $this->store->floorAddress(), (string) $this->scaled(100_000), ...$phases];
        exec(implode(' ', array_map(escapeshellarg(...), $command)), $lines, $status);
        if ($status !== 0)
            throw new RuntimeException("floor_{$this->store->floor} ended with status $status");
        preg_match_all('/^(\w+) ([\d.eE+-]+)/m', implode("\n", $lines), $m);
        return array_combine($m[1], array_map(floatval(...), $m[2]));
    }

    protected function noteFloor(string ...$phases): void
    {
        foreach ($this->floor(...$phases) as $name => $value)
            $this->note("floor_$name", $value);
    }

    /* ---- what strace saw ------------------------------------------------------------------------ */

    /* System calls; round trips (what was sent to the store's socket and then read from it). */
    protected function calls(): array
    {
        $counts = ['all' => 0, 'trips' => 0];
        $sent = [];
        foreach (new SplFileObject($this->trace) as $line) {
            if (!preg_match('/^(\d+) +(\w+)\((\d+)?(<TCP(?:v6)?:)?/', $line, $m))
                continue;
            $counts['all']++;
            if (!isset($m[4]))
                continue;
            $socket = "$m[1] $m[3]";
            if (in_array($m[2], ['write', 'writev', 'sendto', 'sendmsg'], true))
                $sent[$socket] = true;
            elseif (in_array($m[2], ['read', 'readv', 'recvfrom', 'recvmsg'], true)) {
                $counts['trips'] += isset($sent[$socket]) ? 1 : 0;
                unset($sent[$socket]);
            }
        }
        return $counts;
    }

    /* How often FILE, a trace, has synced the log of the store, less what checkpoints of SQLite add. */
    protected function syncs(string $file): int
    {
        $count = 0;
        foreach (new SplFileObject($file) as $line)
            $count += match (preg_match('~^\d+ +f(?:data)?sync\(\d+<[^>]*?(-wal|pg_wal/[0-9A-F]+|ib_logfile\d+|\.db)>~', $line, $m) ? $m[1] : '') {
                '' => 0,
                '.db' => -2, /* once more at its begin and once when the log starts over */
                default => 1,
            };
        return $count;
    }
}

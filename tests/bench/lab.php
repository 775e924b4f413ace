<?php
/* SPDX-License-Identifier: MIT
 *
 * What measurements are made of: processes of part.php, files to put a queue in, what /proc and strace say about a
 * worker, and the figures that come out.
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

    /* CPU seconds of a living process and its descendants. */
    public static function treeCpu(int $pid): float
    {
        $ns = (float) strtok((string) @file_get_contents("/proc/$pid/schedstat"), ' ');
        return $ns / 1e9 + array_sum(array_map(self::treeCpu(...), self::children($pid)));
    }

    /* CPU seconds of all ended descendants; a worker's children are waited for by their master. */
    public static function endedCpu(): float
    {
        $r = getrusage(1);
        return $r['ru_utime.tv_sec'] + $r['ru_stime.tv_sec'] + ($r['ru_utime.tv_usec'] + $r['ru_stime.tv_usec']) / 1e6;
    }

    /* Megabytes: 'own' pages nobody shares, 'anonymous' ones whether shared since a fork or not. */
    public static function memory(int $pid): array
    {
        preg_match_all('/^(\w+):\s+(\d+) kB/m', file_get_contents("/proc/$pid/smaps_rollup"), $m);
        $kb = array_combine($m[1], array_map('intval', $m[2]));
        return ['own' => ($kb['Private_Clean'] + $kb['Private_Dirty']) / 1024, 'anonymous' => $kb['Anonymous'] / 1024];
    }
}

abstract class Lab
{
    /** @var array<string, list<float>> */
    private array $figures = [];
    protected string $folder;
    protected string $notes;

    public function __construct(private string $build, protected float $scale)
    {
        $this->folder = "$build/bench";
        $this->notes = "$this->folder/notes";
        @mkdir($this->folder);
        $this->emptyFolder($this->folder);
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
        fwrite(STDERR, "bench: $text\n");
    }

    protected function scaled(int $n): int
    {
        return (int) ($n * $this->scale);
    }

    /* ---- files ---------------------------------------------------------------------------------- */

    protected function emptyFolder(string $folder): void
    {
        @mkdir($folder);
        foreach (glob("$folder/*") as $file)
            is_dir($file) ? $this->emptyFolder($file) : unlink($file);
    }

    /* A queue of its own; no notes of what was before. */
    protected function fresh(string $name = 'queue'): string
    {
        foreach ([...glob("$this->folder/$name.db*"), $this->notes] as $file)
            @unlink($file);
        return "sqlite:$this->folder/$name.db";
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

    /* How many transactions the file has seen: SQLite counts them in the head of its shared memory. Somebody must
     * keep the file open. */
    protected function commits(string $dsn): int
    {
        return unpack('L', file_get_contents(substr($dsn, 7) . '-shm', false, null, 8, 4))[1];
    }

    /* ---- processes ------------------------------------------------------------------------------ */

    private function command(string $part, array $arguments): array
    {
        $extension = $part === 'bare' ? [] : ['-d', "extension=$this->build/php-ext/modules/jobqueue.so"];
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

    /* The same under strace, which writes to FILE. */
    protected function traced(string $file, string $part, mixed ...$arguments): array
    {
        return $this->finish($part, ['strace', '-f', '-qq', '-y', '-o', $file, ...$this->command($part, $arguments)]);
    }

    protected function trace(string $file, array $pids): Running
    {
        $strace = new Running(['strace', '-f', '-qq', '-y', '-o', $file, ...array_merge(...array_map(fn ($pid) => ['-p', "$pid"], $pids))], false);
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

    /* Name => number of the floor program's lines. */
    protected function floorLines(int $jobs): array
    {
        $folder = "$this->folder/floor";
        $this->emptyFolder($folder);
        exec(implode(' ', array_map('escapeshellarg', ["$this->build/tests/bench/floor_sqlite", $folder, 'full', "$jobs"])), $lines, $status);
        if ($status !== 0)
            throw new RuntimeException("floor_sqlite ended with status $status");
        preg_match_all('/^(\w+) ([\d.eE+-]+)/m', implode("\n", $lines), $m);
        return array_combine($m[1], array_map('floatval', $m[2]));
    }
}

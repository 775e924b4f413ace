<?php
/* SPDX-License-Identifier: MIT
 *
 * The stores that are measured: each has a place of its own (a folder, a private server), gives out empty queues, and
 * says what only it can say about itself.
 */
abstract class Store
{
    public const DURABLE = '';
    public readonly string $folder;

    public function __construct(public readonly string $name, public readonly string $floor, protected string $build)
    {
        $this->folder = rtrim((string) shell_exec('mktemp -d'));
    }

    /* What it is and what a commit there promises, in a few words. */
    abstract public function title(): string;
    /* DSN of an empty queue of that name, which others of other names stand beside. */
    abstract public function fresh(string $name): string;
    abstract public function drop(string $name): void;
    /* What its floor is given. */
    abstract public function floorAddress(): string;
    abstract public function close(): void;

    /* CPU seconds that the store's own processes have used; null: it has none. */
    public function cpu(): ?float
    {
        return null;
    }

    /* Processes to trace for what they sync. */
    public function pids(): array
    {
        return [];
    }

    /* Writing transactions so far; null: it does not count them. */
    public function transactions(string $dsn): ?float
    {
        return null;
    }
}

final class SqliteStore extends Store
{
    public function title(): string
    {
        return 'SQLite ' . strtok((string) shell_exec('sqlite3 --version 2>/dev/null'), ' ') . ', WAL, synchronous=FULL';
    }

    public function fresh(string $name): string
    {
        $this->drop($name);
        return "sqlite:$this->folder/$name.db";
    }

    public function drop(string $name): void
    {
        array_map(unlink(...), glob("$this->folder/$name.db*"));
    }

    public function floorAddress(): string
    {
        return "$this->folder/floor.db";
    }

    /* SQLite counts them in the head of its shared memory. Somebody must keep the file open. */
    public function transactions(string $dsn): ?float
    {
        return unpack('L', (string) file_get_contents(substr($dsn, 7) . '-shm', false, null, 8, 4))[1];
    }

    public function close(): void
    {
        array_map(unlink(...), glob("$this->folder/*"));
        rmdir($this->folder);
    }
}

/* A private server, by tools/server: it ends with this process, however that ends. */
abstract class Server extends Store
{
    protected const KIND = '';
    protected const ARGUMENTS = [];
    protected string $address;
    protected int $port;
    protected int $pid;

    public function __construct(string $name, string $floor, string $build)
    {
        parent::__construct($name, $floor, $build);
        $this->address = $this->tool('start', static::KIND, $this->folder, '--owner', (string) getmypid(), ...static::ARGUMENTS);
        $this->port = (int) file_get_contents("$this->folder/port");
        $this->pid = (int) strtok((string) file_get_contents("$this->folder/pid"), ' ');
    }

    protected function tool(string ...$arguments): string
    {
        return $this->command(dirname(__DIR__, 2) . '/tools/server', ...$arguments);
    }

    protected function command(string ...$command): string
    {
        exec(implode(' ', array_map(escapeshellarg(...), $command)), $lines, $status);
        if ($status !== 0)
            throw new RuntimeException("$command[0] ended with status $status");
        return trim(implode("\n", $lines));
    }

    public function cpu(): ?float
    {
        return Proc::everCpu($this->pid) + array_sum(array_map(Proc::everCpu(...), Proc::children($this->pid)));
    }

    public function pids(): array
    {
        return [$this->pid, ...Proc::children($this->pid)];
    }

    public function close(): void
    {
        $this->tool('remove', $this->folder);
    }
}

final class RedisStore extends Server
{
    protected const KIND = 'redis';
    private array $numbers = [];
    private $socket = null;

    public function title(): string
    {
        preg_match('/^redis_version:(\S+)/m', $this->ask('INFO', 'server'), $m);
        return "Redis $m[1], no append-only file";
    }

    /* A database of its own; the floor has number 0. */
    public function fresh(string $name): string
    {
        $this->drop($name);
        return "$this->address/" . $this->number($name);
    }

    private function number(string $name): int
    {
        return $this->numbers[$name] ??= count($this->numbers) + 1;
    }

    public function drop(string $name): void
    {
        $this->ask('SELECT', (string) $this->number($name));
        $this->ask('FLUSHDB', 'SYNC');
    }

    public function floorAddress(): string
    {
        return "127.0.0.1:$this->port";
    }

    /* From here on every command goes into the append-only file, which is synced each second. */
    public function appendOnly(bool $on): void
    {
        $this->ask('CONFIG', 'SET', 'appendonly', $on ? 'yes' : 'no');
        for ($end = microtime(true) + 20; $on && $this->figure('persistence', 'aof_rewrite_in_progress') && microtime(true) < $end;)
            usleep(20_000);
    }

    public function figure(string $section, string $name): float
    {
        return preg_match("/^$name:(\S+)/m", $this->ask('INFO', $section), $m) ? (float) $m[1] : 0;
    }

    private function ask(string ...$words): string
    {
        $this->socket ??= stream_socket_client("tcp://127.0.0.1:$this->port");
        $line = '*' . count($words) . "\r\n";
        foreach ($words as $word)
            $line .= '$' . strlen($word) . "\r\n$word\r\n";
        fwrite($this->socket, $line);
        $answer = rtrim((string) fgets($this->socket));
        if ($answer === '' || $answer[0] === '-')
            throw new RuntimeException("redis: $words[0]: $answer");
        return $answer[0] === '$' ? stream_get_contents($this->socket, (int) substr($answer, 1) + 2) : $answer;
    }
}

final class PostgresStore extends Server
{
    protected const KIND = 'postgres';
    protected const ARGUMENTS = ['--durable', '--', '-c', 'shared_buffers=256MB', '-c', 'max_wal_size=2GB'];

    public function title(): string
    {
        return 'PostgreSQL ' . strtok($this->ask('SHOW server_version'), ' ') . ', fsync and synchronous_commit on';
    }

    public function fresh(string $name): string
    {
        $this->drop($name);
        return "$this->address?schema=bench_$name";
    }

    public function drop(string $name): void
    {
        $this->ask("SET client_min_messages = warning; DROP SCHEMA IF EXISTS bench_$name CASCADE");
    }

    public function floorAddress(): string
    {
        return $this->address;
    }

    /* Does not count itself. */
    public function transactions(string $dsn): ?float
    {
        return (float) $this->ask('SELECT pg_snapshot_xmax(pg_current_snapshot())');
    }

    /* A transaction of somebody else's that stays open and sees what was there: end it by fclose of the pipe. */
    public function openTransaction(): array
    {
        $process = proc_open([$this->psql(), '-qXAt', $this->address], [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        fwrite($pipes[0], "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id();\n");
        fgets($pipes[1]);
        return [$process, $pipes];
    }

    private function ask(string $sql): string
    {
        return $this->command($this->psql(), '-qXAt', $this->address, '-c', $sql);
    }

    private function psql(): string
    {
        return trim((string) shell_exec('command -v psql')) ?: glob('/usr/lib/postgresql/*/bin/psql')[0];
    }
}

final class MariadbStore extends Server
{
    protected const KIND = 'mariadb';
    protected const ARGUMENTS = ['--durable', '--', '--innodb-buffer-pool-size=512M', '--innodb-log-file-size=512M'];

    public function title(): string
    {
        return 'MariaDB ' . strtok($this->ask('SELECT version()'), '-') . ', innodb_flush_log_at_trx_commit=1';
    }

    public function fresh(string $name): string
    {
        $this->drop($name);
        $this->ask("CREATE DATABASE bench_$name");
        return preg_replace('~/[^/]*$~', "/bench_$name", $this->address);
    }

    public function drop(string $name): void
    {
        $this->ask("DROP DATABASE IF EXISTS bench_$name");
    }

    public function floorAddress(): string
    {
        return "127.0.0.1:$this->port:jobqueue:jobqueue";
    }

    private function ask(string $sql): string
    {
        return $this->command('mariadb', '--no-defaults', '-S', "$this->folder/socket.mariadb", '-u', 'jobqueue', '-N', '-e', $sql);
    }
}

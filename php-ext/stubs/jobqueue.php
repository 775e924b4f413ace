<?php

// Made by tools/gen-arginfo from php-ext/classes/*.stub.php: for IDEs, PHPStan and Psalm, never to be included.

namespace JobQueue;

/**
 * Makes a class a job: its constructor parameters are the payload, read from the properties of the same names. name is what
 * travels, never the class; unique names the parameter whose value makes the key NAME:VALUE. queue, priority, delay, expires and
 * version are fixed when it is pushed, the others are read when it runs.
 *
 * @strict-properties
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class AsJob
{
    public readonly string $name;
    public readonly ?string $queue;
    public readonly ?int $tries;
    public readonly int|float|null $timeout;
    /** @var int|float|list<int|float>|string|null */
    public readonly int|float|array|string|null $backoff;
    public readonly ?int $priority;
    public readonly int|float|null $delay;
    public readonly int|float|string|null $expires;
    public readonly int $version;
    public readonly ?string $unique;

    /** @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff */
    public function __construct(string $name, ?string $queue = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, ?int $priority = null, int|float|null $delay = null, int|float|string|null $expires = null, int $version = 1, ?string $unique = null) {}
}

/**
 * An integer as text, for those above PHP_INT_MAX.
 *
 * @strict-properties
 */
final class BigInt implements \Stringable
{
    public readonly string $value;

    public function __construct(int|string $value) {}

    public function __toString(): string {}
}

/**
 * A string that travels as bytes, whatever it holds.
 *
 * @strict-properties
 */
final class Bytes implements \Stringable
{
    public readonly string $value;

    public function __construct(string $value) {}

    public function __toString(): string {}
}

/** The command line: `exit(JobQueue\Console::run($argv, $worker));` */
final class Console
{
    private function __construct() {}

    /**
     * Runs one command of the jobqueue console (work, push, stats ...) and returns its exit code.
     *
     * @phpstan-param list<string> $argv
     * @param Worker|null $worker what `work` runs; without one it needs --bootstrap
     */
    public static function run(array $argv, ?Worker $worker = null): int {}
}

/**
 * What a listener gets. job is set for events of a job, data holds what the event adds (doc/behaviour.md, M1).
 *
 * @strict-properties
 * @not-serializable
 */
final class Event
{
    public readonly string $name;
    public readonly ?Job $job;
    public readonly ?string $queue;
    public readonly string $connection;
    /** @var array<string, mixed> */
    public readonly array $data;

    private function __construct() {}
}

interface ExceptionInterface extends \Throwable
{
}

/** For the application's own exceptions: thrown from a handler, the job is dead at once. */
interface NotRetryable
{
}

class QueueException extends \RuntimeException implements ExceptionInterface
{
    /** Stable word for programs. */
    public string $errorCode = "queue";
    protected bool $retryable = false;

    /** May the same call succeed later? */
    public function isRetryable(): bool {}
}

final class ConnectionException extends QueueException
{
}

final class OutcomeUnknown extends QueueException
{
    public string $id = "";
}

final class DuplicateJob extends QueueException
{
    public string $id = "";
}

/** The queue holds as many jobs as its capacity allows. */
final class QueueFull extends QueueException
{
    public string $queue = "";
    public int $capacity = 0;
}

/** The guard of the push was not true; nothing was stored. */
final class GuardRefused extends QueueException
{
}

/** The job that Queue::wait() waited for is dead. */
final class JobDead extends QueueException
{
    public string $id = "";
    public string $reason = "";
    public ?JobInfo $info = null;
}

/** The job had not ended when the time of Queue::wait() was over. */
final class WaitTimeout extends QueueException
{
    public string $id = "";
}

final class LeaseLost extends QueueException
{
}

final class PayloadException extends QueueException
{
    public string $path = "";
}

final class NotFound extends QueueException
{
    /** @var list<string> */
    public array $ids = [];
}

final class TimeoutException extends QueueException
{
}

final class StopException extends QueueException
{
}

/** What is kept of a dead job's last error, as its failed hook gets it: never thrown. */
final class RecordedException extends QueueException
{
    /** Class of what was thrown; null: nothing was (a crash, a time limit that had to be enforced). */
    public readonly ?string $className;
    /** "file:line" */
    public readonly ?string $place;
    public readonly ?string $recordedTrace;
}

class RetryAfter extends QueueException
{
    public readonly int|float $seconds;

    public function __construct(int|float $seconds, string $message = "", ?\Throwable $previous = null) {}
}

/**
 * A job in hand: given to the handler, or by Queue::reserve(). In a handler release, fail and delete take effect when it has
 * ended; after reserve at once. The first of them wins, a second is a \LogicException.
 *
 * @strict-properties
 * @not-serializable
 * @since 0.1
 */
final class Job
{
    public readonly string $id;
    public readonly string $name;
    public readonly string $queue;
    public readonly int $version;
    /** Failures and crashes so far, and this one. */
    public readonly int $attempt;
    public readonly int $failures;
    public readonly int $crashes;
    public readonly int $releases;
    public readonly int $deliveries;
    public readonly int $losses;
    /** Grows with every hand-out of the job, for life. */
    public readonly int $fence;
    public readonly mixed $payload;
    /** @var array<string, string> */
    public readonly array $context;
    public readonly \DateTimeImmutable $enqueuedAt;

    private function __construct() {}

    /** Back on the queue after so many seconds; costs no try. */
    public function release(int|float $delay = 0): void {}

    /** Dead at once, with that reason as its last error. */
    public function fail(string|\Throwable $reason): void {}

    /** Done, whatever the handler does from now on. */
    public function delete(): void {}

    /**
     * Runs when the handler has ended, however it did, in reverse order and before the job is settled. One that throws makes the
     * attempt a failure.
     *
     * @phpstan-param callable(): mixed $cleanup
     */
    public function defer(callable $cleanup): void {}

    /**
     * Inline and after Queue::reserve: the lease begins anew. In a pool, where the worker renews it: only a check.
     *
     * @throws LeaseLost
     */
    public function extend(): void {}

    /** Nobody waits for it any more: its lease is lost or it was cancelled. */
    public function isCancelled(): bool {}

    /** The worker was asked to stop. */
    public function isStopping(): bool {}

    /**
     * Throws what there is to be thrown: for handlers that want to end early.
     *
     * @throws LeaseLost
     * @throws TimeoutException
     * @throws StopException
     */
    public function checkpoint(): void {}

    /** Seconds since the first enqueue, by the store's clock. */
    public function age(): float {}

    /** Seconds until its time limit; null: it has none. */
    public function remaining(): ?float {}

    /** SHA-256 of name, version and body in hexadecimal: equal for equal work, whatever the id. */
    public function fingerprint(): string {}

    /**
     * How far it is, for Queue::find() and those who look; told to the store about once a second.
     *
     * @param int|float $percent 0 to 100
     * @param string|null $note at most 1024 bytes are kept
     */
    public function progress(int|float $percent, ?string $note = null): void {}

    /**
     * Carries a statement out in the store if the lease still holds, with nobody between check and statement (PostgreSQL, MariaDB,
     * SQLite: in a transaction of its own; Redis: a script, which is not rolled back when it fails).
     *
     * @param array $statement [text, [parameter, ...]] with the store's own placeholders; a script finds them in ARGV
     * @phpstan-param array{0: string, 1?: list<int|float|string|bool|Bytes|BigInt|null>} $statement
     * @return mixed first column of the first row, else the number of rows changed
     * @throws LeaseLost nothing was done
     */
    public function effect(array $statement): mixed {}

    /**
     * The statement that ends the job, for a transaction of the caller's own (PostgreSQL, MariaDB, SQLite): it fails when the lease
     * is lost. After the commit the handler returns as ever.
     *
     * @param string $placeholders "?" (PDO, mysqli, SQLite3) or "$" (pg_query_params)
     * @param mixed $result kept when the job is tracked or kept; what the handler returns comes too late
     * @throws PayloadException the result cannot be stored
     * @return array
     * @phpstan-return array{string, list<int|float|string|null>}
     */
    public function doneStatement(string $placeholders = "?", mixed $result = null): array {}

    /**
     * After Queue::reserve: done.
     *
     * @param mixed $result kept when the job is tracked or kept
     * @throws LeaseLost
     * @throws PayloadException the result cannot be kept; the job is as it was
     */
    public function done(mixed $result = null): void {}

    /**
     * After Queue::reserve: a failure.
     *
     * @param int|float|null $delay seconds; null: what the backoff says
     * @throws LeaseLost
     */
    public function retry(int|float|null $delay = null, ?\Throwable $error = null): void {}
}

/**
 * A job as it stands in the store.
 *
 * @strict-properties
 * @not-serializable
 */
final class JobInfo
{
    public readonly string $id;
    public readonly string $name;
    public readonly string $queue;
    public readonly int $version;
    public readonly State $state;
    public readonly int $attempt;
    public readonly int $failures;
    public readonly int $crashes;
    public readonly int $releases;
    public readonly int $deliveries;
    public readonly int $losses;
    public readonly int $priority;
    public readonly ?string $unique;
    public readonly mixed $payload;
    public readonly ?string $payloadError;
    /** @var array<string, string> */
    public readonly array $context;
    /** @var array<string, int|float|string> what the push said */
    public readonly array $options;
    public readonly \DateTimeImmutable $enqueuedAt;
    public readonly ?\DateTimeImmutable $availableAt;
    public readonly ?\DateTimeImmutable $reservedUntil;
    public readonly ?string $reservedBy;
    public readonly ?\DateTimeImmutable $diedAt;
    public readonly ?string $reason;
    /** @var array{class: ?string, message: ?string, where: ?string, trace: ?string}|null */
    public readonly ?array $lastError;
    /** @var list<array{started: \DateTimeImmutable, ended: \DateTimeImmutable, worker: ?string, outcome: ?string, class: ?string, message: ?string, shared?: true}> */
    public readonly array $history;
    /** @var array{percent: float, note: ?string}|null */
    public readonly ?array $progress;
    public readonly mixed $result;
    /** Why there is none though the job gave one. */
    public readonly ?string $resultError;
    /** Done and dead jobs: when it is collected. */
    public readonly ?\DateTimeImmutable $keptUntil;

    private function __construct() {}
}

/**
 * What stands behind the $next of a middleware; never made by hand.
 *
 * @internal
 * @strict-properties
 * @not-serializable
 */
final class Next
{
    private function __construct() {}

    public function __invoke(?Job $job = null, mixed $payload = null): mixed {}
}

/**
 * One store. Constructing it connects to nothing: the first call does, and creates or migrates the schema unless the option
 * migrate is false. After a fork the child may go on using it; it opens a connection of its own. Every method that asks the
 * store may throw ConnectionException; values of the wrong form are a \ValueError or \TypeError and nothing is sent.
 *
 * @strict-properties
 * @not-serializable
 * @since 0.1
 */
final class Queue
{
    /**
     * @param string|null $dsn sqlite:FILE, redis://, rediss://, redis+unix://, redis-sentinel://, redis-cluster://,
     *     postgresql://, mysql://, memory:, or a word that names $JOBQUEUE_DSN_WORD; null: $JOBQUEUE_DSN, else
     *     sqlite:jobqueue.db
     * @param array $options connection options by name (queue, prefix, schema, capacity, maxPayload, migrate, readTimeout ...);
     *     they win over those of the DSN
     * @phpstan-param array<string, mixed> $options
     * @throws \ValueError unknown scheme or option; a driver that is not built in is named with its package
     */
    public function __construct(#[\SensitiveParameter] ?string $dsn = null, array $options = []) {}

    /**
     * Stores a job and returns its id after the store has confirmed. Times are seconds. What is not given is what #[AsJob]
     * says, else queue "default", no delay, priority 0, version 1.
     *
     * @param string|object $job the job's name, or an object of a class with #[AsJob]
     * @param mixed $payload null, bool, int, float, string, array, stdClass, DateTimeInterface, backed enum, BigInt, Bytes
     * @param int|float|null $delay wait before it is ready
     * @param int|null $priority 0 to 9, higher first within its queue
     * @param string|null $unique key that one waiting or running job of the queue may have; while it is held the id of its
     *     holder is returned and nothing is stored (see onDuplicate)
     * @param array $context texts that travel along, for trace ids and the like
     * @phpstan-param array<string, string> $context
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param ?string $uniqueScope how long the unique key is held: to the job's end, or until its handler first starts (default until_done)
     * @phpstan-param 'until_done'|'until_started'|null $uniqueScope
     * @param ?string $onDuplicate the unique key is held: keep that job, put this one in its place, or refuse the push (default keep)
     * @phpstan-param 'keep'|'replace'|'error'|null $onDuplicate
     * @param int|float|null $maxWait on_duplicate=replace: due at most so long after the first push of the key (default 0)
     * @param ?bool $idempotent a push whose id exists changes nothing and is no error; needs an id (default false)
     * @param int|float|null $idempotentFor idempotent: how long the id is remembered after the job has ended (default 3600)
     * @param ?bool $track the job's result can be read for keep_done seconds, at least 3600, after its end (default false)
     * @param \DateTimeInterface|int|float|string|null $retryUntil no retry after that; given without tries it is the only limit
     * @param \DateTimeInterface|int|float|string|null $expires a job that has not started by then is not run
     * @param ?string $onExpire what becomes of an expired job (default dead)
     * @phpstan-param 'dead'|'drop'|null $onExpire
     * @param array|string|null $guard a statement, or [statement, [parameter, ...]]: stored only when it is true
     * @phpstan-param array{0: string, 1?: list<int|float|string|bool|null>}|string|null $guard
     * @throws PayloadException a value cannot travel; path says which
     * @throws DuplicateJob the id, or with onDuplicate: "error" the unique key, is taken
     * @throws QueueFull the queue's capacity is reached
     * @throws GuardRefused the guard was not true
     * @throws OutcomeUnknown the answer was lost: it may have been stored under the exception's id
     */
    public function push(string|object $job, mixed $payload = null, ?string $queue = null, int|float|null $delay = null, ?\DateTimeInterface $at = null, ?int $priority = null, ?string $id = null, ?int $version = null, ?string $unique = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, array $context = [], ?string $uniqueScope = null, ?string $onDuplicate = null, int|float|null $maxWait = null, ?bool $idempotent = null, int|float|null $idempotentFor = null, ?bool $track = null, \DateTimeInterface|int|float|string|null $retryUntil = null, \DateTimeInterface|int|float|string|null $expires = null, ?string $onExpire = null, array|string|null $guard = null): string {}

    /**
     * The store's statement for this push, for a transaction of the caller's own (PostgreSQL, MariaDB, SQLite). Its answer is
     * one row: id, and result: stored, held (the unique key or the idempotent id, by the job of that id), replaced, full,
     * duplicate. Rolled back, it has never been.
     *
     * @phpstan-param array<string, string> $context
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param ?string $uniqueScope how long the unique key is held: to the job's end, or until its handler first starts (default until_done)
     * @phpstan-param 'until_done'|'until_started'|null $uniqueScope
     * @param ?string $onDuplicate the unique key is held: keep that job, put this one in its place, or refuse the push (default keep)
     * @phpstan-param 'keep'|'replace'|'error'|null $onDuplicate
     * @param int|float|null $maxWait on_duplicate=replace: due at most so long after the first push of the key (default 0)
     * @param ?bool $idempotent a push whose id exists changes nothing and is no error; needs an id (default false)
     * @param int|float|null $idempotentFor idempotent: how long the id is remembered after the job has ended (default 3600)
     * @param ?bool $track the job's result can be read for keep_done seconds, at least 3600, after its end (default false)
     * @param \DateTimeInterface|int|float|string|null $retryUntil no retry after that; given without tries it is the only limit
     * @param \DateTimeInterface|int|float|string|null $expires a job that has not started by then is not run
     * @param ?string $onExpire what becomes of an expired job (default dead)
     * @phpstan-param 'dead'|'drop'|null $onExpire
     * @param array|string|null $guard a statement, or [statement, [parameter, ...]]: stored only when it is true
     * @phpstan-param array{0: string, 1?: list<int|float|string|bool|null>}|string|null $guard
     * @param string $placeholders "?" (PDO, mysqli, SQLite3) or "$" (pg_query_params)
     * @phpstan-param '?'|'$' $placeholders
     * @return array
     * @phpstan-return array{string, list<int|float|string|null>}
     */
    public function pushStatement(string|object $job, mixed $payload = null, ?string $queue = null, int|float|null $delay = null, ?\DateTimeInterface $at = null, ?int $priority = null, ?string $id = null, ?int $version = null, ?string $unique = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, array $context = [], ?string $uniqueScope = null, ?string $onDuplicate = null, int|float|null $maxWait = null, ?bool $idempotent = null, int|float|null $idempotentFor = null, ?bool $track = null, \DateTimeInterface|int|float|string|null $retryUntil = null, \DateTimeInterface|int|float|string|null $expires = null, ?string $onExpire = null, array|string|null $guard = null, string $placeholders = "?"): array {}

    /**
     * Pushes any number of jobs in bounded chunks; each is judged singly, those of a chunk that are accepted are stored
     * together.
     * jobs: each [name, payload, option: value ...] or a job object. onChunk gets each chunk's list of results, and [] is
     * returned: a generator needs constant memory. What is neither is a TypeError at once.
     *
     * @phpstan-param iterable<array{0: string, 1?: mixed, queue?: ?string, tries?: ?int, timeout?: int|float|null, backoff?: int|float|non-empty-list<int|float>|string|null, delay?: int|float|null, at?: ?\DateTimeInterface, priority?: ?int, id?: ?string, version?: ?int, unique?: ?string, uniqueScope?: 'until_done'|'until_started'|null, onDuplicate?: 'keep'|'replace'|'error'|null, maxWait?: int|float|null, idempotent?: ?bool, idempotentFor?: int|float|null, track?: ?bool, retryUntil?: \DateTimeInterface|int|float|string|null, expires?: \DateTimeInterface|int|float|string|null, onExpire?: 'dead'|'drop'|null, context?: array<string, string>, guard?: array{0: string, 1?: list<int|float|string|bool|null>}|string|null}|object> $jobs
     * @phpstan-param (callable(list<string|\Throwable>): mixed)|null $onChunk
     * @phpstan-return list<string|\Throwable> ids or what befell that job, in the order of the input
     */
    public function pushMany(iterable $jobs, ?callable $onChunk = null): array {}

    /**
     * One job for a loop of the caller's own, which ends it with done, retry, release or fail and keeps it with extend. Does
     * the maintenance that is due (delayed jobs, lapsed leases).
     *
     * @param array|string $queues in the order to serve, "high,default" or a list; none: the connection's
     * @phpstan-param list<string>|string $queues
     * @param int|float $lease seconds after which it counts as lost
     */
    public function reserve(array|string $queues = [], int|float $lease = 30): ?Job {}

    /**
     * Counts of one queue; one that nobody ever used counts 0.
     *
     * @param int $minutes perMinute covers so many, 0 to 1440
     */
    public function stats(string $queue, int $minutes = 60): Stats {}

    /**
     * @return array
     * @phpstan-return array<string, Stats> by the queues' names
     */
    public function allStats(int $minutes = 0): array {}

    /**
     * Counters of this object, no store involved: pushed, pushRejected, storeFailures, received, done, ...
     *
     * @return array
     * @phpstan-return array<string, int>
     */
    public function counters(): array {}

    /**
     * @return array
     * @phpstan-return list<string> names, sorted
     */
    public function queues(): array {}

    /** The job as it stands, whatever its state; null when there is none of that id. */
    public function find(string $id): ?JobInfo {}

    /**
     * The result of a tracked job, once it is done; woken by the store where it can.
     *
     * @param int|float $timeout seconds, 0: look once
     * @throws JobDead it is dead
     * @throws WaitTimeout it has not ended
     * @throws NotFound there is no such job, or it ended and was not kept (push it with track: true)
     * @throws PayloadException its result could not be kept
     */
    public function wait(string $id, int|float $timeout): mixed {}

    /**
     * A page of the jobs of one queue in one state, in the order in which they will run.
     *
     * @param int $limit 1 to 1000
     * @param string|null $after the last id of the page before
     * @return array
     * @phpstan-return list<JobInfo>
     */
    public function jobs(string $queue, State $state, int $limit = 50, ?string $after = null): array {}

    /**
     * A page of dead jobs, newest first.
     *
     * @param string|null $reason attempts_exhausted, timed_out, crashed, ...
     * @param int|float|null $olderThan seconds since it died, at least
     * @return array
     * @phpstan-return list<JobInfo>
     */
    public function dead(?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, int $limit = 50, ?string $after = null): array {}

    /**
     * Puts dead jobs back in place with fresh counters, by ids or by a filter.
     *
     * @param array|string|null $ids one, or a list; an empty one is refused, so that it never stands for all
     * @phpstan-param non-empty-list<string>|string|null $ids
     * @param bool $all needed when neither ids nor a filter are given
     * @return int how many
     * @throws NotFound ids that no dead job has (or whose retention is over), after the others are done
     * @throws DuplicateJob the unique key of one of them is held
     */
    public function retry(array|string|null $ids = null, ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    /**
     * Removes dead jobs; arguments as retry.
     *
     * @phpstan-param non-empty-list<string>|string|null $ids
     */
    public function forget(array|string|null $ids = null, ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    /**
     * Removes all dead jobs, or those that the filter fits.
     *
     * @phpstan-param non-empty-list<string>|string|null $ids
     */
    public function flush(array|string|null $ids = null, ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    /** Removes what was only kept and whose time is over, and dead jobs older than olderThan seconds; the number of dead ones. */
    public function prune(bool $dryRun = false, int|float|null $olderThan = null): int {}

    /**
     * A waiting job is dead with the reason "cancelled"; a running one is told so.
     *
     * @param bool $hard end a running one by exception and kill, as at its time limit
     * @return bool false: no waiting or running job has that id
     */
    public function cancel(string $id, bool $hard = false): bool {}

    /** Removes every waiting job of the queue; the number. */
    public function clear(string $queue): int {}

    /** How many jobs the queue may hold, dead ones too; 0: no limit. Kept in the store, judged at each push. */
    public function capacity(string $queue, int $n): void {}

    /**
     * Workers take no jobs of the queue until it is resumed; pushes are stored as ever.
     *
     * @param string|null $queue null: all, which is a pause of its own
     * @param int|float $ttl seconds, 0: until it is resumed
     */
    public function pause(?string $queue = null, int|float $ttl = 0): void {}

    public function resume(?string $queue = null): void {}

    /** Every worker that runs finishes its jobs and ends with code 0, to be started anew by whoever watches over it. */
    public function restartWorkers(): void {}

    /**
     * The live workers of the store.
     *
     * @return array
     * @phpstan-return list<array{id: string, host: string, name: ?string, queues: list<string>, names: list<string>, pid: int, processes: int, running: int, held: int, startedAt: ?\DateTimeImmutable, aliveUntil: ?\DateTimeImmutable, lease: float}>
     */
    public function workers(): array {}

    /**
     * Looks the store, the way to it and the workers over.
     *
     * @param bool $audit look at every job, too: does it stand in exactly one state?
     * @return array
     * @phpstan-return list<array{grade: 'ok'|'note'|'problem', check: string, text: string, advice: ?string}>
     */
    public function doctor(bool $audit = false): array {}

    /**
     * Adds a listener for job.pushed, called with an Event after each push of this object.
     *
     * @phpstan-param callable(Event): mixed $listener
     */
    public function on(string $event, callable $listener): static {}

    /** Creates or updates what the store needs; nothing to do is fine. */
    public function migrate(): void {}

    /** Seconds of a round trip to the store. */
    public function ping(): float {}
}

/** Where a job stands. */
enum State: string
{
    case Ready = "ready";
    case Delayed = "delayed";
    case Reserved = "reserved";
    case Done = "done";
    case Dead = "dead";
}

/**
 * Counts of one queue. oldestReadyAge: seconds, null when nothing is ready; capacity 0: no limit. perMinute: oldest first,
 * minutes in which nothing happened left out, each {at, pushed, done, failed, retried, crashed, released, timedOut, runs}; runs
 * are handlers by how long they ran, {upTo: seconds, null behind the last; count}.
 *
 * @strict-properties
 */
final class Stats implements \JsonSerializable
{
    public readonly string $queue;
    public readonly int $ready;
    public readonly int $delayed;
    public readonly int $reserved;
    public readonly int $dead;
    public readonly bool $paused;
    public readonly int $backlog;
    public readonly ?float $oldestReadyAge;
    public readonly int $capacity;
    /** @var list<array{at: \DateTimeImmutable, pushed: int, done: int, failed: int, retried: int, crashed: int, released: int, timedOut: int, runs: list<array{upTo: ?float, count: int}>}> */
    public readonly array $perMinute;

    private function __construct() {}

    /**
     * @return array
     * @phpstan-return array<string, mixed>
     */
    public function jsonSerialize(): array {}
}

/**
 * Runs handlers for the jobs of a queue, in forked children or inline (processes: 0). Command line only.
 *
 * @strict-properties
 * @not-serializable
 * @since 0.1
 */
final class Worker
{
    /**
     * @param ?int $tries failures and crashes after which the job is dead (default 3)
     * @param int|float|null $timeout longest run of the handler (default 60)
     * @param int|float|array|string|null $backoff wait after the first, second, ... failure; the last entry repeats (default 10,60,300)
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param ?int $maxCrashes deaths of its process after which the job is dead (default 3)
     * @param ?int $maxExceptions throws of the handler after which the job is dead (default 0)
     * @param ?int $maxReleases how often a job may release itself (default 0)
     * @param array|string|null $dontRetry exception classes after which the job is dead at once
     * @phpstan-param non-empty-list<string>|string|null $dontRetry
     * @param ?bool $failOnTimeout a job over its time limit is dead at once (default false)
     * @param int|float|null $keepDone how long a finished job can still be found (default 0)
     * @param int|float|null $deadRetention how long a job that becomes dead is kept and can be put back (default 0)
     * @param int|float|null $jitter share of the backoff that chance adds at most, so that retries do not come in step (default 0.1)
     * @param ?int $processes children that run handlers (default 1)
     * @param int|float|null $timeoutGrace time from the exception at the time limit to the kill (default 5)
     * @param int|float|null $lease how long a worker that fell silent keeps its jobs; renewed every third of it (default 30)
     * @param int|float|null $sleep longest wait between looks where the store cannot wake the worker (default 1)
     * @param int|float|null $rest pause after each job (default 0)
     * @param ?int $maxJobs stop after so many jobs (default 0)
     * @param int|float|null $maxTime stop after so long, idle time included (default 0)
     * @param ?int $memory private memory of a child above which it is replaced after its job (default 128)
     * @param ?int $recycleJobs replace a child after so many jobs (default 0)
     * @param int|float|null $recycleTime replace a child after so long (default 0)
     * @param ?bool $stopWhenEmpty stop when nothing is ready and nothing runs here; delayed jobs, and retries that wait for their backoff, are left to later runs (default false)
     * @param int|float|null $stopWhenEmptyFor stop when it has been empty for so long; with more than the longest backoff retries are run, too (default 0)
     * @param ?bool $once run at most one job and wait for none (default false)
     * @param int|float|null $drain how long running jobs may go on after a stop request (default 0)
     * @param ?int $maxReserveFailures failed looks at the store in a row after which the worker stops (default 5)
     * @param int|float|null $unknownFor how long a job waits for a worker that knows its name before it is dead (default 3600)
     * @param ?string $errors what is kept of a handler's error: all of it, or its class name only (default full)
     * @phpstan-param 'full'|'class'|null $errors
     * @param ?string $name a name for this worker, shown beside its id
     * @param ?bool $force go on while all queues are paused; a queue's own pause still holds (default false)
     * @param int|string|null $prefetch jobs held beyond the running ones (default auto)
     * @phpstan-param int|'auto'|null $prefetch
     * @param mixed $output what the worker prints about its jobs (default auto)
     * @phpstan-param string|resource|(callable(string): mixed)|null $output
     * @param ?bool $verbose also print when a job starts (default false)
     * @param ?string $readyFile a file that exists exactly while the worker takes jobs
     * @throws \ValueError an option that is unknown, misplaced or out of its range
     */
    public function __construct(Queue $queue, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, ?int $maxCrashes = null, ?int $maxExceptions = null, ?int $maxReleases = null, array|string|null $dontRetry = null, ?bool $failOnTimeout = null, int|float|null $keepDone = null, int|float|null $deadRetention = null, int|float|null $jitter = null, ?int $processes = null, int|float|null $timeoutGrace = null, int|float|null $lease = null, int|float|null $sleep = null, int|float|null $rest = null, ?int $maxJobs = null, int|float|null $maxTime = null, ?int $memory = null, ?int $recycleJobs = null, int|float|null $recycleTime = null, ?bool $stopWhenEmpty = null, int|float|null $stopWhenEmptyFor = null, ?bool $once = null, int|float|null $drain = null, ?int $maxReserveFailures = null, int|float|null $unknownFor = null, ?string $errors = null, ?string $name = null, ?bool $force = null, int|string|null $prefetch = null, mixed $output = null, ?bool $verbose = null, ?string $readyFile = null) {}

    /**
     * Announces a handler.
     *
     * handler: called with (Job $job, mixed $payload); a class's name: from the resolver, else made anew for
     *     each job, its handle() or __invoke() is called
     * @template TPayload
     * @phpstan-param (callable(Job, TPayload): mixed)|class-string $handler
     * @param ?int $tries failures and crashes after which the job is dead (default 3)
     * @param int|float|null $timeout longest run of the handler (default 60)
     * @param int|float|array|string|null $backoff wait after the first, second, ... failure; the last entry repeats (default 10,60,300)
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param ?int $maxCrashes deaths of its process after which the job is dead (default 3)
     * @param ?int $maxExceptions throws of the handler after which the job is dead (default 0)
     * @param ?int $maxReleases how often a job may release itself (default 0)
     * @param array|string|null $dontRetry exception classes after which the job is dead at once
     * @phpstan-param non-empty-list<string>|string|null $dontRetry
     * @param ?bool $failOnTimeout a job over its time limit is dead at once (default false)
     * @param int|float|null $keepDone how long a finished job can still be found (default 0)
     * @param int|float|null $deadRetention how long a job that becomes dead is kept and can be put back (default 0)
     * @param ?string $maps PHP: what a map of the payload becomes (default array)
     * @phpstan-param 'array'|'object'|null $maps
     * @param int|float|null $jitter share of the backoff that chance adds at most, so that retries do not come in step (default 0.1)
     * @param ?callable $failed runs when a job of it has died
     * @phpstan-param (callable(JobInfo, ?\Throwable): mixed)|null $failed
     * @throws \ValueError the name and version are registered already, or the worker has started
     */
    public function handle(string $name, callable|string $handler, int $version = 1, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, ?int $maxCrashes = null, ?int $maxExceptions = null, ?int $maxReleases = null, array|string|null $dontRetry = null, ?bool $failOnTimeout = null, int|float|null $keepDone = null, int|float|null $deadRetention = null, ?string $maps = null, int|float|null $jitter = null, ?callable $failed = null): static {}

    /**
     * Announces classes with #[AsJob].
     *
     * @phpstan-param class-string ...$classes
     */
    public function register(string ...$classes): static {}

    /**
     * Asked for handlers that are classes and for names that nobody registered.
     *
     * resolver: fn (string $name): callable|object|null, or a PSR-11 container
     * @phpstan-param (callable(string): (callable|object|null))|\Psr\Container\ContainerInterface $resolver
     */
    public function resolver(callable|object $resolver): static {}

    /**
     * Wraps every handler, outermost first; not calling $next and returning is done.
     *
     * @phpstan-param callable(Job, mixed, Next): mixed ...$middleware
     */
    public function middleware(callable ...$middleware): static {}

    /**
     * Adds a listener, called with an Event (doc/behaviour.md, M1).
     *
     * @phpstan-param callable(Event): mixed $listener
     * @throws \ValueError an unknown event; the nearest is named
     */
    public function on(string $event, callable $listener): static {}

    /**
     * Works until a limit, a signal or an empty queue ends it; the exit code.
     *
     * With stopWhenEmpty delayed jobs, and retries that wait for their backoff, are left to later runs;
     * stopWhenEmptyFor, with more than the longest backoff, runs those retries, too.
     *
     * @param array|string $queues in the order to serve; none: the connection's
     * @phpstan-param list<string>|string $queues
     * @param ?int $tries failures and crashes after which the job is dead (default 3)
     * @param int|float|null $timeout longest run of the handler (default 60)
     * @param int|float|array|string|null $backoff wait after the first, second, ... failure; the last entry repeats (default 10,60,300)
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param ?int $maxCrashes deaths of its process after which the job is dead (default 3)
     * @param ?int $maxExceptions throws of the handler after which the job is dead (default 0)
     * @param ?int $maxReleases how often a job may release itself (default 0)
     * @param array|string|null $dontRetry exception classes after which the job is dead at once
     * @phpstan-param non-empty-list<string>|string|null $dontRetry
     * @param ?bool $failOnTimeout a job over its time limit is dead at once (default false)
     * @param int|float|null $keepDone how long a finished job can still be found (default 0)
     * @param int|float|null $deadRetention how long a job that becomes dead is kept and can be put back (default 0)
     * @param int|float|null $jitter share of the backoff that chance adds at most, so that retries do not come in step (default 0.1)
     * @param ?int $processes children that run handlers (default 1)
     * @param int|float|null $timeoutGrace time from the exception at the time limit to the kill (default 5)
     * @param int|float|null $lease how long a worker that fell silent keeps its jobs; renewed every third of it (default 30)
     * @param int|float|null $sleep longest wait between looks where the store cannot wake the worker (default 1)
     * @param int|float|null $rest pause after each job (default 0)
     * @param ?int $maxJobs stop after so many jobs (default 0)
     * @param int|float|null $maxTime stop after so long, idle time included (default 0)
     * @param ?int $memory private memory of a child above which it is replaced after its job (default 128)
     * @param ?int $recycleJobs replace a child after so many jobs (default 0)
     * @param int|float|null $recycleTime replace a child after so long (default 0)
     * @param ?bool $stopWhenEmpty stop when nothing is ready and nothing runs here; delayed jobs, and retries that wait for their backoff, are left to later runs (default false)
     * @param int|float|null $stopWhenEmptyFor stop when it has been empty for so long; with more than the longest backoff retries are run, too (default 0)
     * @param ?bool $once run at most one job and wait for none (default false)
     * @param int|float|null $drain how long running jobs may go on after a stop request (default 0)
     * @param ?int $maxReserveFailures failed looks at the store in a row after which the worker stops (default 5)
     * @param int|float|null $unknownFor how long a job waits for a worker that knows its name before it is dead (default 3600)
     * @param ?string $errors what is kept of a handler's error: all of it, or its class name only (default full)
     * @phpstan-param 'full'|'class'|null $errors
     * @param ?string $name a name for this worker, shown beside its id
     * @param ?bool $force go on while all queues are paused; a queue's own pause still holds (default false)
     * @param int|string|null $prefetch jobs held beyond the running ones (default auto)
     * @phpstan-param int|'auto'|null $prefetch
     * @param mixed $output what the worker prints about its jobs (default auto)
     * @phpstan-param string|resource|(callable(string): mixed)|null $output
     * @param ?bool $verbose also print when a job starts (default false)
     * @param ?string $readyFile a file that exists exactly while the worker takes jobs
     */
    public function run(array|string $queues = [], ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, ?int $maxCrashes = null, ?int $maxExceptions = null, ?int $maxReleases = null, array|string|null $dontRetry = null, ?bool $failOnTimeout = null, int|float|null $keepDone = null, int|float|null $deadRetention = null, int|float|null $jitter = null, ?int $processes = null, int|float|null $timeoutGrace = null, int|float|null $lease = null, int|float|null $sleep = null, int|float|null $rest = null, ?int $maxJobs = null, int|float|null $maxTime = null, ?int $memory = null, ?int $recycleJobs = null, int|float|null $recycleTime = null, ?bool $stopWhenEmpty = null, int|float|null $stopWhenEmptyFor = null, ?bool $once = null, int|float|null $drain = null, ?int $maxReserveFailures = null, int|float|null $unknownFor = null, ?string $errors = null, ?string $name = null, ?bool $force = null, int|string|null $prefetch = null, mixed $output = null, ?bool $verbose = null, ?string $readyFile = null): int {}

    /**
     * At most one job, inline and silent. Was there one?
     *
     * @phpstan-param list<string>|string $queues
     */
    public function runNext(array|string $queues = []): bool {}

    /** Asks the worker to stop, from inside a handler or listener, too. */
    public function stop(): void {}

    /** Does it take jobs just now? */
    public function ready(): bool {}

    /** "host:pid:random", at most 64 characters. */
    public function id(): string {}

    /**
     * Counters of the whole worker and of the queue object.
     *
     * @return array
     * @phpstan-return array<string, int>
     */
    public function statistics(): array {}
}

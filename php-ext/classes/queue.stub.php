<?php

/** @generate-class-entries */

namespace JobQueue;

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
     * @param mixed $options retryUntil, expires, onExpire (dead, drop), track, uniqueScope (until_done, until_started),
     *     onDuplicate (keep, replace, error), maxWait, idempotent, idempotentFor, guard ([statement, [parameter, ...]])
     * @throws PayloadException a value cannot travel; path says which
     * @throws DuplicateJob the id, or with onDuplicate: "error" the unique key, is taken
     * @throws QueueFull the queue's capacity is reached
     * @throws GuardRefused the guard was not true
     * @throws OutcomeUnknown the answer was lost: it may have been stored under the exception's id
     */
    public function push(string|object $job, mixed $payload = null, ?string $queue = null, int|float|null $delay = null, ?\DateTimeInterface $at = null, ?int $priority = null, ?string $id = null, ?int $version = null, ?string $unique = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, array $context = [], mixed ...$options): string {}

    /**
     * The store's statement for this push, for a transaction of the caller's own (PostgreSQL, MariaDB, SQLite). Its answer is
     * one row: id, and result: stored, held (the unique key or the idempotent id, by the job of that id), replaced, full,
     * duplicate. Rolled back, it has never been.
     *
     * @phpstan-param array<string, string> $context
     * @phpstan-param int|float|non-empty-list<int|float>|string|null $backoff
     * @param mixed $options as push; placeholders: "?" (PDO, mysqli, SQLite3, the default) or "$" (pg_query_params)
     * @return array
     * @phpstan-return array{string, list<int|float|string|null>}
     */
    public function pushStatement(string|object $job, mixed $payload = null, ?string $queue = null, int|float|null $delay = null, ?\DateTimeInterface $at = null, ?int $priority = null, ?string $id = null, ?int $version = null, ?string $unique = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, array $context = [], mixed ...$options): array {}

    /**
     * Pushes any number of jobs in bounded chunks; each is judged singly, those of a chunk that are accepted are stored
     * together.
     * jobs: each [name, payload, option: value ...] or a job object. onChunk gets each chunk's list of results, and [] is
     * returned: a generator needs constant memory. What is neither is a TypeError at once.
     *
     * @phpstan-param iterable<array{PUSH}|object> $jobs
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

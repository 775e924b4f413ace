<?php

/** @generate-class-entries */

namespace JobQueue;

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

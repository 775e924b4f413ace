<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * A job in hand: given to the handler, or by Queue::reserve().
 *
 * @strict-properties
 * @not-serializable
 */
final class Job
{
    public readonly string $id;
    public readonly string $name;
    public readonly string $queue;
    public readonly int $version;
    public readonly int $attempt;
    public readonly int $failures;
    public readonly int $crashes;
    public readonly int $releases;
    public readonly int $deliveries;
    public readonly int $losses;
    public readonly int $fence;
    public readonly mixed $payload;
    public readonly array $context;
    public readonly \DateTimeImmutable $enqueuedAt;

    private function __construct() {}

    public function release(int|float $delay = 0): void {}

    public function fail(string|\Throwable $reason): void {}

    public function delete(): void {}

    public function defer(callable $cleanup): void {}

    public function extend(): void {}

    public function isCancelled(): bool {}

    public function isStopping(): bool {}

    public function checkpoint(): void {}

    public function age(): float {}

    public function remaining(): ?float {}

    public function done(): void {}

    public function retry(int|float|null $delay = null, ?\Throwable $error = null): void {}
}

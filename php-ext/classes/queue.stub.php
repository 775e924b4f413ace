<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * One store. Constructing it connects to nothing.
 *
 * @strict-properties
 * @not-serializable
 */
final class Queue
{
    public function __construct(#[\SensitiveParameter] ?string $dsn = null, array $options = []) {}

    public function push(string|object $job, mixed $payload = null, ?string $queue = null, int|float|null $delay = null, ?\DateTimeInterface $at = null, ?int $priority = null, ?string $id = null, ?int $version = null, ?string $unique = null, ?int $tries = null, int|float|null $timeout = null, int|float|array|string|null $backoff = null, array $context = [], mixed ...$options): string {}

    public function pushMany(iterable $jobs, ?callable $onChunk = null): array {}

    public function reserve(array|string $queues = [], int|float $lease = 30): ?Job {}

    public function stats(string $queue): Stats {}

    public function allStats(): array {}

    public function counters(): array {}

    public function queues(): array {}

    public function find(string $id): ?JobInfo {}

    public function jobs(string $queue, State $state, int $limit = 50, ?string $after = null): array {}

    public function dead(?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, int $limit = 50, ?string $after = null): array {}

    public function retry(array|string $ids = [], ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    public function forget(array|string $ids = [], ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    public function flush(array|string $ids = [], ?string $queue = null, ?string $name = null, ?string $reason = null, int|float|null $olderThan = null, bool $all = false, bool $dryRun = false): int {}

    public function prune(bool $dryRun = false, int|float|null $olderThan = null): int {}

    /** false: no waiting or running job has that id. */
    public function cancel(string $id, bool $hard = false): bool {}

    public function clear(string $queue): int {}

    /** null: all queues; ttl 0: until it is resumed. */
    public function pause(?string $queue = null, int|float $ttl = 0): void {}

    public function resume(?string $queue = null): void {}

    public function restartWorkers(): void {}

    public function workers(): array {}

    public function doctor(): array {}

    public function on(string $event, callable $listener): static {}

    public function migrate(): void {}

    public function ping(): float {}
}

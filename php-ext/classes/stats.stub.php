<?php

/** @generate-class-entries */

namespace JobQueue;

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

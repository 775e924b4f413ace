<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * Counts of one queue. oldestReadyAge: seconds, null when nothing is ready.
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

    private function __construct() {}

    public function jsonSerialize(): array {}
}

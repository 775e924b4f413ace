<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * Makes a class a job: its constructor parameters are the payload, read from the properties of the same names. name is what
 * travels, never the class; unique names the parameter whose value makes the key NAME:VALUE. queue, priority, delay, expires and
 * version are fixed when it is pushed, the others are read when it runs.
 *
 * @strict-properties
 */
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

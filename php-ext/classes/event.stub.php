<?php

/** @generate-class-entries */

namespace JobQueue;

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

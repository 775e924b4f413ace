<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * What a listener gets.
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
    public readonly array $data;

    private function __construct() {}
}

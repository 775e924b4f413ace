<?php

/** @generate-class-entries */

namespace JobQueue;

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

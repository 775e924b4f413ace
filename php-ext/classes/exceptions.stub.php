<?php

/** @generate-class-entries */

namespace JobQueue;

interface ExceptionInterface extends \Throwable
{
}

/** For the application's own exceptions: thrown from a handler, the job is dead at once. */
interface NotRetryable
{
}

class QueueException extends \RuntimeException implements ExceptionInterface
{
    /** Stable word for programs. */
    public string $errorCode = "queue";
    protected bool $retryable = false;

    /** May the same call succeed later? */
    public function isRetryable(): bool {}
}

final class ConnectionException extends QueueException
{
}

final class OutcomeUnknown extends QueueException
{
    public string $id = "";
}

final class DuplicateJob extends QueueException
{
    public string $id = "";
}

final class LeaseLost extends QueueException
{
}

final class PayloadException extends QueueException
{
    public string $path = "";
}

final class NotFound extends QueueException
{
    public array $ids = [];
}

final class TimeoutException extends QueueException
{
}

final class StopException extends QueueException
{
}

/** What is kept of a dead job's last error, as its failed hook gets it: never thrown. */
final class RecordedException extends QueueException
{
    /** Class of what was thrown; null: nothing was (a crash, a time limit that had to be enforced). */
    public readonly ?string $className;
    /** "file:line" */
    public readonly ?string $place;
    public readonly ?string $recordedTrace;
}

class RetryAfter extends QueueException
{
    public readonly int|float $seconds;

    public function __construct(int|float $seconds, string $message = "", ?\Throwable $previous = null) {}
}

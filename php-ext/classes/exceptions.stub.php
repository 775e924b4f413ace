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

/** The queue holds as many jobs as its capacity allows. */
final class QueueFull extends QueueException
{
    public string $queue = "";
    public int $capacity = 0;
}

/** The guard of the push was not true; nothing was stored. */
final class GuardRefused extends QueueException
{
}

/** The job that Queue::wait() waited for is dead. */
final class JobDead extends QueueException
{
    public string $id = "";
    public string $reason = "";
    public ?JobInfo $info = null;
}

/** The job had not ended when the time of Queue::wait() was over. */
final class WaitTimeout extends QueueException
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
    /** @var list<string> */
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

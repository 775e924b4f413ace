<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job as Base;
use JobQueue\Job as Native;

/**
 * A reserved or running job as Laravel sees it. One that queue:work has reserved is settled as soon as Laravel says so; of
 * one that the native worker runs the decision is only noted, and told by WorkCommand when the handler has ended.
 */
final class Job extends Base implements JobContract
{
    private ?float $releasedFor = null;
    private ?\Throwable $failedWith = null;

    public function __construct(
        Container $container,
        private readonly Native $native,
        ?string $connection,
        private readonly bool $inWorker = false,
    ) {
        $this->container = $container;
        $this->connectionName = $connection;
        $this->queue = $native->queue;
    }

    public function native(): Native
    {
        return $this->native;
    }

    /** Seconds Laravel wants it back in, null when it did not release it. */
    public function releasedFor(): ?float
    {
        return $this->releasedFor;
    }

    /** Why Laravel has failed it, null when there is no exception. */
    public function failedWith(): ?\Throwable
    {
        return $this->failedWith;
    }

    public function fail($e = null)
    {
        $this->failedWith = $e instanceof \Throwable ? $e : null;
        parent::fail($e);
    }

    public function release($delay = 0)
    {
        parent::release($delay);
        $seconds = (float) max(0, $this->secondsUntil($delay));
        $this->releasedFor = $seconds;
        if (! $this->inWorker) {
            $this->native->release($seconds);
        }
    }

    public function delete()
    {
        if ($this->isDeleted()) {
            return;
        }
        parent::delete();
        if (! $this->inWorker) {
            $this->native->delete();
        }
    }

    /** Laravel counts every hand-out that did something, releases included. */
    public function attempts(): int
    {
        return $this->native->attempt + $this->native->releases;
    }

    public function getJobId(): string
    {
        return $this->native->id;
    }

    public function getRawBody(): string
    {
        return (string) $this->native->payload;
    }
}

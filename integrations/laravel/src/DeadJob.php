<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job as Base;
use JobQueue\JobInfo;

/** A job that the worker buried by itself (crash, time limit, lost with its host), for Laravel's failed-job handling. */
final class DeadJob extends Base implements JobContract
{
    public function __construct(Container $container, private readonly JobInfo $info, string $connection)
    {
        $this->container = $container;
        $this->connectionName = $connection;
        $this->queue = $info->queue;
    }

    public function attempts(): int
    {
        return $this->info->attempt;
    }

    public function getJobId(): string
    {
        return $this->info->id;
    }

    public function getRawBody(): string
    {
        return (string) $this->info->payload;
    }
}

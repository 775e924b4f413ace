<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use JobQueue\Job as Native;
use JobQueue\JobInfo;

/** The one handler of jobqueue:work: Laravel finds out by itself whose job it is. */
final class Handler
{
    /**
     * @param \Closure(Native): void $process
     * @param \Closure(JobInfo, ?\Throwable): void $failed
     */
    public function __construct(private readonly \Closure $process, private readonly \Closure $failed)
    {
    }

    public function __invoke(Native $job): void
    {
        ($this->process)($job);
    }

    public function failed(JobInfo $info, ?\Throwable $e): void
    {
        ($this->failed)($info, $e);
    }
}

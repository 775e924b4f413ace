<?php
// SPDX-License-Identifier: MIT
// An application that starts its worker; jobs wait for it.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$queue->push("invoice.send", ["invoice" => 6, "due" => $due]);
$queue->push("thumbnail.make", ["file" => "a.jpg"]);
$queue->push("log.trim");
register_shutdown_function(function () use ($queue): void {
    claim($queue->stats("default")->backlog === 0 && !$queue->dead(), "all jobs are done");
});
// SAMPLE

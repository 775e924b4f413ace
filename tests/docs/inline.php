<?php
// SPDX-License-Identifier: MIT
// A worker in this process, which then runs what was pushed, whatever its name.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
$worker->resolver(fn (string $name): callable => $handler);
$queue->push("thumbnail.make", ["file" => "a.jpg"], queue: "mail");
// SAMPLE
run_all($worker, $queue);

<?php
// SPDX-License-Identifier: MIT
// Two jobs are dead.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$worker = new Worker($queue, processes: 0, output: "quiet");
$worker->handle("invoice.send", fn () => throw new DomainException("no such customer"), tries: 1);
$id = $queue->push("invoice.send", ["invoice" => 7]);
$other = $queue->push("invoice.send", ["invoice" => 8]);
$worker->run(stopWhenEmpty: true);
// SAMPLE

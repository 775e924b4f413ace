<?php
// SPDX-License-Identifier: MIT
// Jobs wait, and there is no worker.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$queue->push("mail.send", ["to" => 7], queue: "mail");
$queue->push("mail.send", ["to" => 8], queue: "mail");
// SAMPLE
claim($queue->stats("mail")->backlog === 0 && !$queue->dead(), "all are done");

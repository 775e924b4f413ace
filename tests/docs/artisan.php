<?php
// SPDX-License-Identifier: MIT
// A file beside worker.php, called as `artisan stats`.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
@symlink("examples/php/worker.php", "worker.php");
$argv = ["artisan", "stats"];
// SAMPLE

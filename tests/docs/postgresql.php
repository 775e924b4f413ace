<?php
// SPDX-License-Identifier: MIT
// What stands in any application on PostgreSQL.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$pdo = tables(database($dsn));
// SAMPLE

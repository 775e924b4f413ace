<?php
// SPDX-License-Identifier: MIT
// A handler that fails for good.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$handler = fn () => throw new DomainException("no such customer");
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
$queue->push("invoice.send", ["invoice" => 7]);
// SAMPLE
$worker->run(stopWhenEmpty: true);
claim($mails === ["invoice 7: attempts_exhausted: no such customer"], "the hook has run");

<?php
// SPDX-License-Identifier: MIT
// Handlers that book an invoice in the database of the queue.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$pdo = tables(database($dsn));
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
// SAMPLE
$queue->push("invoice.book", $invoice);
run_all($worker, $queue);
claim($pdo->query("SELECT sum(amount) FROM ledger")->fetchColumn() == 120, "the invoice is booked");

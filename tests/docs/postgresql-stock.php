<?php
// SPDX-License-Identifier: MIT
// A handler with an effect in the database of the queue.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$pdo = tables(database($dsn));
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
// SAMPLE
$queue->push("stock.take", ["item" => "lamp", "count" => 2]);
run_all($worker, $queue);
claim($pdo->query("SELECT on_hand FROM stock")->fetchColumn() == 7, "two lamps are gone");

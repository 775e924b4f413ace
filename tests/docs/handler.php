<?php
// SPDX-License-Identifier: MIT
// Inside of a handler; its job must be done when it has returned.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$pdo = tables(database($dsn));
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
$worker->handle("sample", function (Job $job, array $payload) use ($pdo, $amount, $account): void {
    // SAMPLE
});
$queue->push("sample", ["id" => 1]);
run_all($worker, $queue);
claim($pdo->query("SELECT balance FROM accounts")->fetchColumn() == 95, "the effect is there");
claim($pdo->query("SELECT count(*) FROM payments")->fetchColumn() == 1, "the row is there");

<?php
// SPDX-License-Identifier: MIT
// A service that knows versions.
use JobQueue\{AsJob, Bytes, DuplicateJob, Event, Job, JobInfo, NotRetryable, Queue, RetryAfter, State, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$search = new class {
    public array $calls = [];
    public function put(string $path, array $document, int $version, string $versionType): void
    {
        $this->calls[] = [$path, $version];
    }
};
$worker = new Worker($queue, processes: 0, tries: 1, output: "quiet");
// SAMPLE
$queue->push("profile.publish", ["id" => 3]);
run_all($worker, $queue);
claim($search->calls === [["profiles/3", 1]], "the service has the fence");

<?php
// SPDX-License-Identifier: MIT
// Beside a worker that is running already.
use JobQueue\{Job, Queue, Worker};

require getenv('JOBQ_DOCS') . '/start.php';
$code = <<<'CODE'
    exit((new JobQueue\Worker(new JobQueue\Queue()))
        ->handle('report.make', function ($job, $payload) {
            $job->progress(40, 'pages');
            return ['file' => "report-$payload[year].pdf"];
        })
        ->run(maxJobs: 1));
    CODE;
$process = proc_open(['php', '-r', $code], [STDIN, STDOUT, STDERR], $pipes);
// SAMPLE
claim($result === ['file' => 'report-2026.pdf'] && proc_close($process) === 0, 'the result is there');

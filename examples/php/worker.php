<?php
/* SPDX-License-Identifier: MIT
 *
 * Returns the application's worker: what `work --bootstrap=worker.php` loads, and what the artisan file runs.
 */
use JobQueue\Job;
use JobQueue\Queue;
use JobQueue\Worker;

require_once __DIR__ . '/jobs/SendInvoice.php';

$worker = new Worker(new Queue(), tries: 3, timeout: 60);
$worker->register(Shop\SendInvoice::class);

// a plain handler: any callable
$worker->handle('thumbnail.make', function (Job $job, mixed $payload): void {
    echo "thumbnail of {$payload['file']}, {$payload['width']} pixels wide\n";
});

return $worker;

<?php
/* SPDX-License-Identifier: MIT
 *
 * Pushes a few jobs into $JOBQUEUE_DSN (else sqlite:jobqueue.db).
 */
use JobQueue\Queue;

require_once __DIR__ . '/jobs/SendInvoice.php';

$queue = new Queue();
echo $queue->push(new Shop\SendInvoice(17, new DateTimeImmutable('2026-12-24'))), "\n";
echo $queue->push('thumbnail.make', ['file' => 'cat.jpg', 'width' => 320], priority: 5), "\n";
foreach ($queue->pushMany((function () {
    foreach (range(1, 3) as $i) {
        yield ['thumbnail.make', ['file' => "dog$i.jpg", 'width' => 640]];
    }
})()) as $result) {
    echo $result instanceof Throwable ? $result->getMessage() : $result, "\n";
}

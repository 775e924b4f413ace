<?php
/* SPDX-License-Identifier: MIT
 *
 * What the PHP fragments of the documentation stand on. No database is open: world.php's database() opens one.
 */
use JobQueue\{Job, Queue, Worker};

require __DIR__ . '/world.php';
$dsn = getenv('JOBQUEUE_DSN');
if (!str_starts_with($dsn, 'sqlite:')) {
    $dsn = own_database($dsn);
    putenv("JOBQUEUE_DSN=$dsn");
}
$queue = new Queue();
$queue->migrate();
$due = new DateTimeImmutable('+30 days');
$container = fn (string $name): ?callable => null;
$handler = function (Job $job, mixed $payload): void {
    echo "{$job->name} runs\n";
};
$doc = ['title' => 'Lamps'];
$id = '8';
$total = 120;
$invoice = ['number' => 7, 'amount' => 120];
$amount = 5;
$account = 1;

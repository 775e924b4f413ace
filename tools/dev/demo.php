<?php
/* SPDX-License-Identifier: MIT
 *
 * The PHP half of ./dev demo: demo.php push DSN | work DSN LEDGER | left DSN. The ledger gets a line for each job
 * that ended well.
 */
use JobQueue\{Job, Queue, Worker};

[, $command, $dsn] = $argv;
$queue = new Queue($dsn);

/* Waits a while, so that both processes get something to do. */
function greet(string $ledger, Job $job, array $payload): void
{
    if ($payload['to'] === 'a flaky service' && $job->attempt === 1)
        throw new RuntimeException('the service did not answer');
    usleep(30_000);
    printf("  PHP process %d says hello to %s (attempt %d)\n", getmypid(), $payload['to'], $job->attempt);
    file_put_contents($ledger, $job->id . "\n", FILE_APPEND);
}

switch ($command) {
    case 'push':
        echo '  ', $queue->push('greeting', ['to' => 'Ada']), "\n";
        echo '  ', $queue->push('greeting', ['to' => 'Grace'], delay: 0.5), " in half a second\n";
        echo '  ', $queue->push('greeting', ['to' => 'a flaky service'], backoff: 0.5), "\n";
        $ids = $queue->pushMany(array_map(fn ($name) => ['greeting', ['to' => $name]], ['Alan', 'Edsger', 'Barbara']));
        echo '  ', implode("\n  ", $ids), " in one step\n";
        break;

    case 'work':
        $worker = new Worker($queue, processes: 2);
        $worker->handle('greeting', fn (Job $job, array $payload) => greet($argv[3], $job, $payload));
        exit($worker->run(stopWhenEmptyFor: 1.5));

    case 'left':
        $stats = $queue->stats('default');
        echo $stats->ready + $stats->delayed + $stats->reserved + $stats->dead, "\n";
        break;
}

<?php
/* SPDX-License-Identifier: MIT
 *
 * One measurement in a process of its own: part.php NAME DSN ARGUMENT…; prints its figures as JSON. run.php
 * starts these, repeats them and sets them beside the floor.
 */
use JobQueue\{Job, Queue, Worker};

const QUEUE = 'bench';

function payload(int $i): array
{
    return ['id' => $i, 'email' => "user$i@example.com", 'n' => 3.14];
}

function jobs(int $n): Generator
{
    for ($i = 0; $i < $n; $i++)
        yield ['noop', payload($i), 'queue' => QUEUE];
}

/* One by one, each confirmed. */
function push(string $dsn, string $n): array
{
    $queue = new Queue($dsn);
    $queue->push('noop', payload(0), queue: QUEUE);
    $start = hrtime(true);
    for ($i = 0; $i < $n; $i++)
        $queue->push('noop', payload($i), queue: QUEUE);
    return ['rate' => $n / (hrtime(true) - $start) * 1e9];
}

function push_many(string $dsn, string $n): array
{
    $queue = new Queue($dsn);
    $queue->push('noop', payload(0), queue: QUEUE);
    $start = hrtime(true);
    $queue->pushMany(jobs((int) $n), fn (array $ids) => null);
    return ['rate' => $n / (hrtime(true) - $start) * 1e9];
}

/* Each child notes when its first and its last handler started; the parent of this process adds them up. */
function drain(string $dsn, string $processes, string $max, string $notes): array
{
    $first = $last = 0;
    $count = 0;
    $worker = new Worker(new Queue($dsn), processes: (int) $processes, output: 'quiet', maxJobs: (int) $max);
    $worker->handle('noop', function (Job $job, mixed $payload) use (&$first, &$last, &$count): void {
        $last = hrtime(true);
        $first = $first ?: $last;
        $count++;
    });
    $worker->on('child.stopping', function () use (&$first, &$last, &$count, $notes): void {
        if ($count)
            file_put_contents($notes, "$first $last $count\n", FILE_APPEND | LOCK_EX);
    });
    return ['code' => $worker->run([QUEUE], stopWhenEmpty: true)];
}

/* Works until it is stopped; notes for each job how long after its push the handler started. */
function serve(string $dsn, string $notes): array
{
    $late = [];
    $worker = new Worker(new Queue($dsn), processes: 1, output: 'quiet');
    $worker->handle('noop', function (Job $job, mixed $payload) use (&$late): void {
        $late[] = hrtime(true) - $payload['at'];
    });
    $worker->on('child.stopping', function () use (&$late, $notes): void {
        file_put_contents($notes, implode("\n", $late) . "\n", FILE_APPEND);
    });
    return ['code' => $worker->run([QUEUE])];
}

/* Pushes N jobs PAUSE milliseconds apart that carry the moment of their push. */
function ping(string $dsn, string $n, string $pause_ms): array
{
    $queue = new Queue($dsn);
    for ($i = 0; $i < $n; $i++) {
        $queue->push('noop', ['at' => hrtime(true)] + payload($i), queue: QUEUE);
        usleep((int) $pause_ms * 1000);
    }
    return ['pushed' => (int) $n];
}

function waiting(string $dsn): array
{
    $stats = (new Queue($dsn))->stats(QUEUE);
    return ['backlog' => $stats->backlog, 'dead' => $stats->dead];
}

[, $part, $dsn] = $argv;
echo json_encode($part($dsn, ...array_slice($argv, 3))), "\n";

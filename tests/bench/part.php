<?php
/* SPDX-License-Identifier: MIT
 *
 * One measurement in a process of its own: part.php NAME DSN ARGUMENT…; prints its figures as JSON. run.php
 * starts these, repeats them and sets them beside the floor.
 */
use JobQueue\{Job, Queue, Worker};

$up = hrtime(true); /* the interpreter is up */
const QUEUE = 'bench';

function payload(int $i): array
{
    return ['id' => $i, 'email' => "user$i@example.com", 'n' => 3.14];
}

function jobs(int $n, array $options = []): Generator
{
    for ($i = 0; $i < $n; $i++)
        yield ['noop', payload($i), 'queue' => QUEUE] + $options;
}

/* A worker of the usual kind, its handler, and what its child does at its end. */
function work(string $dsn, int $processes, callable $handler, callable $end, array $options = []): array
{
    $worker = new Worker(new Queue($dsn), ...(['processes' => $processes, 'output' => 'quiet'] + $options));
    $worker->handle('noop', $handler);
    $worker->on('child.stopping', $end);
    return ['code' => $worker->run([QUEUE])];
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

/* The same, each through a handle of its own: as requests do it that push one job. */
function push_fresh(string $dsn, string $n): array
{
    (new Queue($dsn))->push('noop', payload(0), queue: QUEUE);
    $start = hrtime(true);
    for ($i = 0; $i < $n; $i++)
        (new Queue($dsn))->push('noop', payload($i), queue: QUEUE);
    return ['rate' => $n / (hrtime(true) - $start) * 1e9];
}

/* Jobs whose bodies have that many bytes. */
function push_sized(string $dsn, string $n, string $bytes): array
{
    $text = str_repeat('x', (int) $bytes - 2);
    (new Queue($dsn))->pushMany((function () use ($n, $text) {
        for ($i = 0; $i < $n; $i++)
            yield ['noop', $text, 'queue' => QUEUE];
    })(), fn (array $ids) => null);
    return ['pushed' => (int) $n];
}

function push_many(string $dsn, string $n): array
{
    $queue = new Queue($dsn);
    $queue->push('noop', payload(0), queue: QUEUE);
    $start = hrtime(true);
    $queue->pushMany(jobs((int) $n), fn (array $ids) => null);
    return ['rate' => $n / (hrtime(true) - $start) * 1e9];
}

/* Jobs that are all due at AT, a wall clock's second. */
function delayed(string $dsn, string $n, string $at): array
{
    (new Queue($dsn))->pushMany(jobs((int) $n, ['at' => new DateTimeImmutable("@$at")]), fn (array $ids) => null);
    return ['pushed' => (int) $n];
}

/* Each child notes when its first and its last handler started; run.php adds them up. */
function drain(string $dsn, string $processes, string $max, string $notes): array
{
    $first = $last = 0;
    $count = 0;
    return work($dsn, (int) $processes, function (Job $job, mixed $payload) use (&$first, &$last, &$count): void {
        $last = hrtime(true);
        $first = $first ?: $last;
        $count++;
    }, function () use (&$first, &$last, &$count, $notes): void {
        if ($count)
            file_put_contents($notes, "$first $last $count\n", FILE_APPEND | LOCK_EX);
    }, ['maxJobs' => (int) $max, 'stopWhenEmpty' => true]);
}

/* All that waits becomes dead. */
function kill_all(string $dsn): array
{
    ini_set('error_log', '/dev/null'); /* a line for each death */
    return work($dsn, 1, fn (Job $job) => $job->fail('no more'), fn () => null, ['stopWhenEmpty' => true]);
}

/* From the moment the interpreter was up to the start of the first job, in nanoseconds. */
function first(string $dsn, string $notes): array
{
    global $up;
    $worker = fn (Job $job) => file_put_contents($notes, hrtime(true) - $up . "\n");
    return work($dsn, 1, $worker, fn () => null, ['maxJobs' => 1]);
}

/* Works until it is stopped; notes for each job how long after its push the handler started. */
function serve(string $dsn, string $notes, string $processes = '1'): array
{
    $late = [];
    return work($dsn, (int) $processes, function (Job $job, mixed $payload) use (&$late): void {
        if (isset($payload['at']))
            $late[] = hrtime(true) - $payload['at'];
        if (isset($payload['sleep']))
            usleep($payload['sleep']);
    }, function () use (&$late, $notes): void {
        if ($late)
            file_put_contents($notes, implode("\n", $late) . "\n", FILE_APPEND | LOCK_EX);
    });
}

/* Works until it is stopped; notes "id, moment, process" when each job starts, and takes a while over it. */
function stream(string $dsn, string $notes, string $microseconds): array
{
    return work($dsn, 1, function (Job $job, mixed $payload) use ($notes, $microseconds): void {
        file_put_contents($notes, "$payload[id] " . hrtime(true) . ' ' . getmypid() . "\n", FILE_APPEND);
        usleep((int) $microseconds);
    }, fn () => null);
}

/* Works until it has had N jobs or SECONDS are over: the first start after the wall clock's AT, in
 * milliseconds; jobs per second; how many different jobs, how many starts. */
function burst(string $dsn, string $n, string $at, string $notes): array
{
    $seen = str_repeat("\0", (int) $n);
    $first = $last = $count = 0;
    $late = 0.0;
    return work($dsn, 1, function (Job $job, mixed $payload) use (&$seen, &$first, &$last, &$count, &$late, $at): void {
        $last = hrtime(true);
        if ($count++ === 0) {
            $first = $last;
            $late = (microtime(true) - (float) $at) * 1000;
        }
        $seen[$payload['id']] = "\1";
    }, function () use (&$seen, &$first, &$last, &$count, &$late, $notes): void {
        $row = ['late' => $late, 'rate' => ($count - 1) / max(1, $last - $first) * 1e9, 'count' => $count,
            'different' => substr_count($seen, "\1")];
        if ($count)
            file_put_contents($notes, json_encode($row));
    }, ['maxJobs' => (int) $n, 'maxTime' => 30]);
}

/* Pushes every 5 ms into a queue of its own until the wall clock's UNTIL: the longest push, in milliseconds. */
function bystander(string $dsn, string $until): array
{
    $queue = new Queue($dsn);
    $longest = 0;
    for ($i = 0; microtime(true) < (float) $until; $i++) {
        $start = hrtime(true);
        $queue->push('noop', payload($i), queue: 'other');
        $longest = max($longest, hrtime(true) - $start);
        usleep(5000);
    }
    return ['longest' => $longest / 1e6, 'pushed' => $i];
}

/* One job that takes so long. */
function long(string $dsn, string $microseconds): array
{
    (new Queue($dsn))->push('noop', ['sleep' => (int) $microseconds], queue: QUEUE);
    return ['pushed' => 1];
}

/* Keeps the store open (so that SQLite's -shm stays) until its input ends. */
function hold(string $dsn): array
{
    $queue = new Queue($dsn);
    $queue->push('noop', payload(0), queue: 'held');
    echo "open\n";
    fgets(STDIN);
    return ['held' => 1];
}

/* The interpreter with nothing in it. */
function bare(): array
{
    echo "open\n";
    fgets(STDIN);
    return [];
}

/* Pushes N jobs PAUSE milliseconds apart that carry the moment of their push: how long the pushes themselves took. */
function ping(string $dsn, string $n, string $pause_ms): array
{
    $queue = new Queue($dsn);
    $took = [];
    for ($i = 0; $i < $n; $i++) {
        $at = hrtime(true);
        $queue->push('noop', ['at' => $at] + payload($i), queue: QUEUE);
        $took[] = (hrtime(true) - $at) / 1e6;
        usleep((int) $pause_ms * 1000);
    }
    sort($took);
    return ['pushed' => (int) $n, 'p50' => $took[intdiv((int) $n, 2)], 'p99' => $took[max(0, (int) ($n * 0.99) - 1)]];
}

[, $part, $dsn] = $argv;
echo json_encode($part($dsn, ...array_slice($argv, 3))), "\n";

<?php

// What PHPStan (level max) and Psalm must find nothing wrong with.

declare(strict_types=1);

namespace App;

use JobQueue\AsJob;
use JobQueue\Event;
use JobQueue\Job;
use JobQueue\JobInfo;
use JobQueue\LeaseLost;
use JobQueue\Next;
use JobQueue\Queue;
use JobQueue\QueueException;
use JobQueue\State;
use JobQueue\Worker;

#[AsJob('invoice.send', queue: 'mail', tries: 5, timeout: 30, backoff: [10, 60, 300], unique: 'invoice')]
final class SendInvoice
{
    public function __construct(private int $invoice)
    {
    }

    public function handle(Job $job): void
    {
        echo "invoice $this->invoice, attempt $job->attempt\n";
    }
}

final class Trim
{
    public function __invoke(Job $job, mixed $payload): int
    {
        $job->progress(50, 'half');

        return $job->attempt;
    }
}

/** @return \Generator<int, array{0: string, 1: array{file: string}, priority: int}> */
function thumbnails(): \Generator
{
    foreach (['a.jpg', 'b.jpg'] as $file) {
        yield ['thumbnail.make', ['file' => $file], 'priority' => 3];
    }
}

function produce(Queue $queue): string
{
    $id = $queue->push('invoice.send', ['invoice' => 7], queue: 'mail', delay: 0.5, backoff: [1, 2], track: true, onDuplicate: 'keep');
    $queue->push(new SendInvoice(8), uniqueScope: 'until_started', retryUntil: new \DateTimeImmutable('tomorrow'));
    foreach ($queue->pushMany([['log.trim', null, 'delay' => 60], new SendInvoice(9)]) as $result) {
        echo $result instanceof QueueException ? $result->errorCode : $result;
    }
    $queue->pushMany(thumbnails(), function (array $results): void {
        echo count($results);
    });
    [$sql, $params] = $queue->pushStatement('invoice.send', ['invoice' => 7], placeholders: '$');

    return $id . strtoupper($sql) . count($params);
}

function consume(Queue $queue): void
{
    while ($job = $queue->reserve(['high', 'default'], lease: 10)) {
        try {
            $job->extend();
            $job->done(['name' => strtolower($job->name)]);
        } catch (LeaseLost $e) {
            echo $e->errorCode, $e->isRetryable() ? 'again' : '';
        }
    }
}

function look(Queue $queue, string $id): string
{
    $info = $queue->find($id);
    if ($info === null || $info->state === State::Done) {
        return '';
    }
    $said = $info->lastError['message'] ?? 'nothing';
    foreach ($info->history as $attempt) {
        $said .= $attempt['started']->format('c') . ($attempt['outcome'] ?? '');
    }
    foreach ($queue->stats('mail', minutes: 5)->perMinute as $minute) {
        $said .= $minute['at']->format('H:i') . ($minute['done'] + $minute['failed']);
    }
    foreach ($queue->dead(reason: 'timed_out') as $dead) {
        $said .= $dead->id . ($dead->progress['percent'] ?? 0.0);
    }
    foreach ($queue->workers() as $worker) {
        $said .= implode(',', $worker['queues']) . $worker['pid'];
    }

    return $said . $queue->retry([$id]) . implode(',', $info->context);
}

function work(Queue $queue): int
{
    $worker = new Worker($queue, processes: 4, timeout: 60, output: 'jobs', errors: 'class', prefetch: 'auto');
    $worker->handle('invoice.send', function (Job $job, array $payload): void {
        echo $job->remaining() ?? 0.0, count($payload);
    }, tries: 5, backoff: 'exponential:1,60', failed: function (JobInfo $info, ?\Throwable $e): void {
        echo $info->reason ?? '', $e?->getMessage() ?? '';
    });
    $worker->handle('log.trim', Trim::class, maps: 'object');
    $worker->handle('log.rotate', fn (): int => 1);
    $worker->register(SendInvoice::class);
    $worker->middleware(function (Job $job, mixed $payload, Next $next): mixed {
        return $next($job, $payload);
    }, fn (Job $job, mixed $payload, callable $next): mixed => $next());
    $worker->on('job.failed', function (Event $event): void {
        echo $event->name, $event->job->id ?? '', json_encode($event->data) ?: '';
    });
    $worker->resolver(fn (string $name): ?object => $name === Trim::class ? new Trim() : null);

    return $worker->run('high,default', maxTime: 3600, stopWhenEmpty: true);
}

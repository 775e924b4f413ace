<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue as Base;
use JobQueue\Queue as Native;

/**
 * Laravel's queue over a jobqueue store. What Laravel makes of a job (a JSON text) is the payload of a job that is named
 * after it; its own tries, backoff and time limit go with it, so that a native worker keeps to them.
 */
final class Queue extends Base implements QueueContract, ClearableQueue
{
    /** What a job's name begins with, before what Laravel shows of it: laravel:App\Jobs\SendInvoice. Others may share the store. */
    public const PREFIX = 'laravel:';

    /** The name of a payload that does not say what it is. */
    public const NAME = 'laravel.job';

    public function __construct(
        private readonly Native $native,
        private readonly string $default,
        private readonly float $lease,
        bool $afterCommit,
    ) {
        $this->dispatchAfterCommit = $afterCommit;
    }

    public function native(): Native
    {
        return $this->native;
    }

    /** @param string|null $queue */
    public function getQueue($queue = null): string
    {
        return $queue ?: $this->default;
    }

    public function size($queue = null): int
    {
        $stats = $this->native->stats($this->getQueue($queue));

        return $stats->ready + $stats->delayed + $stats->reserved;
    }

    public function pendingSize($queue = null): int
    {
        return $this->native->stats($this->getQueue($queue))->ready;
    }

    public function delayedSize($queue = null): int
    {
        return $this->native->stats($this->getQueue($queue))->delayed;
    }

    public function reservedSize($queue = null): int
    {
        return $this->native->stats($this->getQueue($queue))->reserved;
    }

    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        $age = $this->native->stats($this->getQueue($queue))->oldestReadyAge;

        return $age === null ? null : $this->currentTime() - (int) $age;
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->enqueueUsing($job, $this->createPayload($job, $this->getQueue($queue), $data), $queue, null,
            fn ($payload, $queue) => $this->pushRaw($payload, $queue));
    }

    public function pushRaw($payload, $queue = null, array $options = [])
    {
        return $this->native->push(...$this->message($payload, $queue, 0));
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueueUsing($job, $this->createPayload($job, $this->getQueue($queue), $data, $delay), $queue, $delay,
            fn ($payload, $queue, $delay) => $this->native->push(...$this->message($payload, $queue, $this->secondsUntil($delay))));
    }

    /** The jobs that may go at once go together; one that waits for a commit or has a delay goes by itself. */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $together = [];
        foreach ((array) $jobs as $job) {
            if (isset($job->delay)) {
                $this->later($job->delay, $job, $data, $queue);
            } elseif ($this->shouldDispatchAfterCommit($job)) {
                $this->push($job, $data, $queue);
            } else {
                $payload = $this->createPayload($job, $this->getQueue($queue), $data);
                $this->raiseJobQueueingEvent($queue, $job, $payload, null);
                $together[] = [$job, $payload];
            }
        }
        foreach ($this->native->pushMany($this->items($together, $queue)) as $i => $id) {
            if ($id instanceof \Throwable) {
                throw $id;
            }
            $this->raiseJobQueuedEvent($queue, $id, $together[$i][0], $together[$i][1], null);
        }
    }

    public function pop($queue = null)
    {
        $job = $this->native->reserve($this->getQueue($queue), $this->lease);

        return $job ? new Job($this->container, $job, $this->connectionName) : null;
    }

    public function clear($queue): int
    {
        return $this->native->clear($this->getQueue($queue));
    }

    /** @param list<array{mixed, string}> $together */
    private function items(array $together, ?string $queue): \Generator
    {
        foreach ($together as [, $payload]) {
            ['job' => $name, 'payload' => $payload] = $message = $this->message($payload, $queue, 0);
            unset($message['job'], $message['payload']);
            yield [$name, $payload] + array_filter($message, static fn ($value) => $value !== null);
        }
    }

    /**
     * The arguments of Native::push for a payload of Laravel.
     *
     * @return array{job: string, payload: string, queue: string, delay: int|float|null, tries: int|null, timeout: int|null,
     *               backoff: string|null}
     */
    private function message(string $payload, ?string $queue, int|float $delay): array
    {
        $said = json_decode($payload, true);

        return [
            'job' => self::name($said['displayName'] ?? null),
            'payload' => $payload,
            'queue' => $this->getQueue($queue),
            'delay' => $delay > 0 ? $delay : null,
            'tries' => self::number($said['maxTries'] ?? null),
            'timeout' => self::number($said['timeout'] ?? null),
            'backoff' => isset($said['backoff']) && $said['backoff'] !== '' ? (string) $said['backoff'] : null,
        ];
    }

    /** A name ends before what no name may hold: that of an anonymous class goes on with NUL and a path. */
    private static function name(mixed $shown): string
    {
        $shown = is_string($shown) ? trim(preg_split('/[[:cntrl:]]/', $shown, 2)[0]) : '';

        return $shown === '' ? self::NAME : mb_strcut(self::PREFIX.$shown, 0, 255, 'UTF-8');
    }

    private static function number(mixed $value): ?int
    {
        return is_numeric($value) && $value >= 0 ? (int) $value : null;
    }
}

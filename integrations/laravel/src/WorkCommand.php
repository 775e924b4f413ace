<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Console\Command;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Failed\NullFailedJobProvider;
use Illuminate\Queue\Worker as LaravelWorker;
use Illuminate\Queue\WorkerOptions;
use JobQueue\Job as Native;
use JobQueue\JobInfo;
use JobQueue\RetryAfter;
use JobQueue\Worker;

/**
 * artisan jobqueue:work: the jobs of a jobqueue connection in the native worker, with child processes, leases and hard time
 * limits. Inside a child Laravel's own worker processes the job, so its events, middleware, tries, backoff and failed jobs
 * are Laravel's; what only a supervisor can see (crash, kill at the time limit) reaches Laravel as a failed job, too.
 */
final class WorkCommand extends Command
{
    protected $signature = 'jobqueue:work
        {connection? : The name of the queue connection to work}
        {--queue= : The names of the queues to work, separated by commas}
        {--processes=1 : Child processes that run jobs}
        {--name=default : The name of the worker}
        {--once : Only process the next job on the queue}
        {--stop-when-empty : Stop when the queue is empty}
        {--stop-when-empty-for=0 : Stop when it has been empty for so many seconds}
        {--backoff=0 : Seconds to wait before retrying a job that threw}
        {--max-jobs=0 : Jobs to process before stopping}
        {--max-time=0 : Seconds the worker should run}
        {--force : Work also while the application is down for maintenance}
        {--memory=128 : Private megabytes after which a child is replaced}
        {--sleep=3 : Longest wait between looks where the store cannot wake the worker}
        {--rest=0 : Seconds to rest between jobs}
        {--timeout=60 : Seconds a job may run}
        {--grace=5 : Seconds between the exception at the time limit and the kill}
        {--tries=1 : Attempts before a job has failed}
        {--drain=0 : Seconds running jobs may go on after a stop request, 0 = no limit}
        {--ready-file= : A file that exists while jobs are taken}
        {--json : Output as JSON lines}';

    protected $description = 'Process jobs of a jobqueue connection in the native worker';

    public function handle(): int
    {
        $connection = $this->argument('connection') ?: $this->laravel['config']['queue.default'];
        $queue = $this->laravel['queue']->connection($connection);
        if (! $queue instanceof Queue) {
            $this->components->error("The connection \"$connection\" is not one of the driver jobqueue.");

            return self::INVALID;
        }
        $this->logFailedJobs();
        $worker = new Worker($queue->native(), ...$this->workerOptions());
        $handler = new Handler(fn (Native $job) => $this->process($job, $connection),
            fn (JobInfo $info, ?\Throwable $e) => $this->failed($info, $e, $queue, $connection));
        $worker->handle(Queue::NAME, $handler)
            ->resolver(static fn (string $name): ?Handler => str_starts_with($name, Queue::PREFIX) ? $handler : null);
        $worker->on('worker.starting', fn () => $this->closeConnections());
        $worker->on('looping', fn () => $this->option('force') || ! $this->laravel->isDownForMaintenance());

        return $worker->run($this->queues($queue));
    }

    /** @return list<string> */
    private function queues(Queue $queue): array
    {
        return array_map('trim', explode(',', $this->option('queue') ?: $queue->getQueue()));
    }

    /** @return array<string, mixed> */
    private function workerOptions(): array
    {
        return array_filter([
            'processes' => $this->option('processes'), 'name' => $this->option('name'), 'once' => (bool) $this->option('once'),
            'stopWhenEmpty' => (bool) $this->option('stop-when-empty'), 'stopWhenEmptyFor' => $this->option('stop-when-empty-for'),
            'maxJobs' => $this->option('max-jobs'), 'maxTime' => $this->option('max-time'), 'memory' => $this->option('memory'),
            'sleep' => $this->option('sleep'), 'rest' => $this->option('rest'), 'timeout' => $this->option('timeout'),
            'timeoutGrace' => $this->option('grace'), 'tries' => $this->option('tries'), 'backoff' => $this->option('backoff'), 'drain' => $this->option('drain'),
            'readyFile' => $this->option('ready-file'), 'output' => $this->option('json') ? 'json' : null,
        ], static fn ($value) => $value !== null);
    }

    private function laravelOptions(): WorkerOptions
    {
        return new WorkerOptions(
            name: $this->option('name'),
            backoff: $this->option('backoff'),
            maxTries: (int) $this->option('tries'),
            timeout: (int) $this->option('timeout'),
            force: (bool) $this->option('force'),
        );
    }

    /** Laravel's worker never sleeps, reserves or signals here: it processes one job that is already running. */
    private function process(Native $native, string $connection): void
    {
        $job = new Job($this->laravel, $native, $connection, inWorker: true);
        try {
            $this->laravelWorker()->process($connection, $job, $this->laravelOptions());
        } catch (\JobQueue\TimeoutException | \JobQueue\StopException $e) {
            throw $e; /* the supervisor knows what it was, counts it and decides */
        } catch (\Throwable $e) {
            $this->laravel[ExceptionHandler::class]->report($e);
            $thrown = $e;
        }
        $this->settle($native, $job, $thrown ?? null);
    }

    /** What Laravel has decided, in the worker's words. A job that threw and goes back is a failure with Laravel's delay. */
    private function settle(Native $native, Job $job, ?\Throwable $thrown): void
    {
        if ($job->hasFailed()) {
            $native->fail($job->failedWith() ?? $thrown ?? 'failed by Laravel');
        } elseif ($thrown && ! $job->isDeleted()) {
            throw new RetryAfter($job->releasedFor() ?? 0, $thrown->getMessage(), $thrown);
        } elseif ($job->isReleased()) {
            $native->release($job->releasedFor());
        }
    }

    /**
     * It is dead in the store. Laravel's failed() methods, listeners and failed_jobs hear of it unless they were the ones to
     * decide; then failed_jobs is the one place that has it, so that nobody retries it twice.
     */
    private function failed(JobInfo $info, ?\Throwable $e, Queue $queue, string $connection): void
    {
        if (! is_string($info->payload)) {
            return;
        }
        if ($info->reason !== 'failed_by_handler') {
            (new DeadJob($this->laravel, $info, $connection))->fail($e ?? new \RuntimeException("The job has ended: $info->reason."));
        }
        if (! $this->laravel['queue.failer'] instanceof NullFailedJobProvider) {
            $queue->native()->forget($info->id);
        }
    }

    private function laravelWorker(): LaravelWorker
    {
        $worker = $this->laravel['queue.worker'];
        $cache = $this->laravel->bound('cache.store') ? $this->laravel['cache.store'] : null;

        return $cache ? $worker->setName($this->option('name'))->setCache($cache) : $worker;
    }

    private function logFailedJobs(): void
    {
        $this->laravel['events']->listen(JobFailed::class, fn (JobFailed $event) => $this->laravel['queue.failer']->log(
            $event->connectionName, $event->job->getQueue(), $event->job->getRawBody(), $event->exception));
    }

    /** Children are forked from this process: what is open now would be shared by all of them. They connect anew when they need to. */
    private function closeConnections(): void
    {
        if ($this->laravel->resolved('db')) {
            foreach (array_keys($this->laravel['db']->getConnections()) as $name) {
                $this->laravel['db']->purge($name);
            }
        }
        if ($this->laravel->resolved('redis')) {
            foreach (array_keys($this->laravel['redis']->connections() ?? []) as $name) {
                $this->laravel['redis']->purge($name);
            }
        }
    }
}

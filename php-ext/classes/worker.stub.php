<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * Runs handlers for the jobs of a queue, in forked children or inline (processes: 0). Command line only.
 *
 * @strict-properties
 * @not-serializable
 * @since 0.1
 */
final class Worker
{
    /**
     * @param mixed $options worker options by name: processes, tries, timeout, backoff, lease, memory ... (doc/configuration.md)
     * @throws \ValueError an option that is unknown, misplaced or out of its range
     */
    public function __construct(Queue $queue, mixed ...$options) {}

    /**
     * Announces a handler.
     *
     * handler: called with (Job $job, mixed $payload); a class's name: from the resolver, else made anew for
     *     each job, its handle() or __invoke() is called
     * @template TPayload
     * @phpstan-param (callable(Job, TPayload): mixed)|class-string $handler
     * @param mixed $options handler options by name: tries, timeout, backoff, failed, maps, keepDone ...
     * @throws \ValueError the name and version are registered already, or the worker has started
     */
    public function handle(string $name, callable|string $handler, int $version = 1, mixed ...$options): static {}

    /**
     * Announces classes with #[AsJob].
     *
     * @phpstan-param class-string ...$classes
     */
    public function register(string ...$classes): static {}

    /**
     * Asked for handlers that are classes and for names that nobody registered.
     *
     * resolver: fn (string $name): callable|object|null, or a PSR-11 container
     * @phpstan-param (callable(string): (callable|object|null))|\Psr\Container\ContainerInterface $resolver
     */
    public function resolver(callable|object $resolver): static {}

    /**
     * Wraps every handler, outermost first; not calling $next and returning is done.
     *
     * @phpstan-param callable(Job, mixed, Next): mixed ...$middleware
     */
    public function middleware(callable ...$middleware): static {}

    /**
     * Adds a listener, called with an Event (doc/behaviour.md, M1).
     *
     * @phpstan-param callable(Event): mixed $listener
     * @throws \ValueError an unknown event; the nearest is named
     */
    public function on(string $event, callable $listener): static {}

    /**
     * Works until a limit, a signal or an empty queue ends it; the exit code.
     *
     * With stopWhenEmpty delayed jobs, and retries that wait for their backoff, are left to later runs;
     * stopWhenEmptyFor, with more than the longest backoff, runs those retries, too.
     *
     * @param array|string $queues in the order to serve; none: the connection's
     * @phpstan-param list<string>|string $queues
     * @param mixed $options worker options that win over the constructor's
     */
    public function run(array|string $queues = [], mixed ...$options): int {}

    /**
     * At most one job, inline and silent. Was there one?
     *
     * @phpstan-param list<string>|string $queues
     */
    public function runNext(array|string $queues = []): bool {}

    /** Asks the worker to stop, from inside a handler or listener, too. */
    public function stop(): void {}

    /** Does it take jobs just now? */
    public function ready(): bool {}

    /** "host:pid:random", at most 64 characters. */
    public function id(): string {}

    /**
     * Counters of the whole worker and of the queue object.
     *
     * @return array
     * @phpstan-return array<string, int>
     */
    public function statistics(): array {}
}

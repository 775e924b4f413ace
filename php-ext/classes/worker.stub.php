<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * Runs handlers for the jobs of a queue, in forked children or inline.
 *
 * @strict-properties
 * @not-serializable
 */
final class Worker
{
    public function __construct(Queue $queue, mixed ...$options) {}

    public function handle(string $name, callable|string $handler, int $version = 1, mixed ...$options): static {}

    public function register(string ...$classes): static {}

    /** @param callable|\Psr\Container\ContainerInterface $resolver */
    public function resolver(callable|object $resolver): static {}

    public function middleware(callable ...$middleware): static {}

    public function on(string $event, callable $listener): static {}

    public function run(array|string $queues = [], mixed ...$options): int {}

    public function runNext(array|string $queues = []): bool {}

    public function stop(): void {}

    public function ready(): bool {}

    public function id(): string {}

    public function statistics(): array {}
}

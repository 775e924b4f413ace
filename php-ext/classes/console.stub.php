<?php

/** @generate-class-entries */

namespace JobQueue;

/** The command line: `exit(JobQueue\Console::run($argv, $worker));` */
final class Console
{
    private function __construct() {}

    /**
     * Runs one command of the jobqueue console (work, push, stats ...) and returns its exit code.
     *
     * @phpstan-param list<string> $argv
     * @param Worker|null $worker what `work` runs; without one it needs --bootstrap
     */
    public static function run(array $argv, ?Worker $worker = null): int {}
}

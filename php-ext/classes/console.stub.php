<?php

/** @generate-class-entries */

namespace JobQueue;

/** The command line: `exit(JobQueue\Console::run($argv, $worker));` */
final class Console
{
    private function __construct() {}

    public static function run(array $argv, ?Worker $worker = null): int {}
}

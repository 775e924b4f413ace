<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * What stands behind the $next of a middleware; never made by hand.
 *
 * @internal
 * @strict-properties
 * @not-serializable
 */
final class Next
{
    private function __construct() {}

    public function __invoke(?Job $job = null, mixed $payload = null): mixed {}
}

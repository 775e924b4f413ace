<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Queue\Connectors\ConnectorInterface;

/**
 * A connection of config/queue.php:
 *
 *     'jobqueue' => [
 *         'driver' => 'jobqueue',
 *         'dsn' => env('JOBQUEUE_DSN'),   // none: what the extension takes by itself
 *         'queue' => 'default',
 *         'retry_after' => 90,            // seconds: the lease of a job that queue:work has taken
 *         'after_commit' => false,
 *         'options' => [],                // more connection options: prefix, schema, ca, …
 *     ],
 */
final class Connector implements ConnectorInterface
{
    private const KNOWN = ['driver', 'dsn', 'queue', 'retry_after', 'after_commit', 'options'];

    /** @param array<string, mixed> $config */
    public function connect(array $config): Queue
    {
        if (! extension_loaded('jobqueue')) {
            throw new \RuntimeException('the extension jobqueue is not loaded in this PHP (php --ri jobqueue)');
        }
        $odd = array_diff(array_keys($config), self::KNOWN);
        if ($odd) {
            throw new \InvalidArgumentException(sprintf(
                'queue connection: unknown key "%s" (allowed: %s)', reset($odd), implode(', ', self::KNOWN)));
        }
        $lease = $config['retry_after'] ?? 90;
        if (! is_numeric($lease) || $lease < 1) {
            throw new \InvalidArgumentException(sprintf(
                'queue connection: retry_after is %s (allowed: seconds, from 1)', var_export($lease, true)));
        }

        return new Queue(
            new \JobQueue\Queue($config['dsn'] ?? null, $config['options'] ?? []),
            $config['queue'] ?? 'default',
            (float) $lease,
            (bool) ($config['after_commit'] ?? false),
        );
    }
}

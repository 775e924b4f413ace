<?php
/* SPDX-License-Identifier: MIT */
declare(strict_types=1);

namespace JobQueue\Laravel;

use Illuminate\Queue\QueueManager;
use Illuminate\Support\ServiceProvider as Base;

/** Makes `'driver' => 'jobqueue'` known to config/queue.php, and the command jobqueue:work to artisan. */
final class ServiceProvider extends Base
{
    public function register(): void
    {
        $this->app->afterResolving('queue', static function (QueueManager $manager): void {
            $manager->addConnector('jobqueue', static fn (): Connector => new Connector());
        });
    }

    public function boot(): void
    {
        if ($this->app->runningInConsole()) {
            $this->commands([WorkCommand::class]);
        }
    }
}

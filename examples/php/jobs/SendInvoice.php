<?php
/* SPDX-License-Identifier: MIT
 *
 * A job class: pushed as an object, its constructor parameters travel, handle() runs in the worker.
 */
namespace Shop;

use JobQueue\AsJob;
use JobQueue\Job;

enum Channel: string
{
    case Mail = 'mail';
    case Letter = 'letter';
}

#[AsJob('invoice.send', queue: 'mail', tries: 5, timeout: 30, backoff: [10, 60, 300], unique: 'invoice')]
final class SendInvoice
{
    public function __construct(
        private int $invoice,
        private \DateTimeImmutable $due,
        private Channel $channel = Channel::Mail,
    ) {
    }

    public function handle(Job $job): void
    {
        echo "invoice $this->invoice, due {$this->due->format('Y-m-d')}, by {$this->channel->value} (attempt $job->attempt)\n";
    }
}

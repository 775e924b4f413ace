<?php
// SPDX-License-Identifier: MIT
// An application's own file, which returns its worker.
namespace App {
    #[\JobQueue\AsJob('invoice.send')]
    final class SendInvoice
    {
        public function __construct(private int $invoice) {}
        public function handle(): void { echo "invoice $this->invoice\n"; }
    }
}

namespace {
    $load = function (): JobQueue\Worker {
        // SAMPLE
    };
    (new JobQueue\Queue())->push(new App\SendInvoice(7));
    exit($load()->run(stopWhenEmpty: true));
}

<?php

namespace App;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;

final class Greet implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public function __construct(public readonly string $name) {}

    public function handle(): void
    {
        Note::down("hello $this->name, attempt {$this->attempts()}");
    }
}

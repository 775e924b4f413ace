<?php

namespace App;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;

/** Ends badly, in the way it was told. */
final class Trouble implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public int $tries = 2;
    public int $backoff = 0;
    public int $timeout = 1;

    public function __construct(public readonly string $how) {}

    public function handle(): void
    {
        Note::down("$this->how, attempt {$this->attempts()}");
        match ($this->how) {
            'throws' => throw new \DomainException('no luck'),
            'kills' => posix_kill(getmypid(), 9),
            'hangs' => exec('sleep 30'),
            'releases' => $this->attempts() < 3 ? $this->release(0) : null,
            'fails' => $this->fail('given up'),
        };
    }

    public function failed(?\Throwable $e): void
    {
        Note::down("$this->how failed: " . ($e ? $e->getMessage() : 'no exception'));
    }
}

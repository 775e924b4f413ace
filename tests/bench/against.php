<?php
/* SPDX-License-Identifier: MIT
 *
 * Two builds of the product on one store, in turns: what does a change cost? Each turn measures both, the one that goes
 * first changes, and the median of the turns' quotients counts. Single pushes, which wait for the disk and for whatever
 * else moves there, are taken in several short slices a turn, each build's beside the other's. The jobs are plain ones, so
 * what a new feature costs those who do not use it stands here.
 */
final class Against extends Lab
{
    /* name => [meaning, unit] */
    public const ROWS = [
        'push' => ['push one by one, each confirmed', '/s'],
        'push_many' => ['push in bulk', '/s'],
        'drain' => ['drain, one child', '/s'],
        'store_cost' => ['CPU of the store per 10,000 jobs drained', 's'],
        'cost' => ['CPU of the whole worker per 10,000 jobs', 's'],
    ];
    private const TURNS = 15;
    private const SLICES = 6;

    /** @param array<string, string> $builds folders of copies by 'this' and 'other' */
    public function compare(array $builds): array
    {
        for ($i = 1; $i <= ($this->quick ? 2 : self::TURNS); $i++) {
            $this->say("turn $i");
            $this->pushes($builds);
            foreach ($i % 2 ? $builds : array_reverse($builds) as $name => $copies) {
                $this->useCopies($copies);
                $this->turn($name);
            }
        }
        return $this->figures();
    }

    /* Into tables that are there, one build's slice beside the other's. */
    private function pushes(array $builds): void
    {
        $dsns = [];
        foreach ($builds as $name => $copies) {
            $this->useCopies($copies);
            $dsns[$name] = $this->fresh("push_$name");
            $this->part('push', $dsns[$name], 1);
        }
        for ($i = 0; $i < self::SLICES; $i++)
            foreach ($i % 2 ? $builds : array_reverse($builds) as $name => $copies) {
                $this->useCopies($copies);
                $this->note("$name push", $this->part('push', $dsns[$name], $this->store->name === 'redis' ? 20_000 : 2000)['rate']);
            }
    }

    private function turn(string $name): void
    {
        $n = $this->scaled(100_000);
        $dsn = $this->fresh();
        $this->note("$name push_many", $this->part('push_many', $dsn, $n)['rate']);
        $before = $this->store->cpu();
        [$rate, $cpu] = $this->drained($dsn, 1, 0, $n + 1);
        $this->note("$name drain", $rate);
        $this->note("$name cost", $cpu / ($n / 10_000));
        if ($before !== null)
            $this->note("$name store_cost", ($this->store->cpu() - $before) / ($n / 10_000));
    }
}

/* Rows of what was measured: how much better or worse than the other build. */
function changes(array $figures): string
{
    $text = sprintf("%-44s %14s %14s %8s\n", 'figure', 'other', 'this', 'change');
    foreach (Against::ROWS as $name => [$meaning, $unit]) {
        if (!isset($figures["this $name"]))
            continue;
        $change = ratio($figures, "this $name", "other $name") - 1;
        $text .= sprintf("%-44s %14s %14s %+7.1f %%\n", $meaning, number(median($figures["other $name"]), $unit),
            number(median($figures["this $name"]), $unit), $change * 100);
    }
    return $text;
}

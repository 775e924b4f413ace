<?php
/* SPDX-License-Identifier: MIT
 *
 * The measurements themselves. What is compared with a floor or with another figure is measured beside it, again and
 * again in short turns: each repetition has a ratio of its own, and the median of the ratios counts.
 */
final class Measures extends Lab
{
    private const PARTS = ['latency', 'depth', 'counts', 'memory', 'starting', 'dueAtOnce', 'besideLong', 'killedChild', 'idle'];
    private const PARTS_OF = ['redis' => ['withAof', 'memoryPerJob'], 'postgres' => ['openTransaction']];

    public function run(): array
    {
        foreach ($this->turns(40) as $i) {
            $this->say("rates, turn $i");
            $this->rates();
        }
        foreach ([...self::PARTS, ...self::PARTS_OF[$this->store->name] ?? []] as $what) {
            $this->say($what);
            $this->$what();
        }
        return $this->figures();
    }

    /* ---- rates ---------------------------------------------------------------------------------- */

    private function rates(): void
    {
        $this->noteFloor('push', 'fresh');
        $dsn = $this->fresh();
        $this->note('push', $this->part('push', $dsn, $this->store->name === 'redis' ? 20_000 : 3000)['rate']);
        $this->note('fresh', $this->part('push_fresh', $dsn, 300)['rate']);
        $this->noteFloor('push_many');
        $this->drainFloor();
        $this->note('push_many', $this->drain(1, 'drain'));
        $this->python();
        $this->drain(2, 'drain2');
    }

    private function drainFloor(): void
    {
        $before = $this->store->cpu();
        $this->noteFloor('drain');
        if ($before !== null)
            $this->note('floor_store_cost', ($this->store->cpu() - $before) / ($this->scaled(100_000) / 10_000));
    }

    /* Fills a queue and drains it; answers how fast it was filled. */
    private function drain(int $processes, string $name): float
    {
        $n = $this->scaled(100_000);
        $dsn = $this->fresh();
        $filled = $this->part('push_many', $dsn, $n)['rate'];
        $before = $this->store->cpu();
        [$rate, $cpu] = $this->drained($dsn, $processes, 0, $n + 1);
        $this->note($name, $rate);
        if ($processes === 1)
            $this->note('cost', $cpu / ($n / 10_000));
        if ($processes === 1 && $before !== null)
            $this->note('store_cost', ($this->store->cpu() - $before) / ($n / 10_000));
        return $filled;
    }

    private function python(): void
    {
        $n = $this->scaled(100_000);
        $pushes = $this->store->name === 'redis' ? 20_000 : 3000;
        $this->note('python_push', $this->part('python_push', $this->fresh(), $pushes)['rate']);
        $dsn = $this->fresh();
        $this->note('python_push_many', $this->part('python_push_many', $dsn, $n)['rate']);
        $this->note('python_drain', $this->drained($dsn, 1, 0, $n + 1, 'python_drain')[0]);
    }

    /* The same in Redis with its append-only file. */
    private function withAof(): void
    {
        $this->store->appendOnly(true);
        for ($i = 0; $i < ($this->quick ? 1 : 3); $i++) {
            foreach ($this->floor('push', 'push_many', 'drain') as $name => $value)
                $this->note("floor_aof_$name", $value);
            $dsn = $this->fresh();
            $this->note('aof_push', $this->part('push', $dsn, $this->scaled(20_000))['rate']);
            $dsn = $this->fresh();
            $this->note('aof_push_many', $this->part('push_many', $dsn, $this->scaled(100_000))['rate']);
            $this->note('aof_drain', $this->drained($dsn, 1, 0, $this->scaled(100_000))[0]);
        }
        $this->store->appendOnly(false);
    }

    /* The same number of jobs from a short queue, from a long one, beside delayed ones and beside dead ones. */
    private function depth(): void
    {
        $taken = $this->scaled(20_000);
        $queues = ['depth' => $this->fresh('deep'), 'depth_delayed' => $this->fresh('delayed'), 'depth_dead' => $this->fresh('dead')];
        $this->part('push_many', $queues['depth'], $this->scaled(1_000_000));
        $this->part('delayed', $queues['depth_delayed'], $this->scaled(1_000_000), time() + 86400);
        $this->part('push_many', $queues['depth_dead'], $this->scaled(100_000));
        $this->part('kill_all', $queues['depth_dead']);
        foreach ($this->turns(30) as $_)
            foreach (['depth_shallow' => $this->fresh('shallow')] + $queues as $name => $dsn) {
                if ($name !== 'depth')
                    $this->part('push_many', $dsn, $taken - 1);
                $this->note($name, $this->drained($dsn, 1, $taken, $taken)[0]);
            }
        array_map($this->store->drop(...), ['deep', 'delayed', 'dead', 'shallow']);
    }

    /* A transaction that somebody has left open while many jobs pass: the last drains of many beside ones of a queue
     * where nothing has passed. */
    private function openTransaction(): void
    {
        $n = $this->scaled(100_000);
        $this->part('push_many', $dsn = $this->fresh(), 1);
        [$process, $pipes] = $this->store->openTransaction();
        $rounds = $this->quick ? 4 : 8;
        for ($i = 1; $i <= $rounds; $i++) {
            $this->part('push_many', $dsn, $n);
            $rate = $this->drained($dsn, 1, 0, $n)[0];
            if ($i <= $rounds - 3)
                continue;
            $this->note('open_transaction', $rate);
            $this->part('push_many', $plain = $this->store->fresh('plain'), $n);
            $this->note('open_drain', $this->drained($plain, 1, 0, $n)[0]);
        }
        array_map(fclose(...), $pipes);
        proc_close($process);
        $this->store->drop('plain');
    }

    /* ---- latency -------------------------------------------------------------------------------- */

    private function late(string $name, int $expected): void
    {
        $late = array_map(fn ($ns) => (int) $ns / 1e6, $this->notes());
        sort($late);
        if (count($late) < $expected * 0.9)
            throw new RuntimeException(count($late) . ' jobs were run, too few');
        $this->note("{$name}_p50", $late[intdiv(count($late), 2)]);
        $this->note("{$name}_p99", $late[(int) (count($late) * 0.99) - 1]);
    }

    private function latency(): void
    {
        for ($i = 0; $i < ($this->quick ? 1 : 3); $i++) {
            if ($this->store->name !== 'sqlite')
                $this->noteFloor('latency');
            $dsn = $this->fresh();
            $worker = $this->serve($dsn);
            $pushes = $this->part('ping', $dsn, 200, 20);
            usleep(200_000);
            $worker->stop();
            $this->late('latency', 200);
            $this->note('push_p50', $pushes['p50']);
            $this->note('push_p99', $pushes['p99']);
        }
    }

    /* Short jobs while one of two children is busy all the time. */
    private function besideLong(): void
    {
        $dsn = $this->fresh();
        $worker = $this->serve($dsn, 2);
        $this->part('long', $dsn, 5_000_000);
        usleep(100_000);
        $this->part('ping', $dsn, 150, 20);
        $worker->stop();
        $this->late('beside_long', 150);
    }

    private function starting(): void
    {
        for ($i = 0; $i < ($this->quick ? 3 : 5); $i++) {
            $dsn = $this->fresh();
            $this->part('ping', $dsn, 2, 0);
            $this->part('first', $dsn, $this->notes);
            $this->note('first_job', (int) $this->notes()[0] / 1e6);
        }
    }

    private function dueAtOnce(): void
    {
        $n = $this->scaled(100_000);
        $dsn = $this->fresh();
        $at = time() + ($this->quick ? 2 : 5);
        $this->part('delayed', $dsn, $n, $at);
        $worker = $this->start('burst', $dsn, $n, $at, $this->notes);
        $pushes = $this->part('bystander', $dsn, $at + ($this->quick ? 1 : 3));
        $worker->await();
        $row = json_decode($this->notes()[0] ?? '', true) ?? throw new RuntimeException('no delayed job was run');
        $this->note('due_first', $row['late']);
        $this->note('due_rate', $row['rate']);
        $this->note('due_once', $row['different'] === $n && $row['count'] === $n ? 1 : 0);
        $this->note('due_stall', $pushes['longest']);
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        $this->note('due_drain', $this->drained($dsn, 1, 0, $n + 1)[0]);
    }

    /* From the killing of a child to the start of the next job it had in hand, in its successor. */
    private function killedChild(): void
    {
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, 2000);
        $worker = $this->start('stream', $dsn, $this->notes, 5000);
        for ($i = 0; $i < ($this->quick ? 3 : 5); $i++) {
            $before = count($this->notes());
            $this->awaitNotes($before + 50, 10);
            $rows = $this->notes();
            [, , $pid] = explode(' ', end($rows));
            $killed = hrtime(true);
            if (!in_array((int) $pid, Proc::children($worker->pid), true) || !posix_kill((int) $pid, 9))
                throw new RuntimeException("cannot kill child $pid");
            $this->awaitNotes(count($rows) + 5, 10);
            foreach (array_slice($this->notes(), count($rows) - 1) as $line)
                if (explode(' ', $line)[2] !== $pid)
                    break;
            $this->note('killed_child', ((int) explode(' ', $line)[1] - $killed) / 1e6);
        }
        $worker->stop();
    }

    /* ---- exact counts --------------------------------------------------------------------------- */

    private function counts(): void
    {
        $few = $this->countDrain(2000);
        $many = $this->countDrain(22_000);
        foreach ($few as $name => $count)
            $this->note("{$name}_load", ($many[$name] - $count) / 20_000);
        $this->countSingles(200);
    }

    private function countDrain(int $n): array
    {
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        $counts = $this->store->name === 'redis' ? [] : $this->countCommits($dsn, fn () => $this->part('drain', $dsn, 1, 0, '/dev/null'));
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        $this->traced('drain', $dsn, 1, 0, '/dev/null');
        $calls = $this->calls();
        if ($this->store->name !== 'sqlite')
            $counts['trips'] = $calls['trips'];
        return $counts + ['syscalls' => $calls['all']];
    }

    /* Transactions that wrote, where the store counts them, else syncs of its log. */
    private function countCommits(string $dsn, callable $run): array
    {
        $holder = $this->startTalking('hold', $dsn);
        $before = $this->store->transactions($dsn);
        $strace = $before === null ? $this->traceStore() : null;
        $run();
        $strace?->signal(2);
        $strace?->await();
        $commits = $before === null ? $this->syncs("$this->trace.store") : $this->store->transactions($dsn) - $before;
        $holder->release();
        return ['commits' => $commits];
    }

    private function traceStore(): Running
    {
        return $this->trace("$this->trace.store", $this->store->pids(), ['-e', 'trace=fsync,fdatasync']);
    }

    /* One job at a time: each ends before the next one is pushed. */
    private function countSingles(int $n): void
    {
        $dsn = $this->fresh();
        $worker = $this->serve($dsn);
        $holder = $this->startTalking('hold', $dsn);
        $before = $this->store->transactions($dsn);
        $this->part('ping', $dsn, $n, 10);
        if ($before !== null)
            $this->note('transactions_single', ($this->store->transactions($dsn) - $before - $n) / $n);
        $server = $this->store->pids() && $this->store->name !== 'redis' ? $this->traceStore() : null;
        $strace = $this->trace($this->trace, $worker->family());
        $this->part('ping', $dsn, $n, 10);
        usleep(100_000);
        foreach (array_filter([$strace, $server]) as $running) {
            $running->signal(2);
            $running->await();
        }
        $holder->release();
        $worker->stop();
        $calls = $this->calls();
        $this->note('syscalls_single', $calls['all'] / $n);
        if ($this->store->name !== 'sqlite')
            $this->note('trips_single', $calls['trips'] / $n);
        if ($this->store->name === 'sqlite')
            $this->note('commits_single', $this->syncs($this->trace) / $n);
        if ($server)
            $this->note('commits_single', ($this->syncs("$this->trace.store") - $n) / $n);
    }

    /* ---- what it costs to have it ---------------------------------------------------------------- */

    private function memory(): void
    {
        $bare = $this->startTalking('bare', '');
        $empty = Proc::memory($bare->pid);
        $bare->release();
        $dsn = $this->fresh();
        $worker = $this->serve($dsn);
        $this->part('push_many', $dsn, $this->scaled(10_000));
        usleep(700_000);
        [$master, $dispatcher, $child] = $all = array_map(Proc::memory(...), $worker->family());
        $worker->stop();
        $this->note('memory_master', $master['own']);
        $this->note('memory_dispatcher', $dispatcher['own']);
        $this->note('memory_child', $child['anonymous'] - $empty['anonymous']);
        $this->note('memory_worker', array_sum(array_column($all, 'share')));
    }

    /* What Redis keeps for a waiting job, its body of 120 bytes aside. */
    private function memoryPerJob(): void
    {
        $n = $this->scaled(100_000);
        $dsn = $this->fresh();
        $this->part('push_sized', $dsn, 1000, 120);
        $before = $this->store->figure('memory', 'used_memory');
        $this->part('push_sized', $dsn, $n, 120);
        $this->note('memory_job', ($this->store->figure('memory', 'used_memory') - $before) / $n - 120);
    }

    /* The heartbeat comes every ten seconds. The dispatcher is traced meanwhile, which costs it a little. */
    private function idle(): void
    {
        $worker = $this->serve($dsn = $this->fresh());
        $sqlite = $this->store->name === 'sqlite';
        $strace = $sqlite ? null : $this->trace($this->trace, [$worker->family()[1]]);
        usleep(500_000);
        $transactions = $sqlite ? $this->store->transactions($dsn) : 0;
        [$before, $start] = [Proc::treeCpu($worker->pid), hrtime(true)];
        usleep($this->quick ? 3_000_000 : 10_500_000);
        $seconds = (hrtime(true) - $start) / 1e9;
        $this->note('idle_cpu', (Proc::treeCpu($worker->pid) - $before) / $seconds * 100);
        if ($sqlite)
            $this->note('idle_store', ($this->store->transactions($dsn) - $transactions) / $seconds);
        $strace?->signal(2);
        $strace?->await();
        if (!$sqlite)
            $this->note('idle_store', $this->calls()['trips'] / ($seconds + 0.5));
        $worker->stop();
    }
}

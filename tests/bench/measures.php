<?php
/* SPDX-License-Identifier: MIT
 *
 * The measurements themselves. What is compared with a floor or with another figure is measured beside it, again and
 * again in turns: each repetition has a ratio of its own, and the median of the ratios counts.
 */
final class Measures extends Lab
{
    private const REPEAT = 3;

    public function run(): array
    {
        for ($i = 1; $i <= self::REPEAT; $i++) {
            $this->say("repetition $i of " . self::REPEAT);
            $floors = [$this->floorLines($this->scaled(100_000))];
            $this->producer();
            $this->drain(1, 'drain');
            $this->drain(2, 'drain2');
            $floors[] = $this->floorLines($this->scaled(100_000));
            foreach (array_keys($floors[0]) as $name)
                $this->note("floor_$name", ($floors[0][$name] + $floors[1][$name]) / 2);
            $this->latency();
        }
        foreach (['depth', 'counts', 'memory', 'starting', 'dueAtOnce', 'besideLong', 'killedChild', 'idle'] as $what) {
            $this->say($what);
            $this->$what();
        }
        return $this->figures();
    }

    /* ---- rates ---------------------------------------------------------------------------------- */

    private function producer(): void
    {
        $this->note('push', $this->part('push', $this->fresh(), $this->scaled(5000))['rate']);
        $this->note('push_many', $this->part('push_many', $this->fresh(), $this->scaled(100_000))['rate']);
    }

    private function drain(int $processes, string $name): void
    {
        $n = $this->scaled(100_000);
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        [$rate, $cpu] = $this->drained($dsn, $processes, 0, $n + 1);
        $this->note($name, $rate);
        if ($processes === 1)
            $this->note('cost', $cpu / ($n / 10_000));
    }

    /* Drains and answers [jobs per second between first and last start, CPU seconds of the whole worker]. */
    private function drained(string $dsn, int $processes, int $max, int $expected): array
    {
        @unlink($this->notes);
        $before = Proc::endedCpu();
        $this->part('drain', $dsn, $processes, $max, $this->notes);
        $cpu = Proc::endedCpu() - $before;
        $rows = array_map(fn ($line) => array_map('intval', explode(' ', $line)), $this->notes());
        $count = array_sum(array_column($rows, 2));
        if ($count < $expected)
            throw new RuntimeException("$count of $expected jobs were run");
        $span = max(array_column($rows, 1)) - min(array_column($rows, 0));
        return [($count - 1) / $span * 1e9, $cpu];
    }

    /* The same number of jobs from a short queue, from a long one, beside delayed ones and beside dead ones. */
    private function depth(): void
    {
        $taken = $this->scaled(10_000);
        $files = ['depth' => $this->fresh('deep'), 'depth_delayed' => $this->fresh('delayed'), 'depth_dead' => $this->fresh('dead')];
        $this->part('push_many', $files['depth'], $this->scaled(1_000_000));
        $this->part('delayed', $files['depth_delayed'], $this->scaled(1_000_000), time() + 86400);
        $this->part('push_many', $files['depth_dead'], $this->scaled(100_000));
        $this->part('kill_all', $files['depth_dead']);
        for ($i = 0; $i < 5; $i++)
            foreach (['depth_shallow' => $this->fresh('shallow')] + $files as $name => $dsn) {
                if ($name !== 'depth')
                    $this->part('push_many', $dsn, $taken - 1);
                $this->note($name, $this->drained($dsn, 1, $taken, $taken)[0]);
            }
        array_map(fn ($name) => $this->fresh($name), ['deep', 'delayed', 'dead', 'shallow']);
    }

    /* ---- latency -------------------------------------------------------------------------------- */

    private function late(string $name): void
    {
        $late = array_map(fn ($ns) => (int) $ns / 1e6, $this->notes());
        sort($late);
        if (count($late) < 100)
            throw new RuntimeException(count($late) . ' jobs were run, too few');
        $this->note("{$name}_p50", $late[intdiv(count($late), 2)]);
        $this->note("{$name}_p99", $late[(int) (count($late) * 0.99) - 1]);
    }

    private function latency(): void
    {
        $dsn = $this->fresh();
        $worker = $this->serve($dsn);
        $pushes = $this->part('ping', $dsn, 200, 20);
        usleep(200_000);
        $worker->stop();
        $this->late('latency');
        $this->note('push_p50', $pushes['p50']);
        $this->note('push_p99', $pushes['p99']);
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
        $this->late('beside_long');
    }

    private function starting(): void
    {
        for ($i = 0; $i < 5; $i++) {
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
        $at = time() + 4;
        $this->part('delayed', $dsn, $n, $at);
        $worker = $this->start('burst', $dsn, $n, $at, $this->notes);
        $pushes = $this->part('bystander', $dsn, $at + 3);
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
        for ($i = 0; $i < 5; $i++) {
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
        $this->note('commits_load', ($many['commits'] - $few['commits']) / 20_000);
        $this->note('syscalls_load', ($many['calls'] - $few['calls']) / 20_000);
        $this->countSingles(200);
    }

    private function countDrain(int $n): array
    {
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        $holder = $this->startTalking('hold', $dsn);
        $before = $this->commits($dsn);
        $this->part('drain', $dsn, 1, 0, '/dev/null');
        $commits = $this->commits($dsn) - $before;
        $holder->release();
        $dsn = $this->fresh();
        $this->part('push_many', $dsn, $n);
        $this->traced("$this->folder/strace", 'drain', $dsn, 1, 0, '/dev/null');
        return ['commits' => $commits, 'calls' => $this->calls()['all']];
    }

    /* One job at a time: each ends before the next one is pushed. */
    private function countSingles(int $n): void
    {
        $dsn = $this->fresh();
        $worker = $this->serve($dsn);
        $holder = $this->startTalking('hold', $dsn);
        $before = $this->commits($dsn);
        $this->part('ping', $dsn, $n, 10);
        $this->note('transactions_single', ($this->commits($dsn) - $before - $n) / $n);
        $strace = $this->trace("$this->folder/strace", $worker->family());
        $this->part('ping', $dsn, $n, 10);
        $strace->signal(2);
        $strace->await();
        $holder->release();
        $worker->stop();
        $calls = $this->calls();
        $this->note('commits_single', ($calls['synced'] - 2 * $calls['checkpoints']) / $n);
        $this->note('syscalls_single', $calls['all'] / $n);
    }

    /* System calls in the trace; syncs of the log among them; checkpoints, which sync it once more at their begin and
     * once when it starts over. */
    private function calls(): array
    {
        $counts = ['all' => 0, 'synced' => 0, 'checkpoints' => 0];
        foreach (new SplFileObject("$this->folder/strace") as $line) {
            $counts['all'] += preg_match('/^\d+ +\w+\(/', $line);
            $counts['synced'] += preg_match('/^\d+ +f(data)?sync\(\d+<[^>]*-wal>/', $line);
            $counts['checkpoints'] += preg_match('/^\d+ +f(data)?sync\(\d+<[^>]*\.db>/', $line);
        }
        return $counts;
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
        [$master, $dispatcher, $child] = array_map(Proc::memory(...), $worker->family());
        $worker->stop();
        $this->note('memory_master', $master['own']);
        $this->note('memory_dispatcher', $dispatcher['own']);
        $this->note('memory_child', $child['anonymous'] - $empty['anonymous']);
        $this->note('memory_child_own', $child['own']);
        $this->note('memory_bare', $empty['anonymous']);
    }

    /* The heartbeat comes every ten seconds. */
    private function idle(): void
    {
        $dsn = $this->fresh();
        $worker = $this->serve($dsn);
        usleep(500_000);
        $commits = $this->commits($dsn);
        [$before, $start] = [Proc::treeCpu($worker->pid), hrtime(true)];
        usleep(10_500_000);
        $seconds = (hrtime(true) - $start) / 1e9;
        $this->note('idle_cpu', (Proc::treeCpu($worker->pid) - $before) / $seconds * 100);
        $this->note('idle_commits', ($this->commits($dsn) - $commits) / $seconds);
        $worker->stop();
    }
}

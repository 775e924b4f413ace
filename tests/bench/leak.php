<?php
/* SPDX-License-Identifier: MIT
 *
 * Memory of one child over many jobs (case B144): `php -d extension=… leak.php [JOBS]`, 1,000,000 by default.
 * Prints the child's private memory and PHP's own count as the run goes on; exit 1 when either has grown by a byte or
 * more per job after the first tenth.
 */
use JobQueue\Job;
use JobQueue\Queue;
use JobQueue\Worker;

$jobs = (int) ($argv[1] ?? 1000000);
$folder = sys_get_temp_dir() . '/jobqueue-leak-' . getmypid();
mkdir($folder);
$queue = new Queue("sqlite://$folder/queue.db?synchronous=normal");
$queue->pushMany((function () use ($jobs) {
    for ($i = 0; $i < $jobs; $i++) {
        yield ['mixed', ['i' => $i, 'email' => "user$i@example.com", 'deep' => [['a' => 1.5, 'b' => "\xff"]], 'long' => str_repeat('y', $i % 300)]];
    }
})(), fn () => null);

$worker = new Worker($queue, processes: 1, memory: 0, output: 'quiet');
$worker->middleware(fn (Job $job, array $payload, callable $next) => $next());
$worker->on('job.processed', fn () => null);
$worker->handle('mixed', function (Job $job, array $payload) use ($jobs, $folder): void {
    static $count = 0;
    if ($count++ % max(1, intdiv($jobs, 20)) === 0) {
        gc_collect_cycles();
        preg_match('/^RssAnon:\s+(\d+)/m', file_get_contents('/proc/self/status'), $found);
        file_put_contents("$folder/notes", "$count " . $found[1] * 1024 . ' ' . memory_get_usage() . ' ' . count(scandir('/proc/self/fd')) . "\n", FILE_APPEND);
    }
    if ($payload['i'] % 20 === 0) {
        throw new RuntimeException('one in twenty', 0, new LogicException('inner'));
    }
    if ($payload['i'] % 33 === 0) {
        $job->release(86400);
    }
}, tries: 1);
$start = microtime(true);
$worker->run(stopWhenEmpty: true);
printf("%d jobs, %.0f a second\n%10s %14s %12s %4s\n", $jobs, $jobs / (microtime(true) - $start), 'jobs', 'private', 'php', 'fds');
$rows = array_map(fn ($line) => array_map('intval', explode(' ', $line)), file("$folder/notes"));
foreach ($rows as [$count, $private, $php, $fds]) {
    printf("%10d %14d %12d %4d\n", $count, $private, $php, $fds);
}
array_map('unlink', glob("$folder/*"));
rmdir($folder);
[$first, $last] = [$rows[(int) (count($rows) / 10)], end($rows)];
$done = max(1, $last[0] - $first[0]);
$slopes = [($last[1] - $first[1]) / $done, ($last[2] - $first[2]) / $done];
printf("private memory %+.3f bytes a job, php %+.3f\n", ...$slopes);
exit(max($slopes) < 1 && $last[3] === $first[3] ? 0 : 1);

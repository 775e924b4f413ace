<?php
/* SPDX-License-Identifier: MIT
 *
 * The jobs of the application: php artisan work --queue=mail,default
 */
use JobQueue\{Job, NotRetryable, Worker};

require_once __DIR__ . '/app.php';

final class NoPicture extends RuntimeException implements NotRetryable
{
}

/** A picture in the PPM format at half its size: each pixel is the mean of four. Progress is told row by row. */
function shrink(string $ppm, Job $job): string
{
    if (!preg_match('/^P6\s+(\d+)\s+(\d+)\s+255\s/', $ppm, $head) || strlen($ppm) < strlen($head[0]) + 3 * $head[1] * $head[2]) {
        throw new NoPicture('this is no PPM picture');
    }
    [$width, $height, $at] = [(int) $head[1], (int) $head[2], strlen($head[0])];
    $small = sprintf("P6\n%d %d\n255\n", intdiv($width, 2), intdiv($height, 2));
    for ($y = 0; $y + 1 < $height; $y += 2) {
        for ($x = 0; $x + 1 < $width; $x += 2) {
            for ($colour = 0; $colour < 3; $colour++) {
                $corner = $at + 3 * ($y * $width + $x) + $colour;
                $sum = ord($ppm[$corner]) + ord($ppm[$corner + 3]) + ord($ppm[$corner + 3 * $width]) + ord($ppm[$corner + 3 * $width + 3]);
                $small .= chr(intdiv($sum, 4));
            }
        }
        $job->progress(100 * $y / $height, "row $y of $height");
        $job->checkpoint(); // cancelled, or the lease is lost: nobody wants it any more
    }
    return $small;
}

$worker = new Worker(queue(), tries: 3, timeout: 60);

// A mail is a file that a mail program takes from the outbox: its name is the job's, so that a second run sends no second mail.
$worker->handle('mail.welcome', function (Job $job, array $payload): void {
    $user = database()->query('SELECT email FROM users WHERE id = ' . (int) $payload['user'])->fetchColumn();
    @mkdir(place('outbox'));
    file_put_contents(place("outbox/$job->id.eml"), "To: $user\r\nSubject: Welcome\r\n\r\nIt is good to have you here.\r\n");
});

$worker->handle('picture.shrink', function (Job $job, array $payload): array {
    $small = shrink($payload['picture'], $job);
    @mkdir(place('pictures'));
    file_put_contents(place("pictures/{$payload['user']}.ppm"), $small);
    return ['file' => "pictures/{$payload['user']}.ppm", 'bytes' => strlen($small)];
});

// From cron, every night: php artisan push report.nightly --track --id=report-$(date +%F) --idempotent
$worker->handle('report.nightly', function (Job $job): array {
    $users = (int) database()->query('SELECT count(*) FROM users')->fetchColumn();
    $report = ['users' => $users, 'failed' => array_sum(array_map(fn ($stats) => $stats->dead, queue()->allStats()))];
    file_put_contents(place("$job->id.json"), json_encode($report));
    return $report;
});

return $worker;

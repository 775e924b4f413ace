<?php
/* SPDX-License-Identifier: MIT
 *
 * ./dev bench: the product beside a bare SQLite loop of the same promise, in one run on one machine; the targets
 * stand in TARGETS. `--json` prints everything as JSON, `--write` puts the table into doc/performance.md,
 * `--quick` takes a tenth of the jobs (for trying the bench itself, not for figures).
 */
require __DIR__ . '/lab.php';
require __DIR__ . '/measures.php';

const OPTIONS = ['--json', '--write', '--quick'];
/* name => [meaning, unit, what it is compared with, relation, target]. With ">= ratio" the quotient is judged, else
 * the figure itself; null: there for orientation. */
const TARGETS = [
    'push' => ['push one by one, each confirmed', '/s', 'floor_push', '>= ratio', 0.70],
    'push_many' => ['push in bulk', '/s', 'floor_push_many', '>= ratio', 0.60],
    'drain' => ['drain, one child, PHP handler', '/s', 'floor_drain', '>= ratio', 0.50],
    'drain2' => ['drain, two children', '/s', 'floor_drain', '>= ratio', 0.50],
    'latency_p50' => ['push to handler start, idle worker, p50', 'ms', 'push_p50', '<', 1.0],
    'latency_p99' => ['the same, p99', 'ms', 'push_p99', '<', 5.0],
    'cost' => ['CPU of the whole worker per 10,000 jobs', 's', 'floor_cost', '<=', 0.25],
    'depth' => ['drain with 1,000,000 waiting', '/s', 'depth_shallow', '>= ratio', 0.85],
    'depth_delayed' => ['drain beside 1,000,000 delayed', '/s', 'depth_shallow', '>= ratio', 0.85],
    'depth_dead' => ['drain beside 100,000 dead', '/s', 'depth_shallow', '>= ratio', 0.85],
    'commits_load' => ['commits per job under load', '', null, '<=', 0.05],
    'syscalls_load' => ['system calls per job under load', '', null, '<=', 0.5],
    'transactions_single' => ['transactions per job, one at a time', '', null, '<=', 2.05],
    'commits_single' => ['of them waiting for the disk', '', null, '<=', 1.05],
    'syscalls_single' => ['system calls per job, one at a time', '', null, null, null],
    'memory_master' => ['private memory of the master', 'MB', null, '<=', 8.0],
    'memory_dispatcher' => ['private memory of the dispatcher', 'MB', null, '<=', 8.0],
    'memory_child' => ['memory of a child over a bare interpreter', 'MB', null, '<=', 2.0],
    'first_job' => ['interpreter up to first job', 'ms', null, '<=', 30.0],
    'due_first' => ['100,000 due at once: due to first start', 'ms', null, '<', 100.0],
    'due_rate' => ['100,000 due at once: drain', '/s', 'due_drain', '>= ratio', 0.50],
    'due_once' => ['100,000 due at once: each ran once (1 = yes)', '', null, '>=', 1],
    'due_stall' => ['100,000 due at once: longest push of another', 'ms', null, '<', 250.0],
    'beside_long_p50' => ['short jobs beside a long one, p50', 'ms', 'latency_p50', '<', 2.0],
    'beside_long_p99' => ['the same, p99', 'ms', 'latency_p99', '<', 10.0],
    'killed_child' => ['child killed to its next job elsewhere', 'ms', null, '<=', 50.0],
    'idle_cpu' => ['CPU of an idle worker', '% of a core', null, '<', 1.0],
    'idle_commits' => ['commits of an idle worker, heartbeat included', '/s', null, '<=', 0.3],
];

function median(array $values): float
{
    sort($values);
    return $values[intdiv(count($values), 2)];
}

/* Figures of the same repetition against each other, where there are as many of both. */
function ratio(array $figures, string $name, string $base): float
{
    [$a, $b] = [$figures[$name], $figures[$base]];
    if (count($a) !== count($b))
        return median($a) / median($b);
    return median(array_map(fn ($x, $y) => $x / $y, $a, $b));
}

function judge(array $figures): array
{
    $rows = [];
    foreach (TARGETS as $name => [$meaning, $unit, $base, $relation, $target]) {
        $value = median($figures[$name]);
        $ratio = $base === null ? null : ratio($figures, $name, $base);
        $met = match ($relation) {
            '>= ratio' => $ratio >= $target,
            '>=' => $value >= $target,
            '<=' => $value <= $target,
            '<' => $value < $target,
            null => null,
        };
        $rows[$name] = ['meaning' => $meaning, 'unit' => $unit, 'floor' => $base === null ? null : median($figures[$base]),
            'value' => $value, 'ratio' => $ratio, 'target' => $relation === null ? null : "$relation $target", 'met' => $met];
    }
    return $rows;
}

/* ---- output ------------------------------------------------------------------------------------- */

function number(?float $n, string $unit = ''): string
{
    $digits = match (true) {
        $n === null, $n >= 1000 => 0,
        $n >= 10, floor($n) === $n => $n >= 100 || floor($n) === $n ? 0 : 1,
        default => abs($n) < 0.1 ? 4 : 2,
    };
    return $n === null ? '' : number_format($n, $digits) . ($unit === '' ? '' : " $unit");
}

function cells(array $row): array
{
    return [$row['meaning'], number($row['floor'], $row['unit']), number($row['value'], $row['unit']),
        $row['ratio'] === null ? '' : sprintf('%.2f', $row['ratio']), $row['target'] ?? '',
        match ($row['met']) { true => 'met', false => 'MISSED', null => '' }];
}

const HEADINGS = ['figure', 'beside', 'reached', 'ratio', 'target', 'verdict'];

function table(array $rows): string
{
    $text = '';
    foreach ([HEADINGS, ...array_map(cells(...), array_values($rows))] as $cells)
        $text .= rtrim(sprintf('%-46s %18s %18s %6s  %-14s %s', ...$cells)) . "\n";
    return $text;
}

function markdown(array $rows): string
{
    $lines = [HEADINGS, array_fill(0, count(HEADINGS), '---'), ...array_map(cells(...), array_values($rows))];
    return implode('', array_map(fn ($cells) => '| ' . implode(' | ', $cells) . " |\n", $lines));
}

/* Debian 12, PHP 8.2.1, SQLite 3.40, 2 cores (their name); load */
function machine(array $loads): string
{
    preg_match('/^PRETTY_NAME="?([^"\n]+)/m', (string) @file_get_contents('/etc/os-release'), $system);
    preg_match_all('/^model name\s*:\s*(.+)$/m', (string) @file_get_contents('/proc/cpuinfo'), $cores);
    $sqlite = strtok((string) shell_exec('sqlite3 --version 2>/dev/null'), ' ') ?: '';
    return sprintf('%s, PHP %s, SQLite %s, %d cores (%s), load %.1f before and %.1f after', $system[1] ?? PHP_OS, PHP_VERSION,
        $sqlite, count($cores[1]), $cores[1][0] ?? 'unknown', ...$loads);
}

/* Puts the table between the marks of doc/performance.md. */
function write_document(string $path, string $text): void
{
    $document = file_get_contents($path);
    $new = preg_replace_callback('/(<!-- figures -->\n).*(<!-- end of figures -->)/s', fn ($m) => "$m[1]$text$m[2]", $document, 1, $count);
    if ($count !== 1)
        throw new RuntimeException("$path has no marks <!-- figures --> and <!-- end of figures -->");
    file_put_contents($path, $new);
    fwrite(STDERR, "bench: $path written\n");
}

$build = $argv[1];
$options = array_slice($argv, 2);
foreach (array_diff($options, OPTIONS) as $option) {
    fwrite(STDERR, "bench: unknown option \"$option\", known are " . implode(', ', OPTIONS) . "\n");
    exit(2);
}
$scale = in_array('--quick', $options, true) ? 0.1 : 1.0;
if ($scale < 1 && in_array('--write', $options, true)) {
    fwrite(STDERR, "bench: --quick gives no figures to keep, so not together with --write\n");
    exit(2);
}
$start = microtime(true);
$load = sys_getloadavg()[0];
$figures = (new Measures($build, $scale))->run();
$rows = judge($figures);
$machine = machine([$load, sys_getloadavg()[0]]);
if (in_array('--json', $options, true))
    echo json_encode(['store' => 'sqlite', 'synchronous' => 'full', 'machine' => $machine, 'scale' => $scale,
        'seconds' => round(microtime(true) - $start), 'figures' => $rows, 'raw' => $figures], JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";
else
    printf("SQLite, WAL, synchronous=FULL. %s; %d s%s\n\n%s", $machine, microtime(true) - $start,
        $scale < 1 ? '; --quick: a tenth of the jobs, no figures to keep' : '', table($rows));
if (in_array('--write', $options, true))
    write_document(dirname(__DIR__, 2) . '/doc/performance.md', "$machine.\n\n" . markdown($rows));

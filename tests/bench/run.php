<?php
/* SPDX-License-Identifier: MIT
 *
 * ./dev bench [STORE...]: the product beside a bare C loop of the same promise, in one run on one machine; the targets
 * stand in TARGETS. `--json` prints everything as JSON, `--write` puts the tables into doc/performance.md with the
 * reasons of reasons.php below what is not met, `--quick` takes a tenth of the jobs (for trying, not for figures).
 * `--against=TREE` compares with the build of another tree instead (./dev build was run there).
 */
require __DIR__ . '/lab.php';
require __DIR__ . '/stores.php';
require __DIR__ . '/measures.php';
require __DIR__ . '/against.php';

const OPTIONS = ['--json', '--write', '--quick', '--against'];
/* name => [class, floor program's name] */
const STORES = ['sqlite' => [SqliteStore::class, 'sqlite'], 'redis' => [RedisStore::class, 'redis'],
    'postgres' => [PostgresStore::class, 'pgsql'], 'mariadb' => [MariadbStore::class, 'mysql']];
/* name => [meaning, unit, what it is compared with, relation, target or one for each of STORES]. With ">= ratio" the
 * quotient is judged, else the figure itself; null: there for orientation. Rows without a figure are left out. */
const TARGETS = [
    'push' => ['push one by one, each confirmed', '/s', 'floor_push', '>= ratio', 0.70],
    'fresh' => ['push, a new handle for each', '/s', 'floor_fresh', null, null],
    'push_many' => ['push in bulk', '/s', 'floor_push_many', '>= ratio', 0.60],
    'drain' => ['drain, one child, PHP handler', '/s', 'floor_drain', '>= ratio', [0.50, 0.50, 0.60, 0.60]],
    'python_push' => ['Python: push one by one, each confirmed', '/s', 'floor_push', '>= ratio', 0.70],
    'python_push_many' => ['Python: push in bulk', '/s', 'floor_push_many', null, null],
    'python_drain' => ['Python: drain, one child, beside PHP\'s', '/s', 'drain', '>= ratio', 0.70],
    'drain2' => ['drain, two children', '/s', 'floor_drain', '>= ratio', [0.50, 0.50, 0.60, 0.60]],
    'aof_push' => ['with append-only file: push one by one', '/s', 'floor_aof_push', '>= ratio', 0.70],
    'aof_push_many' => ['with append-only file: push in bulk', '/s', 'floor_aof_push_many', '>= ratio', 0.60],
    'aof_drain' => ['with append-only file: drain', '/s', 'floor_aof_drain', '>= ratio', 0.50],
    'latency_p50' => ['push to handler start, idle worker, p50', 'ms', 'floor_latency_p50', '<', [1.0, 0.6, 1.5, null]],
    'latency_p99' => ['push to handler start, idle worker, p99', 'ms', 'floor_latency_p99', '<', [5.0, 2.0, 5.0, null]],
    'push_p50' => ['of that the push itself, p50', 'ms', null, null, null],
    'push_p99' => ['of that the push itself, p99', 'ms', null, null, null],
    'cost' => ['CPU of the whole worker per 10,000 jobs', 's', 'floor_cost', '<=', [0.25, 0.08, 0.12, 0.2]],
    'store_cost' => ['CPU of the store per 10,000 jobs drained', 's', 'floor_store_cost', null, null],
    'depth' => ['drain with 1,000,000 waiting', '/s', 'depth_shallow', '>= ratio', 0.85],
    'depth_delayed' => ['drain beside 1,000,000 delayed', '/s', 'depth_shallow', '>= ratio', 0.85],
    'depth_dead' => ['drain beside 100,000 dead', '/s', 'depth_shallow', '>= ratio', 0.85],
    'trips_load' => ['round trips per job under load', '', null, '<=', 0.05],
    'commits_load' => ['commits per job under load', '', null, '<=', 0.05],
    'syscalls_load' => ['system calls per job under load', '', null, '<=', 0.5],
    'trips_single' => ['round trips per job, one at a time', '', null, '<=', 2.05],
    'transactions_single' => ['transactions per job, one at a time', '', null, '<=', 2.05],
    'commits_single' => ['waits for the disk per job, one at a time', '', null, '<=', 1.05],
    'syscalls_single' => ['system calls per job, one at a time', '', null, null, null],
    'memory_master' => ['private memory of the master', 'MB', null, '<=', 8.0],
    'memory_dispatcher' => ['private memory of the dispatcher', 'MB', null, '<=', 8.0],
    'memory_child' => ['memory of a child over a bare interpreter', 'MB', null, '<=', 2.0],
    'memory_worker' => ['proportional memory of the whole worker', 'MB', null, null, null],
    'memory_job' => ['bytes per waiting job beyond its body of 120', '', null, '<=', 200],
    'first_job' => ['interpreter up to first job', 'ms', null, '<=', 30.0],
    'due_first' => ['100,000 due at once: due to first start', 'ms', null, '<', 100.0],
    'due_rate' => ['100,000 due at once: drain', '/s', 'due_drain', '>= ratio', 0.50],
    'due_once' => ['100,000 due at once: each ran once (1 = yes)', '', null, '>=', 1],
    'due_stall' => ['100,000 due at once: longest push of another', 'ms', null, '<', 250.0],
    'open_transaction' => ['800,000 jobs past an open transaction: drain', '/s', 'open_drain', '>= ratio', 0.50],
    'beside_long_p50' => ['short jobs beside a long one, p50', 'ms', 'latency_p50', '<', [2.0, 2.0, 3.0, null]],
    'beside_long_p99' => ['short jobs beside a long one, p99', 'ms', 'latency_p99', '<', [10.0, 10.0, 10.0, null]],
    'killed_child' => ['child killed to its next job elsewhere', 'ms', null, '<=', 50.0],
    'idle_cpu' => ['CPU of an idle worker', '% of a core', null, '<', 1.0],
    'idle_store' => ['store commands of an idle worker, heartbeat included', '/s', null, '<=', [0.3, 0.5, 0.5, 2.3]],
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

function judge(array $figures, string $store): array
{
    $rows = [];
    foreach (array_intersect_key(TARGETS, $figures) as $name => [$meaning, $unit, $base, $relation, $targets]) {
        $target = is_array($targets) ? $targets[array_search($store, array_keys(STORES), true)] : $targets;
        $relation = $target === null ? null : $relation;
        $base = isset($figures[$base]) ? $base : null;
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
        match ($row['met']) { true => 'met', false => '(not met)', null => '' }];
}

const HEADINGS = ['figure', 'beside', 'reached', 'ratio', 'target', 'verdict'];

function table(array $rows): string
{
    $text = '';
    foreach ([HEADINGS, ...array_map(cells(...), array_values($rows))] as $cells)
        $text .= rtrim(sprintf('%-52s %14s %14s %6s  %-14s %s', ...$cells)) . "\n";
    return $text;
}

function markdown(array $rows): string
{
    $lines = [HEADINGS, array_fill(0, count(HEADINGS), '---'), ...array_map(cells(...), array_values($rows))];
    return implode('', array_map(fn ($cells) => '| ' . implode(' | ', $cells) . " |\n", $lines));
}

/* Debian 12, PHP 8.2.1, 2 cores (their name) */
function machine(): string
{
    preg_match('/^PRETTY_NAME="?([^"\n]+)/m', (string) @file_get_contents('/etc/os-release'), $system);
    preg_match_all('/^model name\s*:\s*(.+)$/m', (string) @file_get_contents('/proc/cpuinfo'), $cores);
    return sprintf('%s, PHP %s, %d cores (%s)', $system[1] ?? PHP_OS, PHP_VERSION, count($cores[1]), $cores[1][0] ?? 'unknown');
}

/* Below the table of a store: why is that not met? */
function reasons(string $store, array $rows): string
{
    $known = (require __DIR__ . '/reasons.php')[$store] ?? [];
    $text = '';
    foreach ($rows as $name => $row)
        if ($row['met'] === false)
            $text .= "- *$row[meaning]* (not met): " . ($known[$name] ?? 'the reason is not known yet.') . "\n";
    return $text === '' ? '' : "\n$text";
}

/* Puts the text between the marks of that store in doc/performance.md. */
function write_document(string $path, string $store, string $text): void
{
    $document = file_get_contents($path);
    $pattern = "/(<!-- figures of $store -->\n).*?(<!-- end of figures -->)/s";
    $new = preg_replace_callback($pattern, fn ($m) => "$m[1]$text$m[2]", $document, 1, $count);
    if ($count !== 1)
        throw new RuntimeException("$path has no marks <!-- figures of $store --> and <!-- end of figures -->");
    file_put_contents($path, $new);
    fwrite(STDERR, "bench: $path: figures of $store written\n");
}

function refuse(string $message): never
{
    fwrite(STDERR, "bench: $message\n");
    exit(2);
}

/* [options with their values, names of the stores to measure] */
function arguments(string $build, array $given): array
{
    $words = array_values(array_filter($given, fn ($word) => str_starts_with($word, '-')));
    $names = array_values(array_diff($given, $words));
    $options = [];
    foreach ($words as $word) {
        [$option, $value] = explode('=', $word, 2) + [1 => null];
        if (!in_array($option, OPTIONS, true))
            refuse("unknown option \"$option\", known are " . implode(', ', OPTIONS));
        $options[$option] = $value;
    }
    foreach (array_diff($names, array_keys(STORES)) as $name)
        refuse("unknown store \"$name\", known are " . implode(', ', array_keys(STORES)));
    if (array_key_exists('--quick', $options) && array_key_exists('--write', $options))
        refuse('--quick gives no figures to keep, so not together with --write');
    if (array_key_exists('--against', $options) && !is_file("{$options['--against']}/build/php-ext/modules/jobqueue.so"))
        refuse("--against={$options['--against']}: no build there; it wants a tree in which ./dev build was run");
    $built = array_keys(array_filter(STORES, fn ($store) => is_executable("$build/tests/bench/floor_$store[1]")));
    foreach (array_diff($names, $built) as $name)
        refuse("$name is not built: its client library was missing when the tree was configured");
    return [$options, $names ?: $built];
}

/* The tree may be built again while it is measured: all parts use copies. */
function keep_copies(string $build, string $copies): void
{
    @mkdir($copies, recursive: true);
    foreach (glob("$build/.libs/libjobqueue.so*") as $file)
        copy($file, "$copies/" . basename($file));
    copy("$build/php-ext/modules/jobqueue.so", "$copies/jobqueue.so");
}

function keep_python(string $build): void
{
    exec('cp -r ' . escapeshellarg("$build/python-ext/lib/.") . ' ' . escapeshellarg("$build/bench/python"));
}

/* What $measure finds out on that store. */
function on_store(string $build, string $name, bool $quick, callable $measure): array
{
    [$class, $floor] = STORES[$name];
    [$start, $load] = [microtime(true), sys_getloadavg()[0]];
    $store = new $class($name, $floor, $build);
    try {
        $title = $store->title();
        $figures = $measure($store);
    } finally {
        $store->close();
    }
    return ['store' => $name, 'title' => $title, 'load' => [$load, sys_getloadavg()[0]], 'seconds' => round(microtime(true) - $start),
        'quick' => $quick, 'raw' => $figures];
}

function about(array $result): string
{
    return sprintf('%s. %s; load %.1f before and %.1f after, %d s', $result['title'], machine(), ...$result['load'], ...[$result['seconds']]);
}

function compare(string $build, string $name, bool $quick): void
{
    $result = on_store($build, $name, $quick, fn ($store) =>
        (new Against($build, $store, $quick))->compare(['this' => "$build/bench/lib", 'other' => "$build/bench/other"]));
    printf("%s\n\n%s\n", about($result), changes($result['raw']));
}

function report(string $build, string $name, array $options): array
{
    $quick = array_key_exists('--quick', $options);
    $result = on_store($build, $name, $quick, fn ($store) => (new Measures($build, $store, $quick))->run());
    $result['figures'] = judge($result['raw'], $name);
    if (!array_key_exists('--json', $options))
        printf("%s%s\n\n%s\n", about($result), $quick ? '; --quick: a tenth of the jobs, no figures to keep' : '', table($result['figures']));
    if (array_key_exists('--write', $options))
        write_document(dirname(__DIR__, 2) . '/doc/performance.md', $name,
            about($result) . ".\n\n" . markdown($result['figures']) . reasons($name, $result['figures']));
    return $result;
}

$build = $argv[1];
[$options, $names] = arguments($build, array_slice($argv, 2));
keep_copies($build, "$build/bench/lib");
if (isset($options['--against'])) {
    keep_copies("{$options['--against']}/build", "$build/bench/other");
    foreach ($names as $name)
        compare($build, $name, array_key_exists('--quick', $options));
    exit;
}
keep_python($build);
$results = array_map(fn ($name) => report($build, $name, $options), $names);
if (array_key_exists('--json', $options))
    echo json_encode(['machine' => machine(), 'stores' => $results], JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";

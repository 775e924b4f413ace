<?php
/* SPDX-License-Identifier: MIT
 *
 * Part of tools/gen-arginfo: reads the classes' stubs and writes them with every option as a parameter of its own where the
 * extension has `mixed ...$options`, so that IDEs complete the names and PHPStan and Psalm refuse what is none. The options,
 * their kinds and meanings are those of doc/configuration.md, which tools/gen-docs makes from the library's table.
 */

/* not in the table, since it is no single value */
const GUARD = ['array|string|null', 'array{0: string, 1?: list<int|float|string|bool|null>}|string|null', 'a statement, or [statement, [parameter, ...]]: stored only when it is true'];
/* method => [part of configuration.md, parameters that no option of the library is] */
const METHODS = [
    'Worker::__construct' => ['Worker', []],
    'Worker::run' => ['Worker', []],
    'Worker::handle' => ['Handler', ['failed' => ['?callable', '(callable(JobInfo, ?\Throwable): mixed)|null', 'runs when a job of it has died']]],
    'Queue::push' => ['Push', ['guard' => GUARD]],
    'Queue::pushStatement' => ['Push', ['guard' => GUARD, 'placeholders' => ['string', "'?'|'$'", '"?" (PDO, mysqli, SQLite3) or "$" (pg_query_params)', '"?"']]],
];
/* what PHP takes beyond the table */
const WIDER = ['output' => ['mixed', 'string|resource|(callable(string): mixed)|null']];
/* kind in the table => [PHP's type, the checkers' type] */
const KINDS = [
    'text' => ['?string', '?string'],
    'word' => ['?string', '?string'],
    'bytes' => ['?int', '?int'],
    'megabytes' => ['?int', '?int'],
    'whole number' => ['?int', '?int'],
    'number' => ['int|float|null', 'int|float|null'],
    'seconds' => ['int|float|null', 'int|float|null'],
    'true or false' => ['?bool', '?bool'],
    'backoff' => ['int|float|array|string|null', 'int|float|non-empty-list<int|float>|string|null'],
    'names' => ['array|string|null', 'non-empty-list<string>|string|null'],
    'time' => ['?\DateTimeInterface', '?\DateTimeInterface'],
    'moment' => ['\DateTimeInterface|int|float|string|null', '\DateTimeInterface|int|float|string|null'],
];

function fail(string $message): never
{
    fwrite(STDERR, "stub-options: $message\n");
    exit(1);
}

function camel(string $name): string
{
    return lcfirst(str_replace('_', '', ucwords($name, '_')));
}

/** @return array<string, array{string, string, string}> name => type, checkers' type, meaning */
function options(string $file, string $part): array
{
    $section = preg_match("/^## $part\\n(.*?)(?=^## |\\z)/ms", file_get_contents($file), $m) ? $m[1] : fail("$file has no part $part");
    preg_match_all('/^\| `(\w+)` \| ([^|]*?) +\| (.*?) +\| (.*?) ?\| (.*?) +\|$/m', $section, $rows, PREG_SET_ORDER) ?: fail("$part has no options");
    $options = [];
    foreach ($rows as [, $name, $kind, $allowed, $default, $meaning]) {
        [$type, $checked] = KINDS[$kind] ?? fail("the option $name is a $kind, which this program does not know");
        if (str_starts_with($meaning, 'Python:'))
            continue;
        [$type, $checked] = WIDER[$name] ?? [$type, $checked];
        if ($kind === 'word' && preg_match('/^\w+(, \w+)*( or \w+)$/', $allowed)) {
            $checked = "'" . implode("'|'", preg_split('/, | or /', $allowed)) . "'|null";
        } elseif ($kind === 'whole number' && str_starts_with($allowed, 'auto')) {
            [$type, $checked] = ['int|string|null', "int|'auto'|null"];
        }
        $options[camel($name)] = [$type, $checked, str_replace('\|', '|', $meaning) . ($default === '' ? '' : " (default $default)")];
    }
    return $options;
}

/* One method: its options become parameters, in its comment and in its signature. */
function expand(string $class, string $comment, string $signature, string $file): string
{
    preg_match('/function (\w+)\(/', $signature, $m);
    [$part, $more] = METHODS["$class::$m[1]"] ?? fail("$class::$m[1] has options, and this program does not know which");
    $told = $parameters = '';
    foreach (options($file, $part) + $more as $name => $option) {
        if (preg_match("/\\$$name\\b/", $signature))
            continue;
        [$type, $checked, $meaning] = $option;
        $told .= "     * @param $type \$$name $meaning\n" . ($checked === $type ? '' : "     * @phpstan-param $checked \$$name\n");
        $parameters .= ", $type \$$name = " . ($option[3] ?? 'null');
    }
    /* the text of the parameter $options may go over several lines */
    $comment = preg_replace_callback('/^     \* @param mixed \$options .*\n(?:     \*     .*\n)*/m', fn () => $told, $comment, 1, $count);
    $count === 1 or fail("the comment of $class::$m[1] does not speak of \$options");
    return $comment . str_replace(', mixed ...$options', $parameters, $signature);
}

/* What a job of pushMany may say behind name and payload. */
function item(string $file): string
{
    $shape = 'array{0: string, 1?: mixed';
    foreach (options($file, 'Push') as $name => [, $checked])
        $shape .= ", $name?: $checked";
    return $shape . ', context?: array<string, string>, guard?: ' . GUARD[1] . '}';
}

$file = $argv[1] ?? fail('usage: stub-options.php CONFIGURATION.md <STUBS');
$class = '';
$comment = '';
while (($line = fgets(STDIN)) !== false) {
    if (preg_match('/^(?:final )?class (\w+)/', $line, $m)) {
        $class = $m[1];
        /* The extension says so in C. */
        echo $class === 'AsJob' ? "#[\Attribute(\Attribute::TARGET_CLASS)]\n" : '';
    }
    if (str_starts_with($line, '    /**') || ($comment !== '' && str_starts_with($line, '     *'))) {
        $comment .= $line;
        continue;
    }
    $line = str_contains($line, 'mixed ...$options') ? expand($class, $comment, $line, $file) : $comment . $line;
    echo str_replace('array{PUSH}', item($file), $line);
    $comment = '';
}

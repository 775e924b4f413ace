<?php
/* SPDX-License-Identifier: MIT
 *
 * The PHP half of tests/interop: side.php COMMAND DSN [ARGUMENT…]; what it has to say goes to standard output as JSON.
 *
 *   push           pushes each golden value that PHP can hold as a job "echo" and says how many
 *   echo MAPS      a worker that pushes each "echo" back as "back" on the queue "answers", until there are none;
 *                  MAPS is array or object
 *   compare        works off "answers" and says which values have changed
 *   track          pushes each golden value as a tracked job "give" and says their ids by name
 *   results        reads the ids by name from standard input, waits for the results and says which have changed
 *   give MAPS      a worker whose handler of "give" tells how far it is and returns what it got
 *   mixed          a worker that notes "PHP id" for jobs "both" and "php.only"
 *   raise          a worker whose handler throws
 *   dead           the newest dead job's error as PHP reads it
 */
use JobQueue\{BigInt, Bytes, Job, Queue, Worker};

class NotHere extends Exception {}

/** The typed JSON form of a golden value as it has to be given to push(). */
function value(mixed $form): mixed
{
    if ($form instanceof stdClass) {
        [$kind, $inner] = [array_key_first((array) $form), current((array) $form)];
        return match ($kind) {
            '$int' => (string) (int) $inner === $inner ? (int) $inner : new BigInt($inner),
            '$double' => match ($inner) { 'NaN' => NAN, 'Infinity' => INF, '-Infinity' => -INF, default => unpack('E', hex2bin($inner))[1] },
            '$bytes' => new Bytes(base64_decode($inner)),
            '$time' => new DateTimeImmutable(str_pad(strstr($inner, '-', true), 4, '0', STR_PAD_LEFT) . strstr($inner, '-')),
            '$map' => pairs($inner),
        };
    }
    return is_array($form) ? array_map('value', $form) : $form;
}

function pairs(array $pairs): mixed
{
    $strings = array_filter($pairs, fn ($pair) => !is_string($pair[0])) === [];
    $map = $strings ? new stdClass : [];
    foreach ($pairs as [$key, $item]) {
        $key = value($key);
        if (!$strings && !is_int($key)) {
            throw new NotHere('mixed keys');
        }
        if (is_array($map)) {
            $map[$key] = value($item);
        } else {
            $map->{$key} = value($item);
        }
    }
    if (is_array($map) && array_is_list($map)) {
        throw new NotHere('would be a list');
    }
    return $map;
}

/** Of what was pushed, what comes out: objects as arrays when the handler asked for no objects, Bytes as strings. */
function seen(mixed $value): mixed
{
    return match (true) {
        $value instanceof Bytes => $value->value,
        $value instanceof stdClass => array_map('seen', (array) $value),
        is_array($value) => array_map('seen', $value),
        default => $value,
    };
}

function same(mixed $a, mixed $b): bool
{
    if (is_array($a) && is_array($b)) {
        return array_keys($a) === array_keys($b) && array_filter(array_map('same', $a, $b), fn ($ok) => !$ok) === [];
    }
    if (is_float($a) && is_float($b)) {
        return pack('E', $a) === pack('E', $b) || (is_nan($a) && is_nan($b));
    }
    return is_object($a) ? is_object($b) && get_class($a) === get_class($b) && $a == $b : $a === $b;
}

/** @return array<string, mixed> name => value, of those that PHP can hold */
function golden(): array
{
    $values = [];
    foreach (json_decode(file_get_contents(__DIR__ . '/vectors/payload.json'))->good as $vector) {
        try {
            $values[$vector->name] = value($vector->value);
        } catch (NotHere) {
        }
    }
    return $values;
}

function say(mixed $what): never
{
    echo json_encode($what, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR), "\n";
    exit;
}

/** Works off the queues until they are empty, in this process. */
function work(Worker $worker, string $queues): void
{
    while ($worker->runNext($queues)) {
    }
}

[, $command, $dsn] = $argv;
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 0, tries: 1, output: 'quiet');

switch ($command) {
    case 'push':
        foreach (golden() as $name => $value) {
            $queue->push('echo', ['name' => $name, 'value' => $value], context: ['trace' => "from PHP, $name"]);
        }
        say(count(golden()));

    case 'echo':
        $worker->handle('echo', fn (Job $job, mixed $payload) => $queue->push('back', $payload, queue: 'answers', context: $job->context), maps: $argv[3]);
        work($worker, 'default');
        say(true);

    case 'compare':
        [$wanted, $odd, $n] = [golden(), [], 0];
        $worker->handle('back', function (Job $job, array $payload) use ($wanted, &$odd, &$n): void {
            ['name' => $name, 'value' => $value] = $payload;
            if (!same($value, seen($wanted[$name])) || $job->context !== ['trace' => "from PHP, $name"]) {
                $odd[] = $name;
            }
            $n++;
        });
        work($worker, 'answers');
        say(['compared' => $n, 'odd' => $odd]);

    case 'track':
        say(array_map(fn ($value) => $queue->push('give', ['value' => $value], track: true), golden()));

    case 'results':
        [$wanted, $odd] = [golden(), []];
        $ids = json_decode(stream_get_contents(STDIN), true);
        foreach ($ids as $name => $id) {
            $info = $queue->find($id);
            if (!same($queue->wait($id, 30), seen($wanted[$name])) || !same($info->result, seen($wanted[$name]))
                || $info->progress !== ['percent' => 12.5, 'note' => "from Python \u{1F4A5}"] || $info->state !== JobQueue\State::Done) {
                $odd[] = $name;
            }
        }
        say(['compared' => count($ids), 'odd' => $odd]);

    case 'give':
        $worker->handle('give', function (Job $job, mixed $payload): mixed {
            $job->progress(87.5, "from PHP \u{1F4A5}");
            return is_array($payload) ? $payload['value'] : $payload->value;
        }, maps: $argv[3]);
        work($worker, 'default');
        say(true);

    case 'mixed':
        $pool = new Worker($queue, processes: 2, output: 'quiet');
        foreach (['both', 'php.only'] as $name) {
            $pool->handle($name, function (Job $job) use ($argv): void {
                usleep(2000);
                file_put_contents($argv[3], "php $job->name $job->id\n", FILE_APPEND | LOCK_EX);
            });
        }
        exit($pool->run());

    case 'raise':
        $worker->handle('php.raises', fn () => throw new DomainException("no such invoice \u{1F4A5}", 7));
        work($worker, 'default');
        say(true);

    case 'dead':
        $info = $queue->dead(limit: 1)[0];
        say(['name' => $info->name, 'reason' => $info->reason, 'error' => $info->lastError, 'outcome' => $info->history[0]['outcome'],
            'worker' => $info->history[0]['worker'], 'payload' => $info->payload]);
}

--TEST--
Golden payload bytes: read to exactly their values, written from them, malformed ones kept and named (rules A5, A6, A7)
--EXTENSIONS--
jobqueue
sqlite3
--SKIPIF--
<?php
if (!is_file(__DIR__ . '/../../tests/interop/vectors/payload.json') && !is_file((string) getenv('JOBQ_SRCDIR') . '/tests/interop/vectors/payload.json')) {
    die('skip the vectors are not beside this suite');
}
?>
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{BigInt, Bytes, Queue};

class NotHere extends Exception {}

/** The typed JSON form as a PHP value; $push: as it has to be given to push(), else as it comes out. */
function value(mixed $form, bool $push): mixed
{
    if ($form instanceof stdClass) {
        [$kind, $inner] = [array_key_first((array) $form), current((array) $form)];
        return match ($kind) {
            '$int' => bccomp_int($inner) ? (int) $inner : new BigInt($inner),
            '$double' => match ($inner) { 'NaN' => NAN, 'Infinity' => INF, '-Infinity' => -INF, default => unpack('E', hex2bin($inner))[1] },
            '$bytes' => $push ? new Bytes(base64_decode($inner)) : base64_decode($inner),
            '$time' => new DateTimeImmutable(str_pad(strstr($inner, '-', true), 4, '0', STR_PAD_LEFT) . strstr($inner, '-')),
            '$map' => pairs($inner, $push),
        };
    }
    return is_array($form) ? array_map(fn ($item) => value($item, $push), $form) : $form;
}

function bccomp_int(string $digits): bool
{
    return (string) (int) $digits === $digits;
}

function pairs(array $pairs, bool $push): mixed
{
    $strings = array_filter($pairs, fn ($pair) => !is_string($pair[0])) === [];
    $map = $push && $strings ? new stdClass : [];
    foreach ($pairs as [$key, $item]) {
        $key = value($key, false);
        $key = $key instanceof BigInt ? (string) $key : $key;
        if ($push && !$strings && is_string($key)) {
            throw new NotHere; // mixed keys of which PHP may change one
        }
        if (is_array($map)) {
            $map[$key] = value($item, $push);
        } else {
            $map->{$key} = value($item, $push);
        }
    }
    if ($push && is_array($map) && array_is_list($map)) {
        throw new NotHere; // would be a list
    }
    return $map;
}

function same(mixed $a, mixed $b): bool
{
    if (is_array($a) && is_array($b)) {
        return array_keys($a) === array_keys($b) && array_filter(array_map('same', $a, $b), fn ($ok) => !$ok) === [];
    }
    if (is_float($a) && is_float($b)) {
        return pack('E', $a) === pack('E', $b) || (is_nan($a) && is_nan($b));
    }
    return is_object($a) ? get_class($a) === get_class($b) && $a == $b : $a === $b;
}

$vectors = json_decode(file_get_contents(is_file($file = __DIR__ . '/../../tests/interop/vectors/payload.json') ? $file : getenv('JOBQ_SRCDIR') . '/tests/interop/vectors/payload.json'));
$dsn = store('?synchronous=normal');
$queue = new Queue($dsn);
$queue->migrate();
$db = new SQLite3(substr(strtok($dsn, '?'), strlen('sqlite://')));
$db->busyTimeout(5000);
$update = $db->prepare('UPDATE jobqueue_job SET body = :body WHERE id = :id');
$put = function (string $body, string $id) use ($queue, $update) {
    $queue->push('vector', null, id: $id);
    $update->bindValue(':body', $body, SQLITE3_BLOB);
    $update->bindValue(':id', $id);
    $update->execute()->finalize();
    $update->reset();
};

$read = $written = 0;
foreach ($vectors->good as $i => $vector) {
    $put(hex2bin($vector->hex), "good-$i");
    $job = $queue->reserve();
    $expected = value($vector->value, false);
    if (!$job) {
        echo "$vector->name: unreadable: ", $queue->find("good-$i")->lastError['message'] ?? '', "\n";
        continue;
    }
    same($job->payload, $expected) ? $read++ : print("$vector->name: read as " . var_export($job->payload, true) . "\n");
    $job->done();
    try {
        $given = value($vector->value, true);
    } catch (NotHere) {
        $written++;
        continue;
    }
    $id = $queue->push('vector', $given);
    $bytes = bin2hex($db->querySingle("SELECT body FROM jobqueue_job WHERE id = '$id'"));
    $bytes === $vector->hex || (is_float($given) && is_nan($given)) ? $written++ : print("$vector->name: written as $bytes, not $vector->hex\n");
    $queue->reserve()->done();
}
echo $read === count($vectors->good) && $written === $read ? "all good ones\n" : "$read read, $written written\n";

$refused = 0;
foreach ($vectors->bad as $i => $vector) {
    $put(hex2bin($vector->hex), "bad-$i");
    $info = $queue->find("bad-$i");
    if ($info->payload !== null || $info->payloadError === null) {
        echo "$vector->name: was read\n";
    }
    $job = $queue->reserve();
    $info = $queue->find("bad-$i");
    if ($job || $info->reason !== 'undecodable' || bin2hex($db->querySingle("SELECT body FROM jobqueue_job WHERE id = 'bad-$i'")) !== $vector->hex) {
        echo "$vector->name: ", $job ? 'handed out' : "$info->reason", "\n";
        $job?->delete();
        continue;
    }
    $refused++;
}
echo $refused === count($vectors->bad) ? "all bad ones\n" : "$refused refused\n";
?>
--EXPECT--
all good ones
all bad ones

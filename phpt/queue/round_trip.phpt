--TEST--
Payloads come back with value and type (rules A2, A3; cases B016, B020)
--EXTENSIONS--
jobqueue
--INI--
precision=3
serialize_precision=5
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{BigInt, Bytes, Queue};

enum Suit: string { case Hearts = 'h'; }
enum Level: int { case High = 3; }

$queue = new Queue('memory:');
$same = [
    'null' => null, 'true' => true, 'false' => false, 'zero' => 0, 'min' => PHP_INT_MIN, 'max' => PHP_INT_MAX, '1.0' => 1.0, '-0.0' => -0.0,
    'pi' => 3.141592653589793, 'tiny' => 5e-324, 'inf' => INF, '-inf' => -INF, 'empty' => '', 'nul' => "a\0b", 'utf8' => 'žluťoučký 🐎',
    'bytes' => "\xff\xfe", 'list' => [1, 'two', 3.0, [true]], 'empty list' => [], 'map' => ['b' => 1, 'a' => [2]],
    'int keys' => [5 => 'five', -1 => 'n', 10 => 'ten'], 'hole' => [0 => 'a', 2 => 'c'], 'order' => [2 => 'c', 0 => 'a', 1 => 'b'],
    'numeric' => ['7355750935770677725' => 't', '007' => 1, '-5' => 2, '9223372036854775808' => 3, '1.0' => 4],
    'surrogate bytes' => "\xed\xa0\x80", 'overlong' => "\xc0\xaf", 'long' => str_repeat('x', 70000),
];
foreach ($same as $what => $value) {
    if (round_trip($queue, $value) !== $value) {
        echo "$what: ";
        var_dump(round_trip($queue, $value));
    }
}
var_dump(is_nan(round_trip($queue, NAN)), 1 / round_trip($queue, 1e-320) > 0, fdiv(1, round_trip($queue, -0.0)) === -INF);

$holed = [1, 2, 3];
unset($holed[1]);
var_dump(round_trip($queue, $holed) === [0 => 1, 2 => 3]);
var_dump(round_trip($queue, [Suit::Hearts, Level::High]) === ['h', 3]);
var_dump(round_trip($queue, (object) ['a' => 1, '5' => (object) []]) === ['a' => 1, 5 => []]);
var_dump((string) round_trip($queue, new Bytes('plain')));
var_dump(round_trip($queue, new BigInt('-9223372036854775808')) === PHP_INT_MIN, round_trip($queue, new BigInt(7)) === 7);
$large = round_trip($queue, new BigInt('18446744073709551615'));
var_dump($large instanceof BigInt, $large->value, "$large");

foreach ([new DateTime('2026-10-25 02:30:00.190432 Europe/Berlin'), new DateTimeImmutable('@-1.5'), new DateTimeImmutable('0001-01-01 UTC'),
             new DateTimeImmutable('@317368281600.25')] as $date) {
    $back = round_trip($queue, $date);
    echo get_class($back), ' ', $back->format('Y-m-d H:i:s.u e'), ' ', var_export($back == $date, true), "\n";
}

// references are flattened, shared values copied
$a = [1 => ['a' => 'x'], 30 => ['b' => 'y'], 2 => ['c' => 'z']];
$a[0]['children'][2] = &$a[1];
var_dump(round_trip($queue, $a) === [1 => ['a' => 'x'], 30 => ['b' => 'y'], 2 => ['c' => 'z'], 0 => ['children' => [2 => ['a' => 'x']]]]);
$object = (object) ['n' => 1];
var_dump(round_trip($queue, [$object, $object]) === [['n' => 1], ['n' => 1]]);
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
string(5) "plain"
bool(true)
bool(true)
bool(true)
string(20) "18446744073709551615"
string(20) "18446744073709551615"
DateTimeImmutable 2026-10-25 00:30:00.190432 UTC true
DateTimeImmutable 1969-12-31 23:59:58.500000 UTC true
DateTimeImmutable 0001-01-01 00:00:00.000000 UTC true
DateTimeImmutable 12027-01-01 00:00:00.250000 +00:00 true
bool(true)
bool(true)

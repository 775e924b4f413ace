--TEST--
What cannot travel is refused with the path, and nothing is stored (rule A4; case B020)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{BigInt, Queue};

enum Plain { case One; }
class Other { public $x = 1; }
class LateDate extends DateTime { public function __construct() {} }

$queue = new Queue('memory:');
$cycle = ['a' => 1];
$cycle['me'] = &$cycle;
$object = new stdClass;
$object->self = $object;
$deep = 1;
for ($i = 0; $i < 65; $i++) {
    $deep = [$deep];
}
$values = [
    ['user' => ['callback' => fn () => 1]], fopen('php://memory', 'r'), ['rows' => (fn () => yield 1)()], [1, [2, new Other]], $cycle, $object,
    ['n' => new BigInt('18446744073709551616')], [new BigInt('-9223372036854775809')], ['s' => Plain::One], ["\xff" => 1],
    ['when' => new LateDate], ["line\nbreak" => fopen('php://memory', 'r')], new DateInterval('P1D'), new ArrayObject([1]),
];
foreach ($values as $value) {
    refused(fn () => $queue->push('x', $value));
}
try {
    $queue->push('x', $deep);
} catch (JobQueue\PayloadException $e) {
    echo preg_replace('/(\.0){64}/', '(.0 x 64)', $e->getMessage()), ' ', substr_count($e->path, '.'), ' ', $e->errorCode, "\n";
}
$deep = $deep[0];
echo strlen($queue->push('x', $deep)), "\n";
$queue->reserve()->done();
// unserialize() asks no constructor
foreach (['12x', '', "5\0"] as $digits) {
    refused(fn () => $queue->push('x', ['n' => unserialize(sprintf('O:15:"JobQueue\BigInt":1:{s:5:"value";%s}', serialize($digits)))]));
}
$small = new Queue('memory:', ['maxPayload' => 1024]);
refused(fn () => $small->push('x', str_repeat('x', 2000)));
refused(fn () => new BigInt('12x'));
refused(fn () => new BigInt('007'));
var_dump($queue->stats('default')->backlog);
?>
--EXPECTF--
JobQueue\PayloadException: payload.user.callback: a Closure cannot be queued
JobQueue\PayloadException: payload: a resource cannot be queued
JobQueue\PayloadException: payload.rows: an object of class Generator cannot be queued
JobQueue\PayloadException: payload.1.1: an object of class Other cannot be queued
JobQueue\PayloadException: payload.me%S: recursion cannot be queued
JobQueue\PayloadException: payload.self: recursion cannot be queued
JobQueue\PayloadException: payload.n: the integer 18446744073709551616 is above 2^64-1 and cannot be queued
JobQueue\PayloadException: payload.0: the integer -9223372036854775809 is below -2^63 and cannot be queued
JobQueue\PayloadException: payload.s: a case of Plain, an enum without values, cannot be queued
JobQueue\PayloadException: payload.?: a key that is not UTF-8 cannot be queued
JobQueue\PayloadException: payload.when: a date whose constructor was not called cannot be queued
JobQueue\PayloadException: payload.line?break: a resource cannot be queued
JobQueue\PayloadException: payload: an object of class DateInterval cannot be queued
JobQueue\PayloadException: payload: an object of class ArrayObject cannot be queued
payload(.0 x 64): more than 64 containers inside one another cannot be queued 64 payload
36
JobQueue\PayloadException: payload.n: a BigInt that holds no decimal digits cannot be queued
JobQueue\PayloadException: payload.n: a BigInt that holds no decimal digits cannot be queued
JobQueue\PayloadException: payload.n: a BigInt that holds no decimal digits cannot be queued
JobQueue\PayloadException: %s
ValueError: a BigInt is written in decimal digits, without blanks or leading zeros
ValueError: a BigInt is written in decimal digits, without blanks or leading zeros
int(0)

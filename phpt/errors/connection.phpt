--TEST--
Wrong DSNs and options; passwords never shown (rules B1, P2)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\Queue;

foreach ([
    fn () => new Queue('mongodb://u:secret@h/'), fn () => new Queue('memory:', ['prefetch' => 1]), fn () => new Queue('memory:', ['queu' => 'x']),
    fn () => new Queue('memory:', ['queue' => 'a,b']), fn () => new Queue("memory:\0"), fn () => new Queue('memory:', ['x']),
    fn () => new Queue('memory:', ['maxPayload' => -1]), fn () => new Queue('memory:', ['queue' => []]), fn () => new Queue([]),
    fn () => (new Queue('memory:'))->__construct('memory:'),
] as $call) {
    echo refused_as($call), "\n";
}
try {
    new Queue('mongodb://user:secret@host/');
} catch (ValueError $e) {
    var_dump(str_contains($e->getMessage(), 'secret'), str_contains($e->getTraceAsString(), 'secret'), str_contains(print_r($e->getTrace(), true), 'secret'));
}
$queue = new Queue('sqlite:///nonexistent/folder/queue.db');
try {
    $queue->push('x');
} catch (JobQueue\ConnectionException $e) {
    echo get_parent_class($e), ' ', $e instanceof JobQueue\ExceptionInterface ? 'ok' : 'no', ' ', $e->errorCode !== '' ? 'code' : '', "\n";
}
?>
--EXPECT--
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
ValueError
TypeError
TypeError
Error
bool(false)
bool(false)
bool(false)
JobQueue\QueueException ok code

--TEST--
Push and end of a job inside the application's own transaction (rules B8, O1)
--EXTENSIONS--
jobqueue
pdo
--SKIPIF--
<?php
$kind = getenv('JOBQUEUE_TEST_STORE') ?: 'sqlite';
$kind !== 'redis' or die('skip Redis has no transactions of others');
$driver = ['sqlite' => 'pdo_sqlite', 'postgres' => 'pdo_pgsql', 'mariadb' => 'pdo_mysql'][$kind];
extension_loaded($driver) or die("skip $driver is not there");
?>
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{LeaseLost, Queue};

$queue = new Queue($dsn = store());
$queue->capacity('full', 1);
$queue->push('there', null, queue: 'full');
$pdo = pdo($dsn);
$pdo->exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)');
$payload = ['text' => 'Grüße', 'raw' => new JobQueue\Bytes("\0\xff\x80 bytes"), 'n' => 7];

// rolled back: it has never been; committed: it is there, byte for byte
foreach (['rollBack', 'commit'] as $i => $end) {
    $pdo->beginTransaction();
    $pdo->exec("INSERT INTO orders VALUES ($i)");
    [$id, $result] = run_statement($pdo, $queue->pushStatement('order.placed', $payload, queue: 'mail', context: ['trace' => 'x y']));
    $pdo->$end();
    $info = $queue->find($id);
    echo "$end $result ", $info ? $info->state->value : 'never was', ' ', $queue->stats('mail')->ready, "\n";
}
var_dump($info->payload['text'], bin2hex($info->payload['raw']), $info->context);

// a held key or a full queue is an answer: the transaction goes on
$queue->push('unique', null, queue: 'mail', unique: 'k', id: 'holder');
$pdo->beginTransaction();
$pdo->exec('INSERT INTO orders VALUES (10)');
echo implode(' ', run_statement($pdo, $queue->pushStatement('unique', null, queue: 'mail', unique: 'k'))), "\n";
echo run_statement($pdo, $queue->pushStatement('more', null, queue: 'full'))[1], "\n";
echo run_statement($pdo, $queue->pushStatement('again', null, id: 'holder'))[1], "\n";
echo implode(' ', run_statement($pdo, $queue->pushStatement('again', null, id: 'holder', idempotent: true))), "\n";
$pdo->commit();
echo $pdo->query('SELECT count(*) FROM orders WHERE id = 10')->fetchColumn(), ' ', $queue->stats('full')->ready, "\n";

// the end of a job commits with the application's writes
foreach (['rollBack', 'commit'] as $i => $end) {
    $job = $queue->reserve('mail');
    $pdo->beginTransaction();
    $pdo->exec('INSERT INTO orders VALUES (' . (20 + $i) . ')');
    run_statement($pdo, $job->doneStatement());
    $pdo->$end();
    echo "$end ", $queue->find($job->id)?->state->value ?? 'gone', "\n";
    $i || $job->release();
}

// a tracked job's result goes along (rule N7)
$queue->push('tracked', null, queue: 'tracked', id: 'tracked', track: true);
$job = $queue->reserve('tracked');
try {
    $job->doneStatement(result: fn () => 1);
    echo "no error\n";
} catch (JobQueue\PayloadException $e) {
    echo "no result\n";
}
$pdo->beginTransaction();
run_statement($pdo, $job->doneStatement(result: ['receipt' => 7]));
$pdo->commit();
echo json_encode($queue->wait('tracked', 0)), "\n";

// ... and is the statement's alone: rolled back, what comes after it counts
$queue->push('tracked', null, queue: 'tracked', id: 'again', track: true);
$job = $queue->reserve('tracked');
$pdo->beginTransaction();
run_statement($pdo, $job->doneStatement(result: 'never'));
$pdo->rollBack();
$job->done();
echo json_encode($queue->wait('again', 0)), "\n";

// a lease that is lost fails the transaction
putenv('JOBQUEUE_TEST_SHORT_LEASE=1');
$queue->push('fenced', null, queue: 'fence');
$stale = $queue->reserve('fence', lease: 1);
wait_until(function () use ($queue, &$fresh) { return $fresh = $queue->reserve('fence'); }, 'the lease to lapse');
$pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$pdo->beginTransaction();
$pdo->exec('INSERT INTO orders VALUES (30)');
try {
    run_statement($pdo, $stale->doneStatement());
    echo "no error\n";
} catch (PDOException $e) {
    echo "refused\n";
} catch (LeaseLost $e) {
    echo "refused\n";
}
$pdo->rollBack();
echo $queue->find($fresh->id)->state->value, "\n";
$fresh->done();
refused(fn () => $queue->pushStatement('x', placeholders: ':name'));
echo preg_match('/\?/', $queue->pushStatement('x')[0]), ' ', preg_match('/\$1\b/', $queue->pushStatement('x', placeholders: '$')[0]), "\n";
?>
--EXPECTF--
rollBack stored never was 0
commit stored ready 1
string(7) "Grüße"
string(18) "00ff80206279746573"
array(1) {
  ["trace"]=>
  string(3) "x y"
}
holder held
full
duplicate
holder held
1 1
rollBack reserved
commit gone
no result
{"receipt":7}
null
refused
reserved
ValueError: placeholders must be "?" (PDO, mysqli, SQLite3) or "$" (pg_query_params), ":name" given
1 1

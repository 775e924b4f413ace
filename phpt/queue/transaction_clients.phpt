--TEST--
Statements of the queue through mysqli, ext-pgsql and SQLite3: rolled back, committed, the end of a job (rules B8, O1)
--EXTENSIONS--
jobqueue
--SKIPIF--
<?php
$kind = getenv('JOBQUEUE_TEST_STORE') ?: 'sqlite';
$kind !== 'redis' or die('skip Redis has no transactions of others');
$client = ['sqlite' => 'sqlite3', 'postgres' => 'pgsql', 'mariadb' => 'mysqli'][$kind];
extension_loaded($client) or die("skip $client is not there");
?>
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Bytes, Queue};

/** [begin or end a transaction, run a statement of the queue's and give its row] over the client of the kind of store. */
function client(string $dsn): array
{
    $url = (parse_url($dsn) ?: []) + ['host' => '', 'port' => 0, 'user' => '', 'path' => ''];
    $name = trim($url['path'], '/');
    switch (kind()) {
        case 'postgres':
            $db = pg_connect("host={$url['host']} port={$url['port']} dbname=$name user={$url['user']}");
            return [fn (string $sql) => pg_query($db, $sql), fn (array $s) => pg_fetch_row(pg_query_params($db, $s[0], $s[1]))];
        case 'mariadb':
            $db = new mysqli($url['host'], $url['user'], '', $name, $url['port']);
            return [fn (string $sql) => $db->query($sql), function (array $s) use ($db) {
                $result = $db->execute_query($s[0], $s[1]);
                return $result instanceof mysqli_result ? $result->fetch_row() : false;
            }];
        default:
            $db = new \SQLite3(folder($dsn) . '/queue.db');
            $db->busyTimeout(20000);
            return [fn (string $sql) => $db->exec($sql), function (array $s) use ($db) {
                $statement = $db->prepare($s[0]);
                foreach ($s[1] as $i => $value) {
                    $statement->bindValue($i + 1, $value);
                }
                $statement->execute()->finalize(); // fetchArray() would carry it out once more
                return [$s[1][0], 'stored'];
            }];
    }
}

$queue = new Queue($dsn = store());
$queue->migrate();
[$run, $ask] = client($dsn);
$placeholders = kind() === 'postgres' ? '$' : '?';
foreach (['ROLLBACK', 'COMMIT'] as $end) {
    $run('BEGIN');
    [$id, $result] = $ask($queue->pushStatement('order.placed', ['raw' => new Bytes("\0\xff'\\ x"), 'n' => 7], placeholders: $placeholders));
    $run($end);
    echo "$end $result ", $queue->find($id)?->state->value ?? 'never was', "\n";
}
echo bin2hex($queue->find($id)->payload['raw']), "\n";
foreach (['ROLLBACK', 'COMMIT'] as $end) {
    $job = $queue->reserve();
    $run('BEGIN');
    $ask($job->doneStatement($placeholders));
    $run($end);
    echo "$end ", $queue->find($id)?->state->value ?? 'gone', "\n";
    $end === 'COMMIT' || $job->release();
}
?>
--EXPECT--
ROLLBACK stored never was
COMMIT stored ready
00ff275c2078
ROLLBACK reserved
COMMIT gone

--TEST--
Output: buffers neither lost nor doubled, state of one child stays there, random numbers differ (rule D7; cases B146, B149)
--EXTENSIONS--
jobqueue
--INI--
error_log=/dev/null
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Job, Queue, Worker};

mt_srand(5);
$dsn = store();
$queue = new Queue($dsn);
$worker = new Worker($queue, processes: 2);
$worker->handle('messes', function (Job $job) use ($dsn) {
    ob_start();
    echo "text of a forgotten buffer\n";
    date_default_timezone_set('Asia/Kathmandu');
    setlocale(LC_ALL, 'C.UTF-8');
    ini_set('precision', 3);
    error_reporting(0);
    set_error_handler(fn () => true);
    umask(0777);
    putenv('TZ=Asia/Kathmandu');
    chdir('/');
    exit(1);
}, tries: 1);
$worker->handle('looks', fn () => note($dsn, date_default_timezone_get() . ' ' . ini_get('precision') . ' ' . ob_get_level() . ' ' . (error_reporting() === E_ALL ? 'E_ALL' : error_reporting())));
$worker->handle('random', function () use ($dsn) { note($dsn, 'random ' . mt_rand() . ' ' . getmypid()); usleep(20000); });
ob_start();
echo "before the fork\n";
$queue->push('messes', id: 'm');
foreach (range(1, 6) as $i) {
    $queue->push('looks');
}
foreach (range(1, 20) as $i) {
    $queue->push('random', queue: 'random');
}
work($worker);
$info = $queue->find('m');
echo $info->state->value, ' ', abs($info->diedAt->getTimestamp() - time()) < 60 ? 'right time' : $info->diedAt->format('c'), "\n";
ob_end_flush();
work($worker, 'random');
$notes = noted($dsn);
echo implode(' | ', array_unique(array_filter($notes, fn ($n) => !str_starts_with($n, 'random')))), "\n";
$random = preg_grep('/^random/', $notes);
$numbers = array_map(fn ($n) => explode(' ', $n)[1], $random);
var_dump(count($random), count(array_unique($numbers)) === 20);
?>
--EXPECT--
before the fork
text of a forgotten buffer
dead right time
UTC 14 0 E_ALL
int(20)
bool(true)

<?php
/* What each thread of threads.c runs as a request of its own: jobs pushed to a store of its own and to one that all share,
 * and worked off here by Queue::reserve, in the thread. Exit code 0: every job of its own came back as it was pushed. */
use JobQueue\Queue;

$folder = getenv('THREADS_FOLDER');
$me = bin2hex(random_bytes(8));
$own = new Queue("sqlite://$folder/$me.db?synchronous=normal");
$shared = new Queue("sqlite://$folder/shared.db?synchronous=normal");

function wrong(string $what): never
{
    echo "$what\n";
    exit(1);
}

for ($n = 0; $n < 30; $n++)
    $own->push('add', ['n' => $n, 'text' => str_repeat($me, 50)], tries: 2);
$ran = [];
while ($job = $own->reserve()) {
    if ($job->payload['text'] !== str_repeat($me, 50))
        wrong("$me: a payload of another's");
    if ($job->payload['n'] % 10 === 3 && $job->attempt === 1) {
        $job->retry(0, new RuntimeException("not yet, $me"));
        continue;
    }
    $ran[] = $job->payload['n'];
    $job->done();
}
sort($ran);
if ($ran !== range(0, 29))
    wrong("$me: of 30 jobs ran " . json_encode($ran));

/* A mistake is an exception of this thread's, with its own words. */
try {
    (new Queue("nostore$me://x"))->stats('default');
    wrong("$me: an unknown store was taken");
} catch (Exception | ValueError $e) {
    if (!str_contains($e->getMessage(), "nostore$me"))
        wrong("$me: another thread's words: {$e->getMessage()}");
}

$shared->pushMany(array_map(fn ($n) => ['note', ['by' => $me, 'n' => $n]], range(1, 20)));
while ($job = $shared->reserve()) {
    ['by' => $by, 'n' => $n] = $job->payload;
    file_put_contents("$folder/notes", "$by $n\n", FILE_APPEND | LOCK_EX);
    $job->done();
}

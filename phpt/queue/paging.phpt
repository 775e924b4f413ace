--TEST--
Pages go on behind a job that has left the list meanwhile (rules N1, F4)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{Queue, State};

// a worker drains what is being looked at: the last job of each page is gone before the next one
function leave(Queue $queue, string $queueName, string $last): void
{
    while (($job = $queue->reserve($queueName)) && $job->id !== $last) {
        $job->done();
    }
    $job->done();
}

foreach ([store(), 'memory:'] as $dsn) {
    $queue = new Queue($dsn);
    $push = fn (int $from, int $to, string $name) => $queue->pushMany(array_map(fn ($i) => ['n', null, 'queue' => $name, 'id' => sprintf('%s%02d', $name, $i)], range($from, $to)));
    $push(1, 50, 'ready');
    $seen = [];
    for ($after = null; $page = $queue->jobs('ready', State::Ready, 10, $after); $after = end($page)->id) {
        $seen[] = $page[0]->id . '-' . end($page)->id . ' ' . count($page);
        leave($queue, 'ready', end($page)->id);
    }
    echo implode(', ', $seen), "\n";
    // also behind the last page: what came later is there
    $push(51, 52, 'ready');
    echo implode(' ', array_map(fn ($info) => $info->id, $queue->jobs('ready', State::Ready, 10, $after))), "\n";

    $push(1, 50, 'dead');
    while ($job = $queue->reserve('dead')) {
        $job->fail('x');
    }
    $seen = [];
    for ($after = null; $page = $queue->dead('dead', limit: 10, after: $after); $after = end($page)->id) {
        $seen[] = $page[0]->id . '-' . end($page)->id . ' ' . count($page);
        echo $queue->forget([end($page)->id, end($page)->id]); // an id given twice is one
    }
    echo "\n", implode(', ', $seen), "\n", $queue->stats('dead')->dead, "\n";
    refused(fn () => (new Queue($dsn))->dead('dead', after: 'dead01'));
    refused(fn () => $queue->dead('dead', after: 'never'));
    refused(fn () => $queue->forget(['never', 'never']));
}
?>
--EXPECT--
ready01-ready10 10, ready11-ready20 10, ready21-ready30 10, ready31-ready40 10, ready41-ready50 10
ready51 ready52
11111
dead50-dead41 10, dead40-dead31 10, dead30-dead21 10, dead20-dead11 10, dead10-dead01 10
45
ValueError: after: the list has no job with the id "dead01"
ValueError: after: the list has no job with the id "never"
JobQueue\NotFound: no dead job has the id "never"
ready01-ready10 10, ready11-ready20 10, ready21-ready30 10, ready31-ready40 10, ready41-ready50 10
ready51 ready52
11111
dead50-dead41 10, dead40-dead31 10, dead30-dead21 10, dead20-dead11 10, dead10-dead01 10
45
ValueError: after: the list has no job with the id "dead01"
ValueError: after: the list has no job with the id "never"
JobQueue\NotFound: no dead job has the id "never"

<?php

// Each line that ends with "// wrong" must be refused, by PHPStan and by Psalm.

declare(strict_types=1);

namespace App;

use JobQueue\Event;
use JobQueue\Job;
use JobQueue\JobInfo;
use JobQueue\Queue;
use JobQueue\Worker;

function wrong(Queue $queue, Worker $worker, Job $job, JobInfo $info): void
{
    $queue->push('mail', [], priorty: 3); // wrong
    $queue->push('mail', [], delay: 'soon'); // wrong
    $queue->push('mail', [], onDuplicate: 'kep'); // wrong
    $queue->pushMany([[7, null]]); // wrong
    $queue->pushMany(['mail']); // wrong
    $queue->reserve(leese: 3); // wrong
    $queue->reserve()->done(); // wrong
    $queue->find('x')->name; // wrong
    $queue->jobs('mail', 'ready'); // wrong
    new Worker($queue, proceses: 4); // wrong
    new Worker($queue, processes: 'many'); // wrong
    $worker->handle('mail', function (Event $event): void {}); // wrong
    $worker->handle('mail', fn (Job $job) => null, tries: 'three'); // wrong
    $worker->on('idle', function (Job $job): void {}); // wrong
    $worker->middleware(fn (string $job): string => $job); // wrong
    $worker->run(maxTime: 'long'); // wrong
    $job->attempt = 2; // wrong
    $job->id . $job->nothing; // wrong
    echo $info->lastError['massage']; // wrong
    strlen($info->history); // wrong
    new Job(); // wrong
}

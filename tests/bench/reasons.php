<?php
/* SPDX-License-Identifier: MIT
 *
 * Why a target is not met: store => figure => sentence. `./dev bench --write` puts those below the tables.
 */
$busy = 'absolute times follow the load of the machine, see above the table; the floor beside it shows how much.';
$lone_client = 'a PHP process builds a chunk and then waits for the store, so the two do not overlap; building a '
    . 'message (PHP values, payload, options, header) takes about 1 µs of CPU that the C loop does not need.';

$python = 'a child needs about 3 µs of CPU for a job in Python, which shows when it shares few cores with dispatcher and store; ' . $busy;

return [
    'sqlite' => [
        'python_push' => 'as PHP\'s push.',
        'python_drain' => $python,
        'push' => 'one commit that waits for the disk like the floor\'s, whose length the disk decides: the ratio differs from run to run, on both sides of the target. While the log grows to its 4,000 pages (once in its life; of the 3,000 pushes here the first 1,250) the file\'s length is written with each commit, too; 30,000 pushes are a fifth faster.',
        'due_rate' => 'a promotion moves each job from one table to another before it can be reserved, in steps of 1,000 that leave room for pushes.',
        'latency_p50' => 'the push itself waits for the disk, and most of the time is its; ' . $busy,
        'latency_p99' => 'it is the p99 of the push itself, which waits for the disk; ' . $busy,
        'push_many' => $lone_client,
    ],
    'redis' => [
        'python_push' => 'as PHP\'s push.',
        'python_drain' => $python,
        'push' => 'one round trip like the floor; on a busy machine single turns differ by a factor of two.',
        'push_many' => $lone_client,
        'aof_push' => 'one round trip like the floor; on a busy machine single turns differ by a factor of two.',
        'aof_push_many' => $lone_client,
        'latency_p50' => $busy,
        'latency_p99' => $busy,
        'beside_long_p50' => $busy,
        'beside_long_p99' => $busy,
        'trips_single' => 'reserving and settling are one trip each; the third is the blocking read that wakes the worker, which '
            . 'takes no job, so that jobs are reserved in one way only.',
        'due_rate' => 'each delayed job leaves the sorted set and its hash, enters the stream and gets an index entry before it can '
            . 'be reserved: about 10 µs of the server, which has one thread, beside 3 µs for reserving and settling it. All but XADD is one '
            . 'command for 1,000 jobs already.',
    ],
    'postgres' => [
        'python_push' => 'as PHP\'s push.',
        'python_drain' => $python,
        'push_many' => $lone_client . ' The place of a job in its queue is a row and an index of its own, so the server does '
            . 'nearly twice the work of one table; a reserve and a settlement are cheaper for it.',
        'latency_p50' => 'most of it is the push itself with its commit; ' . $busy,
        'latency_p99' => 'most of it is the push itself with its commit; ' . $busy,
        'push' => 'one round trip and one commit like the floor, but rows in two tables (what a job is, where it stands) and a look for waiting '
            . 'workers: that work, 12 µs of the server, shows the more, the faster the disk confirms a commit.',
        'depth' => 'single drains of 20,000 jobs differ by more than the target allows.',
        'first_job' => 'the connection and the first planning of the functions used take most of it; ' . $busy,
        'beside_long_p50' => $busy,
        'beside_long_p99' => $busy,
    ],
    'mariadb' => [
        'python_drain' => $python,
        'push_many' => 'the server keeps two more indexes than the floor (unique keys, due times) and rows of more than twice as many '
            . 'columns; and ' . $lone_client,
        'trips_single' => 'reserving and settling are one trip each; nothing wakes a worker there, so it looks, and a look '
            . 'that comes before the push finds nothing.',
        'commits_single' => 'a job at a time is two commits, one that reserves it and one that settles it, and InnoDB has none that does not wait for '
            . 'the disk (the setting is the server\'s, not a session\'s); below two because some jobs are reserved together.',
        'due_rate' => 'a promotion moves each job to another range of the index before it can be reserved, in steps that leave room for pushes.',
        'depth' => 'the front of the long queue was pushed long ago and is read from the disk, that of the short one is still in memory: '
            . '500 pages of 16 KB for 20,000 jobs with the buffer pool of 64 MB that the server has here, none (and no difference) with 1 GB.',
        'depth_delayed' => 'single drains of 20,000 jobs differ by more than the target allows.',
        'depth_dead' => 'single drains of 20,000 jobs differ by more than the target allows.',
    ],
];

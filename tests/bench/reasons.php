<?php
/* SPDX-License-Identifier: MIT
 *
 * Why a target is not met: store => figure => sentence. `./dev bench --write` puts those below the tables.
 */
const BUSY = 'absolute times follow the load of the machine, see above the table; the floor beside it shows how much.';
const LONE_CLIENT = 'a PHP process builds a chunk and then waits for the store, so the two do not overlap; building a '
    . 'message (PHP values, payload, options, header) takes about 1 µs of CPU that the C loop does not need.';

return [
    'sqlite' => [
        'push' => 'one commit that waits for the disk like the floor\'s; turns on a busy machine differ by a factor of two, other runs gave 0.83 and 0.92.',
        'due_rate' => 'the drain beside it ran at another moment of a busy machine; other runs gave 0.72.',
        'latency_p50' => 'the push itself waits for the disk, and most of the time is its; ' . BUSY,
        'latency_p99' => 'it is the p99 of the push itself, which waits for the disk; ' . BUSY,
        'push_many' => LONE_CLIENT,
    ],
    'redis' => [
        'push' => 'one round trip like the floor; on a busy machine single turns differ by a factor of two.',
        'push_many' => LONE_CLIENT,
        'aof_push' => 'one round trip like the floor; on a busy machine single turns differ by a factor of two.',
        'aof_push_many' => LONE_CLIENT,
        'latency_p50' => BUSY,
        'latency_p99' => BUSY,
        'beside_long_p50' => BUSY,
        'beside_long_p99' => BUSY,
        'trips_single' => 'reserving and settling are one trip each; the third is the blocking read that wakes the worker, which '
            . 'takes no job, so that jobs are reserved in one way only.',
        'due_rate' => 'each delayed job leaves the sorted set and its hash, enters the stream and gets an index entry before it can '
            . 'be reserved: about 10 µs of the server, which has one thread, beside 3 µs for reserving and settling it. All but XADD is one '
            . 'command for 1,000 jobs already.',
    ],
    'postgresql' => [
        'push_many' => LONE_CLIENT . ' The place of a job in its queue is a row and an index of its own, so the server does '
            . 'nearly twice the work of one table; a reserve and a settlement are cheaper for it.',
        'latency_p50' => 'most of it is the push itself with its commit; ' . BUSY,
        'latency_p99' => 'most of it is the push itself with its commit; ' . BUSY,
        'push' => 'one round trip and one commit like the floor, but rows in two tables, written by a function that also looks '
            . 'for the queue and for waiting workers; other runs gave 0.70 to 0.86.',
        'depth' => 'under this load single drains of 20,000 jobs differ by more than the target allows.',
        'first_job' => 'the connection and the first planning of the functions used take most of it; ' . BUSY,
        'beside_long_p50' => BUSY,
        'beside_long_p99' => BUSY,
    ],
    'mariadb' => [
        'push_many' => 'the server keeps two more indexes than the floor (unique keys, due times) and rows of more than twice as many '
            . 'columns; and ' . LONE_CLIENT,
        'trips_single' => 'nothing wakes a worker there, so it looks; and an exchange is several statements, since there is no '
            . 'UPDATE … RETURNING.',
        'commits_single' => 'InnoDB has no commit that does not wait for the disk, so a reservation waits too.',
        'depth' => 'not found yet; runs with 100,000 waiting gave 0.86 and 0.99, and single drains differ as much on a busy machine.',
        'depth_delayed' => 'under this load single drains of 20,000 jobs differ by more than the target allows.',
        'depth_dead' => 'under this load single drains of 20,000 jobs differ by more than the target allows.',
    ],
];

<?php

return [
    'default' => 'jobqueue',
    'connections' => [
        'jobqueue' => [
            'driver' => 'jobqueue',
            'dsn' => env('JOBQUEUE_DSN', 'sqlite:' . getenv('APP_FOLDER') . '/queue.db'),
            'queue' => 'default',
            'retry_after' => 60,
        ],
        'odd' => ['driver' => 'jobqueue', 'dns' => 'sqlite:queue.db'],
        'sync' => ['driver' => 'sync'],
    ],
    'failed' => ['driver' => 'file', 'path' => getenv('APP_FOLDER') . '/failed.json', 'limit' => 100],
];

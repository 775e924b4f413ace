<?php
/* SPDX-License-Identifier: MIT
 *
 * What the PHP fragments of the documentation stand on: a queue, tables beside it, and an application's own functions.
 */
use JobQueue\{Job, Queue, Worker};

/** The application's tables, in the database that also holds the queue; anew for each sample. */
function tables(PDO $pdo): PDO
{
    foreach ([
        'orders' => 'id int PRIMARY KEY, total int, paid boolean',
        'invoices' => 'number int, amount int',
        'ledger' => 'invoice int, amount int',
        'payments' => 'id int',
        'accounts' => 'id int, balance int',
        'stock' => "item varchar(20), on_hand int, last_job varchar(128) NOT NULL DEFAULT ''",
        'job_done' => 'id varchar(128) PRIMARY KEY, done_at timestamp NOT NULL',
    ] as $name => $columns) {
        $pdo->exec("DROP TABLE IF EXISTS $name");
        $pdo->exec("CREATE TABLE $name ($columns)");
    }
    $pdo->exec('INSERT INTO orders VALUES (7, 120, FALSE)');
    $pdo->exec('INSERT INTO accounts VALUES (1, 100)');
    $pdo->exec("INSERT INTO stock (item, on_hand) VALUES ('lamp', 9)");
    return $pdo;
}

function database(string $dsn): PDO
{
    if (str_starts_with($dsn, 'sqlite:')) {
        return new PDO($dsn, options: [PDO::ATTR_TIMEOUT => 10]);
    }
    $at = parse_url($dsn);
    $kind = ['postgresql' => 'pgsql', 'mysql' => 'mysql'][$at['scheme']];
    return new PDO("$kind:host={$at['host']};port={$at['port']};dbname=" . trim($at['path'], '/'), $at['user'], $at['pass'] ?? '');
}

/** The DSN of a fresh database on the server of $dsn. */
function own_database(string $dsn): string
{
    $name = 'docs_' . getmypid();
    database($dsn)->exec("CREATE DATABASE $name");
    return preg_replace('#[^/]+$#', $name, $dsn);
}

function deliver(mixed $payload): void {}
function mail_to_support(string $subject, ?string $text): void { $GLOBALS['mails'][] = "$subject: $text"; }

/** The job class of the page, for samples that only use it. */
spl_autoload_register(function (string $class): void {
    if ($class === 'SendInvoice') {
        eval('#[JobQueue\AsJob("invoice.send", queue: "mail")] final class SendInvoice {
            public function __construct(private int $invoice, private DateTimeImmutable $due) {}
            public function handle(JobQueue\Job $job): void { echo "invoice $this->invoice\n"; } }');
    }
    if ($class === 'LogTrimmer') {
        eval('final class LogTrimmer { public function __invoke(JobQueue\Job $job, mixed $payload): void { echo "trimmed\n"; } }');
    }
});

function claim(bool $true, string $what): void
{
    if (!$true) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

/** Runs what waits in this process; none of it may fail. */
function run_all(Worker $worker, Queue $queue): void
{
    $worker->run(['mail', 'default'], stopWhenEmpty: true);
    foreach ($queue->dead() as $job) {
        claim(false, "{$job->name} works: {$job->reason} {$job->lastError['message']}");
    }
    claim($worker->statistics()['done'] > 0, 'a job has run');
}

<?php
/* SPDX-License-Identifier: MIT
 *
 * What web page and worker share: the database, in which the queue lives too, and where mails and pictures go.
 */
use JobQueue\Queue;

const FOLDER = 'SIGNUP_FOLDER'; // the environment says where everything lies; the current folder otherwise

function place(string $name): string
{
    return (getenv(FOLDER) ?: getcwd()) . "/$name";
}

function database(): PDO
{
    static $pdo;
    if (!$pdo) {
        $pdo = new PDO('sqlite:' . place('signup.db'), options: [PDO::ATTR_TIMEOUT => 10]);
        $pdo->exec('CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, email TEXT UNIQUE, mail_job TEXT, picture_job TEXT)');
    }
    return $pdo;
}

function queue(): Queue
{
    static $queue;
    return $queue ??= new Queue('sqlite:' . place('signup.db'));
}

/** Runs a statement of the queue's inside the transaction of the caller; the job's id. */
function push_in_transaction(string $name, array $payload, mixed ...$options): string
{
    [$sql, $params] = queue()->pushStatement($name, $payload, ...$options);
    $statement = database()->prepare($sql);
    $statement->execute($params);
    [$id] = $statement->fetch(PDO::FETCH_NUM);
    return $id;
}

/** User, welcome mail and picture are there together or not at all. */
function sign_up(string $email, string $picture): int
{
    queue()->migrate(); // once; a transaction of the application's cannot do it
    $pdo = database();
    $pdo->beginTransaction();
    try {
        $pdo->prepare('INSERT INTO users (email) VALUES (?)')->execute([$email]);
        $user = (int) $pdo->lastInsertId();
        $mail = push_in_transaction('mail.welcome', ['user' => $user], queue: 'mail');
        $small = push_in_transaction('picture.shrink', ['user' => $user, 'picture' => new JobQueue\Bytes($picture)], track: true);
        $pdo->prepare('UPDATE users SET mail_job = ?, picture_job = ? WHERE id = ?')->execute([$mail, $small, $user]);
        $pdo->commit();
    } catch (Throwable $e) {
        $pdo->rollBack();
        throw $e;
    }
    return $user;
}

<?php
/* SPDX-License-Identifier: MIT
 *
 * The web page: php -S 127.0.0.1:8000 web.php. POST /users signs up (email, picture), GET / shows who is there and how their jobs
 * stand, GET /jobs/ID is for scripts that wait.
 */
require_once __DIR__ . '/app.php';

/** One word for people. */
function state_of(?string $id): string
{
    $info = $id ? queue()->find($id) : null;
    if (!$info) {
        return 'done';
    }
    $progress = $info->progress ? sprintf(' %d %%', $info->progress['percent']) : '';
    return $info->state->value . ($info->reason ? ": $info->reason" : $progress);
}

function page(): string
{
    $rows = '';
    foreach (database()->query('SELECT * FROM users ORDER BY id') as $user) {
        $cells = array_map('htmlspecialchars', [$user['email'], state_of($user['mail_job']), state_of($user['picture_job'])]);
        $rows .= '<tr><td>' . implode('</td><td>', $cells) . "</td></tr>\n";
    }
    return "<!doctype html><title>Sign-up</title>\n<form method=post action=/users enctype=multipart/form-data>"
        . "<input name=email type=email required> <input name=picture type=file required> <button>Sign up</button></form>\n"
        . "<table><tr><th>Who</th><th>Mail</th><th>Picture</th></tr>\n$rows</table>\n";
}

function answer(string $method, string $path): string
{
    if ($method === 'POST' && $path === '/users') {
        $file = $_FILES['picture']['tmp_name'] ?? '';
        sign_up($_POST['email'] ?? '', $file ? file_get_contents($file) : '');
        header('Location: /', response_code: 303);
        return '';
    }
    if ($method === 'GET' && preg_match('~^/jobs/([\w.:-]+)$~', $path, $match)) {
        header('Content-Type: application/json');
        $info = queue()->find($match[1]);
        return json_encode(['state' => $info?->state ?? 'done or unknown', 'progress' => $info?->progress, 'result' => $info?->result]) . "\n";
    }
    if ($method === 'GET' && $path === '/') {
        return page();
    }
    http_response_code(404);
    return "nothing here\n";
}

try {
    echo answer($_SERVER['REQUEST_METHOD'], parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
} catch (PDOException | JobQueue\QueueException $e) {
    http_response_code(503);
    echo htmlspecialchars($e->getMessage()), "\n";
}

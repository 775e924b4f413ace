<?php

namespace App;

/** What jobs have to say: lines of a file beside the store, which the test reads. */
final class Note
{
    public static function down(string $line): void
    {
        file_put_contents(getenv('APP_FOLDER') . '/notes', "$line\n", FILE_APPEND | LOCK_EX);
    }
}

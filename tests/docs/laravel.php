<?php
// SPDX-License-Identifier: MIT
// The two functions of Laravel that its configuration uses.
function env(string $name, mixed $default = null): mixed { return $default; }
function database_path(string $path): string { return "/srv/shop/database/$path"; }

$configuration = (function (): array {
    // SAMPLE
})();
exit(isset($configuration['connections']['jobqueue']['dsn']) ? 0 : 1);

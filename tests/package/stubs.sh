#!/bin/bash
# SPDX-License-Identifier: MIT
#
# php-ext/stubs/jobqueue.php as an application's PHPStan (level max) and Psalm (level 1) read it: both find nothing wrong with
# stubs/right.php, and something with each line of stubs/wrong.php that says so. They come from Packagist, once; without it, or
# PHPSTAN and PSALM to name them, they are left out.
set -u
. "$(dirname "$0")/common.bash"
php=${TEST_PHP_EXECUTABLE:-php}
here=$root/tests/package/stubs
stub=$root/php-ext/stubs/jobqueue.php
tools=$root/build/analysers

fetch() {
    [ -x "$tools/vendor/bin/psalm" ] && return
    mkdir -p "$tools" && cp "$here/composer.json" "$tools/" &&
        COMPOSER_ALLOW_SUPERUSER=1 timeout 240 composer --working-dir="$tools" --no-interaction --no-progress --quiet install
}

# analyse NAME FILE: one line "FILE:LINE…" for each thing it does not like
phpstan() {
    printf 'parameters:\n  level: max\n  scanFiles: [%s]\n  tmpDir: %s\n' "$stub" "$folder/phpstan" >"$folder/phpstan.neon"
    "$php" -d memory_limit=1G "${PHPSTAN:-$tools/vendor/bin/phpstan}" analyse -c "$folder/phpstan.neon" --no-progress --error-format=raw "$1"
}
psalm() {
    cat >"$folder/psalm.xml" <<END
<psalm errorLevel="1" findUnusedCode="false">
  <projectFiles><file name="$1"/></projectFiles>
  <stubs><file name="$stub"/></stubs>
</psalm>
END
    (cd "$folder" && "$php" -d memory_limit=1G "${PSALM:-$tools/vendor/bin/psalm}" -c psalm.xml --no-progress --no-cache --threads=1 --output-format=text)
}
accepts() { "$1" "$here/right.php"; }
# The lines that it complains about are those that are marked.
refuses() {
    "$1" "$here/wrong.php" >"$folder/found" 2>"$folder/errors"
    sed -n 's/^.*wrong\.php:\([0-9]*\):.*/\1/p' "$folder/found" | sort -nu >"$folder/lines"
    grep -n '// wrong$' "$here/wrong.php" | cut -d: -f1 | diff - "$folder/lines" || { cat "$folder/errors"; return 1; }
}
# What the extension has and the stub says: no class, method or parameter is forgotten; options stand for "...".
agrees() {
    [ -e "${JOBQUEUE_EXTENSION:-}" ] || { echo 'JOBQUEUE_EXTENSION names no extension'; return 1; }
    "$php" -d "extension=$JOBQUEUE_EXTENSION" "$here/compare.php" "$stub"
}

check 'the stub says what the extension has' agrees
if { [ -n "${PHPSTAN:-}" ] && [ -n "${PSALM:-}" ]; } || fetch >/dev/null 2>&1; then
    for analyser in phpstan psalm; do
        check "$analyser accepts right uses" accepts "$analyser"
        check "$analyser refuses each wrong use" refuses "$analyser"
    done
else
    echo 'ok - PHPStan and Psalm read the stub # SKIP Composer cannot install them'
fi

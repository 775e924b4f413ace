# SPDX-License-Identifier: MIT
# ./dev demo: jobs pushed from PHP and from the C program into one SQLite file, worked off by two processes.
# shellcheck shell=bash

demo() {
    local folder dsn php pushed=7 runs jobs left
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder's name is wanted now
    trap "rm -rf '$folder'" EXIT
    dsn=sqlite:$folder/demo.db
    php=("$PHP" -d "extension=$(php_extension)" "$ROOT/tools/dev/demo.php")
    LD_LIBRARY_PATH=$(library_path)
    export LD_LIBRARY_PATH

    say "== 1. PHP pushes jobs into $dsn"
    "${php[@]}" push "$dsn"
    say
    say "== 2. The C program pushes one more into the same file"
    "$BUILD/.libs/jobqueue" push greeting '{"to": "the C program"}' --dsn="$dsn"
    say
    say "== 3. What is waiting now"
    "$BUILD/.libs/jobqueue" stats --dsn="$dsn"
    say
    say "== 4. A PHP worker with two processes works them off (one job fails the first time on purpose)"
    "${php[@]}" work "$dsn" "$folder/ledger"
    say
    runs=$(wc -l <"$folder/ledger")
    jobs=$(sort -u "$folder/ledger" | wc -l)
    left=$("${php[@]}" left "$dsn")
    [ "$runs" = "$pushed" ] && [ "$jobs" = "$pushed" ] && [ "$left" = 0 ] ||
        die "demo: $pushed jobs were pushed, $jobs worked off in $runs runs, $left are left"
    say "== Done: $pushed jobs pushed from PHP and C, each worked off exactly once, the queue is empty."
}

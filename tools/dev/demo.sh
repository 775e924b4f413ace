# SPDX-License-Identifier: MIT
# ./dev demo: jobs pushed from PHP and C into one SQLite file and worked off by Python, then the reverse.
# shellcheck shell=bash

demo() {
    local folder dsn php python pushed=11 runs jobs left
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder's name is wanted now
    trap "rm -rf '$folder'" EXIT
    dsn=sqlite:$folder/demo.db
    php=("$PHP" -d "extension=$(php_extension)" "$ROOT/tools/dev/demo.php")
    python=("$PYTHON" -B "$ROOT/tools/dev/demo.py")
    LD_LIBRARY_PATH=$(library_path)
    PYTHONPATH=$(python_path)
    export LD_LIBRARY_PATH PYTHONPATH

    say "== 1. PHP pushes jobs into $dsn"
    "${php[@]}" push "$dsn"
    say
    say "== 2. The C program pushes one more into the same file"
    "$BUILD/.libs/jobqueue" push greeting '{"to": "the C program"}' --dsn="$dsn"
    say
    say "== 3. What is waiting now"
    "$BUILD/.libs/jobqueue" stats --dsn="$dsn"
    say
    say "== 4. A Python worker with two processes works them off (one job fails the first time on purpose)"
    "${python[@]}" work "$dsn" "$folder/ledger"
    say
    say "== 5. The reverse: Python pushes jobs"
    "${python[@]}" push "$dsn"
    say
    say "== 6. A PHP worker with two processes works them off"
    "${php[@]}" work "$dsn" "$folder/ledger"
    say
    runs=$(wc -l <"$folder/ledger")
    jobs=$(sort -u "$folder/ledger" | wc -l)
    left=$("${php[@]}" left "$dsn")
    [ "$runs" = "$pushed" ] && [ "$jobs" = "$pushed" ] && [ "$left" = 0 ] ||
        die "demo: $pushed jobs were pushed, $jobs worked off in $runs runs, $left are left"
    say "== Done: $pushed jobs pushed from PHP, C and Python, each worked off exactly once, the queue is empty."
}

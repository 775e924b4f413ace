# SPDX-License-Identifier: MIT
#
# What the scripts of this folder share: a folder that vanishes, runs of the program, assertions in TAP.
# shellcheck shell=bash disable=SC2034
set -u
bin=${JOBQUEUE_BIN:?names the program to test}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset NO_COLOR JOBQUEUE_DSN
export TZ=UTC
passed=0 failed=0 skipped=0 number=0

# ---- assertions -------------------------------------------------------------------------------------------

# run ARGUMENT...: runs the program; code, out, err are what came of it.
run() {
    timeout 300 "$bin" "$@" >"$folder/.out" 2>"$folder/.err"
    code=$?
    out=$(tr '\0' '?' <"$folder/.out")
    err=$(tr '\0' '?' <"$folder/.err")
    called="jobqueue $*"
}

report() { # report OK NAME [WHY]
    number=$((number + 1))
    if [ "$1" = 1 ]; then
        passed=$((passed + 1))
        echo "ok $number - $2"
    else
        failed=$((failed + 1))
        echo "not ok $number - $2"
        printf '#   %s\n#   %s\n#   exit %s\n' "$3" "${called:-}" "${code:-}"
        printf '%s\n' "${out:-}" | head -20 | sed 's/^/#   out: /'
        printf '%s\n' "${err:-}" | head -20 | sed 's/^/#   err: /'
    fi
}

# expect NAME CODE [out|err|nout|nerr TEXT | silent]...: about the last run.
expect() {
    local name=$1 wanted=$2 why=''
    shift 2
    [ "$code" = "$wanted" ] || why="wanted exit $wanted"
    while [ $# -gt 0 ]; do
        case $1 in
        out) [[ $out == *"$2"* ]] || why="standard output lacks: $2" ;;
        nout) [[ $out != *"$2"* ]] || why="standard output has: $2" ;;
        is) [ "$out" = "$2" ] || why="standard output is not: $2" ;;
        err) [[ $err == *"$2"* ]] || why="standard error lacks: $2" ;;
        nerr) [[ $err != *"$2"* ]] || why="standard error has: $2" ;;
        esac
        shift 2
    done
    report "$([ -z "$why" ] && echo 1 || echo 0)" "$name" "$why"
}

# usage NAME TEXT ARGUMENT...: exit 2, one line that begins with "error: " and holds TEXT, no output.
usage() {
    local name=$1 text=$2 why=''
    shift 2
    run "$@"
    [ "$code" = 2 ] || why="wanted exit 2"
    [[ $err == "error: "* && $err == *"$text"* ]] || why="standard error lacks: $text"
    [ "$(wc -l <"$folder/.err")" = 1 ] || why="wanted one line of error"
    [ -z "$out" ] || why="wanted no output"
    report "$([ -z "$why" ] && echo 1 || echo 0)" "$name" "$why"
}

# store: a fresh one for the commands that follow. (Commands that only look make none.)
store() {
    stores=$((${stores:-0} + 1))
    export JOBQUEUE_DSN=sqlite:$folder/store$stores.db
    "$bin" migrate --quiet
}

# work PROGRAM [OPTION...]: everything that is ready, then the end.
work() {
    local program=$1
    shift
    run work --exec="$program" --stop-when-empty "$@"
}

program() { # program NAME: standard input becomes an executable script
    { echo '#!/bin/sh'; cat; } >"$folder/$1"
    chmod +x "$folder/$1"
}

# ends PID: waits until it runs no more (one that nobody has reaped yet does not), and prints 1.
ends() {
    for _ in $(seq 200); do
        grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" || { echo 1; return; }
        sleep 0.05
    done
}

# until_true COMMAND...: waits for it, 20 s at most; says whether it came true.
until_true() {
    for _ in $(seq 400); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    return 1
}

finish() { # the last command of a script
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

skip() { # skip NAME WHY
    number=$((number + 1))
    skipped=$((skipped + 1))
    echo "ok $number - $1 # SKIP $2"
}

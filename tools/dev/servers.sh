# SPDX-License-Identifier: MIT
# Private servers (tools/server): those of ./dev up, which stay until ./dev down, and those of a run of the suites.
# shellcheck shell=bash

SERVERS='redis postgres mariadb'

# The folder's name is noted in build/up/NAME.
servers_up() {
    local name folder
    # shellcheck disable=SC2086 # a list of words
    [ $# -gt 0 ] || set -- $SERVERS
    mkdir -p "$ROOT/build/up"
    for name; do
        folder=$(cat "$ROOT/build/up/$name" 2>/dev/null || true)
        if [ -z "$folder" ] || [ ! -e "$folder/kind" ]; then
            folder=$(mktemp -d)
            echo "$folder" >"$ROOT/build/up/$name"
            "$ROOT/tools/server" start "$name" "$folder" --owner none >/dev/null
        else
            "$ROOT/tools/server" ensure "$folder"
        fi
        say "$name $(cat "$folder/dsn")"
    done
}

servers_down() {
    local name folder
    # shellcheck disable=SC2086 # a list of words
    [ $# -gt 0 ] || set -- $SERVERS
    for name; do
        folder=$(cat "$ROOT/build/up/$name" 2>/dev/null || true)
        rm -f "$ROOT/build/up/$name"
        [ -z "$folder" ] || [ ! -e "$folder/kind" ] || "$ROOT/tools/server" remove "$folder"
    done
}

# One server for each driver that is built, for all suites; they end with this process, whatever ends it.
declare -A SERVER_OF=([redis]=redis [pgsql]=postgres [mysql]=mariadb)
TEST_SERVERS=()

servers_for_tests() {
    local driver name folder dsn
    trap remove_test_servers EXIT
    for driver in $(built_drivers); do
        name=${SERVER_OF[$driver]:-}
        [ -n "$name" ] || continue
        folder=$(mktemp -d)
        dsn=$("$ROOT/tools/server" start "$name" "$folder" --owner $$) || die "$name does not start"
        TEST_SERVERS+=("$folder")
        export "JOBQUEUE_TEST_${name^^}=$dsn"
    done
}

descendants() {
    local child
    for child in $(pgrep -P "$1"); do
        descendants "$child"
        echo "$child"
    done
}

# A suite that is still running when this process is told to end goes with it.
remove_test_servers() {
    local folder
    # shellcheck disable=SC2046 # words
    kill $(descendants $$) 2>/dev/null || true
    for folder in "${TEST_SERVERS[@]}"; do "$ROOT/tools/server" remove "$folder" || true; done
}

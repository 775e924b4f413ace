#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What a careful owner asks of the command line, on every store there is: capacity, unique keys, idempotence, guards,
# retention, results, numbers per minute, the audit (rules B4 to B7, F4, N1, N5, N7), and a doctor that finds what was set up
# wrong on purpose (rule N5). Servers: as in stores.sh; those that are set up wrong are private ones.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # words of assert.bash; texts with dollar signs
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/assert.bash"
built=" $("$bin" version | sed -n 's/^drivers: //p' | tr -d ,) "
has() { [[ $built == *" $1 "* ]]; }
with() { case $1 in *\?*) echo "$1&$2" ;; *) echo "$1?$2" ;; esac; }
server=$source_folder/tools/server
program ok <<<'exit 0'
program fail <<<'exit 3'

# ---- pushes that are refused, or take another's place -----------------------------------------------------

capacity_of() { # capacity_of DRIVER QUEUE
    local driver=$1 q=$2
    run capacity "$q"
    expect "$driver: capacity: none was set" 0 is "$q: no limit"
    run capacity "$q" 2 --json
    expect "$driver: capacity is set (rule B4)" 0 is "{\"queue\":\"$q\",\"capacity\":2}"
    run capacity "$q"
    expect "$driver: and shown" 0 is "$q: at most 2 jobs"
    run push a --queue="$q" --delay=600
    run push a --queue="$q"
    run push a --queue="$q"
    expect "$driver: a full queue refuses (rule B4)" 1 is '' err "queue \"$q\" is full (capacity 2)"
    printf '{"name":"a","queue":"%s"}\n' "$q" "$q-other" >lines
    run push - --json <lines
    expect "$driver: of lines each is judged" 1 out '"line":1,"code":"queue_full"' out '"pushed":1,' out '"refused":1}'
    run stats "$q" "$q-other"
    expect "$driver: stats shows it where it is set" 0 out 'CAPACITY'
    run stats "$q-other"
    expect "$driver: and not elsewhere" 0 nout 'CAPACITY'
    run stats "$q" --json
    expect "$driver: stats --json" 0 out '"capacity":2}'
    run stats "$q-other" --json
    expect "$driver: stats --json without" 0 out '"capacity":null}'
    run monitor "$q:9"
    expect "$driver: monitor" 0 out '; 2 of a capacity of 2'
    run monitor "$q:9" --json
    expect "$driver: monitor --json" 0 out '"capacity":2}'
    run capacity "$q" 0
    expect "$driver: no limit again" 0 is "$q: no limit"
    run push a --queue="$q"
    expect "$driver: and the push is stored" 0 err ''
    run push a --queue="$q-dsn" --dsn="$(with "$JOBQUEUE_DSN" capacity=1)"
    run push a --queue="$q-dsn"
    expect "$driver: the DSN's capacity is set once and stays (rule B4)" 1 err 'capacity 1'
}

keys_of() {
    local driver=$1 q=$2 first
    run push a 1 --queue="$q" --unique=k --delay=600
    first=$out
    run push a 2 --queue="$q" --unique=k --on-duplicate=error
    expect "$driver: on_duplicate=error (rule B6)" 1 is '' err "$first"
    run push a 3 --queue="$q" --unique=k --on-duplicate=replace --delay=900 --max-wait=1000 --json
    expect "$driver: on_duplicate=replace (rule B6)" 0 is "{\"id\":\"$first\",\"stored\":true,\"replaced\":true}"
    run push a 4 --queue="$q" --unique=k --on-duplicate=replace --delay=900
    expect "$driver: and says so" 0 is "$first" err 'note: it takes the place'
    run show "$first" --json
    expect "$driver: it has the new payload" 0 out '"payload":4' out '"state":"delayed"'
    printf '{"name":"a","queue":"%s","unique":"k","on_duplicate":"replace","payload":5}\n' "$q" >lines
    run push - --json <lines
    expect "$driver: a line replaces, too" 0 out "\"id\":\"$first\",\"stored\":true,\"replaced\":true}" out '"pushed":0,"replaced":1,'
    run push a --queue="$q" --id="i$q" --idempotent
    expect "$driver: idempotent (rule B5)" 0 is "i$q" err ''
    run push a --queue="$q" --id="i$q" --idempotent
    expect "$driver: and again" 0 is "i$q" err 'note: not stored'
    work ./ok --queue="$q"
    run push a --queue="$q" --id="i$q" --idempotent --json
    expect "$driver: and when it is done" 0 is "{\"id\":\"i$q\",\"stored\":false,\"replaced\":false}"
    run push a --queue="$q" --unique=s --unique-scope=until_started
    work ./fail --queue="$q" --tries=2 --backoff=600
    run push a --queue="$q" --unique=s --delay=600
    expect "$driver: until_started: its key is free while it is retried (rule B6)" 0 err ''
}

guards_of() { # guards_of DRIVER QUEUE TRUE-OF-3 NONSENSE: a statement that finds its value above 2
    local driver=$1 q=$2 guard=$3 nonsense=$4
    run push a --queue="$q" --guard="$guard" --guard-param=3
    expect "$driver: a guard that is true (rule B7)" 0 err ''
    run push a --queue="$q" --guard="$guard" --guard-param=1
    expect "$driver: a guard that is not (rule B7)" 1 is '' err 'guard of job' err 'was not true'
    run push a --queue="$q" --guard="$nonsense"
    expect "$driver: a guard that cannot be asked" 2 is '' err 'guard'
    printf '{"name":"a","queue":"%s","guard":["%s",[%s]]}\n' "$q" "$guard" 3 "$q" "$guard" 1 >lines
    run push - --json <lines
    expect "$driver: guards of lines" 1 out '"line":2,"code":"guard_refused"' out '"pushed":1,'
    run push - --guard="$guard" <lines
    expect "$driver: one guard for all lines is refused" 2 is '' err 'takes no --guard'
    run stats "$q" --json
    expect "$driver: nothing but the true ones is stored" 0 out '"ready":2,'
}

# ---- results, retention, numbers --------------------------------------------------------------------------

results_of() {
    local driver=$1 q=$2 waiter
    run push a '{"n":1}' --queue="$q" --track --id="t$q"
    run wait "t$q" --timeout=0.1
    expect "$driver: wait: not in time (rule N7)" 1 is '' err "job \"t$q\" had not ended after 0.1 s"
    timeout 60 "$bin" wait "t$q" --timeout=50 >waited 2>waited.err &
    waiter=$!
    work ./ok --queue="$q"
    wait $waiter
    code=$? out=$(cat waited) err=$(cat waited.err) called="wait t$q, in the background"
    expect "$driver: wait: woken by the end, prints the result (rule N7)" 0 is 'null' err ''
    run wait "t$q" --json
    expect "$driver: wait --json prints the job" 0 out "\"id\":\"t$q\"" out '"state":"done"' out '"result":null,"result_error":null'
    run show "t$q"
    expect "$driver: show says how long it is kept" 0 out 'state      done' out 'kept until 2'
    expect "$driver: the attempt that ended well is one (rule C4)" 0 out 'attempts   1 (1 delivery, 0 failures'
    run jobs "$q" --state=done
    expect "$driver: so do jobs" 0 out 'KEPT UNTIL' out "t$q"
    run push a --queue="$q" --id="u$q"
    work ./ok --queue="$q"
    run wait "u$q" --timeout=5
    expect "$driver: wait: a job that was not kept" 1 is '' err "no job has the id \"u$q\""
    run push a --queue="$q" --id="d$q" --tries=1
    work ./fail --queue="$q" --dead-retention=0.3
    run wait "d$q"
    expect "$driver: wait: a dead job" 1 is '' err "job \"d$q\" is dead (attempts_exhausted)"
    run show "d$q" --json
    expect "$driver: dead_retention is in the record (rule F4)" 0 nout '"kept_until":null' out '"kept_until":"2'
    until_true eval '"$bin" retry "d'"$q"'" --dry-run 2>&1 | grep -q "retention\|no dead job"'
    run retry "d$q" --json
    expect "$driver: retry: its retention is over (rule F4)" 1 out '"retried":0'
    report "$([[ $err == *retention* || $err == *'no dead job'* ]] && echo 1)" "$driver: retry says why" "$err"
    run stats "$q" --minutes=60 --json
    expect "$driver: stats --minutes (rule N1)" 0 out '"per_minute":[{"at":"2' out '"pushed":' out '"done":' out '"runs":[{"up_to":'
    run stats "$q" --minutes=60
    expect "$driver: and for people" 0 out 'in the last 60 minutes' out 'TIMED OUT' out '95 % RAN'
    report "$(awk -v q="$q" '$1 == q && NF > 9 { found = $2 >= 3 && $3 >= 2 && $4 >= 1 } END { exit !found }' .out && echo 1)" \
        "$driver: three pushed, two done, one failed at least" "$out"
}

audit_of() {
    local driver=$1 q=$2 pusher
    for i in $(seq 300); do echo "{\"name\":\"a\",\"queue\":\"$q\"}"; done | "$bin" push - --quiet
    (for _ in $(seq 30); do "$bin" push a --queue="$q" --quiet; done) &
    pusher=$!
    "$bin" work --exec=./ok --queue="$q" --stop-when-empty --quiet &
    for _ in 1 2 3; do
        run doctor --audit
        code=$((code == 3 ? 0 : code)) # a server that syncs nothing is a problem of its own
        expect "$driver: doctor --audit while traffic flows (rule N5)" 0 out "queue \"$q\": " out 'each in one state' nout 'problem  audit'
    done
    wait $pusher
    wait
    run doctor --audit --json
    report "$([[ $out == *'"check":"audit","text":"queue'* && $out != *'"grade":"problem","check":"audit"'* ]] && echo 1)" \
        "$driver: doctor --audit --json" "$out"
}

careful() { # careful DRIVER DSN TRUE-OF-3 NONSENSE
    local driver=$1 q="careful$$"
    export JOBQUEUE_DSN=$2
    "$bin" migrate --quiet
    capacity_of "$driver" "c$q"
    keys_of "$driver" "k$q"
    guards_of "$driver" "g$q" "$3" "$4"
    results_of "$driver" "r$q"
    audit_of "$driver" "a$q"
    # the database may be others', too: nothing that waits without a worker stays behind
    run clear "c$q" "c$q-other" "c$q-dsn" "k$q" "g$q" "r$q" "a$q" --force
    expect "$driver: clear" 0 err ''
}

careful sqlite "sqlite:$folder/careful.db" 'SELECT ? > 2' 'SELECT no_such_thing'
while read -r driver variable option guard; do
    dsn=${!variable:-}
    if ! has "$driver" || [ -z "$dsn" ]; then
        skip "what a careful owner asks on $driver" "not built, or \$$variable is not set"
        continue
    fi
    [ "$option" = - ] || dsn=$(with "$dsn" "$option$$")
    careful "$driver" "$dsn" "$guard" 'no such words'
done <<'END_OF_STORES'
redis JOBQUEUE_TEST_REDIS prefix=careful return tonumber(ARGV[1]) > 2
postgresql JOBQUEUE_TEST_POSTGRES schema=careful SELECT $1::int > 2
mysql JOBQUEUE_TEST_MARIADB - SELECT ? > 2
END_OF_STORES
store
run push a --dsn=memory: --guard='SELECT 1'
expect 'memory: no guards (rule B7)' 2 is '' err 'guard'

# ---- a doctor for what is set up wrong --------------------------------------------------------------------

# finds NAME CHECK TEXT ARGUMENT...: exit 3, a problem of that check with the text, and what to do about it
finds() {
    local name=$1 check=$2 text=$3 line
    shift 3
    run doctor "$@"
    line=$(grep "^problem  $check .*$text" "$folder/.out")
    report "$([ "$code" = 3 ] && [ -n "$line" ] && [[ ${line#*"$text"} == *": "* ]] && echo 1)" "$name" "wanted a problem \"$check\": $text, with what to do"
    run doctor "$@" --json
    report "$([ "$code" = 3 ] && [[ $out == *"\"grade\":\"problem\",\"check\":\"$check\""* && $out == *'"healthy":false'* ]] && echo 1)" "$name: JSON" ''
}

# SQLite: parts of the schema that are gone; a file and a folder that this user may not write; a network's disk.
sqlite_wrong() {
    local file=$folder/wrong.db
    "$bin" push a --dsn="sqlite:$file" --quiet
    if command -v sqlite3 >/dev/null; then
        sqlite3 "$file" 'DROP INDEX jobqueue_job_dead'
        finds 'sqlite: an index is missing (rule N5)' schema 'jobqueue_job_dead is missing' --dsn="sqlite:$file"
        sqlite3 "$file" "$(grep -o 'CREATE INDEX.*' "$folder/.out" | head -1 | sed 's/".*//')"
        run doctor --dsn="sqlite:$file"
        expect 'sqlite: what it advised mends it' 0 nout 'problem'
        sqlite3 "$folder/old.db" <"$source_folder/tests/contract/old/sqlite-2.sql"
        run doctor --dsn="sqlite:$folder/old.db?migrate=off"
        expect 'sqlite: an old schema (rule N5)' 2 out 'problem  connection' out 'schema version 2' out 'jobqueue migrate'
        run migrate --dsn="sqlite:$folder/old.db"
        run doctor --dsn="sqlite:$folder/old.db" --audit
        expect 'sqlite: migrate mends it' 3 nout 'problem  schema' nout 'problem  audit' out 'each in one state' out 'problem  workers'
    fi
    if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        mkdir readonly
        "$bin" push a --dsn="sqlite:$folder/readonly/q.db" --quiet
        chmod 755 "$folder" readonly
        chmod 444 readonly/q.db
        setpriv --reuid=65534 --clear-groups "$bin" doctor --dsn="sqlite:$folder/readonly/q.db" >"$folder/.out" 2>"$folder/.err"
        code=$? out=$(cat .out) err=$(cat .err) called='doctor as another user'
        expect 'sqlite: a read-only file (rule N5)' 1 out 'problem  access' out 'cannot be written by this user' out 'give it to the user' err 'error: '
    else
        skip 'sqlite: a read-only file' 'needs root and setpriv'
    fi
    fake_disk 0x6969 && ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 LD_PRELOAD=$folder/fake_disk.so "$bin" doctor --dsn="sqlite:$file" >"$folder/.out" 2>"$folder/.err"
    code=$? out=$(cat .out) err=$(cat .err) called='doctor on a disk that says it is NFS'
    if [ -e fake_disk.so ]; then
        expect 'sqlite: a network file system (rule N5)' 2 out 'problem  file' out 'lies on NFS' out 'move the file to a local disk' err 'NFS'
    else
        skip 'sqlite: a network file system' 'no compiler'
    fi
}

# fake_disk MAGIC: a library that makes every file lie on such a file system
fake_disk() {
    cat >fake_disk.c <<END_OF_C
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
static int fake(const char *name, struct statfs *out)
{
    long rc = syscall(SYS_statfs, name, out);
    out->f_type = $1;
    return (int)rc;
}
int statfs(const char *name, struct statfs *out) { return fake(name, out); }
int statfs64(const char *name, struct statfs64 *out) { return fake(name, (struct statfs *)out); }
END_OF_C
    ${CC:-cc} -shared -fPIC -o fake_disk.so fake_disk.c 2>/dev/null
}

private() { # private KIND ARGUMENT...: a server of our own; its DSN, "" when there is none
    local kind=$1
    shift
    [ -x "$server" ] || return
    "$server" start "$kind" "$(mktemp -d)" --owner $$ "$@" 2>/dev/null
}

redis_wrong() {
    local dsn
    dsn=$(private redis --durable -- --maxmemory 100mb --maxmemory-policy allkeys-lru)
    if [ -z "$dsn" ]; then
        skip 'a redis that is set up wrong' 'it did not start'
        return
    fi
    finds 'redis: it may evict jobs (rule N5)' eviction 'allkeys-lru' --dsn="$dsn"
    dsn=$(private redis)
    finds 'redis: no append-only file (rule N5)' durability 'append-only' --dsn="$dsn"
    dsn=$(private redis --durable)
    run doctor --dsn="$dsn"
    expect 'redis: nothing is wrong' 0 nout 'problem'
    slow_line "$dsn"
}

# A line on which everything takes 80 ms more each way, and a worker whose lease is a second (rule N5).
slow_line() {
    local dsn=$1 port worker
    command -v python3 >/dev/null || {
        skip 'a lease shorter than ten round trips' 'no python3'
        return
    }
    cat >slow.py <<'END_OF_PYTHON'
import asyncio, sys

async def copy(reader, writer):
    while data := await reader.read(65536):
        await asyncio.sleep(0.08)
        writer.write(data)
    writer.close()

async def serve(reader, writer):
    far_reader, far_writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
END_OF_PYTHON
    port=${dsn##*:}
    python3 slow.py "${port%%[/?]*}" >slow.port 2>/dev/null &
    proxy=$!
    until_true test -s slow.port
    "$bin" work --exec=./ok --queue=x --lease=1 --dsn="$dsn" --quiet &
    worker=$!
    until_true eval '"$bin" workers --dsn="'"$dsn"'" --json | grep -q "\"lease\":1"'
    finds 'a lease shorter than ten round trips (rule N5)' lease 'round trip took' --dsn="redis://127.0.0.1:$(cat slow.port)"
    kill "$worker" "$proxy"
    wait "$worker" "$proxy" 2>/dev/null
}

pgsql_wrong() {
    local dsn
    dsn=$(private postgres --durable -- -c fsync=off)
    if [ -z "$dsn" ]; then
        skip 'a postgresql that is set up wrong' 'it did not start'
        return
    fi
    finds 'postgresql: fsync is off (rule N5)' durability 'fsync is off' --dsn="$dsn"
    dsn=$(private postgres --durable)
    run doctor --dsn="$dsn"
    expect 'postgresql: nothing is wrong' 0 nout 'problem'
    command -v psql >/dev/null || return
    psql -qX "$dsn" -c "DO \$\$ DECLARE i regclass; BEGIN
        SELECT indexrelid::regclass INTO i FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'jobqueue' AND c.relname LIKE '%job%' AND NOT x.indisprimary ORDER BY 1 LIMIT 1;
        EXECUTE format('DROP INDEX %s', i); END \$\$"
    finds 'postgresql: an index is missing (rule N5)' schema 'has no valid index on' --dsn="$dsn"
    dsn=$(private postgres --durable)
    "$bin" migrate --dsn="$dsn" --quiet
    psql -qX "$dsn" -c 'UPDATE jobqueue.meta SET version = 1'
    run doctor --dsn="$(with "$dsn" migrate=off)"
    expect 'postgresql: an old schema (rule N5)' 2 out 'problem  connection' out 'schema version 1' out 'jobqueue migrate'
}

sqlite_wrong
if has redis && command -v redis-server >/dev/null; then redis_wrong; else skip 'a redis that is set up wrong' 'not built, or no redis-server'; fi
if has postgresql; then pgsql_wrong; else skip 'a postgresql that is set up wrong' 'not built'; fi
finish

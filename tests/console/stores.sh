#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The command line on every store there is: all commands give the same answers (rules F4, N1, N4), and a DSN that
# leads nowhere gives one clear line without its password and the exit code of rule J1. JOBQUEUE_TEST_REDIS,
# JOBQUEUE_TEST_POSTGRES and JOBQUEUE_TEST_MARIADB name servers; without one its part is passed over.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2181,SC2238 # words of assert.bash; texts with dollar signs
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/assert.bash"
built=" $("$bin" version | sed -n 's/^drivers: //p' | tr -d ,) "
has() { [[ $built == *" $1 "* ]]; }
secret=geheim

# with DSN OPTION: the option behind what the DSN has already
with() { case $1 in *\?*) echo "$1&$2" ;; *) echo "$1?$2" ;; esac; }

# ---- DSNs that lead nowhere -------------------------------------------------------------------------------

# bad NAME EXIT TEXT COMMAND...: nothing on standard output, one line of error with the text and without the password
bad() {
    local name=$1 wanted=$2 text=$3 why='' began=$SECONDS
    shift 3
    run "$@"
    [ "$code" = "$wanted" ] || why="wanted exit $wanted"
    [[ $err == "error: "* && $err == *"$text"* ]] || why="standard error lacks: $text"
    [ "$(wc -l <"$folder/.err")" = 1 ] || why="wanted one line of error"
    [ -z "$out" ] || why="wanted no output"
    [[ $err != *"$secret"* ]] || why="the password is shown (rule P2)"
    [ $((SECONDS - began)) -lt 20 ] || why="took $((SECONDS - began)) s"
    report "$([ -z "$why" ] && echo 1 || echo 0)" "$name" "$why"
}

# bad_dsns: lines "DRIVER | DSN | EXIT | TEXT"; a driver that is not built refuses every DSN of its schemes.
bad_dsns() {
    local driver dsn wanted text
    while IFS='|' read -r driver dsn wanted text; do
        driver=${driver// /} dsn=${dsn// /} text=${text# }
        [ -n "$driver" ] || continue
        if [ "$driver" != any ] && ! has "$driver"; then
            wanted=2 text='is not part of this build'
        fi
        for command in ping 'push a' 'stats'; do
            # shellcheck disable=SC2086 # a command of words
            bad "rule J1: $dsn: $command" "${wanted// /}" "$text" $command --dsn="$dsn"
        done
    done
}

unset JOBQUEUE_DSN_NOWHERE
echo 'this is no database, whatever its name may say' >text.db
mkdir folder.db
bad_dsns <<END_OF_TABLE
any        | nosuch:x                                                     | 2 | unknown store "nosuch"
any        | redsi://h                                                    | 2 | did you mean "redis"
any        | nowhere                                                      | 2 | set JOBQUEUE_DSN_NOWHERE
any        | ://                                                          | 2 | dsn
any        | sqlite:x.db?nosuch=1                                         | 2 | nosuch
any        | sqlite:x.db?read_timeout=soon                                | 2 | read_timeout
any        | sqlite:x.db?raed_timeout=1                                   | 2 | read_timeout
any        | sqlite:x.db?processes=1                                      | 2 | processes
any        | sqlite:x.db?prefix=a                                         | 2 | no option "prefix"
any        | sqlite:                                                      | 2 | names no file
any        | sqlite::memory:                                              | 2 | memory:
any        | sqlite://u:$secret@h/x.db                                    | 2 | names a host
any        | sqlite:no/such/folder/x.db                                   | 2 | does not exist
any        | sqlite:$folder/folder.db                                     | 2 | folder.db
any        | sqlite:$folder/text.db                                       | 2 | not an sqlite database
any        | memory:?synchronous=full                                     | 2 | no option "synchronous"
redis      | redis://u:$secret@127.0.0.1:1                                | 1 | 127.0.0.1
redis      | redis://u:$secret@no-such-host.invalid                       | 1 | no-such-host.invalid
redis      | redis+unix://:$secret@/no/such.sock?prefix=x                 | 1 | redis
any        | redis://u:$secret@127.0.0.1:99999                            | 2 | port
redis      | redis://u:$secret@127.0.0.1/x                                | 2 | redis
redis      | redis://127.0.0.1?schema=x                                   | 2 | no option "schema"
postgresql | postgresql://u:$secret@127.0.0.1:1/d                         | 1 | 127.0.0.1
postgresql | postgresql://u:$secret@no-such-host.invalid/d                | 1 | no-such-host.invalid
postgresql | postgresql://u:$secret@127.0.0.1/d?nosuch=1                  | 2 | nosuch
postgresql | postgresql://u:$secret@127.0.0.1/d?prefix=x                  | 2 | no option "prefix"
postgresql | postgresql://u:$secret@127.0.0.1/d?schema=pg_x               | 2 | schema
mysql      | mysql://u:$secret@127.0.0.1:1/d                              | 1 | 127.0.0.1
mysql      | mysql://u:$secret@no-such-host.invalid/d                     | 1 | no-such-host.invalid
mysql      | mysql://u:$secret@127.0.0.1                                  | 2 | database
mysql      | mysql://u:$secret@127.0.0.1/d?listen=false                   | 2 | no option "listen"
END_OF_TABLE
report "$([ ! -e x.db ] && echo 1)" 'a refused DSN makes no file' 'x.db is there'
JOBQUEUE_DSN_SHOP=nosuch:x bad 'a named connection is looked up' 2 'unknown store "nosuch"' stats --dsn=shop
JOBQUEUE_DSN_SHOP=nosuch:x bad 'work CONNECTION' 2 'unknown store "nosuch"' work shop --exec=true --quiet
bad 'work CONNECTION that is none' 2 'set JOBQUEUE_DSN_NOWHERE' work nowhere --exec=true --quiet

# What only a server can refuse: rows as above, behind the server's own address.
refusals() { # refusals DRIVER DSN
    local driver=$1 rest=${2#*://} scheme=${2%%://*} address
    rest=${rest%%\?*}
    address=${rest#*@}
    case $driver in
    redis)
        address=${address%%/*}
        bad_dsns <<<"redis | $scheme://$address/4000 | 2 | redis"
        bad_dsns <<<"redis | $scheme://nobody:$secret@$address | 2 | redis"
        bad_dsns <<<"redis | rediss://$address?ca=/no/such/file.pem | 2 | /no/such/file.pem"
        ;;
    *) bad_dsns <<<"$driver | $scheme://nobody:$secret@$address | 2 | nobody
$driver | $scheme://${rest%%@*}@${address%%/*}/no_such_database | 2 | no_such_database" ;;
    esac
}

# A live view says that the store is away, and goes on when it is back (rule K2).
comes_and_goes() {
    local view
    "$bin" push a --queue=look --dsn="$1" --quiet
    : >view
    "$bin" stats --watch=0.1 look --dsn="$1" >>view 2>view.err &
    view=$!
    until_true grep -q "^look " view
    "$source_folder/tools/server" stop "$folder/redis"
    until_true grep -q '^error: redis' view.err
    "$source_folder/tools/server" restart "$folder/redis"
    : >view
    until_true grep -q '^QUEUE' view
    run ping --dsn="$1"
    report "$(grep -q '^QUEUE' view && grep -q '^error: redis' view.err && echo 1)" 'watch: goes on when the store is back (rule K2)' "$(cat view.err)"
    report "$(! grep -q "$secret" view view.err && echo 1)" 'watch: and shows no password (rule P2)' ''
    kill "$view"
    wait "$view"
    report "$([ $? = 0 ] && echo 1)" 'watch: TERM ends it with 0 then too' ''
}

# ---- a Redis that wants a password ------------------------------------------------------------------------

if has redis && command -v redis-server >/dev/null && [ -x "$source_folder/tools/server" ]; then
    if dsn=$("$source_folder/tools/server" start redis "$folder/redis" --owner $$ --clock --durable -- --requirepass "$secret" 2>&1); then
        address=${dsn#*://}
        address=${address%%/*}
        bad_dsns <<<"redis | redis://$address | 2 | redis
redis | redis://:${secret}x@$address | 2 | redis"
        run ping --dsn="redis://:$secret@$address"
        expect 'redis: the right password; and it is not shown (rule P2)' 0 out ' ms' nout "$secret"
        run doctor --dsn="redis://:$secret@$address" --json
        expect 'doctor does not show it either (rule P2)' 0 nout "$secret" out '"healthy":true'
        "$source_folder/tools/server" freeze "$folder/redis"
        bad 'redis: a server that hangs is given up in time (rule J1)' 1 redis ping --dsn="redis://:$secret@$address?read_timeout=1&connect_timeout=1"
        "$source_folder/tools/server" thaw "$folder/redis"
        "$source_folder/tools/server" clock "$folder/redis" 60
        run doctor --dsn="redis://:$secret@$address"
        expect 'doctor: a clock far from this host (rule N5)' 3 out 'problem  clock' out "ms ahead of this host's" out 'synchronise'
        "$source_folder/tools/server" clock "$folder/redis" -5
        run doctor --dsn="redis://:$secret@$address"
        expect 'doctor: a clock off by seconds is a note' 0 out 'note     clock' out "ms behind this host's"
        "$source_folder/tools/server" clock "$folder/redis" 0
        comes_and_goes "redis://:$secret@$address"
        "$source_folder/tools/server" remove "$folder/redis" # before the folder goes, by which it is known
    else
        skip 'a redis with a password' "it did not start: ${dsn//$'\n'/ }"
    fi
else
    skip 'a redis with a password' 'not built, or no redis-server'
fi

# ---- every command on every store -------------------------------------------------------------------------

program fail <<<'exit 3'
program tell <<<'echo "told $JOBQUEUE_NAME $(cat)"'
json() { sed -n "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/p" .out; }

everything() { # everything DRIVER DSN
    local driver=$1 q="q$$" id
    export JOBQUEUE_DSN=$2
    run migrate
    expect "$driver: migrate" 0 out 'up to date'
    run queue:install
    expect "$driver: migrate again, as queue:install" 0 out 'up to date'
    run ping --json
    expect "$driver: ping" 0 out "\"driver\":\"$driver\"" out '"milliseconds":'
    run config --json
    expect "$driver: config" 0 out '{"options":['
    run doctor
    code=$((code == 3 ? 0 : code)) # servers of tests sync nothing, which it says; nothing else may be wrong
    out=$(grep -v '^problem  durability' <<<"$out")
    expect "$driver: doctor (rule N5)" 0 out 'connection' out 'clock' out 'schema' out 'lease' nout 'problem '
    run push a '{"x":[1,"ü",{"$bytes":"AAE="}]}' --queue="$q" --id="a$q" --priority=3 --context=k=v --tries=1
    expect "$driver: push" 0 is "a$q"
    run push a --queue="$q" --id="a$q"
    expect "$driver: push of a known id (rule B5)" 1 err "a$q"
    run push late --queue="$q" --delay=3600 --id="late$q"
    run push u --queue="$q" --unique=k --id="u$q"
    run push u --queue="$q" --unique=k
    expect "$driver: a held unique key gives the first id (rule B6)" 0 is "u$q"
    run stats "$q" --json
    expect "$driver: stats (rule N1)" 0 out '"ready":2,"delayed":1,"reserved":0,"dead":0,"backlog":3,'
    run stats
    expect "$driver: stats of all" 0 out "$q"
    run jobs "$q"
    expect "$driver: jobs" 0 out "a$q" out "u$q" nout "late$q"
    run jobs "$q" --state=delayed --json
    expect "$driver: jobs --state=delayed" 0 out "\"id\":\"late$q\""
    run show "a$q" --json
    expect "$driver: show" 0 out '"payload":{"x":[1,"ü",{"$bytes":"AAE="}]}' out '"context":{"k":"v"}' out '"tries":1' out '"priority":3'
    run monitor "$q:3" --max-age=3600
    expect "$driver: monitor: at the threshold" 0 out "$q: backlog 3 (2 ready, 1 delayed, 0 reserved) of at most 3: ok"
    run monitor "$q:2"
    expect "$driver: monitor: over it (rule J1)" 3 out 'of at most 2: OVER'
    run failed --queue="$q"
    expect "$driver: failed: nothing matches" 1 is ''
    work ./fail --tries=1 --queue="$q"
    expect "$driver: work" 0 out 'for good' out 'Ran 2 jobs'
    run failed --queue="$q" --json
    expect "$driver: failed" 0 out "\"id\":\"a$q\"" out "\"id\":\"u$q\"" out '"reason":"attempts_exhausted"'
    run failed --queue="$q" --name=a --limit=1
    expect "$driver: failed by name" 0 out "a$q" nout "u$q"
    run failed --queue="$q" --older-than=3600
    expect "$driver: failed by age" 1 is ''
    run retry --queue="$q" --reason=crashed
    expect "$driver: retry by a reason that none has" 1 is '0 retried'
    run retry --queue="$q" --name=a --dry-run
    expect "$driver: retry --dry-run (rule F4)" 0 is '1 would be retried'
    run retry "a$q" "nothing$q"
    expect "$driver: retry by id names what is unknown (rule F4)" 1 is '1 retried, 1 unknown' err "nothing$q"
    run show "a$q" --raw --json
    cp .out export
    work ./tell --queue="$q"
    expect "$driver: and it runs" 0 out 'told a {"x":[1,"ü",{"$bytes":"AAE="}]}'
    run push --raw --json --id="again$q" <export
    expect "$driver: push --raw makes it again (rule A5)" 0 out "\"id\":\"again$q\",\"stored\":true,\"replaced\":false"
    run show "again$q" --raw --json
    report "$(cmp -s export .out && echo 1)" "$driver: and the export is the same, byte for byte" "$(cat export)"
    printf '{"name":"n%s","queue":"'"$q"'"}\n' 1 2 3 >lines
    run push - <lines
    report "$([ "$code" = 0 ] && [ "$(wc -l <.out)" = 3 ] && echo 1)" "$driver: push -" "wanted three ids"
    run flush --queue="$q" --dry-run
    expect "$driver: flush --dry-run" 0 is '1 would be forgotten'
    run queue:flush --queue="$q"
    expect "$driver: flush asks nothing" 0 is '1 forgotten'
    run forget "u$q"
    expect "$driver: forget of what is gone" 1 is '0 forgotten, 1 unknown'
    run stats "$q" --json
    expect "$driver: what waits is untouched (rule F4)" 0 out '"ready":4,"delayed":1,"reserved":0,"dead":0'
    workers_of "$driver" "$q"
    control_of "$driver" "$q"
    obeys "$driver" "c$q"
}

# What people ask of workers stands in the store (rules L1 to L3); clear and prune.
control_of() {
    local driver=$1 q=$2
    run pause "$q" "$q:x"
    expect "$driver: pause" 0 out "$q: paused"
    run stats "$q" --json
    expect "$driver: stats shows it (rule L1)" 0 out '"paused":true,"paused_until":null'
    run resume "$q:x"
    run stats "$q:x" "$q" --json
    expect "$driver: resume of one" 0 out "\"queue\":\"$q:x\",\"ready\":0" out '"paused":false' out '"paused":true'
    run resume "$q"
    run pause "$q" --ttl=0.05
    until_true eval '"$bin" stats "'"$q"'" --json | grep -q "\"paused\":false"'
    run stats "$q" --json
    expect "$driver: a pause ends by its time" 0 out '"paused":false'
    run cancel "late$q" "nothing$q"
    expect "$driver: cancel of a delayed job (rule L3)" 1 out "late$q: cancelled" err "nothing$q"
    run failed --queue="$q" --reason=cancelled --json
    expect "$driver: it is dead" 0 out "\"id\":\"late$q\"" out '"reason":"cancelled"'
    run push u --queue="$q" --unique=k --id="holder$q"
    run push u --queue="$q-u" --unique=k --id="dies$q" --tries=1
    work false --queue="$q-u"
    run push u --queue="$q-u" --unique=k --id="held$q" --delay=3600
    run retry "dies$q"
    expect "$driver: retry names who holds the key (rule B6)" 1 err "held by job \"held$q\""
    run prune --queue="$q" --older-than=3600
    expect "$driver: prune: none is that old" 1 is '0 pruned'
    run prune --queue="$q" --older-than=0 --reason=cancelled
    expect "$driver: prune (rule F4)" 0 is '1 pruned'
    run clear "$q" "$q-u" --force --json
    expect "$driver: clear" 0 out '{"cleared":'
    run stats "$q" "$q-u" --json
    expect "$driver: and nothing waits" 0 out "\"queue\":\"$q\",\"ready\":0,\"delayed\":0" out '"ready":0,"delayed":0,"reserved":0,"dead":1'
}

# A worker that runs obeys within a second or so (rules L1 to L3).
obeys() {
    local driver=$1 q=$2 worker
    rm -f began go
    run pause "$q"
    run push waits --queue="$q" --id="waits$q"
    "$bin" work --exec="$folder/wait-here" --queue="$q" --timeout-grace=1 >.work 2>&1 &
    worker=$!
    until_true grep -q 'watching' .work
    until_true eval '"$bin" workers --json | grep -q "\"paused\":\[\"'"$q"'\"\]"'
    run workers
    expect "$driver: workers shows what is paused" 0 out "$q (paused)"
    report "$([ ! -e began ] && echo 1)" "$driver: a worker takes nothing from a paused queue (rule L1)" "$(cat .work)"
    run resume "$q"
    until_true test -e began
    report "$([ -e began ] && echo 1)" "$driver: and does when it is resumed" "$(cat .work)"
    run cancel "waits$q" --hard
    expect "$driver: cancel --hard of a running job" 0 is "waits$q: is being stopped"
    until_true eval '"$bin" show "waits'"$q"'" --json | grep -q "\"state\":\"dead\""'
    run show "waits$q" --json
    expect "$driver: ends it as cancelled (rule L3)" 0 out '"reason":"cancelled"'
    run restart
    wait $worker
    code=$? out=$(cat .work) err=''
    expect "$driver: restart ends the worker with 0 (rule L2)" 0 out 'Stopping: restart requested'
    run forget "waits$q"
}

# A worker is seen while it lives, and not any more when it has ended (rule N4).
workers_of() {
    local driver=$1 q=$2 worker
    rm -f began
    "$bin" work --exec="$folder/wait-here" --queue="$q,x$q" --processes=2 --max-jobs=1 --tries=1 >.work 2>&1 &
    worker=$!
    until_true test -e began
    run workers --json
    expect "$driver: workers (rule N4)" 0 out "\"pid\":$worker" out "\"queues\":[\"$q\",\"x$q\"]" out '"processes":2' out '"lease":30'
    run workers
    expect "$driver: workers for people" 0 out "$q, x$q" out 'PROCESSES'
    run jobs "$q" --state=reserved
    expect "$driver: and what it holds" 0 out ":$worker:"
    touch go
    wait $worker
    run workers --json
    expect "$driver: workers: it has ended" 0 nout "\"pid\":$worker"
    rm -f go
}
program wait-here <<END_OF_PROGRAM
touch "$folder/began"
for i in \$(seq 400); do [ -e "$folder/go" ] && exit; sleep 0.05; done
END_OF_PROGRAM

everything sqlite "sqlite:$folder/every.db"
for pair in "redis JOBQUEUE_TEST_REDIS prefix=console$$" "postgresql JOBQUEUE_TEST_POSTGRES schema=console$$" "mysql JOBQUEUE_TEST_MARIADB "; do
    read -r driver variable option <<<"$pair"
    dsn=${!variable:-}
    if ! has "$driver" || [ -z "$dsn" ]; then
        skip "every command on $driver" "not built, or \$$variable is not set"
        continue
    fi
    refusals "$driver" "$dsn"
    everything "$driver" "$([ -n "$option" ] && with "$dsn" "$option" || echo "$dsn")"
done
finish

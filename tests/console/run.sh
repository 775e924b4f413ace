#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The command line as its users meet it: exit codes, standard output, standard error. TAP, then a closing line.
# JOBQUEUE_BIN names the program.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2181,SC2238 # words of assert.bash; texts with dollar signs
. "$(dirname "$0")/assert.bash"

# ---- words and options ------------------------------------------------------------------------------------

export JOBQUEUE_DSN=memory:
usage 'no command' 'no command given'
usage 'an unknown command names the nearest' 'did you mean "work"' wrok
usage 'an unknown command with the prefix' 'did you mean "failed"' queue:faild
usage 'a command that is like no other' '"jobqueue help" lists them' xyzzy-plugh
usage 'a command that is like another only by chance' 'unknown command "nope"; "jobqueue help" lists them' nope
usage 'a command whose first letter alone is wrong' '"jobqueue help" lists them' stop
usage 'the beginning of a command' 'did you mean "version"' vers
usage 'the beginning of several commands' '"jobqueue help" lists them' res
usage 'an unknown option names the nearest' 'did you mean --limit?' jobs q --limt=3
usage 'the beginning of an option' 'did you mean --older-than?' failed --older=3
usage 'an option that is like no other' 'unknown option --xyzzy-plugh' jobs q --xyzzy-plugh=3
usage 'a misplaced option: doctor' 'it belongs to "doctor"' stats --audit
usage 'a misplaced option: stats' 'it belongs to "stats"' monitor q:1 --minutes=3
usage 'a misplaced option: guard' 'it belongs to "push"' stats --guard=x
usage 'a guard without a statement' 'may not be empty' push a --guard=
usage 'a value of no guard' '--guard-param without --guard' push a --guard-param=1
usage 'a number of minutes' 'whole number from 1 to 1440' stats --minutes=0
usage 'a number of minutes, a day at most' 'whole number from 1 to 1440' stats --minutes=1441
usage 'wait needs an id' 'wait needs ID' wait
usage 'wait: a span' 'number of seconds' wait x --timeout=soon
usage 'capacity needs a queue' 'capacity needs QUEUE' capacity
for value in -1 1.5 x '' 1e3 9999999999999999; do
    usage "strict: capacity \"$value\"" 'whole number from 0' capacity q "$value"
done
usage 'unique_scope without unique' 'unique' push a --unique-scope=until_started
usage 'on_duplicate without unique' 'unique' push a --on-duplicate=replace
usage 'max_wait without replace' 'replace' push a --unique=k --max-wait=3
usage 'idempotent without an id' 'id' push a --idempotent
usage 'a misplaced option: work' 'it belongs to "work"' push a --processes=3
usage 'a misplaced option: jobs' 'it belongs to "jobs"' stats --state=ready
usage 'a misplaced option: connection' '--dsn="...?read_timeout=..."' push a --read-timeout=3
usage 'a misplaced option: handler' 'registers a handler' work --maps=array
usage 'an option in front of the command' 'behind its command' --limit=3 jobs
usage 'a value is missing at the end' 'needs a value: --limit=N' jobs q --limit
usage 'a value is missing before an option' 'needs a value' jobs q --limit --json
usage 'a flag takes no value' 'takes no value' stats --json=1
usage 'a short option' 'unknown option -x' stats -x
usage 'too few words' 'show needs ID' show
usage 'too many words' 'show takes no "b"' show a b
usage 'an empty dsn' 'may not be empty' stats --dsn=
usage 'an empty program' 'option --exec may not be empty' work --exec=
usage 'an unknown scheme' 'nosuch' stats --dsn=nosuch:x
for value in 0 1001 -1 1.5 1e2 ' 3' 3x '' 0x10 99999999999999999999; do
    usage "strict: --limit=\"$value\"" "option \"--limit\" must be a whole number from 1 to 1000, got \"$value\"" jobs q --limit="$value"
done
for value in -1 x nan inf '' '1 ' 1e400; do
    usage "strict: --older-than=\"$value\"" 'number of seconds' failed --older-than="$value"
    usage "strict: push --delay=\"$value\"" '--delay' push a --delay="$value"
done
usage 'a word that is no state' 'ready' jobs q --state=redy
usage 'a pair without its sign' 'KEY=VALUE' push a --context=trace
usage 'an empty name in a list' 'empty name' work --exec=true --queue=a,,b
usage 'work without a program' 'needs --exec=PROGRAM' work
usage 'the source of another front end' 'no option --app here: it belongs to python -m jobqueue' work --app=shop.jobs:worker
usage 'two connections' 'not both' work redis --dsn=memory: --exec=true
usage 'json and output' 'only one of' work --exec=true --json --output=quiet
usage 'ids and a filter' 'not both' retry a --queue=b
usage 'neither ids nor a filter' 'needs ids, a filter' forget

run push a --json --delay=1.5 --tries 5 -- '{"x":1}'
expect 'both forms of options, and -- ends them' 0 out '"stored":true'
run push a -5
expect 'a negative number is a word' 0
run push a --context=a=b=c --context d=
expect 'contexts repeat' 0
run --dsn=memory: queue:push a
expect 'options in front of the command, and the prefix' 0
run status
expect 'status is stats' 0
run queue:table
expect 'queue:table is migrate' 0 out 'up to date'
run install
expect 'install is migrate' 0 out 'up to date'
run migrate --quiet
expect 'quiet prints nothing' 0 is ''
usage 'table alone is no command' 'unknown command "table"' table
run ping
expect 'ping prints the round trip' 0 out ' ms'
run ping --json
expect 'ping --json' 0 out '"driver":"memory"' out '"milliseconds":'
run version
expect 'version' 0 out 'jobqueue 0.' out 'sqlite' out 'memory'
run --version
expect '--version' 0 out 'jobqueue 0.'
run version --json
expect 'version --json' 0 out '{"version":"0.' out '"runtime":null}'
run config
expect 'config names scopes, defaults, ranges' 0 out 'max_time (worker)' out 'default 60' out 'queue (connection, push)'
run config --json
expect 'config --json' 0 out '{"options":[{"name":"queue"' out '"scopes":["worker","handler","push"]'
run help
expect 'help lists the commands' 0 out '  retry ' out '--no-color'
run --help
expect '--help lists them too' 0 out '  retry '
run help queue:work
expect 'help of a command' 0 out '--exec=PROGRAM' out '--max-time=SECONDS' out 'default 128' nout '--priority'
expect 'stop_when_empty says what it leaves behind, and what does not (rule G3)' 0 out 'delayed jobs, and retries that wait' \
    out 'more than the longest backoff'
run push --help
expect '--help of a command' 0 out '--priority=N' nout '--max-time'
usage 'help of what does not exist' 'unknown command "nothing"' help nothing
if [ -e "${JOBQ_SRCDIR:-.}/doc/man/jobqueue.1" ] && command -v mandoc >/dev/null; then
    run help --man
    mandoc -T lint "$folder/.out" >"$folder/.lint" 2>&1
    report "$([ -s "$folder/.lint" ] && echo 0 || echo 1)" 'the manual page is clean' "$(head -3 "$folder/.lint")"
fi

# ---- push -------------------------------------------------------------------------------------------------

usage 'push: JSON that ends early' 'payload' push a '{"x":'
usage 'push: JSON with more behind it' 'payload' push a '1 2'
usage 'push: no JSON' 'payload' push a hello
usage 'push: a name with a control character' 'name' push "$(printf 'a\001b')"
usage 'push: a queue with a comma' 'queue' push a --queue=b,c
usage 'push: an id of a wrong form' 'id' push a --id=' x'
usage 'push: too deep (rule A4)' 'payload' push a "$(printf '[%.0s' {1..65})$(printf ']%.0s' {1..65})"

store
run push invoice.send '{"invoice":7,"b":{"$bytes":"AAE="},"big":18446744073709551615}' --queue=mail --priority=4 --tries=5 \
    --context=trace=4711 --unique=inv-7
id=$out
expect 'push prints the id' 0 err ''
run push invoice.send --queue=mail --unique=inv-7
expect 'a held unique key gives the first id (rule B6)' 0 is "$id" err 'unique key'
run push other --id="$id"
expect 'a known id is refused (rule B5)' 1 err "$id" is ''
run show "$id"
expect 'show for people' 0 out "$id" out 'invoice.send (version 1)' out 'state      ready' out '"invoice":7' out 'trace = 4711' out 'inv-7'
run show "$id" --json
expect 'show --json' 0 out '"id":"'"$id"'"' out '"payload":{"invoice":7,"b":{"$bytes":"AAE="},"big":18446744073709551615}' \
    out '"payload_error":null' out '"context":{"trace":"4711"}' out '"tries":5' out '"state":"ready"' out '"priority":4' out '"unique":"inv-7"'
run show nothing
expect 'show: no such job' 1 err 'nothing' is ''
run stats
expect 'stats counts' 0 out 'QUEUE' out 'mail'
run stats mail nobody --json
expect 'stats --json' 0 out '{"queues":[{"queue":"mail","ready":1,"delayed":0,"reserved":0,"dead":0,"backlog":1,"oldest_ready_age":' \
    out '{"queue":"nobody","ready":0,"delayed":0,"reserved":0,"dead":0,"backlog":0,"oldest_ready_age":null,"paused":false,"paused_until":null,"capacity":null}]}'
run jobs mail
expect 'jobs lists' 0 out "$id" out 'invoice.send'
run jobs mail --state=delayed
expect 'jobs: none in that state' 1 is '' err 'no delayed jobs'
run jobs mail --json
expect 'jobs --json' 0 out '{"jobs":[{"id":"'"$id"'"' out '"next":null}'

store
for i in 1 2 3 4 5; do printf '{"name":"n%s","payload":%s,"queue":"line"}\n' $i $i; done >lines
{ echo; echo '{"name":"bad","delay":-1}'; echo 'x'; printf '{"name":"last","queue":"line"}'; } >>lines
run push - <lines
expect 'push -: refused lines are named, the others stored' 1 err 'line 7: ' err 'line 8: ' err '6 pushed, 2 refused'
report "$([ "$(wc -l <.out)" = 6 ] && echo 1)" 'push -: one id per stored line' 'wanted six ids'
run jobs line --limit=4 --json
cursor=$(sed 's/.*"next":"\([^"]*\)".*/\1/' .out)
expect 'pages: the first' 0 out '"name":"n1"' out '"name":"n4"' nout '"name":"n5"'
run jobs line --limit=4 --json --after="$cursor"
expect 'pages: the second' 0 out '"name":"n5"' out '"name":"last"' out '"next":null' nout '"name":"n4"'
head -5 lines >good
run push - --json --tries=9 <good
expect 'push - --json' 0 out '{"results":[{"line":1,"id":"' out '],"pushed":5,"replaced":0,"held":0,"refused":0}'
usage 'push - takes no payload' 'each line has its own' push - '{}'
run push - </dev/null
expect 'push - of nothing' 0 is ''
(printf '{"name":"slow","queue":"slow"}\n'; for _ in $(seq 200); do
    "$bin" jobs slow --json 2>/dev/null | grep -q slow && { touch seen; break; }; sleep 0.05; done) | "$bin" push - >/dev/null
report "$([ -e seen ] && echo 1)" 'push -: a line does not wait for the next one' 'the job did not appear while the input paused'
{ printf '{"name":"big","payload":"'; head -c 3000000 /dev/zero | tr '\0' a; printf '"}\n{"name":"small"}\n'; } >big
run push - <big
expect 'push -: a body over max_payload is one refused line (rule A4)' 1 err 'line 1: ' err '1 pushed, 1 refused'
DSN=$JOBQUEUE_DSN
JOBQUEUE_DSN="$DSN?max_payload=4000000" run push - <big
expect 'push -: the same line where it is allowed' 0

# raw_trip NAME JSON: a body comes back byte for byte through show --raw and push --raw (rule A5)
raw_trip() {
    "$bin" push raw "$2" --id="raw$number" >/dev/null
    "$bin" show "raw$number" --raw >raw1
    "$bin" push raw --raw --id="again$number" <raw1 >/dev/null
    "$bin" show "again$number" --raw >raw2
    why=$(cmp raw1 raw2 2>&1)
    report "$([ -s raw1 ] && [ -z "$why" ] && echo 1)" "raw: $1" "$why"
}
raw_trip 'a map' '{"a":[1,{"$bytes":"AAEK"}]}'
raw_trip 'the integer 10, which is a newline' 10
raw_trip 'nothing' null
for text in 5 '{"a" : 1}' '"x"'; do
    printf '%s\n' "$text" | "$bin" push raw --raw --id="json$number" >/dev/null
    run show "json$number" --raw
    expect "raw: JSON stays as it is: $text" 0 is "$text"
done
printf '[1' | "$bin" push raw --raw 2>.err
report "$([ $? = 2 ] && grep -q payload .err && echo 1)" 'raw: what is neither is refused' "$(cat .err)"
usage 'raw and JSON' 'takes no "1"' push raw 1 --raw
usage 'raw of many' 'one job' push - --raw
usage 'raw belongs to push and show' '"push", "show"' stats --raw

# ---- stores that are not there ----------------------------------------------------------------------------

run stats --dsn="sqlite:$folder/no/such/folder/x.db"
expect 'a store whose folder is not there' 2 err 'error: ' is ''
run push a --dsn="sqlite:$folder/no/such/folder/x.db"
expect 'push to a store whose folder is not there' 2 err 'error: '
run push - --dsn="sqlite:$folder/no/such/folder/x.db" <good
expect 'push -: the store fails' 2 err 'lines 1 to 5: '

# ---- work --exec ------------------------------------------------------------------------------------------

usage 'exec: no such program' 'cannot run "nosuchprogram": No such file' work --exec='nosuchprogram x'
usage 'exec: not executable' 'Permission denied' work --exec=./lines
usage 'exec: a folder' 'Is a directory' work --exec=/tmp
usage 'exec: an open quote' 'not closed' work --exec="a 'b"
usage 'exec: nothing' 'names no program' work --exec='  '

store
program show-job <<'END'
{ printf '%s\n' "$#:$1:$2:$3"; cat; echo; env | grep ^JOBQUEUE_ | grep -v _DSN | sort; } >>"$OUT"
END
export OUT=$folder/shown
run push 'na me' '{"a":[1,{"$bytes":"AAE="}]}' --queue='käse' --tries=4 --timeout=30 --context=k='v "q"' --priority=2 --id=job-1
work "$folder/show-job 'one two' \"th\\\"ree\" f\\ our" --queue='käse'
expect 'exec: a job is done' 0 out 'Processed: na me job-1'
report "$(grep -qx '3:one two:th"ree:f our' shown && echo 1)" 'exec: the command line is split without a shell' "$(head -1 shown)"
report "$(grep -qxF '{"a":[1,{"$bytes":"AAE="}]}' shown && echo 1)" 'exec: the payload on standard input' "$(sed -n 2p shown)"
for field in 'ID=job-1' 'NAME=na me' 'QUEUE=käse' 'ATTEMPT=1' 'TRIES=4' 'TIMEOUT=30.000' 'PRIORITY=2' 'VERSION=1' 'FAILURES=0' \
    'DELIVERIES=1' 'CONTEXT={"k":"v \"q\""}'; do
    report "$(grep -qxF "JOBQUEUE_$field" shown && echo 1)" "exec: JOBQUEUE_$field" "$(grep "${field%%=*}" shown)"
done
run show job-1
expect 'a done job is gone' 1

store
program fail <<'END'
echo to-stdout; echo first >&2; echo 'the last line' >&2; exit 3
END
run push bad --id=bad-1
work ./fail --tries=1
expect 'exec: a failed job never changes the exit code (rule J1)' 0 out 'to-stdout' err 'first'
run show bad-1 --json
expect 'exec: status and last line are the error' 0 out '"state":"dead"' out '"reason":"attempts_exhausted"' \
    out '"message":"exit status 3: the last line"' out '"outcome":"failed"' out '"failures":1'
run show bad-1
expect 'show: a dead job for people' 0 out 'dead (attempts_exhausted)' out 'exit status 3: the last line' out 'history'

program die <<'END'
kill -9 $$
END
run push killed --id=killed-1
work ./die --tries=1
run show killed-1 --json
expect 'exec: killed by a signal is a failure that says so' 0 out 'killed by signal 9' out '"failures":1' out '"crashes":0'

program temp <<'END'
[ -e "$OUT.once" ] && exit 0; touch "$OUT.once"; exit 75
END
run push later --id=later-1
work ./temp
expect 'exec: status 75 is released, then done' 0 out 'Released: later' out 'Processed: later'

program ignore-input <<'END'
exit 0
END
head -c 900000 /dev/zero | tr '\0' a | { printf '{"name":"big","payload":"'; cat; printf '"}\n'; } | "$bin" push - >/dev/null
work ./ignore-input
expect 'exec: a program that does not read its input' 0 out 'Processed: big'

program evil <<'END'
printf '\033[31mred\233\n' >&2; exit 1
END
run push evil --id=evil-1
work ./evil --tries=1
run show evil-1
expect 'control characters are not shown raw (rule G4)' 0 nout $'\033' out 'red'
run failed
expect 'nor in lists' 0 nout $'\033' out 'evil-1'
run show evil-1 --json
expect 'nor in JSON' 0 nout $'\033' out '\\x1b[31mred'

program slow <<'END'
trap 'echo stopped >&2; exit 9' TERM
touch "$OUT.began"; i=0; while [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
END
run push slow --id=slow-1
work ./slow --tries=1 --timeout=0.5
run show slow-1 --json
expect 'exec: TERM at the time limit (rules I1, I2)' 0 out '"reason":"timed_out"' out 'over its time limit of 0.5 s: exit status 9: stopped'
program stubborn <<'END'
trap '' TERM
echo $$ >"$OUT.pid"; i=0; while [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
END
run push stubborn --id=stubborn-1
began=$SECONDS
work ./stubborn --tries=1 --timeout=0.5 --timeout-grace=0.5
report "$([ $((SECONDS - began)) -lt 20 ] && echo 1)" 'exec: killed after the grace (rule I1)' "took $((SECONDS - began)) s"
report "$(ends "$(cat "$OUT.pid")")" 'exec: with nothing left behind' 'the program is still there'
run show stubborn-1 --json
expect 'exec: and recorded as timed out, after how long (rule I2)' 0 out '"reason":"timed_out"' out 'over its time limit of '

rm -f "$OUT.began"
run push slow --id=slow-2
"$bin" work --exec=./slow --tries=1 >.work 2>&1 &
worker=$!
for _ in $(seq 400); do [ -e "$OUT.began" ] && break; sleep 0.05; done
kill -TERM $worker
sleep 0.3
kill -TERM $worker
wait $worker
code=$? out=$(cat .work) err=''
expect 'exec: a second TERM ends the program (rule H1)' 0 out 'Stopping: '
run show slow-2 --json
expect 'exec: and the job is given back uncounted' 0 out '"state":"ready"' out '"failures":0'

program sit <<'END'
echo $$ >"$OUT.sit"; exec sleep 60
END
rm -f "$OUT.sit"
run push sit --id=sit-1 --queue=sit
"$bin" work --exec=./sit --queue=sit --max-jobs=1 --tries=1 >.work 2>&1 &
worker=$!
for _ in $(seq 400); do [ -s "$OUT.sit" ] && break; sleep 0.05; done
kill -9 "$(ps -o ppid= -p "$(cat "$OUT.sit")")"
report "$(ends "$(cat "$OUT.sit")")" 'exec: a program dies with the child that started it (rule D5)' 'the program is still there'
wait $worker
run show sit-1 --json
expect 'exec: and that is a crash' 0 out '"crashes":1' out 'signal 9'

# ---- dead jobs --------------------------------------------------------------------------------------------

store
run failed
expect 'failed on an empty store' 0 is '' err 'no dead jobs'
run failed --name=x
expect 'failed: nothing matches' 1
run retry --all
expect 'retry --all on an empty store' 1 out '0 retried'
for i in 1 2 3; do run push "die$i" --id="d$i" --queue="q$((i % 2))"; done
run push uni --id=u1 --unique=key
work false --tries=1 --queue=q0,q1,default
run failed
expect 'failed lists, newest first' 0 out 'attempts_exhausted' out 'd1' out 'u1'
run failed --json --limit=2
expect 'failed --json' 0 out '{"jobs":[{' out '"next":"'
run failed --queue=q0
expect 'failed --queue' 0 out 'd2' nout 'd1'
run failed --name=die3
expect 'failed --name' 0 out 'd3' nout 'd1'
run failed --reason=crashed
expect 'failed --reason' 1 is ''
usage 'failed: a reason that is none' 'attempts_exhausted' failed --reason=tired
run failed --older-than=3600
expect 'failed --older-than' 1
run retry d1 --dry-run
expect 'retry --dry-run' 0 is '1 would be retried'
run show d1 --json
expect 'retry --dry-run changes nothing' 0 out '"state":"dead"'
run push uni --unique=key
run retry d1 u1 nothing
expect 'retry says what it did not do (rule F4)' 1 out '1 retried, 1 skipped (unique key held), 1 unknown' err '"nothing"' err '"u1"'
run show d1 --json
expect 'a retried job is ready with fresh counters' 0 out '"state":"ready"' out '"failures":0' out '"attempt":1'
run retry d1
expect 'retry of a waiting job' 1 out '0 retried, 1 unknown'
run retry all --json
expect 'retry all is retry --all' 1 out '{"retried":2,"skipped":1,"unknown":0,"dry_run":false}'
work false --tries=1 --queue=q0,q1,default
run forget ghost ghost
expect 'an id given twice is one (rule F4)' 1 is '0 forgotten, 1 unknown'
run forget d2 d2 --dry-run
expect 'an id given twice is forgotten once (rule F4)' 0 is '1 would be forgotten'
run forget --queue=q0
expect 'forget by filter' 0 is '1 forgotten'
run show d2
expect 'a forgotten job is gone' 1
run queue:forget --all --quiet
expect 'forget --all --quiet' 0 is '' err ''
run failed
expect 'nothing is left' 0 is ''

finish

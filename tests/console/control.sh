#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What people ask of running workers: pause, resume, restart, cancel; clear and prune; and that looking makes no store.
# TAP, then a closing line.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2181 # words of assert.bash; texts with dollar signs
. "$(dirname "$0")/assert.bash"

# ---- usage ------------------------------------------------------------------------------------------------

export JOBQUEUE_DSN=memory:
usage 'pause says what it needs' 'pause needs QUEUE... or --all' pause
usage 'resume says what it needs' 'resume needs QUEUE... or --all' queue:continue
usage 'pause: not both' 'not both' pause mail --all
usage 'pause: an empty name' 'empty name' pause mail,
usage 'pause: --ttl is strict' 'ten years' pause mail --ttl=-1
usage 'pause: a name that is none' 'queue must be' pause "$(printf 'a\001')"
usage 'resume has no --ttl' 'it belongs to "pause"' resume mail --ttl=3
usage 'restart takes no words' 'takes no "mail"' restart mail
usage 'cancel without an id' 'cancel needs ID...' cancel
usage 'clear without a queue' 'clear needs QUEUE...' clear
usage 'clear without a terminal' 'needs --force' clear mail
usage 'misplaced: --hard' 'it belongs to "cancel"' retry a --hard
usage 'restart is not taken for retry' 'did you mean "restart"' queue:restrat
for command in pause resume continue restart cancel clear prune prune-failed; do
    run "queue:$command" --help
    expect "queue:$command is a command" 0 out 'Usage: '
done

# ---- pause, resume (rule L1) ------------------------------------------------------------------------------

store
run pause mail
expect 'pause' 0 is 'mail: paused' err ''
run queue:pause high,low --ttl=300
expect 'pause of several, for a time' 0 out 'high: paused for 5 min' out 'low: paused for 5 min'
run pause a:b --ttl=0 --json
expect 'pause --json' 0 is '{"queues":["a:b"],"all":false,"paused":true,"ttl":null}'
run stats mail high other
expect 'stats shows it' 0 out ' yes' out ' until 20' out ' no'
run stats mail other high --json
expect 'stats --json shows it' 0 out '"queue":"mail","ready":0' out '"paused":true,"paused_until":null,' \
    out '"paused":false,"paused_until":null,' out '"paused":true,"paused_until":"20'
run push a --queue=mail --id=a
expect 'push still works' 0 is a
run monitor mail:5 --json
expect 'monitor --json shows it' 0 out '"paused":true'
run monitor mail:5
expect 'monitor shows it' 0 out '; paused'
run doctor
expect 'doctor names a paused queue' 0 out 'note     paused' out 'queue "mail" is paused, 1 job waits in it' out 'jobqueue resume'
run pause --all
expect 'pause --all' 0 is 'all queues: paused'
run resume mail
expect 'resume of one while all are paused says so (rule L1)' 0 is 'mail: resumed' err 'mail is still paused with all queues'
run stats mail --json
expect 'and it is' 0 out '"paused":true'
run queue:resume --all --json
expect 'resume --all' 0 is '{"queues":[],"all":true,"paused":false}'
run stats mail high --json
expect 'single pauses stay' 0 out '"queue":"mail","ready":1,"delayed":0,"reserved":0,"dead":0,"backlog":1' out '"paused":false' out '"paused":true'
run resume mail high low a:b never --quiet
expect 'resume of what is not paused is fine' 0 is '' err ''
run pause mail --ttl=0.05
until_true eval '"$bin" stats mail --json | grep -q "\"paused\":false"'
run stats mail --json
expect 'a pause with --ttl ends by itself' 0 out '"paused":false'
# Below a millisecond it is short, not without an end (zero means until resumed).
run pause mail --ttl=0.0001
until_true eval '"$bin" stats mail --json | grep -q "\"paused\":false"'
run stats mail --json
expect 'the shortest --ttl ends by itself' 0 out '"paused":false'

# ---- restart (rule L2) ------------------------------------------------------------------------------------

run restart --json
expect 'restart --json' 0 is '{"generation":1}'
run queue:restart
expect 'restart' 0 out 'finish their jobs'
run restart --quiet
expect 'restart --quiet' 0 is '' err ''

# ---- cancel (rule L3) -------------------------------------------------------------------------------------

store
run push a --id=a
run push b --id=b --delay=60 --unique=k
run cancel a nobody b
expect 'cancel: what waits is dead; who is unknown is named' 1 out 'a: cancelled' out 'b: cancelled' err 'no waiting or running job with id "nobody"'
run failed --reason=cancelled --json
expect 'cancelled jobs are dead jobs' 0 out '"id":"a"' out '"id":"b"' out '"reason":"cancelled"'
run cancel a --json
expect 'cancel of a dead job' 1 is '{"cancelled":0,"asked":0,"unknown":1}'
run cancel '???'
expect 'cancel of what can be no id' 1 err 'no waiting or running job with id "???"'
program wait-here <<END_OF_PROGRAM
touch "$folder/began"
for i in \$(seq 400); do [ -e "$folder/go" ] && exit; sleep 0.05; done
END_OF_PROGRAM
run push runs --id=r --queue=run
"$bin" work --exec="$folder/wait-here" --queue=run --max-jobs=1 >.work 2>&1 &
worker=$!
until_true test -e began
run cancel r --json
expect 'cancel of a running job asks it' 0 is '{"cancelled":0,"asked":1,"unknown":0}'
run cancel r
expect 'cancel says that it runs' 0 is 'r: runs, and has been told'
run show r
expect 'show says that it has been told to end' 0 out 'told to end (soft)' out ' (1 delivery, 0 failures, 0 crashes,'
run show r --json
expect 'and so does its JSON' 0 out '"cancel":"soft"'
touch go
wait $worker
run show r
expect 'and its return is done' 1 err 'no job has the id'

# ---- clear ------------------------------------------------------------------------------------------------

store
seq 700 | sed 's/.*/{"name":"n","queue":"many"}/' | "$bin" push - --quiet
seq 700 | sed 's/.*/{"name":"n","queue":"many","delay":60}/' | "$bin" push - --quiet
run push stays --queue=other
if command -v script >/dev/null; then
    typed() { # typed ANSWER COMMAND: on a terminal
        printf '%s\n' "$1" | TERM=xterm script -qec "'$bin' $2" /dev/null >seen 2>&1
        code=$? out=$(tr '\r\033' '\n?' <seen) err='' called="jobqueue $2, answered $1"
    }
    typed n 'clear many'
    expect 'clear asks on a terminal: no' 1 out 'Remove 1400 waiting jobs from many? [y/N]' out 'many is left as it is'
    run stats many --json
    expect 'and nothing was removed' 0 out '"backlog":1400'
    typed '' 'clear many'
    expect 'clear: nothing said is a no' 1 out 'left as it is'
    typed y 'queue:clear many'
    expect 'clear asks on a terminal: yes' 0 out 'many: 1400 removed'
    report "$(grep -q 'clearing \[#*\.*\] [0-9]* of 1400' seen && echo 1)" 'clear: a progress bar on a terminal' "$out"
    typed y 'clear many'
    expect 'clear of an empty queue asks nothing' 0 out 'many: 0 removed' nout 'y/N'
else
    skip 'clear asks on a terminal' 'no script'
fi
run clear many nothing,other --force --json
expect 'clear --force --json' 0 out '{"cleared":'
run stats other --json
expect 'clear: ready and delayed jobs are gone' 0 out '"backlog":0'
run push d --id=d --queue=dies --tries=1
work false --queue=dies
run clear dies --force
expect 'clear leaves dead jobs' 0 is 'dies: 0 removed'
run show d --json
expect 'as they are' 0 out '"state":"dead"'

# ---- prune ------------------------------------------------------------------------------------------------

run prune --older-than=3600
expect 'prune: none is that old' 1 is '0 pruned'
run prune --older-than=0 --queue=other
expect 'prune by queue' 1 is '0 pruned'
run prune --older-than=0 --dry-run --json
expect 'prune --dry-run' 0 is '{"pruned":1,"skipped":0,"unknown":0,"dry_run":true}'
run queue:prune-failed --hours=0
expect 'queue:prune-failed --hours' 0 is '1 pruned'
run push k --id=k --queue=keep
work true --queue=keep --keep-done=0.05
until_true eval '"$bin" prune --older-than=3600; ! "$bin" show k'
run show k
expect 'prune: a finished job that was kept long enough is gone' 1 err 'no job has the id'
run push k2 --id=k2 --queue=keep
work true --queue=keep --keep-done=3600
run prune --older-than=0
run show k2 --json
expect 'prune: one whose time is not over stays' 0 out '"state":"done"'

# ---- unique keys ------------------------------------------------------------------------------------------

store
run push u --id=u1 --unique=key --tries=1
work false
run push u --id=u2 --unique=key --delay=60
run retry u1
expect 'retry: a held key is named with its holder (rule B6)' 1 is '0 retried, 1 skipped (unique key held)' err 'job "u1" skipped: its unique key is held by job "u2"'
run retry all
expect 'retry all is retry --all' 1 is '0 retried, 1 skipped (unique key held, or retention over)'

# ---- looking makes no store -------------------------------------------------------------------------------

export JOBQUEUE_DSN=sqlite:$folder/missing.db
missing() { # missing EXIT COMMAND...
    local wanted=$1
    shift
    run "$@"
    expect "$* makes no store, and says that there is none" "$wanted" err "there is no store at sqlite:$folder/missing.db"
}
missing 0 stats
missing 0 stats --json
missing 0 failed
missing 0 workers
missing 0 clear a --force
missing 1 jobs a
missing 1 show a
missing 1 retry a
missing 1 forget --all
missing 1 flush
missing 1 prune --older-than=1
missing 1 cancel a
missing 2 monitor a:1
run stats --quiet --json
expect 'stats --quiet of none' 0 err '' is ''
report "$([ ! -e missing.db ] && echo 1)" 'and none was made' "$(ls)"
"$bin" stats --watch=0.1 new >view 2>view.err &
view=$!
until_true eval '[ $(grep -c ^QUEUE view) -ge 2 ]'
run push a --queue=new
until_true grep -q '^new *1' view
report "$(grep -q '^new *1' view && [ "$(grep -c 'there is no store' view.err)" = 1 ] && echo 1)" 'stats --watch sees it when it is made' "$(cat view view.err)"
kill $view
wait $view
rm -f missing.db*
run restart
expect 'restart may come before the first push' 0 out 'asked' err "there was no store at sqlite:$folder/missing.db: this makes it"
run stats
expect 'and stats has a store now' 0 err 'no queues yet' nerr 'there is no store'
made() { # made COMMAND...
    rm -f missing.db*
    run "$@"
    expect "$* makes the store and says so" 0 err "there was no store at sqlite:$folder/missing.db: this makes it"
    run "$@"
    expect "$* finds it then" 0 nerr 'there was no store'
}
made ping
made doctor
made doctor --json
made pause a
made resume a
made capacity a 3

# ---- named connections ------------------------------------------------------------------------------------

store
export JOBQUEUE_DSN_SHOP_DB=$JOBQUEUE_DSN
unset JOBQUEUE_DSN
run push a --dsn=shop-db
run ping --dsn=shop-db --json
expect 'a connection by its name' 0 out '"connection":"shop-db"' out '"driver":"sqlite"'
export JOBQUEUE_DSN=shop-db
run stats --json
expect 'JOBQUEUE_DSN may name one, too' 0 out '"queue":"default","ready":1'
run work shop-db --exec=true --once --quiet
expect 'work CONNECTION' 0 err ''
export JOBQUEUE_DSN=none
usage 'a name without a variable' 'set JOBQUEUE_DSN_NONE' stats

finish

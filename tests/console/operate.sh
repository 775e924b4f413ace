#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The commands of whoever operates a queue: flush, workers, monitor, stats --watch, doctor, export and import of dead
# jobs, completion. TAP, then a closing line.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2181,SC2238 # words of assert.bash; texts with dollar signs
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/assert.bash"

# ---- flush ------------------------------------------------------------------------------------------------

export JOBQUEUE_DSN=memory:
usage 'flush takes no ids' 'takes no "a"' flush a
usage 'flush: --older-than is strict' 'ten years' flush --older-than=48h
usage 'flush has no --force: it asks nothing' '"flush" has no option --force' flush --force
usage 'prune: how old must be said' 'needs --older-than' prune --queue=a
usage 'prune takes no ids' 'takes no "a"' queue:prune-failed a
usage 'prune: --hours is strict' 'number of hours' queue:prune-failed --hours=2d

store
run flush
expect 'flush of an empty store (rule F4)' 1 is '0 forgotten'
for i in 1 2 3; do run push "die$i" --id="d$i" --queue="q$((i % 2))"; done
run push waits --queue=other --id=w
work false --tries=1 --queue=q0,q1
run flush --queue=q1 --name=die1 --dry-run
expect 'flush --dry-run says what it would do' 0 is '1 would be forgotten'
run flush --older-than=3600 --json
expect 'flush --older-than' 1 is '{"forgotten":0,"skipped":0,"unknown":0,"dry_run":false}'
run queue:flush --queue=q1 --name=die1
expect 'queue:flush with filters' 0 is '1 forgotten'
run flush --reason=attempts_exhausted --quiet
expect 'flush --reason --quiet' 0 is '' err ''
run failed
expect 'flush: nothing dead is left' 0 is ''
run show w --json
expect 'flush never touches a waiting job (rule F4)' 0 out '"state":"ready"'

# A thousand dead jobs: pages are bounded, a terminal sees a bar, standard output stays clean.
store
for i in $(seq 1200); do echo '{"name":"n","queue":"many"}'; done | "$bin" push - --quiet
work false --tries=1 --queue=many --output=quiet
run retry --all --dry-run
expect 'retry --dry-run over pages' 0 is '1200 would be retried' err ''
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$bin' retry --all" /dev/null </dev/null >seen 2>&1
    report "$(grep -q 'retrying \[#*\.*\] [0-9]* of 1200' seen && grep -q '1200 retried' seen && echo 1)" \
        'retry: a progress bar on a terminal' "$(tr '\r\033' '\n?' <seen | tail -5)"
fi
run retry --all
expect 'retry again: nothing is left to do, so a cut run is simply started again (rule F4)' 1 is '0 retried'

# ---- workers, monitor -------------------------------------------------------------------------------------

store
run workers
expect 'no workers (rule N4)' 0 is '' err 'no live workers'
run queue:workers --json
expect 'no workers, as JSON' 0 is '{"workers":[]}'
usage 'monitor without a queue' 'needs QUEUE:MAX' monitor
usage 'monitor without a limit' 'says no limit: mail:MAX' monitor mail
for word in mail: mail:x mail:-1 mail:1.5 a:b 'mail:1,'; do
    run monitor "$word"
    expect "monitor is strict: $word" 2 err 'error: monitor: ' is ''
done
usage 'monitor: a queue with a control character' 'queue' monitor "$(printf 'a\001:1')"
usage 'monitor: --max-age is strict' 'number of seconds' monitor mail --max-age=x
usage 'misplaced: --max-age' 'it belongs to "monitor"' stats --max-age=3
run push a --queue=a:b
run push b --queue=a:b --delay=60
run monitor a:b:2
expect 'monitor: the last colon counts; at the limit is fine' 0 out 'a:b: backlog 2 (1 ready, 1 delayed, 0 reserved) of at most 2: ok'
run queue:monitor a:b:1
expect 'monitor: over it (rule J1)' 3 out 'of at most 1: OVER'
run monitor nobody:0,a:b:1 other:5 --json
expect 'monitor --json' 3 out '{"queues":[{"queue":"nobody","backlog":0,' out '"max":1,' out '"over_max":true,"over_age":false' out '],"over":1}'
run monitor a:b:1 --quiet
expect 'monitor --quiet: the exit code alone' 3 is '' err ''
run monitor nobody --max-age=0
expect 'monitor --max-age: nothing ready is not too old' 0 out 'oldest ready none of at most 0 ms: ok'
run monitor a:b:9 --max-age=3600
expect 'monitor --max-age: young enough' 0 out 'of at most 60 min: ok' nout OVER
until_true eval '"$bin" monitor a:b:9 --max-age=0.01; [ $? = 3 ]'
run monitor a:b:9 --max-age=0.01
expect 'monitor --max-age: over it' 3 out 'of at most 9: ok' out 'of at most 10 ms: OVER'

# ---- stats --watch ----------------------------------------------------------------------------------------

usage 'watch: not that often' 'from 0.1' stats --watch=0
usage 'watch is strict' 'from 0.1' stats --watch=1s
usage 'misplaced: --watch' 'it belongs to "stats"' failed --watch
run stats --watch=1 --dsn="sqlite:$folder/no/such/x.db"
expect 'watch: a store that is not there ends it' 2 err 'error: ' is ''

# watched SIGNAL LINES OPTION...: a live view until it has printed so many lines, then the signal
watched() {
    local signal=$1 lines=$2 pid
    shift 2
    : >view
    # a shell's background job has INT ignored; the view must see it
    perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$bin" stats --watch=0.1 "$@" >view 2>view.err &
    pid=$!
    until_true eval "[ \$(wc -l <view) -ge $lines ]"
    kill "-$signal" $pid
    wait $pid
    code=$? out=$(cat view) err=$(cat view.err) called="stats --watch=0.1 $*, ended by $signal"
}
if command -v perl >/dev/null; then
    watched INT 12 a:b
    expect 'watch: INT ends it with 0' 0 out 'a:b ' err ''
    report "$([ "$(grep -c '^QUEUE' view)" -ge 3 ] && [ "$(grep -c '^$' view)" -ge 2 ] && echo 1)" 'watch: one block per tick' "$out"
    report "$(! grep -q $'\033' view && echo 1)" 'watch: nothing is redrawn in a file' 'an escape sequence'
    watched TERM 3 --json
    expect 'watch: TERM too; a JSON document a line' 0 out '{"time":"20' out '"queues":[{"queue":"a:b"'
fi
if command -v tmux >/dev/null; then
    socket=$folder/tmux
    NO_COLOR=1 tmux -S "$socket" -f /dev/null new-session -d -x 80 -y 12 "'$bin' stats --watch=0.2; echo ended \$?; sleep 30"
    screen() { tmux -S "$socket" capture-pane -p | grep -c "$1"; }
    shows() { [ "$(screen "$1")" = 1 ]; }
    until_true shows 'a:b  *1  *1'
    run push more --queue=a:b
    until_true shows 'a:b  *2  *1'
    report "$(shows 'a:b  *2  *1' && shows '^QUEUE' && echo 1)" 'watch: a terminal is redrawn' "$(tmux -S "$socket" capture-pane -p)"
    tmux -S "$socket" send-keys C-c
    until_true shows 'ended 0'
    report "$(shows 'ended 0' && echo 1)" 'watch: Ctrl-C ends it with 0' "$(tmux -S "$socket" capture-pane -p)"
    tmux -S "$socket" kill-server
else
    skip 'watch: a terminal is redrawn' 'no tmux'
fi

# ---- export and import of a dead job ----------------------------------------------------------------------

store
program echo-payload <<<'cat; echo'
run push mend.me '{"n":7}' --id=m --queue=mend --tries=2 --context=k=v --priority=5 --version=3
if command -v sqlite3 >/dev/null; then
    # what a broken producer would have left: a map of one pair that ends after its key
    sqlite3 "${JOBQUEUE_DSN#sqlite:}" "UPDATE jobqueue_job SET body = x'81a16e'"
    work cat --queue=mend
    run show m --json
    expect 'an undecodable body is a dead job (rule A7)' 0 out '"reason":"undecodable"' out '"payload":null' out '"payload_error":"'
    run show m --raw
    report "$([ "$(od -An -tx1 .out | tr -d ' \n')" = 81a16e ] && echo 1)" 'show --raw: its bytes as they are (rule A7)' "$(od -An -tx1 .out)"
    run show m --raw --json
    expect 'show --raw --json: with all that was given' 0 is \
        '{"name":"mend.me","queue":"mend","version":3,"priority":5,"tries":2,"context":{"k":"v"},"format":"msgpack","raw":{"$bytes":"gaFu"}}'
    cp .out export
    run push --raw <export
    expect 'push --raw: still broken, so refused (rule A4)' 1 err 'line 1: ' err 'payload' is ''
    sed 's/gaFu/gaFuBw==/' export >mended
    run push --raw <mended
    mended=$out
    expect 'push --raw: mended, with the name from the export' 0 err ''
    run show "$mended" --json
    expect 'push --raw: and everything else' 0 out '"name":"mend.me"' out '"queue":"mend"' out '"version":3' out '"priority":5' out '"tries":2' \
        out '"context":{"k":"v"}' out '"payload":{"n":7}' out '"state":"ready"'
    "$bin" show m --raw >body
    printf '\007' >>body
    run push mend.me --raw --queue=mend <body
    expect 'push NAME --raw: the bytes, mended' 0
    run forget m
    run push --raw --id=m <mended
    expect 'push --raw: the old id is free once the dead job is forgotten (rule B5)' 0 is m
    work ./echo-payload --queue=mend
    expect 'and it runs' 0 out '{"n":7}' out 'Ran 3 jobs'
else
    skip 'an undecodable body' 'no sqlite3'
fi
run push --raw </dev/null
expect 'push --raw: nothing on standard input is nothing to do' 0 is ''
usage 'push without anything' 'push needs NAME' push
usage 'push --raw takes no context' 'takes no --context' push --raw --context=a=b
echo '{"name":"a"}' >line
run push --raw <line
expect 'push --raw takes any line of push -' 0
for line in '{"name":"a","raw":"x"}' '{"name":"a","raw":{"$bytes":"#"}}' '{"name":"a","payload":1,"raw":{"$bytes":""}}' \
    '{"name":"a","raw":{"$bytes":"AQ=="},"raw":{"$bytes":"AQ=="}}' '{"name":"a","format":"json"}' \
    '{"name":"a","raw":{"$bytes":"AQ=="},"format":"xml"}' '{"name":"a","raw":{"$bytes":""}}'; do
    echo "$line" >line
    run push --raw <line
    expect "push --raw refuses $line" 1 err 'error: line 1: ' is ''
done
echo '{"name":"j","raw":{"$bytes":"eyJhIiA6IDF9"},"format":"json","id":"j1"}' >line
run push - <line
expect 'a JSON body byte for byte (rule A8)' 0 is j1
run show j1 --raw
expect 'and back' 0 is '{"a" : 1}'

# ---- doctor -----------------------------------------------------------------------------------------------

store
run doctor
expect 'doctor on a healthy store (rule N5)' 0 out 'ok       connection' out 'round trips' out 'ok       clock' out "this host's clock" \
    out 'ok       schema' out 'ok       lease' out 'library' out 'libjobqueue 0.' out "file        $folder/store" nout 'problem' err ''
run doctor --json
expect 'doctor --json' 0 out '{"findings":[{"grade":"ok","check":"library","text":"' out '"advice":null}' out '],"healthy":true}'
run doctor --quiet
expect 'doctor --quiet' 0 is '' err ''
run doctor --dsn=memory:
expect 'doctor on memory: has no file to look at' 0 nout 'ok       file' nout ' lies on ' out 'memory:' out 'note     durability'
chmod 0644 "${JOBQUEUE_DSN#sqlite:}"
run doctor
expect 'doctor: a file that others may read is a note (rule P2)' 0 out 'note     mode' out 'chmod 0600' out '0644'
run doctor --dsn="$JOBQUEUE_DSN?read_timeout=20"
expect 'doctor: a call that may outlast the lease is a note' 0 out 'note     lease' out 'lower read_timeout'
run doctor --dsn="sqlite:$folder/no/such/x.db"
expect 'doctor: a store that cannot be used has its own exit code (rule J1)' 2 out 'problem  connection' err 'error: '
run doctor --dsn="sqlite:$folder/no/such/x.db" --json
expect 'doctor: and is still one JSON document' 2 out '"grade":"problem","check":"connection"' out '"advice":"' out '],"healthy":false}'
if command -v sqlite3 >/dev/null; then
    run push old --queue=lonely
    sqlite3 "${JOBQUEUE_DSN#sqlite:}" 'UPDATE jobqueue_ready SET available_at = available_at - 120000;
        UPDATE jobqueue_job SET available_at = available_at - 120000'
    run doctor
    expect 'doctor: a queue that waits and has no worker (rule J1)' 3 out 'problem  workers' out 'queue "lonely" has 1 ready job,' out 'no live worker'
    run doctor --json
    expect 'doctor: the same as JSON' 3 out '"grade":"problem","check":"workers"' out '"healthy":false'
fi

# ---- completion -------------------------------------------------------------------------------------------

usage 'completion for a shell that we do not know' 'must be bash or zsh' help --completion=fish
"$bin" help --completion=bash >completion.bash
# shellcheck disable=SC1091
. ./completion.bash
complete_to() { # complete_to LINE WORD...: what bash would offer behind the line
    local line=$1 why=''
    shift
    COMP_LINE=$line COMP_POINT=${#line}
    compopt() { :; }
    _jobqueue
    [ "${COMPREPLY[*]}" = "$*" ] || why="offered: ${COMPREPLY[*]}"
    report "$([ -z "$why" ] && echo 1)" "bash completes \"$line\"" "$why"
}
complete_to 'jobqueue wo' work workers
complete_to 'jobqueue --json wor' work workers
complete_to 'jobqueue queue:fl' flush
complete_to 'jobqueue jobs q --st' --state=
complete_to 'jobqueue jobs q --state=de' delayed dead
complete_to 'jobqueue queue:jobs q --state=rea' ready
complete_to 'jobqueue status --wa' --watch
complete_to 'jobqueue work --max-t' --max-time=
complete_to 'jobqueue work --output=js' json
complete_to 'jobqueue retry --reason=un' undecodable unknown_name unsupported_version
complete_to 'jobqueue push a --max-t'
complete_to 'jobqueue work '
complete_to '/usr/bin/jobqueue migr' migrate
for name in $("$bin" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    complete_to "jobqueue $name --qui" --quiet
done
if [ -e "$source_folder/cli/completion/jobqueue.bash" ]; then
    JOBQUEUE_BIN=$bin "$source_folder/tools/gen-completion" --check 2>.err
    report "$([ $? = 0 ] && echo 1)" 'the completion scripts of the tree are up to date' "$(cat .err)"
fi

# ---- what the documentation names -------------------------------------------------------------------------

# The right column of the tables of coming-from.md: each option of ours that it names is one.
if [ -e "$source_folder/doc/coming-from.md" ]; then
    for name in $("$bin" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do "$bin" help "$name"; done |
        grep -oE '^  --[a-z-]+' | tr -d ' ' | sort -u >known
    awk -F'|' '/^\|/ { print $3 }' "$source_folder/doc/coming-from.md" | grep -oE -e '--[a-z][a-z-]+' | sort -u >named
    run version
    report "$([ -s named ] && [ -z "$(comm -23 named known)" ] && echo 1)" 'coming-from.md names only options that exist' "$(comm -23 named known)"
fi

# ---- zsh --------------------------------------------------------------------------------------------------

zsh=${JOBQUEUE_TEST_ZSH:-$(command -v zsh)}
if [ -n "$zsh" ]; then
    mkdir -p functions
    "$bin" help --completion=zsh >functions/_jobqueue
    # A zsh of its own behind a terminal of its own, asked for its list.
    cat >ask.zsh <<'END_OF_ZSH'
zmodload zsh/zpty
zpty shell "$1" -f -i
say() { zpty -w shell "$1" }
say "PS1=; fpath=($2 \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-separator '#'; unsetopt zle_bracketed_paste; bindkey '^I' complete-word; LISTMAX=1000; echo re''ady"
zpty -r shell text '*ready*'
zpty -w -n shell "jobqueue $3"$'\t'
until_end=$((SECONDS + 15))
text='' all=''
while ((SECONDS < until_end)) && [[ $all != *$4* ]]; do
    zpty -r -t shell text && all+=$text || sleep 0.05
done
print -r -- "$all"
zpty -d shell
END_OF_ZSH
    zsh_offers() { # zsh_offers LINE TEXT
        out=$(timeout 40 "$zsh" -f ask.zsh "$zsh" "$folder/functions" "$1" "$2" 2>&1 | tr -d '\0')
        report "$([[ $out == *"$2"* ]] && echo 1)" "zsh completes \"jobqueue $1\"" "wanted: $2"
    }
    zsh_offers 'moni' 'monitor'
    zsh_offers 'stats --wat' '--watch'
    zsh_offers 'jobs q --state=del' '--state=delayed'
else
    skip 'zsh completes' 'no zsh'
fi
finish

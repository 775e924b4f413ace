#!/bin/bash
# SPDX-License-Identifier: MIT
#
# top, the live view with keys, on a terminal of tmux. TAP, then a closing line.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # words of assert.bash; texts with dollar signs
. "$(dirname "$0")/assert.bash"

export JOBQUEUE_DSN=memory:
usage 'top needs a terminal' 'top needs a terminal' top
usage 'top has no --json' 'stats --watch' queue:top --json
if ! command -v tmux >/dev/null; then
    skip 'top on a terminal' 'no tmux'
    finish
    exit
fi

store
socket=$folder/tmux
mux() { tmux -S "$socket" -f /dev/null "$@"; }
screen() { mux capture-pane -p; }
shows() { screen | grep -q -e "$1"; }
sees() { # sees NAME PATTERN
    until_true shows "$2"
    called='top' code='' err='' out=$(screen)
    report "$(shows "$2" && echo 1)" "$1" "the screen lacks: $2"
}
keys() { mux send-keys "$@"; }

run push a --queue=alpha
run push b --queue=beta --tries=1
run push c --queue=beta --delay=60
work false --queue=beta
NO_COLOR=1 mux new-session -d -x 100 -y 20 "'$bin' top --watch=0.2; echo ended \$?; sleep 60"
sees 'top: queues' '> *alpha *1 *0 *0 *0 .* no$'
sees 'top: all of them' '^ *beta *0 *1 *0 *1 .* no$'
run capacity alpha 77
sees 'top: a capacity (rule B4)' '> *alpha *1 *0 *0 *0 *77 '
sees 'top: and none' '^ *beta *0 *1 *0 *1 *- '
sees 'top: what keys there are' 'p: pause or resume'
run push a --queue=alpha
sees 'top: drawn anew' '> *alpha *2 '
keys p
sees 'top: p pauses the chosen queue' '> *alpha *2 .* yes$'
sees 'top: and says so' '^alpha: paused'
run stats alpha --json
expect 'top: it is paused (rule L1)' 0 out '"paused":true'
keys p
sees 'top: p resumes it' '^alpha: resumed'
keys Down
sees 'top: down chooses the next' '> *beta'
keys Down
keys r
sees 'top: r asks' '^Retry all dead jobs of beta?'
keys n
sees 'top: no is no' '^nothing was retried'
keys r
sees 'top: r asks again' '^Retry all dead'
keys y
sees 'top: yes retries them (rule F4)' '^beta: 1 retried'
sees 'top: they wait again' '> *beta *1 *1 *0 *0 '
keys a
sees 'top: a pauses all' '^all queues: paused'
sees 'top: each of them' '^ *alpha .* yes$'
keys a
sees 'top: and resumes them' '^all queues: resumed'
keys k
sees 'top: k is up' '> *alpha'
program slow <<<'for i in $(seq 400); do [ -e go ] && exit; sleep 0.05; done'
"$bin" work --exec="$folder/slow" --queue=alpha --processes=2 --max-jobs=2 >.work 2>&1 &
worker=$!
sees 'top: workers' "^ *2 .*:$worker:"
sees 'top: and what they hold' '> *alpha *0 *0 *2 '
touch go
wait $worker
mux resize-window -x 60 -y 10
sees 'top: a small terminal' '> *alpha'
keys q
sees 'top: q ends it with 0' '^ended 0'
report "$(! shows 'alpha' && echo 1)" 'top: the screen is as before' "$(screen)"

mux new-window "'$bin' top --no-color; echo ended \$?; stty -a; sleep 60"
sees 'top again' '> *alpha'
keys C-c
sees 'top: Ctrl-C ends it with 0' '^ended 0'
sees 'top: the terminal is as before' '[^-]icanon.*'
mux kill-server
finish

#!/bin/bash
# SPDX-License-Identifier: MIT
#
# work --reload (queue:listen): a change of a loaded source file starts the worker anew when its jobs have ended; code
# that cannot be loaded does not end it. PHP's part needs TEST_PHP_EXECUTABLE and JOBQUEUE_EXTENSION. TAP, then a closing line.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2181 # words of assert.bash; texts with dollar signs
. "$(dirname "$0")/assert.bash"
reloader=''
trap '[ -z "$reloader" ] || kill -KILL $reloader 2>/dev/null; rm -rf "$folder"' EXIT

lines() { grep -c -- "$1" seen; }
has() { [ "$(lines "$2")" -ge "$1" ]; } # has N PATTERN: so many lines
wait_for() { # wait_for N PATTERN NAME
    until_true has "$1" "$2"
    called="work --reload, waiting for $1 lines of $2" code='' out=$(cat seen) err=''
    report "$(has "$1" "$2" && echo 1)" "$3" 'that never came'
}
begin() { # begin COMMAND...: output goes to "seen"
    : >seen
    "$@" >>seen 2>&1 &
    reloader=$!
}
ends_with() { # ends_with CODE NAME
    wait $reloader
    code=$? out=$(cat seen)
    reloader=''
    report "$([ "$code" = "$1" ] && echo 1)" "$2" "wanted exit $1"
}

# ---- the C program ----------------------------------------------------------------------------------------

usage 'misplaced: --reload' 'it belongs to "work"' stats --reload
store
program handler <<<'echo one'
begin "$bin" work --exec="$folder/handler" --reload
wait_for 1 'Worker .* watching' 'the worker runs'
run push a
wait_for 1 'Processed: a' 'and works'
# it is still at work when its file changes
program slow <<END_OF_PROGRAM
touch "$folder/began"
for i in \$(seq 600); do [ -e "$folder/go" ] && break; sleep 0.05; done
echo finished
END_OF_PROGRAM
mv slow handler
wait_for 2 'Worker .* watching' 'a new program starts the worker anew'
run push b
until_true test -e began
program handler <<<'echo three'
wait_for 2 'handler has changed: the worker finishes its jobs' 'a change is seen while a job runs'
report "$(! has 3 'Worker .* watching' && echo 1)" 'the running job is waited for' "$(cat seen)"
touch go
wait_for 1 '^finished' 'it finishes'
wait_for 3 'Worker .* watching' 'and then the worker starts anew'
run push c
wait_for 1 '^three' 'with the new program'
# a program that is not there, or is none, is waited for
rm handler
wait_for 1 'it is started again when a file changes' 'a program that is gone is waited for'
program handler <<<'echo four'
wait_for 4 'Worker .* watching' 'until it is back'
run push d
wait_for 1 '^four' 'and works on'
kill -TERM $reloader
ends_with 0 'TERM ends all of it with 0 (rule H1)'
report "$(has 1 'Ran 1 job' && echo 1)" 'softly' "$out"

# TERM while it stops for a change is its first TERM: the job is not cut short.
rm -f began go
program handler <<END_OF_PROGRAM
touch "$folder/began"
for i in \$(seq 600); do [ -e "$folder/go" ] && break; sleep 0.05; done
echo whole
END_OF_PROGRAM
begin "$bin" work --exec="$folder/handler" --reload --ready-file="$folder/ready"
wait_for 1 'Worker .* watching' 'the worker runs'
run push g
until_true test -e began
program handler <<<'echo six'
wait_for 1 'handler has changed' 'a change while a job runs'
until_true [ ! -e ready ]
kill -TERM $reloader
touch go
ends_with 0 'TERM while it stops for a change'
report "$(has 1 '^whole' && has 1 'Processed: g' && echo 1)" 'lets the job finish' "$out"

begin "$bin" queue:listen --exec="$folder/handler" --max-jobs=1
wait_for 1 'Worker .* watching' 'queue:listen is work --reload'
run push e
ends_with 0 'a worker that ends by itself ends it'
begin "$bin" work --exec="$folder/nothing" --reload
ends_with 2 'what is wrong from the start ends it with 2'
begin "$bin" work --exec="$folder/handler" --reload --dsn=nowhere
ends_with 2 'so does a connection that is none'

# The parent dies without a word: the worker stops softly, too.
begin "$bin" work --exec="$folder/handler" --reload
wait_for 1 'Worker .* watching' 'the worker runs'
worker=$(sed -n 's/^Worker [^:]*:\([0-9]*\):.*/\1/p' seen)
kill -KILL $reloader
wait $reloader 2>/dev/null
reloader=''
report "$(ends "$worker")" 'a killed parent takes the worker along (rule H3)' "$worker runs"
until_true has 1 'Stopping: asked to shut down'
report "$(has 1 'Stopping: asked to shut down' && echo 1)" 'softly' "$(cat seen)"

# Signals for the worker are passed on.
begin "$bin" work --exec="$folder/handler" --reload
wait_for 1 'Worker .* watching' 'the worker runs'
kill -USR1 $reloader
wait_for 1 'idle; 0 jobs so far' 'USR1 is passed on (rule H2)'
kill -INT $reloader
ends_with 0 'INT, too'

# ---- PHP --------------------------------------------------------------------------------------------------

if [ -n "${TEST_PHP_EXECUTABLE:-}" ] && [ -n "${JOBQUEUE_EXTENSION:-}" ]; then
    php() { "$TEST_PHP_EXECUTABLE" -d "extension=$JOBQUEUE_EXTENSION" "$@"; }
    begin_php() {
        : >seen
        "$TEST_PHP_EXECUTABLE" -d "extension=$JOBQUEUE_EXTENSION" -d display_errors=stderr -d log_errors=0 "$@" >>seen 2>&1 &
        reloader=$!
    }
    mkdir app
    cat >app/parts.php <<'END_OF_FILE'
<?php function greet() { return 'greeting 1'; }
END_OF_FILE
    cat >app/Lazy.php <<'END_OF_FILE'
<?php final class Lazy { public function handle($job, $payload) { echo "lazy 1\n"; } }
END_OF_FILE
    cat >app/worker.php <<'END_OF_FILE'
<?php
require_once __DIR__ . '/parts.php';
spl_autoload_register(fn ($class) => require __DIR__ . "/$class.php");
return (new JobQueue\Worker(new JobQueue\Queue()))
    ->handle('greet', fn () => print(greet() . "\n"))
    ->handle('lazy', Lazy::class);
END_OF_FILE
    echo '<?php exit(JobQueue\Console::run($argv));' >app/console.php
    echo '<?php exit(JobQueue\Console::run($argv, require __DIR__ . "/worker.php"));' >app/artisan
    for form in bootstrap artisan; do
        store
        sed -i 's/[0-9]\+/1/' app/parts.php app/Lazy.php
        case $form in
        bootstrap) begin_php app/console.php work --bootstrap=app/worker.php --reload ;;
        artisan) begin_php app/artisan queue:listen ;;
        esac
        wait_for 1 'Worker .* watching' "PHP, $form: the worker runs"
        run push greet
        run push lazy
        wait_for 1 '^lazy 1' "PHP, $form: jobs are done"
        sed -i 's/greeting 1/greeting 2/' app/parts.php
        wait_for 2 'Worker .* watching' "PHP, $form: a loaded file starts the worker anew"
        run push greet
        run push lazy
        wait_for 1 '^greeting 2' "PHP, $form: with the new code"
        wait_for 2 'Processed: lazy' "PHP, $form: and works on"
        sed -i 's/lazy 1/lazy 2/' app/Lazy.php
        wait_for 3 'Worker .* watching' "PHP, $form: so does one that a job has loaded"
        run push lazy
        wait_for 1 '^lazy 2' "PHP, $form: with the new class"
        echo '<?php function greet() { return 3' >app/parts.php
        wait_for 1 'it is started again when a file changes' "PHP, $form: a syntax error is not the end"
        report "$(grep -q 'parts.php on line' seen && echo 1)" "PHP, $form: it is said" "$(cat seen)"
        echo "<?php function greet() { return 'greeting 3'; }" >app/parts.php
        run push greet
        wait_for 1 '^greeting 3' "PHP, $form: mended code runs"
        cp app/worker.php kept
        sed -i 's/JobQueue.Queue()/JobQueue\\Queue("nosuch:x")/' app/worker.php
        wait_for 2 'it is started again when a file changes' "PHP, $form: neither is a configuration that became wrong"
        cp kept app/worker.php
        wait_for 5 'Worker .* watching' "PHP, $form: and goes on when it is right again"
        kill -TERM $reloader
        ends_with 0 "PHP, $form: TERM ends it with 0"
    done
    # named connections and events
    store
    export JOBQUEUE_DSN_SHOP=$JOBQUEUE_DSN
    unset JOBQUEUE_DSN
    run push greet --dsn=shop
    sed -i 's/return (/return $w = (/; s/;$/;/' app/worker.php
    cat >app/named.php <<'END_OF_FILE'
<?php
return (new JobQueue\Worker(new JobQueue\Queue()))->handle('greet', fn () => null)
    ->on('worker.starting', fn ($event) => print("starting on $event->connection\n"))
    ->on('job.processed', fn ($event) => print("processed on $event->connection\n"));
END_OF_FILE
    named() { # named ARGUMENT...: as run does
        php app/console.php "$@" >"$folder/.out" 2>"$folder/.err"
        code=$? out=$(cat "$folder/.out") err=$(cat "$folder/.err") called="console.php $*"
    }
    named work shop --bootstrap=app/named.php --stop-when-empty
    expect 'PHP: work CONNECTION --bootstrap: new Queue() is that one, and events carry its name' 0 \
        out 'starting on shop' out 'processed on shop' out 'Ran 1 job'
    named work nowhere --bootstrap=app/named.php
    expect 'PHP: an unknown connection' 2 err 'set JOBQUEUE_DSN_NOWHERE' nout 'starting'
    named work memory: --bootstrap=app/named.php --stop-when-empty
    expect 'PHP: work DSN --bootstrap' 0 out 'starting on default'
    echo '<?php return new JobQueue\Worker(new JobQueue\Queue("memory:"));' >app/other.php
    named work shop --bootstrap=app/other.php
    expect 'PHP: a bootstrap with a connection of its own' 2 err 'has a connection of its own, memory:'
    # the number of restarts is read before the application is loaded (rule L2)
    export JOBQUEUE_DSN=$JOBQUEUE_DSN_SHOP
    cat >app/asked.php <<'END_OF_FILE'
<?php
(new JobQueue\Queue())->restartWorkers();
return new JobQueue\Worker(new JobQueue\Queue());
END_OF_FILE
    : >seen
    timeout 60 "$TEST_PHP_EXECUTABLE" -d "extension=$JOBQUEUE_EXTENSION" app/console.php work --bootstrap=app/asked.php >seen 2>&1
    code=$? out=$(cat seen) err='' called='work --bootstrap=app/asked.php'
    expect 'PHP: a restart while the application loads ends the worker (rule L2)' 0 out 'Stopping: restart requested'
else
    skip 'PHP: work --reload' 'no extension'
fi
finish

# SPDX-License-Identifier: MIT
# The suites of ./dev test. A suite is a function that prints TAP; its log stands in build/logs/SUITE.log.
# shellcheck shell=bash

SUITES=(tools docs unit contract process console fuzz install package phpt python interop laravel examples)

# So many suites run at a time: most of their time they wait, for a signal, a lease, a server. Those that compile or judge what
# tools say give way to those that watch a clock.
AT_ONCE=${JOBQUEUE_TEST_AT_ONCE:-2}
PATIENT=' package docs install tools laravel examples '
# What takes longest begins first: suites, programs and scripts by their names, by how long they took when last looked at.
LONG='process package python contract phpt console
    test_stores test_cuts test_control test_hooks test_last_tries test_clock test_kill test_outage test_seats test_rules
    test_mysql test_pgsql test_redis test_redis_cluster test_pgsql_guarantees
    source.sh docs.sh php.sh python.sh missing.sh
    test_guarantees.py test_worker.py test_threads.py test_types.py test_together.py'

# ---- running ---------------------------------------------------------------------------------------

# check NAME COMMAND...: one TAP line for a command that fails with a non-zero status, and behind it what it said
check() {
    local name=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    if [ "$status" = 0 ]; then echo "ok - $name"; else echo "not ok - $name"; fi
    [ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/# /'
}

# programs LIST: the cmocka programs of a list, from the repository root; one that dies is a failure of its own
programs() {
    local program
    for program in $(words "$1"); do run_program "$program"; done
}

run_program() {
    local program=$1 out status=0 start=$SECONDS
    out=$(cd "$ROOT" && CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 ${RUNNER:-} "$BUILD/$program" 2>&1 </dev/null) ||
        status=$?
    echo "# program $program, $((SECONDS - start)) s"
    printf '%s\n' "$out"
    [ "$status" = 0 ] || grep -aq '^not ok' <<<"$out" || echo "not ok - $program ended with status $status"
}

# side_by_side N COMMAND WORD...: the command with each word, N at a time; what they print is in the order of the words
side_by_side() {
    local most=$1 command=$2 folder word order i=0
    shift 2
    folder=$(mktemp -d)
    mapfile -t order < <(longest_first "$@")
    for word in "${order[@]}"; do
        [ $i -lt "$most" ] || wait -n
        i=$((i + 1))
        "$command" "$word" >"$folder/${word//\//_}" 2>&1 &
    done
    wait
    for word; do cat "$folder/${word//\//_}"; done
    rm -rf "$folder"
}

# longest_first WORD...: those that LONG names come first, in its order
longest_first() {
    local name word
    for name in $LONG; do
        for word; do [ "${word##*/}" != "$name" ] || echo "$word"; done
    done
    for word; do [[ " ${LONG//$'\n'/ } " == *" ${word##*/} "* ]] || echo "$word"; done
}

# words VARIABLE: a list of sources.am
words() { sed -n "/^$1 =/,/^\$/p" "$ROOT/sources.am" | sed '1d;s/\\$//' | xargs; }

# fuzz_targets: those that the built drivers have
fuzz_targets() {
    local driver
    words FUZZ_TARGETS
    for driver in $(built_drivers); do words "${driver^^}_FUZZ"; done
}

# count LOG: "passed failed skipped"
count() {
    awk '/^(not )?ok( |$)/ { if (/# SKIP/) s++; else if (/^not/) f++; else p++ }
         END { print p + 0, f + 0, s + 0 }' "$1"
}

# Each failed line with what says why: the last lines since the result before it, and the "# " lines behind it.
show_failure() {
    awk '/^not ok/ && !/# SKIP/ && ++failed <= 20 {
             print "    " $0
             for (i = n > 20 ? n - 19 : 1; i <= n; i++) print "    | " before[i]
             left = 60; n = 0; next
         }
         /^(not )?ok( |$)/ { left = n = 0; next }
         /^# / && left > 0 { print "    | " substr($0, 3); left--; next }
         !/^[. ]*$/ { before[++n] = substr($0, 1, 300) }
         { left = 0 }' "$1"
    echo "    … all of it: $1"
}

# run_suite NAME: prints its line, in one piece with what failed, and leaves "passed failed skipped" beside its log
run_suite() {
    local name=$1 log=$BUILD/logs/$1.log passed failed skipped line start=$SECONDS status=0
    [[ $PATIENT != *" $name "* ]] || renice -n $(($(nice) + 5)) "$BASHPID" >/dev/null 2>&1 || true
    (
        "suite_$name"
        status=$?
        echo "# processor time, user and system, of the shell and of what it ran:"
        times
        exit $status
    ) >"$log" 2>&1 </dev/null 8>&- || status=$?
    read -r passed failed skipped < <(count "$log")
    if [ "$status" != 0 ]; then
        failed=$((failed + 1))
        echo "not ok - the suite itself ended with status $status" >>"$log"
    elif [ $((passed + failed + skipped)) = 0 ]; then
        failed=1
        echo "not ok - the suite ran nothing" >>"$log"
    fi
    echo "$passed $failed $skipped" >"$BUILD/logs/$name.count"
    line=$(printf '%-10s %5d passed %4d failed %4d skipped %5d s' "$name" "$passed" "$failed" "$skipped" $((SECONDS - start)))
    [ "$failed" = 0 ] || line+=$'\n'$(show_failure "$log")
    printf '%s\n' "$line"
}

# tally SUITE...: adds to PASSED FAILED SKIPPED; a suite that left no counts was ended
tally() {
    local suite passed failed skipped
    for suite; do
        { read -r passed failed skipped <"$BUILD/logs/$suite.count"; } 2>/dev/null || {
            echo "the suite $suite did not come to its end"
            passed=0 failed=1 skipped=0
        }
        PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
    done
}

run_suites() {
    local suite wanted=("$@") i=0 start=$SECONDS
    [ $# -gt 0 ] || wanted=("${SUITES[@]}")
    [ "${1:-}" != list ] || { printf '%s\n' "${SUITES[@]}"; return; }
    mkdir -p "$BUILD/logs"
    build_all
    build_target check-programs
    build_target example-programs
    # Two runs in one folder would write the same logs.
    exec 8>"$BUILD/.suites"
    flock -n 8 || { note "another run of the suites is under way, waiting for it"; flock 8; }
    . "$ROOT/tools/dev/servers.sh"
    servers_for_tests
    PASSED=0 FAILED=0 SKIPPED=0
    export JOBQ_SRCDIR=$ROOT JOBQUEUE_BIN=$BUILD/.libs/jobqueue
    LD_LIBRARY_PATH=$(library_path)
    export LD_LIBRARY_PATH
    for suite in $(longest_first "${wanted[@]}"); do
        [ $i -lt "$AT_ONCE" ] || wait -n || true
        i=$((i + 1))
        rm -f "$BUILD/logs/$suite.count"
        run_suite "$suite" &
    done
    wait
    tally "${wanted[@]}"
    echo "$PASSED passed, $FAILED failed, $SKIPPED skipped, $((SECONDS - start)) s"
    [ "$FAILED" = 0 ]
}

# ---- the suites ------------------------------------------------------------------------------------

suite_tools() {
    local tool
    for tool in check-lists check-includes check-budgets check-version; do
        check "$tool" "$ROOT/tools/$tool"
    done
    case $("$PHP_CONFIG" --version) in
    8.2.*) check check-arginfo "$ROOT/tools/check-arginfo" ;;
    *) echo "ok - check-arginfo # SKIP only PHP 8.2 makes these files" ;;
    esac
    for tool in gen-docs gen-commands gen-man gen-completion gen-lua; do
        [ ! -x "$ROOT/tools/$tool" ] || check "$tool --check" "$ROOT/tools/$tool" --check
    done
    check "each public header compiles alone, as C and as C++" headers_alone
    check "the shared library exports jobq_… and nothing else" exports_only_public
}

suite_docs() {
    . "$ROOT/tools/dev/docs.sh"
    check "the library is installed for programs in C" locked make -C "$BUILD" -s install prefix="$BUILD/docs/installed"
    tap_script "$ROOT/tools/check-docs"
    check "the site is made without a warning, its links lead somewhere" make_site
}

suite_unit() { programs UNIT_TESTS; }
suite_contract() {
    local driver programs
    programs=$(words CONTRACT_TESTS)
    for driver in $(built_drivers); do programs+=" $(words "${driver^^}_TESTS")"; done
    # shellcheck disable=SC2086 # a list of words
    side_by_side 3 run_program $programs
}
# shellcheck disable=SC2046 # a list of words
suite_process() { side_by_side 4 run_program $(words PROCESS_TESTS); }

suite_console() {
    programs CONSOLE_TESTS
    side_by_side 3 tap_script "$ROOT"/tests/console/*.sh
}

suite_fuzz() {
    local target
    for target in $(fuzz_targets); do
        check "${target##*/} replays its corpus" "$BUILD/$target" "$ROOT/tests/fuzz/corpus/${target##*/}"
    done
}

suite_install() {
    local prefix=$BUILD/installed
    rm -rf "$prefix"
    check "make install" locked make -C "$BUILD" -s install prefix="$prefix"
    check "the installed program runs" env LD_LIBRARY_PATH="$prefix/lib" "$prefix/bin/jobqueue" version
    check "a program builds with pkg-config" build_with_pkg_config "$prefix"
    check "the completions of bash and zsh are installed" test -e "$prefix/share/bash-completion/completions/jobqueue" -a \
        -e "$prefix/share/zsh/site-functions/_jobqueue"
    check "the soname is libjobqueue.so.0" test -e "$prefix/lib/libjobqueue.so.0"
}

# Made and installed as people do it.
suite_package() {
    rm -rf "$BUILD/packages"
    JOBQUEUE_TEST_PACKAGES=$BUILD/packages side_by_side 3 tap_script "$ROOT"/tests/package/*.sh
}

# All tests once, and those that take a store of util.inc on each server store, side by side from copies.
suite_phpt() {
    local driver name names=(all) pids=() i mark failed=0
    for driver in $(built_drivers); do
        name=${SERVER_OF[$driver]:-}
        [ -z "$name" ] || names+=("$name")
    done
    for name in "${names[@]}"; do
        phpt_on "$name" >"$BUILD/logs/phpt-$name.tap" &
        pids+=($!)
    done
    for i in "${!names[@]}"; do
        wait "${pids[i]}" || failed=1
        [ "${names[i]}" = all ] && mark='' || mark=" on ${names[i]}"
        sed "s/^\\(not \\)\\?ok.*/&$mark/" "$BUILD/logs/phpt-${names[i]}.tap"
    done
    return $failed
}

# phpt_on all|SERVER: on a server those that say store() and open no file of SQLite's themselves
phpt_on() {
    local name=$1 copy=$BUILD/phpt/$1 test
    if [ "$name" = all ]; then
        run_phpt "$ROOT/phpt" "$BUILD/logs/run-tests.log"
        return
    fi
    rm -rf "$copy"
    mkdir -p "$copy"
    cp -r "$ROOT/phpt/_util" "$copy/"
    while IFS= read -r test; do
        mkdir -p "$copy/$(dirname "$test")"
        cp "$ROOT/phpt/$test" "$copy/$test"
    done < <(cd "$ROOT/phpt" && grep -l 'store(' -- */*.phpt | xargs grep -L 'new SQLite3')
    JOBQUEUE_TEST_STORE=$name run_phpt "$copy" "$BUILD/logs/run-tests-$name.log"
}

# run_phpt FOLDER LOG
run_phpt() {
    local run_tests out=$2 status=0
    run_tests=$("$PHP_CONFIG" --prefix)/lib/php/$("$PHP_CONFIG" --phpapi)/build/run-tests.php
    cd "$1" || return
    NO_INTERACTION=1 REPORT_EXIT_STATUS=1 TEST_PHP_EXECUTABLE=$(command -v "$PHP") TEST_TIMEOUT=120 \
        timeout 900 env "${PHP_ENVIRONMENT[@]}" "$PHP" "$run_tests" -q --offline --no-color --show-diff \
        -d "extension=$(php_extension)" . >"$out" 2>&1 || status=$?
    phpt_to_tap <"$out"
    # 1 says that tests failed, and they say so themselves; without its summary the runner has not come to the end
    [ "$status" -le 1 ] && grep -q '^Tests passed' "$out" && return
    tail -n 20 "$out"
    return 1
}

# The framework comes from Packagist, once; without it there is nothing to run.
suite_laravel() {
    local folder=$BUILD/laravel
    if [ ! -f "$folder/vendor/autoload.php" ]; then
        mkdir -p "$folder"
        cp "$ROOT/integrations/laravel/tests/composer.json" "$folder/"
        COMPOSER_ALLOW_SUPERUSER=1 timeout 240 composer --working-dir="$folder" --no-interaction --no-progress --quiet install ||
            { echo "ok - the suite of integrations/laravel # SKIP Composer cannot install the framework"; return; }
    fi
    LARAVEL_VENDOR=$folder/vendor tap_script "$ROOT/integrations/laravel/tests/run"
}

suite_python() { side_by_side 3 run_pytest "$ROOT"/python-ext/tests/test_*.py; }
suite_interop() { run_pytest "$ROOT/tests/interop/test_interop.py"; }

# run_pytest FILE: it ends with 1 when tests failed, and they say so themselves
run_pytest() {
    local status=0 start=$SECONDS
    cd "${1%/*}" || return
    JOBQUEUE_TAP=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(python_path) TEST_PHP_EXECUTABLE=$(command -v "$PHP") \
        JOBQUEUE_EXTENSION=$(php_extension) timeout 900 env "${PYTHON_ENVIRONMENT[@]}" "$PYTHON" -m pytest -q --tb=short -p no:cacheprovider "${1##*/}" || status=$?
    echo "# pytest ${1##*/}, $((SECONDS - start)) s"
    [ "$status" -le 1 ] || echo "not ok - pytest ${1##*/} ended with status $status"
}

suite_examples() { tap_script "$ROOT/examples/run"; }

# ---- helpers of the suites -------------------------------------------------------------------------

# tap_script SCRIPT: it prints TAP itself; ending badly without a failed line is a failure of its own
tap_script() {
    local out status=0 start=$SECONDS
    out=$(cd "$ROOT" && TEST_PHP_EXECUTABLE=$(command -v "$PHP") JOBQUEUE_EXTENSION=$(php_extension) JOBQUEUE_PYTHONPATH=$(python_path) timeout 1800 "$1" 2>&1) || status=$?
    echo "# script $1, $((SECONDS - start)) s"
    printf '%s\n' "$out"
    [ "$status" = 0 ] || grep -aq '^not ok' <<<"$out" || echo "not ok - $1 ended with status $status"
}

# Results only, and of those that failed the difference: it stands before the line of its test, here it follows.
phpt_to_tap() {
    sed -E -e 's/^.*\r//' -e 's/^(PASS|XFAIL) /ok - /' -e 's/^SKIP (.*)/ok - \1 # SKIP/' \
        -e 's/^(FAIL|BORK|LEAK|XLEAK|WARN|FAIL&LEAK|WARN&FAIL) /not ok - /' |
        awk '/^=+DIFF=+$/ { inside = 1; n = 0; next }
             /^=+DONE=+$/ { inside = 0; next }
             inside { if (n < 60) diff[++n] = $0; next }
             /^(not )?ok/ { print }
             /^not ok/ { for (i = 1; i <= n; i++) print "# " diff[i] }
             /^(not )?ok/ { n = 0 }'
}

headers_alone() {
    local header failed=0
    cd "$ROOT/libjobqueue/include" || return
    for header in jobqueue/*.h jobqueue/sys/*.h; do
        printf '#include <%s>\ntypedef int unused;\n' "$header" | cc -x c -std=c11 -Wall -Wextra -Werror -pedantic -I. -fsyntax-only - || failed=1
        printf '#include <%s>\ntypedef int unused;\n' "$header" | c++ -x c++ -std=c++11 -Wall -Wextra -Werror -I. -fsyntax-only - || failed=1
    done
    return $failed
}

exports_only_public() {
    local odd
    odd=$(nm -D --defined-only "$BUILD/.libs/libjobqueue.so" | awk '{ print $NF }' |
        grep -vE '^(jobq_[a-z][a-z0-9_]*(@@JOBQUEUE_0)?|JOBQUEUE_0)$' || true)
    [ -z "$odd" ] || { echo "$odd"; return 1; }
}

build_with_pkg_config() {
    local prefix=$1 program=$BUILD/installed/program
    echo '#include <jobqueue/jobqueue.h>
#include <stdio.h>
int main(void) { return puts(jobq_version()) < 0; }' >"$program.c"
    # shellcheck disable=SC2046 # flags are words
    cc "$program.c" -o "$program" $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs libjobqueue) &&
        LD_LIBRARY_PATH=$prefix/lib "$program"
}

# SPDX-License-Identifier: MIT
# The suites of ./dev test. A suite is a function that prints TAP; its log stands in build/logs/SUITE.log.
# shellcheck shell=bash

SUITES=(tools docs unit contract process console fuzz install package phpt python interop laravel examples)

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
    local program=$1 out status=0
    echo "# program $program"
    out=$(cd "$ROOT" && CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 ${RUNNER:-} "$BUILD/$program" 2>&1 </dev/null) ||
        status=$?
    printf '%s\n' "$out"
    [ "$status" = 0 ] || grep -aq '^not ok' <<<"$out" || echo "not ok - $program ended with status $status"
}

# side_by_side COMMAND WORD...: the command with each word, three at a time; what they print is in order
side_by_side() {
    local command=$1 folder word i=0
    shift
    folder=$(mktemp -d)
    for word; do
        [ $i -lt 3 ] || wait -n
        i=$((i + 1))
        "$command" "$word" >"$folder/$((100 + i))" 2>&1 &
    done
    wait
    cat "$folder"/*
    rm -rf "$folder"
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

# run_suite NAME: adds to PASSED FAILED SKIPPED
run_suite() {
    local name=$1 log=$BUILD/logs/$1.log passed failed skipped start=$SECONDS status=0
    ("suite_$name") >"$log" 2>&1 </dev/null 8>&- || status=$?
    read -r passed failed skipped < <(count "$log")
    if [ "$status" != 0 ]; then
        failed=$((failed + 1))
        echo "not ok - the suite itself ended with status $status" >>"$log"
    elif [ $((passed + failed + skipped)) = 0 ]; then
        failed=1
        echo "not ok - the suite ran nothing" >>"$log"
    fi
    printf '%-10s %5d passed %4d failed %4d skipped %5d s\n' "$name" "$passed" "$failed" "$skipped" $((SECONDS - start))
    [ "$failed" = 0 ] || show_failure "$log"
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
}

run_suites() {
    local suite wanted=("$@")
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
    for suite in "${wanted[@]}"; do run_suite "$suite"; done
    echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
    [ "$FAILED" = 0 ]
}

# ---- the suites ------------------------------------------------------------------------------------

suite_tools() {
    local tool
    for tool in check-lists check-includes check-budgets check-arginfo check-version; do
        check "$tool" "$ROOT/tools/$tool"
    done
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
    side_by_side run_program $programs
}
# shellcheck disable=SC2046 # a list of words
suite_process() { side_by_side run_program $(words PROCESS_TESTS); }

suite_console() {
    local script
    programs CONSOLE_TESTS
    for script in "$ROOT"/tests/console/*.sh; do
        [ ! -f "$script" ] || tap_script "$script"
    done
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
suite_package() { side_by_side tap_script "$ROOT"/tests/package/*.sh; }

# All tests once, then those that take a store of util.inc on each server store, side by side from copies.
suite_phpt() {
    local driver name pid pids=() failed=0
    run_phpt "$ROOT/phpt" "$BUILD/logs/run-tests.log" || failed=1
    for driver in $(built_drivers); do
        name=${SERVER_OF[$driver]:-}
        [ -n "$name" ] || continue
        phpt_on "$name" >"$BUILD/logs/phpt-$name.tap" &
        pids+=("$!:$name")
    done
    for pid in "${pids[@]}"; do
        wait "${pid%%:*}" || failed=1
        sed "s/^\\(not \\)\\?ok.*/& on ${pid#*:}/" "$BUILD/logs/phpt-${pid#*:}.tap"
    done
    return $failed
}

# phpt_on SERVER: the tests that say store() and open no file of SQLite's themselves
phpt_on() {
    local name=$1 copy=$BUILD/phpt/$1 test
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

suite_python() { run_pytest "$ROOT/python-ext/tests"; }
suite_interop() { run_pytest "$ROOT/tests/interop"; }

# run_pytest FOLDER: it ends with 1 when tests failed, and they say so themselves
run_pytest() {
    local status=0
    cd "$1" || return
    JOBQUEUE_TAP=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(python_path) TEST_PHP_EXECUTABLE=$(command -v "$PHP") \
        JOBQUEUE_EXTENSION=$(php_extension) timeout 900 env "${PYTHON_ENVIRONMENT[@]}" "$PYTHON" -m pytest -q --tb=short -p no:cacheprovider . || status=$?
    [ "$status" -le 1 ]
}

suite_examples() { tap_script "$ROOT/examples/run"; }

# ---- helpers of the suites -------------------------------------------------------------------------

# tap_script SCRIPT: it prints TAP itself; ending badly without a failed line is a failure of its own
tap_script() {
    local out status=0
    out=$(cd "$ROOT" && TEST_PHP_EXECUTABLE=$(command -v "$PHP") JOBQUEUE_EXTENSION=$(php_extension) JOBQUEUE_PYTHONPATH=$(python_path) timeout 900 "$1" 2>&1) || status=$?
    echo "# script $1"
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

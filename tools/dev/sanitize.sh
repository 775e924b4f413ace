# SPDX-License-Identifier: MIT
# ./dev asan, tsan, valgrind, fuzz, chaos: the suites again, with somebody watching or shooting.
# shellcheck shell=bash disable=SC2034 # read by the other parts

# in_tree FOLDER CONFIGURE-OPTION SUITE...: the suites from a build of their own; without -Werror, since a
# sanitizer's instructions make the compiler see paths that do not exist
in_tree() {
    BUILD=$ROOT/build/$1
    CONFIGURE_OPTIONS=("$2")
    shift 2
    mkdir -p "$BUILD/logs"
    . "$ROOT/tools/dev/suites.sh"
    AT_ONCE=1   # what is slowed down so much computes more than it waits
    run_suites "$@"
}

# PHP itself is not built with the sanitizer: its runtime is loaded first, and PHP's own memory is not judged.
run_asan() {
    export CFLAGS='-O1 -g'
    export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:verify_asan_link_order=0
    export UBSAN_OPTIONS=print_stacktrace=1 JOBQUEUE_TEST_SLOW=1
    local shim=$ROOT/build/asan/no_deepbind.so
    mkdir -p "$ROOT/build/asan"
    cc -D_GNU_SOURCE -shared -fPIC "$ROOT/tools/dev/no_deepbind.c" -o "$shim"
    PHP_ENVIRONMENT=(LD_PRELOAD="$shim $(cc -print-file-name=libasan.so)" USE_ZEND_ALLOC=0 JOBQUEUE_SANITIZED=1
        ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=0")
    PYTHON_ENVIRONMENT=("${PHP_ENVIRONMENT[0]}" "${PHP_ENVIRONMENT[3]}" PYTHONMALLOC=malloc JOBQUEUE_SANITIZED=1)
    # For the scripts that run PHP by themselves.
    printf '#!/bin/sh\nexec env %s "%s" "$@"\n' "$(printf "'%s' " "${PHP_ENVIRONMENT[@]}")" "$(command -v "$PHP")" >"$ROOT/build/asan/php"
    chmod +x "$ROOT/build/asan/php"
    PHP=$ROOT/build/asan/php
    EXTENSION_CFLAGS="$CFLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    [ $# -gt 0 ] || set -- unit contract process console fuzz phpt
    in_tree asan --enable-asan "$@"
}

run_tsan() {
    export CFLAGS='-O1 -g' JOBQUEUE_TEST_SLOW=1
    [ $# -gt 0 ] || set -- unit contract
    in_tree tsan --enable-tsan "$@"
}

run_valgrind() {
    export JOBQUEUE_TEST_SLOW=1
    RUNNER="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=yes"
    . "$ROOT/tools/dev/suites.sh"
    AT_ONCE=1
    [ $# -gt 0 ] || set -- unit contract
    run_suites "$@"
}

# fuzz_one TARGET SECONDS: new inputs and what makes it crash are kept in build/fuzz/TARGET
# shellcheck disable=SC2046 # flags are words
fuzz_one() {
    local name=${1##*/} folder=$BUILD/${1##*/} log=$BUILD/logs/run-${1##*/}.log
    mkdir -p "$folder/corpus"
    step "building the fuzz target $name" "$BUILD/logs/build-$name.log" \
        clang -g -O1 -std=c11 -D_GNU_SOURCE "$FUZZ_STRICT" "$FUZZ_SANITIZERS,fuzzer" -I"$ROOT/libjobqueue" \
        -I"$ROOT/libjobqueue/include" -I"$ROOT/tests" "$ROOT/$1.c" "$BUILD/.libs/libjobqueue-core.a" \
        $(make_value MSGPACK_LIBS SQLITE_LIBS REDIS_LIBS PGSQL_LIBS MYSQL_LIBS) -lm -o "$folder/fuzz"
    note "fuzzing $name for $2 s"
    (cd "$folder" && ./fuzz -max_total_time="$2" -print_final_stats=1 corpus "$ROOT/tests/fuzz/corpus/$name") >"$log" 2>&1 || {
        tail -n 40 "$log"
        echo "$name: FAILED, the input lies in $folder"
        return 1
    }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
}

check_seconds() {
    [[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1: SECONDS is a whole number above 0, not \"$2\""
}

# The program prints its seed; JOBQUEUE_TEST_SEED repeats it.
run_chaos() {
    local seconds=${1:-60}
    check_seconds chaos "$seconds"
    build_all
    build_target tests/process/test_chaos
    cd "$ROOT" || return
    exec env JOBQ_SRCDIR="$ROOT" JOBQUEUE_BIN="$BUILD/.libs/jobqueue" LD_LIBRARY_PATH="$(library_path)" \
        JOBQUEUE_CHAOS_SECONDS="$seconds" JOBQUEUE_CHAOS_WORKERS="${JOBQUEUE_CHAOS_WORKERS:-20}" "$BUILD/tests/process/test_chaos"
}

run_fuzz() {
    local seconds=${1:-30} target failed=0
    check_seconds fuzz "$seconds"
    . "$ROOT/tools/dev/suites.sh"
    FUZZ_SANITIZERS=-fsanitize=address,undefined FUZZ_STRICT=-fno-sanitize-recover=undefined
    BUILD=$ROOT/build/fuzz
    CONFIGURE_OPTIONS=(CC=clang "CFLAGS=-g -O1 $FUZZ_STRICT $FUZZ_SANITIZERS,fuzzer-no-link" "LDFLAGS=$FUZZ_SANITIZERS")
    build_target libjobqueue-core.la
    for target in $(fuzz_targets); do fuzz_one "$target" "$seconds" || failed=1; done
    return $failed
}

# SPDX-License-Identifier: MIT
# ./dev asan, tsan, valgrind, fuzz: the suites again, with somebody watching.
# shellcheck shell=bash disable=SC2034 # read by the other parts

# in_tree FOLDER CONFIGURE-OPTION SUITE...: the suites from a build of their own
in_tree() {
    BUILD=$ROOT/build/$1
    CONFIGURE_OPTIONS+=("$2")
    shift 2
    mkdir -p "$BUILD/logs"
    . "$ROOT/tools/dev/suites.sh"
    run_suites "$@"
}

# PHP itself is not built with the sanitizer: its runtime is loaded first, and PHP's own memory is not judged.
run_asan() {
    export CFLAGS='-O1 -g'
    export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0
    export UBSAN_OPTIONS=print_stacktrace=1
    PHP_ENVIRONMENT=(LD_PRELOAD="$(cc -print-file-name=libasan.so)" USE_ZEND_ALLOC=0)
    EXTENSION_CFLAGS="$CFLAGS -fsanitize=address,undefined -fno-omit-frame-pointer"
    [ $# -gt 0 ] || set -- unit contract process console fuzz phpt
    in_tree asan --enable-asan "$@"
}

run_tsan() {
    export CFLAGS='-O1 -g'
    [ $# -gt 0 ] || set -- unit contract
    in_tree tsan --enable-tsan "$@"
}

run_valgrind() {
    RUNNER="valgrind -q --error-exitcode=99 --leak-check=full --child-silent-after-fork=yes"
    . "$ROOT/tools/dev/suites.sh"
    [ $# -gt 0 ] || set -- unit contract
    run_suites "$@"
}

# fuzz_one TARGET SECONDS: what it finds is kept beside the corpus of the run in build/fuzz
# shellcheck disable=SC2046 # flags and files are words
fuzz_one() {
    local name=${1##*/} folder=$ROOT/build/fuzz/${1##*/}
    mkdir -p "$folder"
    step "building the fuzz target $name" "$BUILD/logs/fuzz-$name.log" \
        clang -g -O1 -std=c11 -D_GNU_SOURCE -DJOBQ_BUILDING -fsanitize=fuzzer,address,undefined \
        -I"$ROOT/libjobqueue" -I"$ROOT/libjobqueue/include" -I"$ROOT/tests" $(pkg-config --cflags msgpack sqlite3) \
        "$ROOT/$1.c" $(find "$ROOT/libjobqueue" -name '*.c') -o "$folder/fuzz" $(pkg-config --libs msgpack sqlite3) -lm
    note "fuzzing $name for $2 s"
    mkdir -p "$folder/corpus"
    (cd "$folder" && ./fuzz -max_total_time="$2" -print_final_stats=1 corpus "$ROOT/tests/fuzz/corpus/$name") 2>&1 |
        tee "$BUILD/logs/fuzz-$name-run.log" | grep -E '^stat::number|SUMMARY|ERROR' || return 1
    ! grep -qE '^SUMMARY' "$BUILD/logs/fuzz-$name-run.log"
}

run_fuzz() {
    local seconds=${1:-30} target failed=0
    [[ $seconds =~ ^[1-9][0-9]*$ ]] || die "fuzz: seconds is a whole number above 0, not \"$seconds\""
    . "$ROOT/tools/dev/suites.sh"
    for target in $(words FUZZ_TARGETS); do fuzz_one "$target" "$seconds" || failed=1; done
    return $failed
}

# SPDX-License-Identifier: MIT
# ./dev lint and ./dev format.
# shellcheck shell=bash

c_files() {
    find "$ROOT"/{libjobqueue,cli,tests,php-ext,python-ext,examples,tools} -name '*.[ch]' ! -name '*_arginfo.h' ! -path '*/driver/redis/scripts.c' | sort
}
shell_files() {
    local file
    for file in "$ROOT"/dev "$ROOT"/autogen.sh "$ROOT"/.ci/run "$ROOT"/tools/* "$ROOT"/tools/dev/*.sh "$ROOT"/examples/run; do
        [ -f "$file" ] && { [[ $file == *.sh ]] || head -n 1 "$file" | grep -q '^#!.*sh$'; } && echo "$file"
    done
}

python_files() { find "$ROOT"/{python-ext,examples,tests,tools} -name '*.py' -o -name '*.pyi' | grep -v /build/ | sort; }

format() {
    c_files | xargs clang-format -i
    python_files | xargs black -q -l 100 -t py311
}
unformatted_python() { python_files | xargs black --check -l 100 -t py311; }
python_types() {
    cd "$ROOT/examples/python" &&
        MYPYPATH=$ROOT/python-ext/src:. "$PYTHON" -m mypy --strict --cache-dir "$BUILD/mypy" -p jobqueue -p shop
}
unformatted() { c_files | xargs clang-format --dry-run -Werror; }

# Comments are wrapped by hand: clang-format leaves them alone.
too_wide() { ! c_files | LC_ALL=C.UTF-8 xargs grep -nE '^.{101,}'; }

lint_flags() {
    echo "-std=c11 -D_GNU_SOURCE -DJOBQ_BUILDING -DJOBQ_WITH_REDIS=1 -DJOBQ_WITH_PGSQL=1 -DJOBQ_WITH_MYSQL=1" \
        "-I$ROOT/libjobqueue -I$ROOT/libjobqueue/include" \
        "$(pkg-config --cflags msgpack sqlite3 hiredis openssl libpq libmariadb)"
}

# One file at a time: clang-tidy 14 carries findings about va_list from one file to the next.
# shellcheck disable=SC2046 # flags are words
tidy() {
    find "$ROOT/libjobqueue" "$ROOT/cli" -name '*.c' -print0 |
        xargs -0 -I FILE -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' FILE -- $(lint_flags)
}

# lint_step NAME COMMAND...: runs on after a failure, remembers it
lint_step() {
    local name=$1 log=$BUILD/logs/lint-$1.log
    shift
    if "$@" >"$log" 2>&1 </dev/null; then
        printf '%-16s fine\n' "$name"
    else
        printf '%-16s FAILED (%s)\n' "$name" "$log"
        tail -n 20 "$log" | sed 's/^/    /'
        LINT_FAILED=$((LINT_FAILED + 1))
    fi
}

# shellcheck disable=SC2046 # lists of files and flags are words
lint() {
    local tool
    LINT_FAILED=0
    mkdir -p "$BUILD/logs"
    for tool in check-lists check-includes check-budgets; do lint_step "$tool" "$ROOT/tools/$tool"; done
    lint_step check-rules "$ROOT/tools/check-rules" --strict
    lint_step clang-format unformatted
    lint_step columns too_wide
    lint_step black unformatted_python
    lint_step mypy python_types
    lint_step shellcheck shellcheck -x -S warning $(shell_files)
    lint_step cppcheck cppcheck -q --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 \
        --suppress=missingIncludeSystem -I"$ROOT/libjobqueue" -I"$ROOT/libjobqueue/include" \
        "$ROOT/libjobqueue" "$ROOT/cli"
    lint_step clang-tidy tidy
    [ "$LINT_FAILED" = 0 ]
}

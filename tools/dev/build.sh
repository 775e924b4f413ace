# SPDX-License-Identifier: MIT
# Building out of the tree into build/ (or a folder below it), only what is out of date. build/configure-options may hold
# more options for configure, one a line: --without-redis.
# shellcheck shell=bash disable=SC2034,SC2164 # read by the other parts; set -e is on

# They may be installed only after this is read: then they have these names.
PHP=${PHP:-$(command -v php8.2 || command -v php || echo php8.2)}
export PHP_CONFIG=${PHP_CONFIG:-$(command -v php-config8.2 || command -v php-config || echo php-config8.2)}
export PHPIZE=${PHPIZE:-$(command -v phpize8.2 || command -v phpize || echo phpize8.2)}
CONFIGURE_OPTIONS=(--enable-werror)
PHP_ENVIRONMENT=()   # for the suites' PHP, NAME=VALUE
PYTHON_ENVIRONMENT=()
EXTENSION_CFLAGS=${CFLAGS:-}
export PYTHON=${PYTHON:-/usr/bin/python3}   # Debian's, which has the packages; another may come first on PATH

library_path() { echo "$BUILD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }
php_extension() { echo "$BUILD/php-ext/modules/jobqueue.so"; }
python_path() { echo "$BUILD/python-ext/lib${PYTHONPATH:+:$PYTHONPATH}"; }

# One build at a time; the lock is held by descriptor 9 of the subshell alone.
locked() (
    mkdir -p "$ROOT/build/logs"
    exec 9>"$ROOT/build/.lock"
    flock 9
    "$@" 9>&-
)

configure_tree() {
    [ -x "$ROOT/configure" ] && [ -f "$ROOT/Makefile.in" ] ||
        step "preparing configure" "$BUILD/logs/autogen.log" "$ROOT/autogen.sh"
    local options=("${CONFIGURE_OPTIONS[@]}") own=() wanted
    mapfile -t own < <(cat "$ROOT/build/configure-options" 2>/dev/null)
    options+=("${own[@]}")
    # The client libraries are part of it: configure takes those it finds.
    wanted="${options[*]} $(client_libraries)"
    [ -f "$BUILD/Makefile" ] && [ "$(cat "$BUILD/.configured" 2>/dev/null)" = "$wanted" ] && return
    (
        mkdir -p "$BUILD"
        cd "$BUILD"
        step "configuring" "$BUILD/logs/configure.log" "$ROOT/configure" "${options[@]}"
        echo "$wanted" >.configured
    )
}

client_libraries() {
    local module
    for module in hiredis openssl libpq libmariadb; do
        echo "$module=$(pkg-config --modversion "$module" 2>/dev/null)"
    done | xargs
}

# make_value VARIABLE...: what configure found
make_value() {
    local name
    for name; do sed -n "s/^$name = //p" "$BUILD/Makefile"; done | xargs
}

# built_drivers: those of the tree that is built, by their folders' names
built_drivers() {
    local driver
    for driver in sqlite redis pgsql mysql; do
        ! grep -q "^JOBQ_WITH_${driver^^} = 1" "$BUILD/Makefile" || echo "$driver"
    done
}

make_targets() {
    configure_tree
    cd "$BUILD"   # make -C would go by the folder's real name, see plain_name
    make -q "$@" >/dev/null 2>&1 </dev/null ||
        step "building $*" "$BUILD/logs/make-$1.log" make -j"$(nproc)" "$@"
}

build_target() { locked make_targets "$@"; }
build_library() { locked make_targets all; }

# Quiet when there is nothing to do: the script compiles only what is out of date.
make_extension() {
    local log=$BUILD/logs/php-ext.log
    [ -f "$(php_extension)" ] || note "building the PHP extension"
    CFLAGS=$EXTENSION_CFLAGS "$ROOT/tools/build-php-ext" "$BUILD" >"$log" 2>&1 </dev/null && return
    grep -v "^libtool: " "$log" | tail -n 40 >&2
    die "failed: building the PHP extension (all of it: $log)"
}

make_python() {
    local log=$BUILD/logs/python-ext.log
    [ -d "$BUILD/python-ext/lib" ] || note "building the Python module"
    CFLAGS=$EXTENSION_CFLAGS "$ROOT/tools/build-python-ext" "$BUILD" >"$log" 2>&1 </dev/null && return
    tail -n 40 "$log" >&2
    die "failed: building the Python module (all of it: $log)"
}

build_all() {
    build_library
    locked make_extension
    locked make_python
}

# php_exec ARGUMENT...: becomes PHP with the built extension; the system's ini files stay in force
php_exec() {
    LD_LIBRARY_PATH=$(library_path) exec "$PHP" -d "extension=$(php_extension)" "$@"
}

# python_exec ARGUMENT...: becomes Python with the built module
python_exec() {
    PYTHONPATH=$(python_path) LD_LIBRARY_PATH=$(library_path) exec "$PYTHON" "$@"
}

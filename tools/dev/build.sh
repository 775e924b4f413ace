# SPDX-License-Identifier: MIT
# Building out of the tree into build/ (or a folder below it), only what is out of date.
# shellcheck shell=bash disable=SC2034,SC2164 # read by the other parts; set -e is on

# They may be installed only after this is read: then they have these names.
PHP=${PHP:-$(command -v php8.2 || command -v php || echo php8.2)}
export PHP_CONFIG=${PHP_CONFIG:-$(command -v php-config8.2 || command -v php-config || echo php-config8.2)}
export PHPIZE=${PHPIZE:-$(command -v phpize8.2 || command -v phpize || echo phpize8.2)}
CONFIGURE_OPTIONS=(--enable-werror)
PHP_ENVIRONMENT=()   # for the suites' PHP, NAME=VALUE
EXTENSION_CFLAGS=${CFLAGS:-}

library_path() { echo "$BUILD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }
php_extension() { echo "$BUILD/php-ext/modules/jobqueue.so"; }

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
    [ -f "$BUILD/Makefile" ] || (
        mkdir -p "$BUILD"
        cd "$BUILD"
        step "configuring" "$BUILD/logs/configure.log" "$ROOT/configure" -q "${CONFIGURE_OPTIONS[@]}"
    )
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
    tail -n 40 "$log" >&2
    die "failed: building the PHP extension (all of it: $log)"
}

build_all() {
    build_library
    locked make_extension
}

# php_exec ARGUMENT...: becomes PHP with the built extension; the system's ini files stay in force
php_exec() {
    LD_LIBRARY_PATH=$(library_path) exec "$PHP" -d "extension=$(php_extension)" "$@"
}

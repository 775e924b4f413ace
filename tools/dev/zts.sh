# SPDX-License-Identifier: MIT
# ./dev matrix zts: the extension in a thread-safe PHP. Debian has none, so a small one is built from Debian's source package
# of the same version, once, into build/zts/ (some minutes). Then the extension is compiled with its phpize, warnings being
# errors, the PHP suite runs on it, and several threads run jobs at once.
# shellcheck shell=bash

# What the suite uses, no more; its own code is not what is measured here, so it is compiled the quick way.
ZTS_OPTIONS=(--enable-zts --disable-all --enable-cli --enable-embed=static --enable-pcntl --enable-posix --with-sqlite3 --enable-pdo
    --with-pdo-sqlite --enable-opcache --disable-cgi --disable-phpdbg CFLAGS=-O0)

# zts_source FOLDER: unpacks PHP as its authors release it, without Debian's changes, which are about Debian's folders
zts_source() (
    local release version state=$1/apt
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    version=$("$PHP" -n -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$1/fetched"
    echo "deb-src $(mirror) $release main" >"$state/sources.list"
    cd "$1/fetched" || return
    apt_at() {
        apt-get -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$state/lists" \
            -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
    }
    apt_at update && apt_at source --download-only "php$version" && rm -rf ../source && dpkg-source --skip-patches -x ./*.dsc ../source
)

zts_php() (
    zts_source "$1" && mkdir -p "$1/build" && cd "$1/build" &&
        ../source/configure --prefix="$1/php" "${ZTS_OPTIONS[@]}" && make -j"$(nproc)" && make install &&
        echo "${ZTS_OPTIONS[*]}" >"$1/made" && rm -rf "$1/build" "$1/source" "$1/fetched" "$1/apt"
)

# The threads' program is a host of its own, as an application server is: it exports PHP's names to the extension.
zts_threads() {
    local config=$1/php/bin/php-config folder
    folder=$(mktemp -d)
    # shellcheck disable=SC2046 # flags are words
    cc -std=gnu11 -Wall -Werror -Wno-unused-parameter -g -pthread "$ROOT/tests/package/threads.c" -o "$1/threads" -rdynamic \
        $("$config" --includes) "$1/php/lib/libphp.a" $("$config" --libs) &&
        echo "extension=$1/php-ext-bundled/modules/jobqueue.so" >"$folder/jobqueue.ini" &&
        THREADS_FOLDER=$folder PHP_INI_SCAN_DIR=$folder timeout 120 "$1/threads" "$ROOT/tests/package/threads.php" &&
        # 6 threads, 5 requests, 20 jobs that any of them may have run
        [ "$(sort -u "$folder/notes" | wc -l)" = 600 ] && [ "$(wc -l <"$folder/notes")" = 600 ] && rm -rf "$folder"
}

matrix_zts() {
    local zts=$ROOT/build/zts PHP=$PHP log=$BUILD/logs/matrix-zts.log
    [ "$(cat "$zts/made" 2>/dev/null)" = "${ZTS_OPTIONS[*]}" ] || {
        rm -rf "$zts"
        step "building a thread-safe PHP (some minutes, once)" "$BUILD/logs/zts-php.log" zts_php "$zts"
    }
    PHP=$zts/php/bin/php
    export PHP_CONFIG=$zts/php/bin/php-config PHPIZE=$zts/php/bin/phpize
    "$PHP" -n -r 'exit(PHP_ZTS ? 0 : 1);' || die "$PHP is not thread-safe"
    matrix_step "zts: it compiles without a warning" "$log" env CFLAGS="-O1 -g -Werror" MAKEFLAGS=-j"$(nproc)" \
        "$ROOT/tools/build-php-ext" "$zts" --bundled || return 1
    matrix_step "zts: the PHP suite passes" "$log" zts_suite "$zts/php-ext-bundled/modules/jobqueue.so" || return 1
    matrix_step "zts: threads run jobs side by side" "$log" zts_threads "$zts"
}

zts_suite() {
    NO_INTERACTION=1 REPORT_EXIT_STATUS=1 TEST_PHP_EXECUTABLE=$PHP TEST_TIMEOUT=120 "$PHP" "$("$PHP_CONFIG" --prefix)/lib/php/build/run-tests.php" \
        -q --offline --no-color --show-diff -d "extension=$1" "$ROOT/phpt"
}

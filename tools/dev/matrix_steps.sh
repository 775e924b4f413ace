# SPDX-License-Identifier: MIT
# What ./dev matrix does inside a fresh root, a function a step: the working folder is the tree without anything built, the
# releases lie in ../dist. Stores on servers are those of the host, whose names JOBQUEUE_TEST_… say.
# shellcheck shell=bash disable=SC2317,SC2164 # called by name; set -e is on

# What people of a release build with, then what the suites use.
MATRIX_PACKAGES='build-essential debhelper dh-php chrpath autoconf-archive automake libtool pkg-config libmsgpack-dev libsqlite3-dev
    libhiredis-dev libssl-dev libpq-dev libmariadb-dev php-dev php-cli php-pear php-sqlite3 dh-python python3-dev python3-setuptools
    procps ca-certificates
    python3-venv python3-wheel python3-pytest python3-pytest-asyncio python3-mypy python3-msgpack python3-psycopg python3-pymysql
    redis-server mariadb-client-core psmisc'

# set -e passes over a failed `!`
fails() { if "$@"; then return 1; fi; }

prepare() {
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    apt-get -qq update
    # shellcheck disable=SC2086 # a list of words
    apt-get -qq -y --no-install-recommends install $MATRIX_PACKAGES
}

# ---- Debian packages -------------------------------------------------------------------------------

build_debs() { dpkg-buildpackage -us -uc -b; }

# Their own dependencies are enough: what they were built with is not looked at by apt.
install_debs() {
    apt-get -qq -y install ../libjobqueue0_*.deb ../libjobqueue-dev_*.deb ../jobqueue_*.deb ../php-jobqueue_*.deb ../python3-jobqueue_*.deb
    apt-get -qq -y check
}

use_program() {
    [ "$(jobqueue version | head -n 1)" = "jobqueue $(version)" ]
    jobqueue --dsn=sqlite:/tmp/program.db push greet '{"to": "Ada"}'
    jobqueue --dsn=sqlite:/tmp/program.db stats | grep -q '^default  *1 '
    man -w jobqueue
}

# A job of every kind of program is worked off by another, in each store there is.
use_stores() {
    local dsn
    round "sqlite:/tmp/round.db"
    for dsn in $(store_names); do round "$dsn"; done
}

# store_names: nobody has used these before
store_names() {
    local name
    name=matrix$(date +%s)
    [ -z "${JOBQUEUE_TEST_REDIS:-}" ] || echo "$JOBQUEUE_TEST_REDIS?prefix=$name"
    [ -z "${JOBQUEUE_TEST_POSTGRES:-}" ] || echo "$JOBQUEUE_TEST_POSTGRES?schema=$name"
    [ -z "${JOBQUEUE_TEST_MARIADB:-}" ] || {
        mariadb --no-defaults -h 127.0.0.1 -P "$(sed 's,.*:\([0-9]*\)/.*,\1,' <<<"$JOBQUEUE_TEST_MARIADB")" -u jobqueue -e "CREATE DATABASE $name"
        echo "${JOBQUEUE_TEST_MARIADB%/*}/$name"
    }
}

# round DSN: what ./dev demo does, with the installed programs: eleven jobs, each worked off once
round() {
    local demo=$PWD/tools/dev ledger
    ledger=$(mktemp)
    echo "$1"
    php "$demo/demo.php" push "$1"
    jobqueue --dsn="$1" push greeting '{"to": "the C program"}'
    python3 -B "$demo/demo.py" work "$1" "$ledger"
    python3 -B "$demo/demo.py" push "$1"
    php "$demo/demo.php" work "$1" "$ledger"
    [ "$(wc -l <"$ledger")" = 11 ] && [ "$(sort -u "$ledger" | wc -l)" = 11 ] && [ "$(php "$demo/demo.php" left "$1")" = 0 ]
}

# The first programs of README.md, as a reader copies them.
use_readme() {
    local tree=$PWD language
    cd "$(mktemp -d)"
    # block LANGUAGE: the first of its blocks
    block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$tree/README.md" | sed '/^```$/q' | sed '/^```/d'; }
    block text >expected
    for language in php python; do
        block $language >first.$language
        "$(command -v $language || command -v ${language}3)" first.$language >said
        fails grep -vFxf said expected
        rm -f first.db*
    done
}

use_library() {
    local program
    cd "$(mktemp -d)"
    for program in push work; do
        # shellcheck disable=SC2046 # flags are words
        cc -Wall -Werror "$OLDPWD/examples/c/$program.c" -o $program $(pkg-config --cflags --libs libjobqueue)
    done
    ./push sqlite:c.db 7
    ./work sqlite:c.db | grep -qx 'sending invoice 7'
}

remove_debs() {
    apt-get -qq -y purge php-jobqueue python3-jobqueue jobqueue libjobqueue-dev libjobqueue0
    no_extension
    fails python3 -c 'import jobqueue' 2>/dev/null
    fails grep . < <(find /usr /etc -name '*jobqueue*')
}

# ---- PHP -------------------------------------------------------------------------------------------

no_extension() { fails php --ri jobqueue >/dev/null 2>&1; }

# phpt_suite [ARGUMENT…]: with the extension that PHP's configuration loads, or the arguments
phpt_suite() {
    local run_tests
    run_tests=$(php-config --prefix)/lib/php/$(php-config --phpapi)/build/run-tests.php
    [ -f "$run_tests" ] || run_tests=$(php-config --prefix)/lib/php/build/run-tests.php
    NO_INTERACTION=1 REPORT_EXIT_STATUS=1 TEST_PHP_EXECUTABLE=$(command -v php) TEST_TIMEOUT=120 \
        php "$run_tests" -q --offline --no-color --show-diff -g FAIL,SKIP "$@" phpt
}

use_extension() { php "$@" --ri jobqueue | grep -q '^Drivers => sqlite, redis, redis-cluster, postgresql, mysql, memory'; }

pecl_install() {
    no_extension
    pecl install --offline -n ../dist/jobqueue-*.tgz
    use_extension -d extension=jobqueue.so
}

pecl_suite() { phpt_suite -d extension=jobqueue.so; }

# The folder php-ext of the source release by hand, as `pecl` did it before.
phpize_install() {
    local folder
    pecl uninstall jobqueue
    fails use_extension -d extension=jobqueue.so
    folder=$(mktemp -d)
    tar xzf ../dist/libjobqueue-*.tar.gz --strip-components=1 -C "$folder"
    cd "$folder/php-ext"
    phpize && ./configure && make && make install
    use_extension -d extension=jobqueue.so
}

# ---- Python ----------------------------------------------------------------------------------------

# environment NAME FILE: pip installs the file without a network and without leaving Debian's setuptools
environment() {
    python3 -m venv --system-site-packages "/opt/$1"
    "/opt/$1/bin/pip" install --no-build-isolation --no-index --no-deps "$2"
}

# python_suite NAME [TEST…]: the tests of the source release, without its sources, on the package of the environment
python_suite() {
    local name=$1 folder
    shift
    [ $# -gt 0 ] || set -- tests
    folder=$(mktemp -d)
    tar xzf ../dist/python/jobqueue-*.tar.gz --strip-components=1 -C "$folder"
    rm -rf "$folder/src" "$folder/libjobqueue" "$folder/setup.py"
    export JOBQ_SRCDIR=$PWD
    cd "$folder"
    "/opt/$name/bin/python" -c "import jobqueue._core as core; assert core.__file__.startswith('/opt/$name/'), core.__file__"
    "/opt/$name/bin/python" -m pytest -q --tb=short -p no:cacheprovider "$@"
}

sdist_install() { environment sdist ../dist/python/jobqueue-*.tar.gz; }

# The wheel of this release's own Python …
wheel_install() {
    "/opt/sdist/bin/pip" wheel --no-build-isolation --no-index --no-deps -w ../wheel ../dist/python/jobqueue-*.tar.gz
    environment wheel ../wheel/jobqueue-*-abi3-*.whl
}

# … and the wheel of another Python's, with those of its client libraries that are not here: the interface is one.
foreign_wheel() {
    local library
    environment foreign ../dist/python/jobqueue-*-abi3-*.whl
    for library in ../libraries/*; do ! ldconfig -p | grep -qF "${library##*/} " || rm "$library"; done
    export LD_LIBRARY_PATH=$PWD/../libraries
    python_suite foreign tests/test_payload.py tests/test_queue.py tests/test_worker.py
}

# ---- C ---------------------------------------------------------------------------------------------

source_install() {
    local folder
    folder=$(mktemp -d)
    tar xzf ../dist/libjobqueue-*.tar.gz --strip-components=1 -C "$folder"
    (cd "$folder" && ./configure --prefix=/opt/c --enable-werror && make && make install)
    export PKG_CONFIG_PATH=/opt/c/lib/pkgconfig LD_LIBRARY_PATH=/opt/c/lib
    [ "$(/opt/c/bin/jobqueue version | head -n 1)" = "jobqueue $(version)" ]
    use_library
}

# What nobody has installed yet is installed by ./dev itself, also the release's Redis, PostgreSQL and MariaDB.
own_suites() (
    unset JOBQUEUE_TEST_REDIS JOBQUEUE_TEST_POSTGRES JOBQUEUE_TEST_MARIADB
    ./dev test unit contract process
)

version() { sed -n 's/^#define JOBQ_VERSION "\(.*\)"/\1/p' libjobqueue/include/jobqueue/version.h; }

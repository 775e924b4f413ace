# SPDX-License-Identifier: MIT
# The Debian packages each kind of work needs; installed only when missing.
# shellcheck shell=bash

declare -A PACKAGES=(
    [build]='build-essential autoconf automake libtool autoconf-archive pkg-config libmsgpack-dev
        libsqlite3-dev libhiredis-dev libssl-dev libpq-dev libmariadb-dev php-cli php-dev php-parser procps
        python3 python3-dev python3-setuptools python3-wheel'
    [test]='libcmocka-dev locales sqlite3 psmisc php-sqlite3 php-pgsql php-mysql universal-ctags pmccabe
        python3-venv python3-pip python3-pytest python3-pytest-asyncio python3-mypy python3-msgpack python3-psycopg python3-pymysql'
    [servers]='redis-server redis-sentinel postgresql mariadb-server-core mariadb-client-core pgbouncer openssl'
    [console]='zsh bash-completion mandoc supervisor systemd tmux python3-yaml'
    [docs]='mkdocs'
    [package]='php-pear composer php-mbstring php-xml unzip'
    [matrix]='debootstrap util-linux'
    [lint]='black python3-mypy clang-format clang-tidy cppcheck shellcheck'
    [valgrind]='valgrind'
    [bench]='strace sqlite3'
    [fuzz]='clang libclang-rt-dev'
)

missing_packages() {
    local group package
    for group; do
        for package in ${PACKAGES[$group]}; do
            [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
                echo "$package"
        done
    done
}

# apt-get without questions; a file of /etc that is there stays as it is
apt_quiet() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@"
}

# hold_services: until release_services no package starts a service, and PostgreSQL makes no cluster of its own
POLICY=/usr/sbin/policy-rc.d
hold_services() {
    [ ! -e $POLICY ] || mv $POLICY $POLICY.jobqueue
    printf '#!/bin/sh\nexit 101\n' >$POLICY
    chmod 755 $POLICY
    [ -e /etc/postgresql-common/createcluster.conf ] || {
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    }
}
release_services() {
    rm -f $POLICY
    [ ! -e $POLICY.jobqueue ] || mv $POLICY.jobqueue $POLICY
}

# A fresh machine has no package lists, or ones that have gone stale.
install_packages() (
    trap release_services EXIT
    trap 'exit 130' INT TERM
    hold_services
    apt_quiet --no-install-recommends install "$@" ||
        { apt_quiet update && apt_quiet --no-install-recommends install "$@"; }
)

need_packages() {
    local missing=() log=$BUILD/logs/packages.log
    command -v dpkg-query >/dev/null || return 0
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "not root; install these first: apt-get install ${missing[*]}"
    step "installing ${#missing[@]} packages: ${missing[*]}" "$log" install_packages "${missing[@]}"
}

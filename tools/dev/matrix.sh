# SPDX-License-Identifier: MIT
# ./dev matrix [RELEASE…]: packages as people of other Debian releases get them. In a fresh root of each release (bookworm: PHP
# 8.2; trixie: PHP 8.4) the Debian packages are built and installed by apt, then used; the PHP suite runs against the
# installed extension; the PECL package is built by `pecl install`. Slow (minutes a release), so not part of `./dev test`.
# shellcheck shell=bash disable=SC2034

MATRIX_RELEASES=(bookworm trixie)
MATRIX_PACKAGES='build-essential debhelper dh-php chrpath autoconf-archive automake libtool pkg-config libmsgpack-dev libsqlite3-dev
    libhiredis-dev libssl-dev libpq-dev libmariadb-dev php-dev php-cli php-pear php-sqlite3 dh-python
    python3-dev python3-setuptools procps ca-certificates'

# The mirror this machine installs from.
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1; }

# matrix_root RELEASE FOLDER
matrix_root() {
    debootstrap --variant=minbase "$1" "$2" "$(mirror)" && cp /etc/resolv.conf "$2/etc/" &&
        cp /etc/apt/apt.conf.d/* "$2/etc/apt/apt.conf.d/"
}

# What belongs to the project, as a release would have it: nothing that was built.
matrix_source() {
    mkdir -p "$1/src/jobqueue"
    (cd "$ROOT" && git ls-files -co --exclude-standard -z | tar --null -T - --ignore-failed-read -cf -) | tar xf - -C "$1/src/jobqueue"
}

# inside FOLDER COMMAND: in the root, in namespaces of its own, so that its mounts and processes end with it
inside() {
    unshare --mount --pid --fork --kill-child --mount-proc chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive MAKEFLAGS=-j"$(nproc)" sh -ec "mount -t proc proc /proc; mount -t tmpfs tmpfs /dev/shm; cd /src/jobqueue; $2"
}

# matrix_steps: "NAME | COMMAND inside the root"
MATRIX_STEPS='
Debian packages are built | dpkg-buildpackage -us -uc -b
apt installs them         | apt-get -qq -y install ../*jobqueue*_*.deb && apt-get -qq -y check
the program is there      | jobqueue version && jobqueue --dsn=sqlite:/tmp/q.db push greet {} && jobqueue --dsn=sqlite:/tmp/q.db stats
the Python package works   | cd / && python3 -c "import jobqueue; q = jobqueue.Queue('sqlite:/tmp/q.db'); q.push('n', {'a': 1}); print(jobqueue.__version__, q.stats('default').ready)"
the extension is loaded   | php --ri jobqueue | grep -q Drivers
a C program builds        | printf "#include <jobqueue/jobqueue.h>\nint main(void) { return jobq_version()[0] == 0; }" >/tmp/p.c && cc /tmp/p.c -o /tmp/p $(pkg-config --cflags --libs libjobqueue) && /tmp/p
the PHP suite passes      | NO_INTERACTION=1 REPORT_EXIT_STATUS=1 TEST_PHP_EXECUTABLE=$(command -v php) TEST_TIMEOUT=120 php $(php-config --prefix)/lib/php/$(php-config --phpapi)/build/run-tests.php -q --offline --no-color --show-diff phpt
the packages go again     | apt-get -qq -y purge php-jobqueue python3-jobqueue jobqueue libjobqueue-dev libjobqueue0 && ! php --ri jobqueue
the PECL package installs | pecl install --offline -n /src/jobqueue-*.tgz && php -d extension=jobqueue.so --ri jobqueue
'

# matrix_release RELEASE: prints a TAP line a step; a step that fails ends it
matrix_release() {
    local release=$1 root name command log=$BUILD/logs/matrix-$1.log
    root=$(mktemp -d)/$release
    : >"$log"
    note "$release: a fresh root (log: $log)"
    { matrix_root "$release" "$root" && matrix_source "$root" && cp "$ROOT"/dist/jobqueue-*.tgz "$root/src/" &&
        inside "$root" "apt-get -qq update && apt-get -qq -y --no-install-recommends install $(echo $MATRIX_PACKAGES)"; } >>"$log" 2>&1 </dev/null ||
        { echo "not ok - $release: its root could not be prepared"; return 1; }
    while IFS='|' read -r name command; do
        [ -n "${name// /}" ] || continue
        echo "### $name" >>"$log"
        if ! inside "$root" "$command" >>"$log" 2>&1 </dev/null; then
            echo "not ok - $release: $name"
            tail -n 40 "$log" >&2
            note "the root is left for a look: $root"
            return 1
        fi
        echo "ok - $release: $name"
    done <<<"$MATRIX_STEPS"
    rm -rf --one-file-system "$root"
}

matrix() {
    local release failed=0
    [ "$(id -u)" = 0 ] || die "matrix needs root (debootstrap, chroot)"
    mkdir -p "$BUILD/logs"
    command_package
    [ $# -gt 0 ] || set -- "${MATRIX_RELEASES[@]}"
    for release; do matrix_release "$release" || failed=1; done
    return $failed
}

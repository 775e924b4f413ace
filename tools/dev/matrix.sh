# SPDX-License-Identifier: MIT
# ./dev matrix [RELEASE… | zts | blanks]: releases as people get them. In a fresh root of each Debian release (bookworm: PHP 8.2 and
# Python 3.11; trixie: PHP 8.4 and Python 3.13) the Debian packages are built, installed by apt and used; PHP's and Python's
# suites run on what apt, pecl and pip have installed; then everything is built from the source release by hand. "zts" is a
# thread-safe PHP (tools/dev/zts.sh), "blanks" a clone in a folder with blanks in its name. Slow (tens of minutes), so not part of `./dev test`.
# shellcheck shell=bash disable=SC2034,SC1091

MATRIX=(bookworm trixie zts blanks)

# "WHAT | FUNCTION of tools/dev/matrix_steps.sh [ARGUMENT]"; a step that fails ends its release
MATRIX_STEPS='
Debian packages are built                                | build_debs
apt installs them                                        | install_debs
the program runs                                         | use_program
the extension is loaded                                  | use_extension
README.md'"'"'s first programs run                             | use_readme
PHP, Python and C work off each other'"'"'s jobs in all stores | use_stores
C programs are built on the -dev package                 | use_library
the PHP suite passes on php-jobqueue                     | phpt_suite
the packages go again without a trace                    | remove_debs
pecl installs the PHP package                            | pecl_install
the PHP suite passes on it                               | pecl_suite
phpize, configure, make, make install do too             | phpize_install
pip installs the source distribution                     | sdist_install
the Python suite passes on it                            | python_suite sdist
pip makes a wheel and installs it                        | wheel_install
the Python suite passes on it                            | python_suite wheel
the wheel of the host'"'"'s Python works too                   | foreign_wheel
the source release is built and installed                | source_install
the suites of ./dev pass on its compilers and servers    | own_suites
'

# Where this machine installs from: the mirror, and the one of security updates, if any.
mirrors() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | sort -u; }
mirror() { mirrors | grep -v security | head -n 1; }
security_mirror() { mirrors | grep security | head -n 1; }

# matrix_tree FOLDER: what belongs to the project, nothing that was built
matrix_tree() {
    (cd "$ROOT" && git ls-files -co --exclude-standard -z | tar --null -T - --ignore-failed-read -cf -) | tar xf - -C "$1"
}

# matrix_root RELEASE FOLDER: the tree as a release would have it, without anything built, and the releases beside it
matrix_root() {
    debootstrap --variant=minbase "$1" "$2" "$(mirror)" && cp /etc/resolv.conf "$2/etc/" &&
        cp /etc/apt/apt.conf.d/* "$2/etc/apt/apt.conf.d/" && mkdir -p "$2/src/jobqueue" "$2/src/libraries" || return
    [ -z "$(security_mirror)" ] || echo "deb $(security_mirror) $1-security main" >>"$2/etc/apt/sources.list"
    matrix_tree "$2/src/jobqueue" && cp -R "$ROOT/dist" "$2/src/" && wheel_libraries "$2/src/libraries"
}

# wheel_libraries FOLDER: copies of the client libraries that the wheel needs, for a root whose own have other numbers
wheel_libraries() {
    local unpacked
    unpacked=$(mktemp -d)
    "$PYTHON" -m zipfile -e "$ROOT"/dist/python/*.whl "$unpacked" &&
        ldd "$unpacked"/jobqueue/_core*.so | sed -n 's/.* => \(\/.*\) (.*/\1/p' | grep -v '/libc\.\|/libm\.' | xargs -I{} cp -L {} "$1/"
    rm -rf "$unpacked"
}

# inside FOLDER STEP…: in the root, in namespaces of its own, so that its mounts and processes end with it
inside() {
    local root=$1
    shift
    unshare --mount --pid --fork --kill-child --mount-proc chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 MAKEFLAGS=-j"$(nproc)" \
        JOBQUEUE_TEST_REDIS="${JOBQUEUE_TEST_REDIS:-}" JOBQUEUE_TEST_POSTGRES="${JOBQUEUE_TEST_POSTGRES:-}" \
        JOBQUEUE_TEST_MARIADB="${JOBQUEUE_TEST_MARIADB:-}" bash -euo pipefail -c \
        'mount -t proc proc /proc; mount -t tmpfs tmpfs /dev/shm; cd /src/jobqueue; . tools/dev/matrix_steps.sh; "$@"' step "$@"
}

# matrix_step NAME LOG COMMAND…: a TAP line, with the time and what a suite counted
matrix_step() {
    local name=$1 log=$2 said start=$SECONDS status=0
    shift 2
    said=$(mktemp)
    "$@" >"$said" 2>&1 </dev/null || status=$?
    tr '\r' '\n' <"$said" >"$said.lines"
    mv "$said.lines" "$said"
    { echo "### $name"; cat "$said"; } >>"$log"
    if [ $status = 0 ]; then
        echo "ok - $name ($((SECONDS - start)) s) $(grep -aE '^Tests (passed|skipped) |^[0-9]+ passed' "$said" | tr -s ' ' | xargs)"
    else
        echo "not ok - $name"
        tail -n 40 "$said" | cut -c 1-300 >&2
    fi
    rm -f "$said"
    return $status
}

matrix_release() {
    local release=$1 root name command log=$BUILD/logs/matrix-$1.log
    root=$(mktemp -d)/$release
    : >"$log"
    note "$release: a fresh root (log: $log)"
    { matrix_step "$release: a root with the tree and the releases" "$log" matrix_root "$release" "$root" &&
        matrix_step "$release: Debian's packages in it" "$log" inside "$root" prepare; } || return 1
    while IFS='|' read -r name command; do
        [ -n "${name// /}" ] || continue
        read -r name <<<"$name"
        # shellcheck disable=SC2086 # a function and its argument
        matrix_step "$release: $name" "$log" inside "$root" $command || {
            note "the root is left for a look: $root (all it said: $log)"
            return 1
        }
    done <<<"$MATRIX_STEPS"
    rm -rf --one-file-system "$root"
}

# Configure, make and the tools of ./dev, all of them.
matrix_blanks() {
    local folder
    folder="$(mktemp -d)/a clone"
    mkdir "$folder" && matrix_tree "$folder" &&
        matrix_step "blanks: ./dev demo in a clone whose folder has a blank" "$BUILD/logs/matrix-blanks.log" "$folder/dev" demo &&
        rm -rf "${folder%/*}"
}

matrix() {
    local part failed=0 prepared=
    [ "$(id -u)" = 0 ] || die "matrix needs root (debootstrap, chroot)"
    . "$ROOT/tools/dev/zts.sh"
    . "$ROOT/tools/dev/servers.sh"
    mkdir -p "$BUILD/logs"
    [ $# -gt 0 ] || set -- "${MATRIX[@]}"
    for part; do
        case $part in
            zts | blanks) ("matrix_$part") || failed=1 ;;
            *)
                # Once for all releases: what they get, and the servers of the host.
                [ -n "$prepared" ] || { command_package && build_library && servers_for_tests && prepared=1; }
                matrix_release "$part" || failed=1
                ;;
        esac
    done
    return $failed
}

#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Wrong turns of somebody who installs from a package: what is missing is named with the Debian package that has it, the step
# fails, and nothing is left half installed.
set -u
. "$(dirname "$0")/common.bash"
php=${TEST_PHP_EXECUTABLE:-php}
php_config=$(command -v "${PHP_CONFIG:-php-config}")
phpize=${PHPIZE:-phpize}
python=${PYTHON:-/usr/bin/python3}
extension=${JOBQUEUE_EXTENSION:-$root/build/php-ext/modules/jobqueue.so}
python_path=${JOBQUEUE_PYTHONPATH:-$root/build/python-ext/lib}
unset LD_LIBRARY_PATH JOBQUEUE_INCDIR JOBQUEUE_LIBDIR JOBQUEUE_SYSTEM CC

# ---- the machine of somebody else ---------------------------------------------------------------------------

# path_without PATTERN: a folder with all programs but those
path_without() {
    local there
    there=$(mktemp -d "$folder/without-XXXX")
    find -L /usr/local/bin /usr/bin -maxdepth 1 -type f 2>/dev/null | grep -vE "/($1)\$" | xargs ln -sft "$there"
    echo "$there"
}
COMPILERS='(x86_64-linux-gnu-|aarch64-linux-gnu-|[a-z0-9_]*-linux-gnu-)?(cc|gcc|clang|c89|c99|tcc)(-[0-9.]+)?|c89-gcc|c99-gcc'

# libraries NAME=VERSION...: what pkg-config knows, and nothing else
libraries() {
    local library
    rm -rf "$folder/pc"
    mkdir "$folder/pc"
    for library; do
        printf 'Name: x\nDescription: x\nVersion: %s\n' "${library#*=}" >"$folder/pc/${library%%=*}.pc"
    done
}
EVERYTHING=(msgpack=3.3 sqlite3=3.40 hiredis=1.0 openssl=3.0 libpq=15 libmariadb=3.3)

# ---- PHP ----------------------------------------------------------------------------------------------------

unpack_php() {
    local there
    there=$(made php) && mkdir "$folder/php" && tar xzf "$there"/*.tgz --strip-components=1 -C "$folder/php" && cd "$folder/php" && "$phpize"
}
# configure_says TEXT [NAME=VALUE...] -- [OPTION...]: it fails, says TEXT, and has made nothing to build with
configure_says() {
    local text=$1 environment=()
    shift
    while [ "$1" != -- ]; do environment+=("$1"); shift; done
    shift
    cd "$folder/php" && rm -f Makefile || return
    ! env PKG_CONFIG_LIBDIR="$folder/pc" "${environment[@]}" ./configure "--with-php-config=$php_config" "$@" >"$folder/out" 2>&1 &&
        { tail -n 5 "$folder/out"; grep -qE -- "error: .*$text" "$folder/out"; } && [ ! -e Makefile ]
}
without_php() { configure_says "$2" PATH="$(path_without "$1")" --; }
old_php() {
    cat >"$folder/php-config" <<END
#!/bin/sh
case "\$*" in
--vernum) echo 80129 ;;
--version) echo 8.1.29 ;;
*) exec '$php_config' "\$@" ;;
esac
END
    chmod +x "$folder/php-config"
    php_config=$folder/php-config
    configure_says 'needs PHP 8\.2 or later, and .*php-config is of PHP 8\.1\.29.*php8\.2-dev' --
}
lacks() {
    local text=$1
    shift
    libraries "$@"
    configure_says "$text" --
}
old_core() {
    mkdir -p "$folder/old/include/jobqueue" "$folder/old/lib"
    echo '#define JOBQ_VERSION "0.0.9"' | tee "$folder/old/include/jobqueue/version.h" >"$folder/old/include/jobqueue/jobqueue.h"
    configure_says 'the libjobqueue in ".*/old/include" is older: 0\.0\.9' -- --with-libjobqueue="$folder/old"
}
no_core_there() { configure_says 'no jobqueue/jobqueue\.h in ".*/nowhere/include" .*libjobqueue-dev' -- --with-libjobqueue="$folder/nowhere"; }
no_core() { configure_says 'pkg-config knows no libjobqueue .*libjobqueue-dev' -- --with-libjobqueue; }

# ---- Python -------------------------------------------------------------------------------------------------

# The source distribution, without the time that packing it takes.
unpack_python() { mkdir "$folder/python" && cp -R "$root/python-ext/." "$root/libjobqueue" "$folder/python/" && cd "$folder/python" && rm -rf build ./*.egg-info; }
# python_says TEXT [NAME=VALUE...]: pip fails, says TEXT, and has installed nothing
python_says() {
    local text=$1
    shift
    rm -rf "$folder/site" "$folder/python/build"
    cd "$folder" && ! env PKG_CONFIG_LIBDIR="$folder/pc" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 "$@" \
        "$python" -m pip install --no-build-isolation --no-index --no-deps --target "$folder/site" "$folder/python" >"$folder/out" 2>&1 &&
        { grep -v '^ *$' "$folder/out" | tail -n 15; grep -qE -- "jobqueue: .*$text" "$folder/out"; } && [ ! -e "$folder/site" ]
}
without_python() { python_says "$2" PATH="$(path_without "$1")"; }
python_lacks() {
    local text=$1
    shift
    libraries "$@"
    python_says "$text"
}
# hide MODULE [PYTHON CODE]: an interpreter that does not find it
hide() {
    mkdir -p "$folder/hide"
    printf '%s\n' 'import sys' "${2:-}" \
        "if '$1':" "    sys.modules['$1'] = None" >"$folder/hide/sitecustomize.py"
    echo "PYTHONPATH=$folder/hide"
}
# Its own hook, since pip itself would miss these modules, too.
backend_says() {
    ! env "$2" "$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); import backend; backend.build_wheel("x")' "$folder/python" >"$folder/out" 2>&1 &&
        { cat "$folder/out"; grep -qE "^jobqueue: .*$1" "$folder/out"; }
}
no_headers() { python_says 'Python\.h is not in .*python3-dev' "$(hide '' "import sysconfig; sysconfig.get_path = lambda *a, f=sysconfig.get_path, **k: '/nowhere' if a[:1] == ('include',) else f(*a, **k)")"; }

# A wheel on a machine without a client library: the loader's words, with the package.
wheel_lacks() {
    mkdir -p "$folder/wheel" && cp -R "$root/python-ext/src/jobqueue" "$folder/wheel/" &&
        echo "raise ImportError('$1: cannot open shared object file: No such file or directory')" >"$folder/wheel/jobqueue/_core.py" &&
        ! PYTHONPATH=$folder/wheel "$python" -c 'import jobqueue' >"$folder/out" 2>&1 && { cat "$folder/out"; grep -qE "^ImportError: jobqueue: $1.* install $2," "$folder/out"; }
}

# ---- C ------------------------------------------------------------------------------------------------------

# library_says TEXT [NAME=VALUE...]: the library's configure fails and says TEXT
library_says() {
    local text=$1
    shift
    mkdir -p "$folder/c" && cd "$folder/c" && rm -f Makefile &&
        ! env PKG_CONFIG_LIBDIR="$folder/pc" "$@" "$root/configure" -C >"$folder/out" 2>&1 && { tail -n 3 "$folder/out"; grep -qE "error: .*$text" "$folder/out"; } && [ ! -e Makefile ]
}
library_without() { library_says "$2" PATH="$(path_without "$1")"; }

# A library built without drivers tells of each that it was switched off.
switched_off() {
    local dsn
    mkdir -p "$folder/off" && cd "$folder/off" || return
    "$root/configure" --without-sqlite --without-redis --without-pgsql --without-mysql CFLAGS=-O0 && make -s -j"$(nproc)" libjobqueue.la jobqueue || return
    for dsn in sqlite:x.db redis://h postgresql://h/d mysql://h/d; do
        ./jobqueue ping --dsn="$dsn" 2>&1 | tee "$folder/out"
        grep -q 'is not part of this build: it was switched off when configured' "$folder/out" || return
    done
}

# ---- two versions of the library ----------------------------------------------------------------------------

# As an old one in /usr/local/lib would be: all names are there, the number is smaller.
make_old_library() {
    mkdir -p "$folder/lib"
    {
        nm -D --undefined-only "$extension" "$python_path"/jobqueue/_core*.so | sed -n 's/.* U \(jobq_[a-z0-9_]*\).*/\1/p' | sort -u |
            grep -vxE 'jobq_version|jobq_version_number' | sed 's/.*/void &(void) { __builtin_abort(); }/'
        echo 'const char *jobq_version(void) { return "0.0.9"; } int jobq_version_number(void) { return 9; }'
    } >"$folder/old.c"
    echo 'JOBQUEUE_0 { global: jobq_*; local: *; };' >"$folder/map"
    cc -w -shared -fPIC -Wl,-soname,libjobqueue.so.0 -Wl,--version-script="$folder/map" "$folder/old.c" -o "$folder/lib/libjobqueue.so.0"
}
# ends_with STATUS TEXT COMMAND...
ends_with() {
    local status=$1 text=$2 was=0
    shift 2
    LD_LIBRARY_PATH=$folder/lib "$@" >"$folder/out" 2>&1 || was=$?
    cat "$folder/out"
    [ "$was" = "$status" ] && grep -qE -- "$text" "$folder/out"
}
OLDER="libjobqueue that was loaded is older: 0\.0\.9 \(.*/lib/libjobqueue\.so\.0\)"

check 'the PHP package unpacks' unpack_php
libraries "${EVERYTHING[@]}"
check 'PHP: no compiler' without_php "$COMPILERS" 'no C compiler is here .*build-essential'
check 'PHP: a compiler without its headers and libraries' configure_says 'makes no program .*build-essential' CC=false --
check 'PHP: no make' without_php 'g?make' 'make is missing .*install make'
check 'PHP: no pkg-config' without_php '([a-z0-9_]*-linux-gnu-)?pkg(conf|-config)' 'pkg-config is missing.*install pkg-config'
check 'PHP: too old' old_php
php_config=$(command -v "${PHP_CONFIG:-php-config}")
check 'PHP: no msgpack' lacks 'needs msgpack >= 3 .*install libmsgpack-dev\)' sqlite3=3.40
check 'PHP: no SQLite' lacks 'needs sqlite3 >= 3\.35 .*install libsqlite3-dev\)' msgpack=3.3
check 'PHP: an old SQLite' lacks 'needs sqlite3 >= 3\.35 \(here is 3\.27\) .*install libsqlite3-dev\)' msgpack=3.3 sqlite3=3.27
check 'PHP: neither' lacks 'install libmsgpack-dev libsqlite3-dev\)'
check 'PHP: --with-libjobqueue without one' no_core
check 'PHP: --with-libjobqueue=DIR without one there' no_core_there
check 'PHP: --with-libjobqueue=DIR with an old one there' old_core

check 'the Python sources are there' unpack_python
libraries "${EVERYTHING[@]}"
check 'Python: no compiler' without_python "$COMPILERS" 'no C compiler is here.*build-essential'
check 'Python: a compiler without its headers and libraries' python_says 'makes no program .*build-essential' CC=false
check 'Python: no pkg-config' without_python '([a-z0-9_]*-linux-gnu-)?pkg(conf|-config)' 'pkg-config is missing.*install pkg-config'
check 'Python: no headers' no_headers
check 'Python: too old' backend_says 'needs Python 3\.11 or later, and this is 3\.9' "$(hide '' 'sys.version_info = (3, 9, 2)')"
check 'Python: no setuptools' backend_says 'setuptools is missing .*python3-setuptools' "$(hide setuptools)"
check 'Python: no wheel' backend_says 'wheel is missing .*python3-wheel' "$(hide wheel "sys.modules['setuptools.command.bdist_wheel'] = None")"
check 'Python: a driver that is none' python_says 'no driver rediss \(allowed: redis, pgsql, mysql\)' JOBQUEUE_WITH=rediss
check 'Python: JOBQUEUE_SYSTEM without a library' python_says 'pkg-config knows no libjobqueue .*libjobqueue-dev' JOBQUEUE_SYSTEM=1
check 'Python: no msgpack' python_lacks 'needs msgpack >= 3 .*install libmsgpack-dev\)' sqlite3=3.40
check 'Python: an old SQLite' python_lacks 'needs sqlite3 >= 3\.35 \(here is 3\.27\) .*install libsqlite3-dev\)' msgpack=3.3 sqlite3=3.27
if [ -x "$root/configure" ]; then
    libraries msgpack=3.3
    check 'C: no SQLite' library_says 'SQLite 3\.35 or later is missing .*install libsqlite3-dev\); --without-sqlite'
    check 'C: drivers that were switched off' switched_off
    rm "$folder/c/config.cache"
    check 'C: no pkg-config' library_without '([a-z0-9_]*-linux-gnu-)?pkg(conf|-config)' 'pkg-config is missing.*install pkg-config'
    rm "$folder/c/config.cache"
    check 'C: no compiler' library_without "$COMPILERS" 'no C compiler is here .*build-essential'
fi
check 'Python: a wheel without its client library' wheel_lacks libhiredis.so.0.14 libhiredis0.14
check 'Python: or without SQLite' wheel_lacks libsqlite3.so.0 libsqlite3-0

if [ -e "$extension" ] && nm -D --undefined-only "$extension" | grep -q jobq_version_number; then
    check 'an older libjobqueue comes first' make_old_library
    check 'PHP tells so when it loads the extension' ends_with 254 "$OLDER" "$php" -n -d extension="$extension" -r 'echo 1;'
    check 'Python tells so at the import' ends_with 1 "ImportError: .*$OLDER" env PYTHONPATH="$python_path" "$python" -c 'import jobqueue'
else
    echo 'ok - an older libjobqueue comes first # SKIP no extension is built here that links the library'
fi

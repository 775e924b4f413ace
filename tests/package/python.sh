#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The Python package as people get it: made twice with the same bytes, installed offline by pip into fresh environments
# from the source distribution, from the wheel and from a clone, and clear about what is missing.
set -u
. "$(dirname "$0")/common.bash"
export PYTHON=${PYTHON:-/usr/bin/python3}
export CFLAGS="${CFLAGS:-} -O0" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
unset PYTHONPATH LD_LIBRARY_PATH JOBQUEUE_INCDIR JOBQUEUE_LIBDIR

# ---- made ---------------------------------------------------------------------------------------------------

make_package() { local there && there=$(made python) && cp -R "$there" "$folder/one"; }
is_reproducible() { tar tzf "$sdist" >/dev/null && ! tar tvzf "$sdist" | awk '{ print $2 }' | grep -v '^0/0$'; }
every_source() {
    tar tzf "$sdist" | sed 's,^[^/]*/,,' | grep -E '\.([ch]|py|pyi)$' | sort >"$folder/packed"
    (cd "$root/python-ext" && find . -name '*.[ch]' -o -name '*.py' -o -name '*.pyi' | grep -v '/build/' &&
        cd "$root" && find ./libjobqueue -name '*.[ch]') | sed 's,^\./,,' | sort | diff "$folder/packed" - >&2
}
is_abi3() { [[ $(basename "$wheel") == jobqueue-*-cp311-abi3-linux_*.whl ]] && "$PYTHON" -m zipfile -l "$wheel" | grep -q 'jobqueue/py.typed'; }

# ---- installed ----------------------------------------------------------------------------------------------

# environment NAME: setuptools and wheel are Debian's
environment() { "$PYTHON" -m venv --system-site-packages "$folder/$1"; }
pip_install() {
    local name=$1
    shift
    environment "$name" && "$folder/$name/bin/pip" install --no-build-isolation --no-index --no-deps "$@"
}
from_clone() {
    mkdir -p "$folder/clone" && cp -R "$root/libjobqueue" "$root/python-ext" "$folder/clone/" && cd "$folder/clone/python-ext" &&
        rm -rf build && CC='env cc' pip_install clone . # a compiler behind a program, as ccache is
}
# A machine that has no compiler, or does not want to use it.
from_wheel() { CC=false pip_install wheel "$wheel"; }
runs_a_job() {
    local name=$1
    cd "$folder" && "$folder/$name/bin/python" - <<END | grep -qx 'hello Ada'
import sys
from jobqueue import Queue, Worker, task
@task("greet")
def greet(name: str) -> None:
    print("hello", name)
queue = Queue("sqlite:$name.db")
greet.push(queue, name="Ada")
sys.exit(Worker(queue, tasks=[greet], output="quiet").run(once=True))
END
}
has_console() { "$folder/$1/bin/python" -m jobqueue version | grep -q '^python 3\|python 3'; }
own_tests() {
    mkdir -p "$folder/tests" && tar xzf "$sdist" --strip-components=1 -C "$folder/tests" && cd "$folder/tests" &&
        rm -rf src && JOBQ_SRCDIR='' "$folder/sdist/bin/python" -m pytest -q -p no:cacheprovider tests/test_payload.py tests/test_worker.py
}
module_of() { ls "$folder/$1"/lib/python3*/site-packages/jobqueue/_core*.so; }
exports_one_name() { [ "$(nm -D --defined-only "$(module_of wheel)" | awk '{ print $NF }')" = PyInit__core ]; }
uses_stable_names() {
    # Nothing private of the interpreter's but what its own headers use under the limited API.
    ! nm -D --undefined-only "$(module_of wheel)" | awk '{ print $NF }' | grep -E '^_Py' | grep -vE '_SizeT$|^_Py(_NoneStruct|_TrueStruct|_FalseStruct|_Dealloc|Object_GC_New|Object_New)$'
}

# ---- what is missing is named -------------------------------------------------------------------------------

refuses() {
    local text=$1
    shift
    cd "$folder/source" && ! env PKG_CONFIG_LIBDIR="$folder/pc" "$@" "$PYTHON" setup.py -q build_ext >"$folder/out" 2>&1 &&
        { cat "$folder/out"; grep -q "$text" "$folder/out"; }
}
unpack() {
    mkdir -p "$folder/source" "$folder/pc" && tar xzf "$sdist" --strip-components=1 -C "$folder/source" &&
        printf 'Name: x\nDescription: x\nVersion: 99\n' | tee "$folder/pc/msgpack.pc" >"$folder/pc/sqlite3.pc"
}
names_the_base() { rm "$folder/pc/sqlite3.pc" && refuses 'apt-get install libsqlite3-dev'; }

check 'the package is made' make_package
sdist=$(echo "$folder"/one/*.tar.gz) wheel=$(echo "$folder"/one/*.whl)
check 'it names no owner' is_reproducible
check 'it holds every source file' every_source
check 'the wheel is for every Python from 3.11 on, and typed' is_abi3
check 'pip install of the source distribution works offline in a fresh environment' pip_install sdist "$sdist"
check 'it runs a job' runs_a_job sdist
check 'python -m jobqueue is there' has_console sdist
check 'its own tests pass against it' own_tests
check 'pip install of the wheel needs no compiler' from_wheel
check 'the wheel runs a job' runs_a_job wheel
check 'pip install . works in a clone' from_clone
check 'the clone runs a job' runs_a_job clone
check 'the module exports PyInit__core and nothing else' exports_one_name
check 'it uses the stable interface of Python alone' uses_stable_names
check 'the source distribution unpacks' unpack
check 'the missing client library of Redis is named' refuses 'libhiredis-dev libssl-dev' JOBQUEUE_WITH=redis
check 'the missing client library of PostgreSQL is named' refuses 'libpq-dev' JOBQUEUE_WITH=pgsql
check 'the missing base is named' names_the_base

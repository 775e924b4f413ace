# SPDX-License-Identifier: MIT
"""Builds the extension module.

The core is compiled in: from ./libjobqueue in a source distribution, from ../libjobqueue in the
repository. JOBQUEUE_SYSTEM=1 links an installed libjobqueue instead (pkg-config), JOBQUEUE_INCDIR
and JOBQUEUE_LIBDIR one that lies elsewhere, say in a build tree. A driver whose client library is
missing is left out; JOBQUEUE_WITH="redis pgsql" makes that an error, JOBQUEUE_WITHOUT leaves
drivers out.
"""
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
CORE = next((p for p in (HERE / "libjobqueue", HERE.parent / "libjobqueue") if p.is_dir()), None)
# driver: what pkg-config calls its client libraries, and the Debian packages that bring them
DRIVERS = {
    "redis": ("hiredis >= 0.14 openssl >= 1.1.1", "libhiredis-dev libssl-dev"),
    "pgsql": ("libpq >= 14", "libpq-dev"),
    "mysql": ("libmariadb >= 3.1", "libmariadb-dev"),
}


def fail(text: str) -> NoReturn:
    raise SystemExit(f"jobqueue: {text}")


def pkg_config(*arguments: str) -> list[str]:
    return subprocess.run(
        ["pkg-config", *arguments], check=True, capture_output=True, text=True
    ).stdout.split()


def exists(modules: str) -> bool:
    return subprocess.run(["pkg-config", "--exists", modules], check=False).returncode == 0


def version() -> str:
    for header in (
        CORE and CORE / "include/jobqueue/version.h",
        Path(os.environ.get("JOBQUEUE_INCDIR", "/usr/include")) / "jobqueue/version.h",
    ):
        if header and header.is_file():
            found = re.search(r'JOBQ_VERSION "([^"]+)"', header.read_text())
            if found:
                return found[1]
    fail(
        "neither the core's sources nor an installed libjobqueue are here "
        "(Debian: apt-get install libjobqueue-dev)"
    )


def missing(needs: str) -> str:
    """What of it pkg-config does not have, with the version that is there instead."""
    lacking = []
    for module in re.findall(r"\S+(?: *>= *\S+)?", needs):
        if not exists(module):
            found = subprocess.run(
                ["pkg-config", "--modversion", module.split()[0]],
                check=False,
                capture_output=True,
                text=True,
            ).stdout.strip()
            lacking.append(module + (f" (here is {found})" if found else ""))
    return " and ".join(lacking)


def check_tools(compiler: list[str]) -> None:
    """Tells what a build needs before distutils says less about it, in the middle of the build."""
    if not shutil.which(compiler[0]):
        fail(f"no C compiler is here: {compiler[0]} (Debian: apt-get install build-essential)")
    try:
        with tempfile.NamedTemporaryFile() as program:
            subprocess.run(
                [*compiler, "-x", "c", "-", "-o", program.name],
                input="#include <stdint.h>\nint main(void) { return 0; }",
                text=True,
                check=True,
            )
    except subprocess.CalledProcessError:
        fail(f"{compiler[0]} makes no program (Debian: apt-get install build-essential)")
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        fail(f"Python.h is not in {include} (Debian: apt-get install python3-dev)")
    if not os.environ.get("JOBQUEUE_LIBDIR") and not shutil.which("pkg-config"):
        fail(
            "pkg-config is missing, so no library can be found "
            "(Debian: apt-get install pkg-config)"
        )


class BuildExtension(build_ext):
    """Adds the core, and compiles as many files at once as there are processors."""

    def build_extension(self, ext: Extension) -> None:
        check_tools(shlex.split(os.environ.get("CC", "")) or self.compiler.compiler_so)
        if os.environ.get("JOBQUEUE_LIBDIR"):
            ext.include_dirs.append(os.environ["JOBQUEUE_INCDIR"])
            ext.library_dirs.append(os.environ["JOBQUEUE_LIBDIR"])
            ext.libraries.append("jobqueue")
        elif os.environ.get("JOBQUEUE_SYSTEM"):
            if not exists("libjobqueue"):
                fail(
                    "JOBQUEUE_SYSTEM is set, and pkg-config knows no libjobqueue "
                    "(Debian: apt-get install libjobqueue-dev)"
                )
            ext.extra_compile_args += pkg_config("--cflags", "libjobqueue")
            ext.extra_link_args += pkg_config("--libs", "libjobqueue")
        else:
            self.bundle(ext)
        compile_one = self.compiler.compile

        def compile_all(sources, *args, **kwargs):
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                parts = pool.map(lambda source: compile_one([source], *args, **kwargs), sources)
                return [name for part in parts for name in part]

        self.compiler.compile = compile_all
        super().build_extension(ext)

    def bundle(self, ext: Extension) -> None:
        if CORE is None:
            fail("the core's sources are not here; set JOBQUEUE_SYSTEM=1")
        msgpack = "msgpack-c" if exists("msgpack-c") else "msgpack >= 3"
        lacking = {"libmsgpack-dev": missing(msgpack), "libsqlite3-dev": missing("sqlite3 >= 3.35")}
        lacking = {package: what for package, what in lacking.items() if what}
        if lacking:
            fail(
                f"it needs {' and '.join(lacking.values())} "
                f"(Debian: apt-get install {' '.join(lacking)})"
            )
        modules = msgpack.split()[0]
        wanted = os.environ.get("JOBQUEUE_WITH", "").split()
        unwanted = os.environ.get("JOBQUEUE_WITHOUT", "").split()
        odd = [name for name in [*wanted, *unwanted] if name not in DRIVERS]
        if odd:
            fail(f"JOBQUEUE_WITH, _WITHOUT: no driver {odd[0]} (allowed: {', '.join(DRIVERS)})")
        left_out = []
        modules += " sqlite3"
        ext.define_macros += [("_GNU_SOURCE", None), ("JOBQ_WITH_SQLITE", "1")]
        for driver, (needs, packages) in DRIVERS.items():
            taken = driver not in unwanted and exists(needs)
            if driver in wanted and not taken:
                fail(f"the driver {driver} needs {needs} (Debian: apt-get install {packages})")
            if taken:
                modules += " " + re.sub(r" *>= *[0-9.]+", "", needs)
            else:
                left_out.append(driver)
                print(
                    f"jobqueue: without the driver {driver}, which needs {needs} "
                    f"(Debian: apt-get install {packages})"
                )
            ext.define_macros.append((f"JOBQ_WITH_{driver.upper()}", str(int(taken))))
        ext.include_dirs += [str(CORE), str(CORE / "include")]
        ext.extra_compile_args += pkg_config("--cflags", *modules.split())
        ext.extra_link_args += [*pkg_config("--libs", *modules.split()), "-lm"]
        ext.sources += sorted(
            os.path.relpath(path, HERE) if HERE in path.parents else str(path)
            for path in CORE.rglob("*.c")
            if not any(f"driver/{driver}/" in str(path) for driver in left_out)
        )


class SourceDistribution(sdist):
    """Carries the core's sources along."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        target = Path(base_dir) / "libjobqueue"
        if CORE is not None and not target.exists():
            shutil.copytree(
                CORE,
                target,
                ignore=shutil.ignore_patterns("*.o", "*.lo", ".libs", ".deps", ".dirstamp"),
            )
        for name, place in (("LICENSE", "."), ("tests/interop/vectors", "tests/interop/vectors")):
            source = HERE.parent / name
            if source.is_dir():
                shutil.copytree(source, Path(base_dir) / place, dirs_exist_ok=True)
            elif source.is_file():
                shutil.copy(source, Path(base_dir) / place)


setup(
    version=version(),
    ext_modules=[
        Extension(
            "jobqueue._core",
            sources=sorted(str(p.relative_to(HERE)) for p in HERE.glob("src/_core/*.c")),
            depends=sorted(str(p.relative_to(HERE)) for p in HERE.glob("src/_core/*.h")),
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            extra_compile_args=[
                "-std=gnu11",
                "-fvisibility=hidden",
                "-Wall",
                "-Wextra",
                "-Werror=implicit-function-declaration",
                "-Wno-missing-field-initializers",
                "-Wno-cast-function-type",
            ],
            extra_link_args=["-Wl,-Bsymbolic"],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension, "sdist": SourceDistribution},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

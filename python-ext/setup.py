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
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
    raise SystemExit("jobqueue: neither the core's sources nor an installed libjobqueue are here")


class BuildExtension(build_ext):
    """Adds the core, and compiles as many files at once as there are processors."""

    def build_extension(self, ext: Extension) -> None:
        if os.environ.get("JOBQUEUE_LIBDIR"):
            ext.include_dirs.append(os.environ["JOBQUEUE_INCDIR"])
            ext.library_dirs.append(os.environ["JOBQUEUE_LIBDIR"])
            ext.libraries.append("jobqueue")
        elif os.environ.get("JOBQUEUE_SYSTEM"):
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
            raise SystemExit("jobqueue: the core's sources are not here; set JOBQUEUE_SYSTEM=1")
        modules = "msgpack" if exists("msgpack") else "msgpack-c"
        if not exists(f"{modules} sqlite3"):
            raise SystemExit("jobqueue: install libmsgpack-dev and libsqlite3-dev (and pkg-config)")
        wanted = os.environ.get("JOBQUEUE_WITH", "").split()
        unwanted = os.environ.get("JOBQUEUE_WITHOUT", "").split()
        left_out = []
        modules += " sqlite3"
        ext.define_macros += [("_GNU_SOURCE", None), ("JOBQ_WITH_SQLITE", "1")]
        for driver, (needs, packages) in DRIVERS.items():
            taken = driver not in unwanted and exists(needs)
            if driver in wanted and not taken:
                raise SystemExit(
                    f"jobqueue: the driver {driver} needs {needs} (Debian: {packages})"
                )
            if taken:
                modules += " " + re.sub(r" *>= *[0-9.]+", "", needs)
            else:
                left_out.append(driver)
                print(
                    f"jobqueue: without the driver {driver}, which needs {needs} "
                    f"(Debian: {packages})"
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

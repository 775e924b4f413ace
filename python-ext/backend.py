# SPDX-License-Identifier: MIT
"""What pip calls to build: setuptools' own backend, but for the words when something it stands on
is missing. Runs on any Python 3, since it has to say which one is needed."""
import sys


def problem():
    if sys.version_info < (3, 11):
        return "it needs Python 3.11 or later, and this is %d.%d" % sys.version_info[:2]
    try:
        import setuptools
    except ImportError:
        return "setuptools is missing" + HELP
    if int(setuptools.__version__.split(".")[0]) < 61:
        return "it needs setuptools 61 or later, and this is " + setuptools.__version__ + HELP
    try:
        from setuptools.command import bdist_wheel  # noqa: F401 (setuptools 70 brings its own)
    except ImportError:
        try:
            import wheel  # noqa: F401
        except ImportError:
            return "the package wheel is missing" + HELP
    return None


HELP = (
    " (Debian: apt-get install python3-setuptools python3-wheel, and a virtual environment made"
    " with --system-site-packages; elsewhere: pip install setuptools wheel)"
)


def refuse(*_arguments, **_options):
    raise SystemExit("jobqueue: " + problem())


if problem() is None:
    from setuptools.build_meta import *  # noqa: F401, F403
else:
    build_wheel = build_sdist = build_editable = refuse
    get_requires_for_build_wheel = get_requires_for_build_sdist = refuse
    prepare_metadata_for_build_wheel = refuse

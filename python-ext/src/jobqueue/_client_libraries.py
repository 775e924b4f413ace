# SPDX-License-Identifier: MIT
"""Says which package brings a client library that the module was built with and that is not here:
the case of a wheel on another machine than the one that made it."""
import re

try:
    from . import _core  # noqa: F401
except ImportError as error:
    lacking = re.match(r"(lib[\w+-]+?)\.so\.([\d.]+): cannot open shared object file", str(error))
    if not lacking:
        raise
    name, version = lacking.groups()
    # Debian names the packages of libraries after name and soname.
    package = f"{name}-{version}" if name[-1].isdigit() else name + version
    raise ImportError(
        f"jobqueue: {lacking[0]}; this build wants the client libraries of the machine that made it "
        f"(Debian: apt-get install {package.replace('_', '-')}, where the release has it; else "
        "build the source distribution here)"
    ) from None

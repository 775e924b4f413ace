# SPDX-License-Identifier: MIT
"""One TAP line a test, as in python-ext/tests."""
from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-ext" / "tests"))

from tap import pytest_configure, pytest_runtest_logreport  # noqa: E402,F401

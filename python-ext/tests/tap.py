# SPDX-License-Identifier: MIT
"""One TAP line a test, when ./dev test reads us (JOBQUEUE_TAP); conftest.py of each suite has it."""
from __future__ import annotations

import os
from typing import Any

import pytest

_terminal: list[Any] = []


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("JOBQUEUE_TAP"):
        _terminal.append(config.pluginmanager.get_plugin("terminalreporter"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    over = report.when == "call" or (report.when == "setup" and not report.passed)
    if _terminal and (over or report.failed):
        word = "not ok" if report.failed else "ok"
        _terminal[0].write_line(f"\n{word} - {report.nodeid}{' # SKIP' if report.skipped else ''}")
        for line in report.longreprtext.splitlines()[-40:] if report.failed else ():
            _terminal[0].write_line(f"# {line}")

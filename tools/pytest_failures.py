"""A pytest plugin for tools/gpu_check: writes each failure at once to $NARU_FAILURES, since a crash would prevent a report at the end."""

import os
from typing import Any


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        captured = "".join(f"\n-- {name}\n{text}" for name, text in report.sections)
        with open(os.environ["NARU_FAILURES"], "a", encoding="utf-8") as file:
            file.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}{captured}\n\n")

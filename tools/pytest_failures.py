"""A plugin of pytest for tools/gpu_check: what failed is written at once (to $NARU_FAILURES), not at the end, which a process that crashes does not see."""

import os
from typing import Any


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        captured = "".join(f"\n-- {name}\n{text}" for name, text in report.sections)
        with open(os.environ["NARU_FAILURES"], "a", encoding="utf-8") as file:
            file.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}{captured}\n\n")

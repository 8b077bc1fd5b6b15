"""Runs naru's side on a folder of recorded samples, in child processes that may crash or hang. One child runs at a time; it is restarted after the
sample that ended it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30.0  # seconds for one sample


class Child:
    """A process of answer.py and its output lines."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", ""), str(ROOT / "python")])}
        self.process = subprocess.Popen([sys.executable, "-m", "tools.conformance.answer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=environment, cwd=ROOT)
        self.buffer = b""

    def ask(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def line(self, seconds: float) -> str | None:
        """Returns the next line; None at the end of the process, "" on a timeout."""
        assert self.process.stdout
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return ""
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def end(self) -> str:
        """Ends the process; returns how it ended, if it ended by itself."""
        try:
            status = self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"takes more than {SECONDS:.0f} s"
        return f"ends the process with signal {-status}" if status < 0 else f"ends the process with status {status}"


class Runner:
    """Runs files of samples, with one child at a time."""

    def __init__(self) -> None:
        self.child = Child()

    def answers(self, path: Path) -> list[tuple[str, str]]:
        """Returns (outcome, reason) for each sample of a file."""
        found: list[tuple[str, str]] = []
        self.child.ask(f"{path} 0")
        begun = False
        while True:
            line = self.child.line(SECONDS if begun else 2 * SECONDS)
            if line == "done":
                return found
            if line and line[0] == "[":
                answer: Any = json.loads(line)
                found.append((answer[0], answer[1]))
                begun = False
            elif line:
                begun = True
            else:
                how = self.child.end()
                if not begun:
                    raise RuntimeError(f"{path.name}: naru's side {how} outside of any sample (sample {len(found)} is next)")
                found.append(("crash", how))
                self.child = Child()
                self.child.ask(f"{path} {len(found)}")
                begun = False

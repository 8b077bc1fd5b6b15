"""Replays what the fuzzers have found: corpus/*.txt contain programs of a few lines, separated by empty lines, each run in its own process.

    python -m tools.fuzz.corpus [FILE ...]

In a program naru is n; NumPy, nn, F and the helpers of words.py are available. It may raise. It must not crash, hang, or show an error message of
the C++ standard library.
"""

from __future__ import annotations

import faulthandler
import glob
import os
import re
import resource
import signal
import sys
import time

from ..sanitized import SANITIZED
from . import ROOT
from .api import BAD_WORDS, limit_memory

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
SECONDS = 600 if SANITIZED else 60  # wall-clock limit, generous for a busy machine; each program takes milliseconds


def programs(file: str) -> list[str]:
    with open(file, encoding="utf-8") as text:
        blocks = re.split(r"\n\s*\n", text.read())
    return [block for block in (b.strip("\n") for b in blocks) if any(line and not line.startswith("#") for line in block.splitlines())]


def run(program: str) -> str:
    """Runs a program in a forked child. Returns the error, or ''."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        text, status = "", 0
        try:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            limit_memory()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(SECONDS)
            text = "it could not begin"
            import naru

            from .words import WORDS

            names = {"n": naru, "np": sys.modules["numpy"], "nn": naru.nn, "F": naru.nn.functional, "__name__": "__main__", **WORDS}
            text = ""
            exec(compile(program, "<corpus>", "exec"), names)  # noqa: S102
        except SystemError as error:
            text = f"SystemError: {error}"
        except BaseException as error:  # noqa: BLE001
            if BAD_WORDS.search(str(error)):
                text = f"{type(error).__name__}: {error}"
        os.write(write, ascii(text)[:300].encode() if text else b"")
        os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"more than {SECONDS} s" if number == signal.SIGALRM else f"signal {number}"
    return said or (f"exit status {os.WEXITSTATUS(status)}" if status else "")


def main(files: list[str]) -> int:
    sys.path.append(os.path.join(ROOT, "python"))
    os.environ.setdefault("NARU_VIRTUAL", "cuda:2,mps:1")
    # Imported once, before forking: importing would take nine tenths of the time.
    import numpy  # noqa: F401

    import naru
    import naru.nn.functional

    from . import words  # noqa: F401

    naru.ones(2).sum().item()
    faulthandler.disable()
    count = found = 0
    start = time.monotonic()
    for file in files or sorted(glob.glob(os.path.join(FOLDER, "*.txt"))):
        for program in programs(file):
            count += 1
            if wrong := run(program):
                found += 1
                print(f"{os.path.basename(file)}: {wrong}:\n    " + program.replace("\n", "\n    "), flush=True)
    print(f"fuzz corpus: {count} programs, {found} found, {time.monotonic() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

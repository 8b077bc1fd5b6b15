"""Terminal output: with color and progress, by Rich if it is installed; otherwise plain text.

NO_COLOR disables color, FORCE_COLOR enables it even if the output is not a terminal. Progress is shown on standard error, and only on a terminal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

# Commands that take less time show no progress.
PATIENCE = 0.7


def console(stream: IO[str] | None = None) -> Any:
    """Rich's console for a stream (None: standard output); None if the output is to be plain text."""
    stream = stream or sys.stdout
    if not (stream.isatty() or os.environ.get("FORCE_COLOR")) or os.environ.get("TERM") == "dumb":
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, soft_wrap=True)


def table(rows: list[tuple[str, ...]]) -> str:
    """Formats rows of cells as aligned text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def show_table(rows: list[tuple[str, ...]], style: Callable[[str], str] = lambda cell: "") -> None:
    """Prints rows of cells, the first row being the header; `style` returns a cell's color in Rich's syntax."""
    screen = console()
    if screen is None:
        print(table(rows))
        return
    made = rich_table(rows, style)
    # Lines of tables wider than the terminal wrap like text: nothing is cut off.
    screen.width = max(screen.width, screen.measure(made, options=screen.options.update(width=10_000)).maximum)
    screen.print(made, soft_wrap=False, crop=False)


def rich_table(rows: list[tuple[str, ...]], style: Callable[[str], str] = lambda cell: "") -> Any:
    """The rows as a Rich table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(*rows[0], box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows[1:]:
        made.add_row(*(Text(cell, style=style(cell)) for cell in row))
    return made


def say(*parts: str | tuple[str, str]) -> None:
    """Prints parts of a line, some of them styled: say("cuda: ", ("available", "green"))."""
    screen = console()
    texts = [part if isinstance(part, tuple) else (part, "") for part in parts]
    if screen is None:
        print("".join(text for text, _ in texts))
        return
    from rich.text import Text

    screen.print(Text.assemble(*texts))


def one_line(text: str) -> str:
    """Joins a text's lines."""
    return " ".join(text.split())


def wrong(command: str, text: str) -> int:
    """Prints a one-line error about the command line or the environment; returns the exit status for it."""
    said = f"naru {command}: " if command else "naru: "
    screen = console(sys.stderr)
    if screen is None:
        print(said + one_line(text), file=sys.stderr)
    else:
        from rich.text import Text

        screen.print(Text.assemble((said, "bold red"), one_line(text)))
    return 2


@contextlib.contextmanager
def progress(text: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Shows progress on the terminal if the work takes longer than a moment; erased at the end.

    Yields a function to call with the name of each of `total` items when it begins.
    """
    screen = console(sys.stderr) if sys.stderr.isatty() else None
    begun, count = time.monotonic(), 0
    if screen is None:
        # Without Rich, rewrite one line; without a terminal, show nothing.
        shown = ""

        def told(name: str) -> None:
            nonlocal count, shown
            count += 1
            if sys.stderr.isatty() and time.monotonic() - begun > PATIENCE:
                part = f" {count} of {total}" if total else ""
                shown = f"\r\033[K{text}{part} {name}"[: 79 + 4]
                print(shown, end="", file=sys.stderr, flush=True)

        try:
            yield told
        finally:
            if shown:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
        return
    import threading

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}"), *([BarColumn(), MofNCompleteColumn()] if total else []), TimeElapsedColumn()]
    bar = Progress(*columns, console=screen, transient=True)
    task = bar.add_task(text, total=total)

    def advanced(name: str) -> None:
        nonlocal count
        bar.update(task, completed=count, description=f"{text} {name}")
        count += 1

    begins = threading.Timer(PATIENCE, bar.start)
    begins.daemon = True
    begins.start()
    try:
        yield advanced
    finally:
        begins.cancel()
        begins.join()
        bar.stop()

"""The commands: a plain function each, whose parameters are its options (line.py makes the command line of them). They return the exit status.

What they need is imported where it is used: a command starts with what it needs alone.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from . import screen


def _print_json(found: Any) -> None:
    import json

    print(json.dumps(found, indent=2))


def _devices_of_the_environment(command: str) -> list[dict[str, Any]] | None:
    """All devices; None where the environment's variables name some that cannot be, which it says."""
    from .. import _C

    try:
        with screen.progress("asking the drivers"):
            return list(_C.devices())
    except RuntimeError as error:
        screen.wrong("", str(error))
        return None


def run(*program: str, random: Literal["philox", "pytorch"] | None = None) -> int:
    """Runs a script that says `import torch`, unchanged: its `torch` is naru.

    All that follows the script is the script's own. Processes that it starts have the same `torch`.

        naru run train.py --lr 0.1
        naru run -m package.train
        naru run -c "import torch; print(torch.ones(2))"
        cat train.py | naru run -

    Args:
        program: A script, a folder with a `__main__.py`, `-m MODULE`, `-c CODE` or `-` (standard input), and its arguments.
        random: Whose random numbers are drawn: naru's (philox) or those of PyTorch's cpu (docs/random.md).
    """
    from .program import run_program

    if random:
        os.environ["NARU_RANDOM"] = random  # the processes that the script starts, too
    return run_program("run", list(program))


def torchrun(*program: str) -> int:
    """Starts a script that says `import torch` in several processes, which find each other by torch.distributed (docs/distributed.md).

    The options are those of PyTorch's torchrun, before the script: `naru run -m torch.distributed.run --help` lists them. All that follows the
    script is its own.

        naru torchrun --nproc_per_node=4 train.py --lr 0.1

    Args:
        program: The options, the script, and its arguments.
    """
    from ..distributed.run import main

    return main(list(program))


def check(path: str, /, *, json: bool = False) -> int:
    """Lists what a program uses of PyTorch that naru lacks, without running it; exit status 1 where anything is missing.

    Args:
        path: A script, or a folder, all of whose .py files are read.
        json: As JSON.
    """
    from .check import check as read

    return read(path, json)


def devices(*, coverage: bool = False, json: bool = False) -> int:
    """A table of the devices of this machine: memory, driver, libraries, tested on hardware or not.

    Args:
        coverage: How each device serves each operator: native, fallback (on the cpu) or absent.
        json: As JSON.
    """
    found = _devices_of_the_environment("devices")
    if found is None:
        return 2
    if coverage:
        from .coverage import coverage_json, show_coverage

        print(coverage_json()) if json else show_coverage()
    else:
        from .report import devices_json, show_devices

        print(devices_json()) if json else show_devices(found)
    return 0


def doctor(kind: str | None = None, /, *, json: bool = False) -> int:
    """For each kind of device: available, or the one reason why not and the one remedy.

    With a kind, the exit status is 1 where it is not available.

    Args:
        kind: cpu, cuda, rocm, xpu or mps; all of them otherwise.
        json: As JSON.
    """
    from .report import KINDS, diagnosis, show_diagnosis

    if kind is not None and kind not in KINDS:
        return screen.wrong("doctor", f"there is no kind '{kind}'; the kinds are {', '.join(KINDS)}")
    if _devices_of_the_environment("doctor") is None:
        return 2
    found = [diagnosis(k) for k in ((kind,) if kind else KINDS)]
    if json:
        _print_json(found)
    else:
        for one in found:
            show_diagnosis(one)
    return 0 if kind is None or found[0]["available"] else 1


def selftest(device: str, /, *, quick: bool = False, json: bool = False) -> int:
    """Every operator on a device, in memory of every kind, against float64 on the CPU; exit status 1 where one is wrong.

    Args:
        device: A device, e.g. cuda:0.
        quick: Only float32, in two layouts, and no gradients.
        json: As JSON.
    """
    from .. import _C

    if _devices_of_the_environment("selftest") is None:
        return 2
    try:
        device = _C._describe_device(_C.device(device))["device"]
    except RuntimeError as error:
        return screen.wrong("selftest", str(error))
    try:
        import numpy  # noqa: F401  (what results are compared with)
    except ImportError:
        return screen.wrong("selftest", "needs NumPy, which this Python does not have: pip install numpy")
    from ..testing.selftest import CASES, figures, report, run

    with screen.progress(f"{device}: operators", len(CASES)) as tell:
        families = run(device, quick, tell)
    text, right = report(device, families, quick)
    if json:
        _print_json(figures(device, families))
    else:
        print(text)
    return 0 if right else 1


def bench(
    *,
    size: int = 4096,
    dtype: Literal["float32", "float64", "float16", "bfloat16"] = "float32",
    device: list[str] | None = None,
    repeat: int = 10,
    no_peers: bool = False,
    json: str | None = None,
    picture: str | None = None,
) -> int:
    """Products of large matrices, copies and launches on every device, beside NumPy, PyTorch and MLX; exit status 1 where a product is wrong.

    Args:
        size: Rows and columns of the matrices.
        dtype: Their type.
        device: Only this device (may be given several times).
        repeat: How many products.
        no_peers: Only naru; otherwise NumPy, PyTorch and MLX, too, where this Python has them.
        json: A file for all figures; `-`: to standard output, in place of the table.
        picture: A file for a drawing of them (.png, .svg, .pdf); needs matplotlib.
    """
    if _devices_of_the_environment("bench") is None:
        return 2
    for name, value in (("size", size), ("repeat", repeat)):
        if value < 1:
            return screen.wrong("bench", f"--{name}: wanted a number from 1 on, got {value}")
    from .bench_report import main

    return main(size, dtype, device or [], repeat, not no_peers, json, picture)


def memory(
    *program: str,
    device: str | None = None,
    out: str = "memory.html",
    open: bool = False,
    predict: bool = False,
    size: str | None = None,
    json: bool = False,
) -> int:
    """Runs a script as `naru run` does, and writes the page of what held a device's memory, and when.

        naru memory --device cuda:0 train.py --epochs 1
        naru memory --predict --size 24GiB train.py

    Args:
        program: As for `naru run`.
        device: Whose memory; the best device otherwise.
        out: The page's file.
        open: Shows the page in the browser.
        predict: Says the peak before the run, and writes no page: the script runs on virtual devices on which nothing is computed and no memory taken.
        size: With --predict, how much memory each of these devices has; all that is wanted otherwise.
        json: The figures (peak, and the lines that held the most) as JSON on standard output, behind what the script prints.
    """
    if predict:
        from .predict import predicted

        return predicted(list(program), device, size, json)
    if size:
        return screen.wrong("memory", "--size: only with --predict, which makes the devices")
    from .memory import recorded

    if open and not out.endswith((".html", ".htm")):
        return screen.wrong("memory", f"--open: the page's file must end in .html for a browser, got '{out}'")
    return recorded(list(program), device, out, open, json)


def diverge(*program: str, a: str = "cpu", b: str = "", json: bool = False) -> int:
    """Runs a script twice and finds the first operator whose bits differ, its inputs and its line; exit status 1 where one differs.

    A side is a device, where all of the script's tensors then are, variables, or both; python=PATH is another installation's interpreter.

        naru diverge --a cpu --b cuda:0 train.py
        naru diverge --a cpu --b cpu,NARU_ISA=none train.py

    Args:
        program: As for `naru run`.
        a: One side.
        b: The other side.
        json: As JSON.
    """
    from .diverge import main

    if not b:
        if any(word == "--b" or word.startswith("--b=") for word in program):
            return screen.wrong("diverge", "--b stands behind the program, where all options are the program's: naru diverge --a cpu --b cuda:0 train.py")
        return screen.wrong("diverge", "--b: the other side is missing, e.g. --b cuda:0 or --b NARU_FUSE=0")
    return main(list(program), a, b, json)


def top(*, once: bool = False, interval: float = 1.0, json: bool = False) -> int:
    """What your running programs use, live: memory by device, what is queued, instructions done, kernels compiled.

    Programs that were started with NARU_TOP=1 tell of themselves, and no others. Ends with Ctrl-C.

    Args:
        once: One table, and the end; so it is also where the output is no terminal.
        interval: Seconds between two looks.
        json: One look, as JSON.
    """
    from .top import top as show

    if interval < 0.1:
        return screen.wrong("top", f"--interval: wanted 0.1 seconds or more, got {interval:g}")
    return show(interval, once, json)


def jupyter_install(
    *, name: str = "naru", display_name: str | None = None, virtual: str | None = None, prefix: str | None = None, json: bool = False
) -> int:
    """Tells Jupyter of a kernel in which `import torch` is naru; needs ipykernel (`pip install ipykernel`).

    In a notebook of another kernel, `%load_ext naru` does the same for that notebook.

    Args:
        name: Of the kernel's folder.
        display_name: What Jupyter lists: "Python (naru)", with the name where that is another.
        virtual: Its NARU_VIRTUAL, e.g. cuda:4: notebooks of this kernel have these devices.
        prefix: Into PREFIX/share/jupyter, for an environment (its sys.prefix), in place of the user's folder.
        json: The folder as JSON.
    """
    from .._notebook.kernel import install

    return install(name, display_name or ("Python (naru)" if name == "naru" else f"Python (naru, {name})"), virtual, prefix, json)


def version(*, json: bool = False) -> int:
    """The version.

    Args:
        json: As JSON, with those of Python and of what naru works with.
    """
    from ..torch_version import __version__

    if not json:
        print(__version__)
        return 0
    import importlib.metadata
    import platform

    def of(package: str) -> str | None:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None

    beside = {name: of(name) for name in ("numpy", "scipy-openblas32", "cyclopts", "rich")}
    _print_json({"naru": str(__version__), "python": platform.python_version(), "platform": platform.platform(), "packages": beside})
    return 0

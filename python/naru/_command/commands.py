"""The commands: one plain function each, whose parameters are its options (line.py builds the command line from them). Each returns the exit
status.

Imports are local to each function, so that a command loads only what it needs.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from . import screen


def _print_json(found: Any) -> None:
    import json

    print(json.dumps(found, indent=2))


def _devices_of_the_environment(command: str) -> list[dict[str, Any]] | None:
    """All devices; prints an error and returns None if environment variables describe invalid devices."""
    from .. import _C

    try:
        with screen.progress("asking the drivers"):
            return list(_C.devices())
    except RuntimeError as error:
        screen.wrong("", str(error))
        return None


def run(*program: str, random: Literal["philox", "pytorch"] | None = None) -> int:
    """Runs an unchanged script that imports torch: its `torch` is naru.

    All arguments after the script belong to the script. Processes that it starts use the same `torch`.

        naru run train.py --lr 0.1
        naru run -m package.train
        naru run -c "import torch; print(torch.ones(2))"
        cat train.py | naru run -

    Args:
        program: A script, a folder with a `__main__.py`, `-m MODULE`, `-c CODE` or `-` (standard input), and its arguments.
        random: The random number generator: naru's (philox), or PyTorch's cpu generator (docs/random.md).
    """
    from .program import run_program

    if random:
        os.environ["NARU_RANDOM"] = random  # for processes that the script starts
    return run_program("run", list(program))


def torchrun(*program: str) -> int:
    """Starts a script that imports torch in several processes, which connect through torch.distributed (docs/distributed.md).

    Options before the script are those of PyTorch's torchrun: `naru run -m torch.distributed.run --help` lists them. All arguments after the script
    belong to the script.

        naru torchrun --nproc_per_node=4 train.py --lr 0.1

    Args:
        program: The options, the script, and its arguments.
    """
    from ..distributed.run import main

    return main(list(program))


def check(path: str, /, *, json: bool = False) -> int:
    """Lists the PyTorch names that a program uses and naru lacks, without running it; exit status 1 if any is missing.

    Args:
        path: A script, or a folder of which all .py files are read.
        json: As JSON.
    """
    from .check import check as read

    return read(path, json)


def devices(*, coverage: bool = False, json: bool = False) -> int:
    """Shows the devices of this machine: memory, driver, libraries, and whether the kind is tested on hardware.

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
    """For each kind of device: whether it is available; if not, the reason and the remedy.

    If a kind is given, the exit status is 1 if it is not available.

    Args:
        kind: cpu, cuda, rocm, xpu or mps; default: all.
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
    """Tests every operator on a device, in every memory layout, against float64 on the CPU; exit status 1 if a result is wrong.

    Args:
        device: A device, e.g. cuda:0.
        quick: Test only float32, two layouts and no gradients.
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
        import numpy  # noqa: F401  (the reference for results)
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
    """Measures matrix products, copies and launches on every device, compared with NumPy, PyTorch and MLX; exit status 1 if a product is wrong.

    Args:
        size: Number of rows and columns of the matrices.
        dtype: Element type of the matrices.
        device: Only this device (may be given several times).
        repeat: Number of products.
        no_peers: Measure only naru, not NumPy, PyTorch and MLX, which are measured if they are installed.
        json: Write all results to this file; `-`: to standard output, in place of the table.
        picture: Write a chart of the results to this file (.png, .svg, .pdf); needs matplotlib.
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
    """Runs a script as `naru run` does, and writes a page that shows what held a device's memory over time.

        naru memory --device cuda:0 train.py --epochs 1
        naru memory --predict --size 24GiB train.py

    Args:
        program: As for `naru run`.
        device: The device to record; default: the best one.
        out: The output file.
        open: Open the page in the browser.
        predict: Predict the peak instead of writing a page: the script runs on virtual devices, which compute nothing and allocate no memory.
        size: With --predict, the memory size of each device; default: as in NARU_VIRTUAL, or 1T.
        json: Print the results (peak, and the lines that held the most) as JSON on standard output, after the script's output.
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
    """Runs a script twice and finds the first operator whose bits differ, with its inputs and source line; exit status 1 if there is one.

    A side is a device (where all of the script's tensors are placed), environment variables, or both; python=PATH selects the interpreter of
    another installation.

        naru diverge --a cpu --b cuda:0 train.py
        naru diverge --a cpu --b cpu,NARU_ISA=none train.py

    Args:
        program: As for `naru run`.
        a: The first side.
        b: The second side.
        json: As JSON.
    """
    from .diverge import main

    if not b:
        if any(word == "--b" or word.startswith("--b=") for word in program):
            return screen.wrong("diverge", "--b stands behind the program, where all options are the program's: naru diverge --a cpu --b cuda:0 train.py")
        return screen.wrong("diverge", "--b: the other side is missing, e.g. --b cuda:0 or --b NARU_FUSE=0")
    return main(list(program), a, b, json)


def kernelcheck(*program: str, counts: bool = False, model: Literal["t4", "a100", "h100", "h200"] | None = None, json: bool = False) -> int:
    """Runs a script on virtual cuda devices that interpret their kernels, and finds faults of the kernels; exit status 1 if there is one.

    Found are accesses out of bounds or misaligned, writes to inputs, shared memory that is read before it is written, races within a block and between
    blocks, and barriers that some threads do not reach: by kernel, line, thread and tensor. No GPU is needed, but NVRTC
    (`pip install nvidia-cuda-nvrtc`).

        naru kernelcheck train.py --epochs 1

    Args:
        program: As for `naru run`.
        counts: Also a table of the kernels: instructions, memory transactions against the ideal, bank conflicts.
        model: The table with a column more: how long the kernels would take on this GPU. An estimate, from the counts alone.
        json: One object, with the faults and the counts, on the last line of standard output.
    """
    from .kernelcheck import checked

    return checked(list(program), counts, model, json)


def top(*, once: bool = False, interval: float = 1.0, json: bool = False) -> int:
    """Shows your running programs, live: memory by device, queue length, instructions completed, kernels compiled.

    Only programs started with NARU_TOP=1 are shown. Press Ctrl-C to quit.

    Args:
        once: Print one table and exit; the default if the output is not a terminal.
        interval: Seconds between updates.
        json: Print one snapshot as JSON.
    """
    from .top import top as show

    if interval < 0.1:
        return screen.wrong("top", f"--interval: wanted 0.1 seconds or more, got {interval:g}")
    return show(interval, once, json)


def jupyter_install(
    *, name: str = "naru", display_name: str | None = None, virtual: str | None = None, prefix: str | None = None, json: bool = False
) -> int:
    """Installs a Jupyter kernel in which `import torch` is naru; needs ipykernel (`pip install ipykernel`).

    In a notebook with another kernel, `%load_ext naru` does the same for that notebook.

    Args:
        name: Name of the kernel's folder.
        display_name: Display name in Jupyter; default: "Python (naru)", plus the name if that is not the default.
        virtual: NARU_VIRTUAL for the kernel, e.g. cuda:4: its notebooks have these virtual devices.
        prefix: Install into PREFIX/share/jupyter, for an environment (its sys.prefix), instead of the user's folder.
        json: Print the folder as JSON.
    """
    from .._notebook.kernel import install

    return install(name, display_name or ("Python (naru)" if name == "naru" else f"Python (naru, {name})"), virtual, prefix, json)


def version(*, json: bool = False) -> int:
    """Prints the version.

    Args:
        json: As JSON, with the versions of Python and of related packages.
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

"""Random calls of every public function, in child processes under limits on time and address space.

    python -m tools.fuzz.api [--seconds N] [--calls N] [--seed S]     fuzz; exit status 1 and a line for each thing found
    python -m tools.fuzz.api --seed S --only INDEX        one call again, in this process, with what it does

Found is: a signal, a call that takes more than five seconds of the processor (or sixty of the clock), SystemError, and a message that comes from
the standard library. An error of any other kind is an answer. Call number I of seed S is the same call every time.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import inspect
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any, Callable

from ..sanitized import SANITIZED
from . import ROOT, search_path

CALLS_PER_CHILD = 3000
PROCESSOR_SECONDS, CLOCK_SECONDS = 5.0 * (10 if SANITIZED else 1), 60.0 * (10 if SANITIZED else 1)
REFUSED_MEMORY = re.compile(r"AddressSanitizer: (allocator is out of memory|requested allocation size)")  # an answer, where it ends the process
M_ARENA_MAX = -8  # of glibc's mallopt
ADDRESS_SPACE = 1 << 30  # beyond what the process has taken when it begins
BAD_WORDS = re.compile(r"std::|vector::_M|basic_string|bitset::|bad_alloc|max_size\(\)|_M_\w+|cannot create std|(list|tuple) index out of range")
# What changes the process, waits, writes files or runs the user's code is no function of its arguments.
LEFT_OUT = re.compile(
    r"^(_.*|set_.*|save|load|kernel|compile|virtual|fork_rng|use_deterministic.*|memory_history|graph|make_graphed_callables|seed|forbid_sync|count_syncs"
    r"|autocast_.*|clear_autocast.*|as_torch|(un)?load_ipython_extension|share_memory_|pick|best_device|why_unavailable|register_.*|get_default.*|from_file|manual_seed|Graph|Stream|Event|test|while_loop)$"
)

# These take time in proportion to the elements and no memory, so that a number expanded to 2^62 of them takes years in any library.
NO_MEMORY = {"argmax", "argmin", "max", "min", "__contains__", "unbind", "split", "chunk", "tensor_split"}


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function: of the module, of Tensor, of nn.functional, operators, and modules of nn (made and called)."""
    import copy
    import pickle

    import naru

    found: dict[str, Callable[..., Any]] = {}
    for prefix, owner in (("", naru), ("Tensor.", naru.Tensor), ("F.", naru.nn.functional), ("linalg.", naru.linalg), ("special.", naru.special), ("fft.", naru.fft), ("windows.", naru.signal.windows)):
        for name in sorted(dir(owner)):
            if LEFT_OUT.match(name):
                continue
            value = getattr(owner, name, None)
            if callable(value) and not inspect.isclass(value) and not inspect.ismodule(value):
                found[prefix + name] = value
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift eq ne lt le gt ge iadd imul getitem contains".split():
        found[f"Tensor.__{name}__"] = getattr(naru.Tensor, f"__{name}__")
    found.update({
        "repr": lambda x: repr(x) if isinstance(x, naru.Tensor) else None, "float": float, "int": int, "bool": bool, "len": len, "iter": lambda x: list(x) if len(x) < 100 else None, "format": lambda x, *how: format(x, *how) if isinstance(x, naru.Tensor) else None,
        "setitem": lambda x, key, value: x.__setitem__(key, value), "pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy,
        "Tensor": naru.Tensor, "Size": naru.Size, "device": naru.device, "set_data": lambda x, y: setattr(x, "data", y),
        "set_grad": lambda x, y: setattr(x, "grad", y), "Generator": naru.Generator, "numpy": lambda x: x.numpy().sum(),
    })  # fmt: skip
    for name in sorted(naru.nn.__all__ if hasattr(naru.nn, "__all__") else dir(naru.nn)):
        kind = getattr(naru.nn, name, None)
        if inspect.isclass(kind) and issubclass(kind, naru.nn.Module) and "Parallel" not in name:
            found["nn." + name] = kind
    return found


def parameters_of(function: Callable[..., Any]) -> list[list[tuple[str, str, bool, bool]]]:
    """For each overload: (name, annotation, required, by keyword only). Empty where nothing is known."""
    signatures = getattr(function, "__nb_signature__", None)
    overloads = []
    for text, *_ in signatures or ():
        overload, keyword = [], False
        for item in re.split(r", (?=[*\w]+(?:: |,|$)|\*)", text[text.index("(") + 1 : text.rindex(") ->")]):
            name, _, hint = item.partition(": ")
            if name == "*":
                keyword = True
            elif name == "self":
                overload.append(("self", "Tensor", True, False))
            elif name:
                hint, _, default = hint.partition(" = ")
                overload.append((name.lstrip("*"), hint, not default, keyword))
                keyword = keyword or name.startswith("*")
        overloads.append(overload)
    if not overloads:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return []
        plain = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        overloads.append([(p.name, str(p.annotation), p.default is p.empty, p.kind is p.KEYWORD_ONLY) for p in plain])
    return overloads


class Calls:
    """The calls of a seed, by number."""

    def __init__(self, seed: int) -> None:
        self.seed, self.table = seed, functions()
        self.names = sorted(self.table)
        self.parameters = {name: parameters_of(f) for name, f in self.table.items()}

    def make(self, index: int) -> tuple[str, list[Any], dict[str, Any], random.Random]:
        from .values import Values

        rng = random.Random(f"{self.seed}:{index}")
        values = Values(rng)
        name = rng.choice(self.names)
        overloads = self.parameters[name]
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if name in ("setitem", "Tensor.__getitem__"):
            return name, [values.tensor(), values.index(), values.anything()][: 3 if name == "setitem" else 2], {}, rng
        if not overloads or rng.random() < 0.05:
            count = rng.randrange(4)
            return name, [values.tensor() if rng.random() < 0.6 else values.anything() for _ in range(count)], named, rng
        skipped = False
        values.endless = name.rpartition(".")[2] not in NO_MEMORY
        for parameter, hint, required, keyword in rng.choice(overloads):
            if (not required and rng.random() < 0.6) or rng.random() < 0.02:
                skipped = True
            elif keyword or skipped or (not required and rng.random() < 0.3):
                named[parameter] = values.of_hint(hint)
            else:
                positional.append(values.of_hint(hint))
        if name.startswith("Tensor.") and not positional:
            positional.append(values.tensor())
        return name, positional, named, rng

    def run(self, index: int) -> str:
        """Makes one call and uses what it gives. Returns what is wrong with its error, or ''."""
        import naru

        name, positional, named, rng = self.make(index)
        try:
            result = self.table[name](*positional, **named)
            if name.startswith("nn.") and isinstance(result, naru.nn.Module):
                from .values import Values

                result = result(*[Values(rng).tensor() for _ in range(rng.choice([1, 1, 2]))])
            for part in result[:3] if isinstance(result, (tuple, list)) else [result]:
                if not isinstance(part, naru.Tensor) or part.numel() > 10**6:
                    continue
                repr(part)
                total = part.sum()
                if total.requires_grad and rng.random() < 0.3:
                    total.backward()
                total.item()
        except (SystemError, GeneratorExit, SystemExit) as error:
            return f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001
            text = str(error)
            if BAD_WORDS.search(text):
                return f"{type(error).__name__}: {text}"
            if isinstance(error, MemoryError) and not text and "naru" in str(type(error).__module__):
                return "an empty message"
        return ""


def described(value: Any) -> str:
    """A short, safe text for an argument."""
    import naru

    if isinstance(value, naru.Tensor):
        return f"Tensor({list(value.shape) if value.dim() < 8 else value.dim()}, {value.dtype}, {value.device}, strides {value.stride()}, grad {value.requires_grad})"
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", ascii(value)[:200])
    except Exception:  # noqa: BLE001
        return type(value).__name__


def limit_memory() -> None:
    """Lets this process take no more than ADDRESS_SPACE beside what it has."""
    if SANITIZED:
        return
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)  # else each thread's arena reserves addresses that nobody asked for
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def give_back() -> None:
    """Has the C library return freed memory that it keeps, where that is much: the interpreter (3.11) fails without an error where no address is left."""
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    if resident > ADDRESS_SPACE // 4:
        ctypes.CDLL(None).malloc_trim(0)


def child(run: Callable[[int], str], first: int, count: int, progress: str) -> None:
    """Makes calls first .. first + count of run, and notes in the file `progress` which one is under way."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    warnings.simplefilter("ignore")
    import naru

    naru.ones(3).sum().item(), naru.ones(3, device="cuda:0").sum().item()
    naru.linalg.inv(naru.eye(8).expand(64, 8, 8))  # OpenBLAS takes its buffers once, and ends the process where it can't have them
    limit_memory()
    with open(progress, "r+b", buffering=0) as file:
        for index in range(first, first + count):
            os.pwrite(file.fileno(), f"{index:12d}".encode(), 0)
            naru.manual_seed(index)
            try:
                naru.set_grad_enabled(True)
                wrong = run(index)
            except BaseException as error:  # noqa: BLE001  # an argument that could not even be made
                wrong = f"making the call: {error!r}" if BAD_WORDS.search(repr(error)) else ""
            give_back()
            if wrong:
                print(f"WRONG {index} {wrong[:300]!a}", flush=True)
        os.pwrite(file.fileno(), f"{first + count:12d}".encode(), 0)


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(arguments: list[str], progress: str, first: int, deadline: float) -> tuple[str, int, list[str]]:
    """Runs a child. Returns what ended it ('' for its own end), the call under way then, and its lines."""
    with open(progress, "wb") as file:
        file.write(f"{first:12d}".encode())
    environment = {**os.environ, "PYTHONPATH": search_path(), "NARU_VIRTUAL": "cuda:2,mps:1", "NARU_CACHE_DIR": ""}
    if SANITIZED:
        environment["ASAN_OPTIONS"] += f":log_path=stderr:max_allocation_size_mb={ADDRESS_SPACE >> 20}"  # in place of a limit to its addresses
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([sys.executable, *arguments], stdout=out, stderr=errors, env=environment, cwd=ROOT)
        at, since, used, ended = -1, time.monotonic(), 0.0, ""
        while process.poll() is None:
            time.sleep(0.2)
            with open(progress, "rb") as file:
                index = int(file.read() or b"0")
            try:
                now = processor_seconds(process.pid)
            except OSError:
                break
            if index != at:
                at, since, used = index, time.monotonic(), now
            if now - used > PROCESSOR_SECONDS or time.monotonic() - since > CLOCK_SECONDS:
                ended = f"a hang ({now - used:.1f} s of the processor, {time.monotonic() - since:.1f} s of the clock)"
            elif time.monotonic() > deadline:
                ended = "deadline"
            if ended:
                process.kill()
                break
        status = process.wait()
        with open(progress, "rb") as file:
            at = int(file.read() or b"0")
        out.seek(0), errors.seek(0)
        lines, trace = out.read().decode(errors="replace").splitlines(), errors.read().decode(errors="replace")
    if not ended and REFUSED_MEMORY.search(trace):
        ended = "refused memory"
    elif not ended and status != 0:
        ended = f"signal {-status}" if status < 0 else f"exit status {status}"
        lines.append("TRACE " + " | ".join(line.strip() for line in trace.splitlines()[:6]))
    return ended, at, lines


def fuzz(seconds: float, seed: int, calls: float, part: str = "api") -> int:
    """Fuzzes for a time, or a number of calls, with the children of tools.fuzz.`part`. Returns how much was found."""
    deadline = time.monotonic() + seconds
    first, found = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        progress = os.path.join(folder, "progress")
        while time.monotonic() < deadline and first < calls:
            count = int(min(CALLS_PER_CHILD, calls - first))
            arguments = ["-m", f"tools.fuzz.{part}", "--seed", str(seed), "--child", str(first), "--count", str(count), "--progress", progress]
            ended, at, lines = watched(arguments, progress, first, deadline)
            wrong = [line for line in lines if line.startswith("WRONG")]
            for line in wrong:
                print(f"seed {seed}, call {line[6:]}", flush=True)
            found += len(wrong)
            if ended not in ("", "deadline", "refused memory"):
                found += 1
                print(f"seed {seed}, call {at}: {ended}", *[line for line in lines if line.startswith("TRACE")], flush=True)
            first = at + 1 if ended else first + count
    print(f"fuzz {part}: {first} calls, {found} found (seed {seed}); again: python -m tools.fuzz.{part} --seed {seed} --only CALL")
    return found


def arguments(about: str | None) -> argparse.ArgumentParser:
    """What a fuzzer of calls by number may be told."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--calls", type=float, default=float("inf"), help="end after so many calls, if --seconds have not ended it before")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="make this one call again, here")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=CALLS_PER_CHILD, help=argparse.SUPPRESS)
    parser.add_argument("--progress", default="", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    given = arguments(__doc__).parse_args()
    if given.child is not None:
        child(Calls(given.seed).run, given.child, given.count, given.progress)
        return 0
    if given.only is not None:
        faulthandler.enable()
        calls = Calls(given.seed)
        name, positional, named, _ = calls.make(given.only)
        print(name, [described(v) for v in positional], {ascii(k): described(v) for k, v in named.items()}, flush=True)
        import naru

        naru.manual_seed(given.only)
        print(calls.run(given.only) or "nothing wrong")
        return 0
    return 1 if fuzz(given.seconds, given.seed, given.calls) else 0


if __name__ == "__main__":
    sys.exit(main())

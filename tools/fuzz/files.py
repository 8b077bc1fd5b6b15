"""Fuzzes the readers of .pt (PyTorch's formats since and before 1.6) and safetensors files with mutated files.

    python -m tools.fuzz.files --seconds 60 --seed 1

Inputs are generated in a child process, which announces each one before reading it. Findings are: a signal, an input that takes longer than 5 s, an
unexpected kind of exception, text of the C++ standard library in a message, a change to anything that outlives a load, and an object that differs
after saving and loading it again. The input is kept in build/fuzz and the exit status is 1. Equal seeds give equal inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import pickle
import pickletools
import random
import resource
import struct
import sys
import time
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

from ..sanitized import SANITIZED

KEPT = Path(__file__).resolve().parents[2] / "build" / "fuzz"
MOST_SECONDS = 5.0
MEMORY = 8 << 30
EVIL = (0, 1, -1, 2, 7, 127, 128, 255, 256, 2**15, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30)
STD_WORDS = ("std::", "vector::", "basic_string", "bitset::", "bad_alloc", "unordered_map", "map::at", "stoi", "json.exception")

GLOBALS = [
    "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v3", "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state", "torch._tensor _rebuild_from_type_v2", "torch FloatStorage", "torch LongStorage",
    "torch BoolStorage", "torch.storage UntypedStorage", "torch Tensor", "torch Size", "torch device", "torch float32", "torch int8",
    "torch.nn.parameter Parameter", "collections OrderedDict", "collections Counter", "collections defaultdict", "_codecs encode",
    "builtins set", "builtins dict", "builtins list", "builtins int", "builtins float", "builtins complex", "builtins bytearray",
    "builtins eval", "builtins getattr", "os system", "tools.fuzz.files tripwire", "torch nn.Module", "torch Tensor.__class__",
]  # fmt: skip
NAMES = ["name", "__add__", "__new__", "__class__", "__dict__", "__defaults__", "__setstate__", "type", "numel", "update", "data", "shape", "tensor", "x"]

tripped = False


def tripwire(*args: object) -> None:
    """A function that no file may be able to call."""
    global tripped
    tripped = True


# --- valid files ----------------------------------------------------------------------------------------------------


def random_tensor(rng: random.Random, naru):
    kinds = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
    shape = [rng.randint(0, 4) for _ in range(rng.randint(0, 3))]
    t = naru.ones(shape, dtype=getattr(naru, rng.choice(kinds)))
    if t.dim() > 1 and rng.random() < 0.3:
        t = t.t() if t.dim() == 2 else t[:, :1]
    if t.is_floating_point() and rng.random() < 0.2:
        return naru.nn.Parameter(t) if rng.random() < 0.5 else t.requires_grad_()
    return t


def random_object(rng: random.Random, naru, depth: int = 0):
    what = rng.randrange(12 if depth < 4 else 7)
    if what < 3:
        return random_tensor(rng, naru)
    if what == 3:
        return rng.choice(EVIL)
    if what == 4:
        return rng.choice(["", "text", "äö", b"bytes", 2.5, None, True, 1j])
    if what == 5:
        return rng.choice([naru.float32, naru.device("cuda:1"), naru.Size([2, 3]), {1, 2}, frozenset((3,)), bytearray(b"x")])
    if what == 6:
        return tuple(rng.randrange(9) for _ in range(rng.randrange(4)))
    parts = [random_object(rng, naru, depth + 1) for _ in range(rng.randrange(4))]
    if what == 7:
        return parts + parts[:1]
    if what == 8:
        return tuple(parts)
    named = {f"k{i}": part for i, part in enumerate(parts)}
    if what == 9:
        return OrderedDict(named)
    if what == 10:
        return defaultdict(list, named)
    return named if rng.random() < 0.8 else Counter(k for k in named)


def good_pt(rng: random.Random, naru) -> bytes:
    file = io.BytesIO()
    naru.save(random_object(rng, naru), file, pickle_protocol=rng.choice([2, 2, 3, 4, 5]), _use_new_zipfile_serialization=rng.random() < 0.7)
    return file.getvalue()


# --- mutations -----------------------------------------------------------------------------------------------------


def mutated_bytes(rng: random.Random, data: bytes) -> bytes:
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        what = rng.random()
        if what < 0.5 and data:
            data[at % len(data)] = rng.randrange(256)
        elif what < 0.6:
            del data[at:]
        elif what < 0.75:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        elif what < 0.9 and len(data) > 8:
            data[at : at + 8] = struct.pack("<Q", rng.choice(EVIL) & (2**64 - 1))
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + rng.randrange(64)]
    return bytes(data)


def instructions(data: bytes) -> list[bytes]:
    """A pickle's instructions with their operands."""
    starts = [at for _, _, at in pickletools.genops(data)]
    return [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)])]


def random_instruction(rng: random.Random) -> bytes:
    def number() -> bytes:
        n = rng.choice(EVIL)
        raw = n.to_bytes((n.bit_length() + 8) // 8, "little", signed=True)
        return pickle.LONG1 + bytes([len(raw)]) + raw

    def text() -> bytes:
        name = rng.choice(NAMES).encode()
        return pickle.BINUNICODE + struct.pack("<I", len(name)) + name

    return rng.choice([
        lambda: pickle.GLOBAL + rng.choice(GLOBALS).replace(" ", "\n").encode() + b"\n",
        number, text,
        lambda: pickle.BINPUT + bytes([rng.randrange(8)]), lambda: pickle.BINGET + bytes([rng.randrange(8)]),
        lambda: pickle.LONG_BINPUT + struct.pack("<I", rng.choice(EVIL) & 0xFFFFFFFF),
        lambda: pickle.BINUNICODE + struct.pack("<I", rng.choice(EVIL) & 0xFFFFFFFF) + b"x",
        lambda: pickle.BYTEARRAY8 + struct.pack("<Q", rng.choice(EVIL) & (2**64 - 1)),
        lambda: rng.choice([pickle.MARK, pickle.REDUCE, pickle.BUILD, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2,
                            pickle.TUPLE3, pickle.EMPTY_DICT, pickle.EMPTY_LIST, pickle.EMPTY_TUPLE, pickle.EMPTY_SET, pickle.APPEND, pickle.APPENDS,
                            pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS, pickle.FROZENSET, pickle.DUP, pickle.POP, pickle.POP_MARK,
                            pickle.NONE, pickle.NEWTRUE, pickle.BINPERSID, pickle.STACK_GLOBAL, pickle.MEMOIZE, pickle.LIST, pickle.DICT]),
    ])()  # fmt: skip


def mutated_pickle(rng: random.Random, data: bytes) -> bytes:
    try:
        code = instructions(data)
    except Exception:
        return mutated_bytes(rng, data)
    for _ in range(rng.randint(1, 6)):
        if len(code) < 2:
            break
        at = rng.randrange(1, len(code))
        what = rng.random()
        if what < 0.4:
            code.insert(at, random_instruction(rng))
        elif what < 0.55:
            del code[at]
        elif what < 0.7:
            code[at] = random_instruction(rng)
        elif what < 0.8:
            other = rng.randrange(len(code))
            code[at], code[other] = code[other], code[at]
        elif what < 0.9:
            first = rng.randrange(len(code))
            code[at:at] = code[first : first + rng.randrange(20)]
        else:
            code[at:at] = [code[at]] * rng.choice([2, 50, 3000])
    return b"".join(code)


def random_program(rng: random.Random) -> bytes:
    return b"\x80\x02" + b"".join(random_instruction(rng) for _ in range(rng.randint(1, 40))) + b"."


def mutated_pt(rng: random.Random, naru) -> bytes:
    data = good_pt(rng, naru)
    what = rng.random()
    if what < 0.03:
        return data
    if what < 0.3:
        return mutated_bytes(rng, data)
    if not data.startswith(b"PK"):
        return mutated_pickle(rng, data) if what < 0.5 else mutated_bytes(rng, data)
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w", rng.choice([0, 0, 0, 8])) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("data.pkl"):
                content = random_program(rng) if rng.random() < 0.3 else mutated_pickle(rng, content)
            elif rng.random() < 0.1:
                content = mutated_bytes(rng, content)
            if rng.random() < 0.03:
                name = rng.choice(["archive/data.pkl", "../x", "archive/data/0", "archive/byteorder", "x"])
            if rng.random() > 0.02 and name not in new.namelist():
                new.writestr(name, content)
    return changed.getvalue()


def mutated_json(rng: random.Random, value):
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        what = rng.random()
        if what < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if what < 0.25:
            return {**value, rng.choice(["x", "dtype", "shape", "__metadata__", "ü", ""]): value[key]}
        return {**value, key: mutated_json(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], mutated_json(rng, value[at]), *value[at + 1 :]]
    return rng.choice([rng.choice(EVIL), 1.5, None, True, "F32", "F64", "BF16", "BOOL", "F8_E4M3", [], {}, [rng.choice(EVIL)] * rng.choice([1, 70]), -0.0])


def mutated_safetensors(rng: random.Random, naru) -> bytes:
    from naru.safetensors import save

    tensors = {f"t{i}": random_tensor(rng, naru).detach().contiguous() for i in range(rng.randrange(4))}
    data = save(tensors, {"k": "v"} if rng.random() < 0.5 else None)
    what = rng.random()
    if what < 0.03:
        return data
    if what < 0.4:
        return mutated_bytes(rng, data)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    for _ in range(rng.randint(1, 3)):
        header = mutated_json(rng, header)
    text = json.dumps(header).encode()
    if rng.random() < 0.1:
        text = text.replace(b'"t1"', b'"t0"')
    return struct.pack("<Q", rng.choice([len(text)] * 9 + [rng.choice(EVIL) & (2**64 - 1)])) + text + data[8 + length :]


# --- reading --------------------------------------------------------------------------------------------------


def lasting(naru) -> list:
    """State that a file can name and that loading must not change."""
    from naru._serialization.allowed import plain_globals

    found = []
    for known in [*plain_globals().values(), naru.Tensor]:
        if isinstance(known, type) or hasattr(known, "__dict__"):
            found.append((known, {k: id(v) for k, v in dict(vars(known)).items() if k not in ("__dict__", "__weakref__", "__abstractmethods__")}))
        for name in ("__defaults__", "__kwdefaults__", "__code__", "name"):
            if hasattr(known, name):
                found.append((name, repr(getattr(known, name))))
    return found


def touch(obj, naru, seen: set[int]) -> None:
    """Reads all elements of every tensor in the object."""
    if id(obj) in seen:
        return
    seen.add(id(obj))
    if isinstance(obj, naru.Tensor):
        if obj.numel() < 10_000 and all(n < 10_000 for n in obj.shape):
            obj.detach().float().sum().item()
            obj.tolist()
        repr(obj)
    elif isinstance(obj, dict):
        for key, value in obj.items():
            touch(key, naru, seen)
            touch(value, naru, seen)
    elif isinstance(obj, (list, tuple, set, frozenset)):
        for part in obj:
            touch(part, naru, seen)


class Finding(Exception):
    pass


def look_at_error(error: BaseException, allowed: tuple[type, ...]) -> None:
    if not isinstance(error, allowed):
        raise Finding(f"{type(error).__name__}: {str(error)[:300]}")
    for word in STD_WORDS:
        if word in str(error):
            raise Finding(f"words of the C++ library: {str(error)[:300]}")


def read_pt(data: bytes, naru) -> bool:
    try:
        obj = naru.load(io.BytesIO(data))
    except (Exception, MemoryError) as error:
        look_at_error(error, (RuntimeError, pickle.UnpicklingError, EOFError))
        return False
    touch(obj, naru, set())
    return True


def read_safetensors(data: bytes, naru) -> bool:
    from naru.safetensors import load, save

    try:
        tensors = load(data)
    except (Exception, MemoryError) as error:
        look_at_error(error, (ValueError, RuntimeError))
        return False
    touch(tensors, naru, set())
    if {k: t.shape for k, t in load(save(tensors)).items()} != {k: t.shape for k, t in tensors.items()}:
        raise Finding("what was read does not come back when it is saved")
    return True


FORMATS = {"pt": (mutated_pt, read_pt), "safetensors": (mutated_safetensors, read_safetensors)}


def worker(pipe, seed: int, first: int, formats: list[str]) -> None:
    """Generates and reads inputs `first`, `first` + 1 ... until the process is ended or the reader of its output is gone."""
    with contextlib.suppress(BrokenPipeError):
        work(pipe, seed, first, formats)


def work(pipe, seed: int, first: int, formats: list[str]) -> None:
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import naru

    naru.set_num_threads(1)
    before = lasting(naru)
    number = first
    while True:
        rng = random.Random(f"{seed} {number}")
        kind = formats[number % len(formats)]
        make, read = FORMATS[kind]
        data = make(rng, naru)
        pipe.send(("about", number, kind, data))
        accepted, why = False, None
        try:
            accepted = read(data, naru)
            if tripped:
                why = "a function that no file may name was called"
            elif number % 20 == 0 and lasting(naru) != before:
                why = "something that outlives the load has changed (here, or in the 20 inputs before)"
        except Finding as finding:
            why = str(finding)
        except (Exception, MemoryError) as error:
            why = f"it was read and can't be used: {type(error).__name__}: {error}"
        pipe.send(("done", number, accepted, why))
        if why or pipe.poll():
            return
        number += 1


class Run:
    """Runs inputs in several child processes, one after another."""

    def __init__(self, seed: int, formats: list[str]) -> None:
        self.seed, self.formats = seed, formats
        self.counts: Counter = Counter()
        self.findings: list[str] = []

    def keep(self, number: int, kind: str, data: bytes, why: str) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"{kind}-{self.seed}-{number}.{kind}"
        path.write_bytes(data)
        self.findings.append(f"{path}: {why}")
        print(f"FOUND {self.findings[-1]}", flush=True)

    def go(self, seconds: float, inputs: int | None, first: int = 0) -> None:
        end = time.monotonic() + seconds
        context = multiprocessing.get_context("spawn")
        number = first
        while time.monotonic() < end and (inputs is None or number < inputs) and len(self.findings) < 20:
            ours, theirs = context.Pipe()
            child = context.Process(target=worker, args=(theirs, self.seed, number, self.formats))
            child.start()
            theirs.close()
            number = self.follow(ours, child, number, end, inputs)
            ours.close()
            child.join(2)
            if child.is_alive():
                child.kill()
                child.join()

    def follow(self, pipe, child, number: int, end: float, inputs: int | None) -> int:
        """Follows a child's output until it ends; returns the number of the next input."""
        kind, data = "", b""
        patience = 60.0  # time to start up
        while time.monotonic() < end and (inputs is None or number < inputs):
            try:
                if not pipe.poll(patience):
                    child.kill()
                    self.keep(number, kind, data, f"took longer than {MOST_SECONDS} s")
                    return number + 1
                what, number, *rest = pipe.recv()
            except EOFError:
                child.join()
                self.keep(number, kind, data, f"ended the process: exit code {child.exitcode}")
                return number + 1
            if what == "about":
                kind, data = rest
                patience = MOST_SECONDS
                continue
            accepted, why = rest
            self.counts[kind, "accepted" if accepted else "refused"] += 1
            patience = 60.0
            number += 1
            if why:
                self.keep(number - 1, kind, data, why)
                return number
        pipe.send("end")
        return number


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.files", description="Reads mutated files.")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--inputs", type=int, help="how many at most; then the run is the same every time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=sorted(FORMATS), help="only these (default: all)")
    parser.add_argument("--again", metavar="FILE", type=Path, help="reads one file that was found, in this process")
    options = parser.parse_args(arguments)
    if options.again:
        import naru

        print("accepted" if FORMATS[options.again.suffix[1:]][1](options.again.read_bytes(), naru) else "refused")
        return 0
    run = Run(options.seed, options.format or sorted(FORMATS))
    run.go(options.seconds, options.inputs)
    counts = ", ".join(f"{kind} {what}: {n}" for (kind, what), n in sorted(run.counts.items()))
    print(f"files: {sum(run.counts.values())} inputs of seed {options.seed} ({counts}); {len(run.findings)} found")
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())

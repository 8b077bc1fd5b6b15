"""PyTorch's side of the board: records its samples and results as pickles of plain data in a folder. Runs in PyTorch's environment.

    python -m tools.conformance.record FOLDER [--only NAME,NAME] [--limit N] [--again]

Writes one file per operator and dtype: NAME.VARIANT.DTYPE.pickle, whose `samples` are dictionaries (see `record_sample`). Samples for which PyTorch
raises, or whose result is not reproducible, are counted; for random results only shapes and dtypes are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import pickle
import random
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from . import work
from .close import TOLERANCES, beyond
from .plain import CannotPack, Packer, Unpacker, names_of

DTYPES = ("float32", "float64", "int64", "bool", "uint8", "complex64", "bfloat16", "float16")
WIDER = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
LARGE = 4 << 20  # total size of a sample's tensors, in bytes
FORMS_OF = 6  # number of samples that are also run as a method, in place, and by aliases
TWICE_OF = 6  # number of float64 samples for which second derivatives are computed
NAMESPACES = ("", "Tensor", "nn.functional", "nn", "linalg", "special", "fft", "signal.windows", "masked", "sparse", "nn.init", "autograd", "optim")


def paths() -> dict[int, str]:
    """Public names of PyTorch's callables, by id."""
    found: dict[int, str] = {}
    for space in NAMESPACES:
        owner = torch
        for part in filter(None, space.split(".")):
            owner = getattr(owner, part)
        prefix = "torch." + space + "." if space else "torch."
        for name in sorted(dir(owner), key=lambda n: (n.startswith("_"), n)):
            value = getattr(owner, name, None)
            if callable(value):
                found.setdefault(id(value), prefix + name)
    return found


PACKER, UNPACKER = Packer(torch, paths()), Unpacker("torch")


def dtypes_of(op: Any) -> list[str]:
    return [d for d in DTYPES if getattr(torch, d) in op.supported_dtypes("cpu")]


def key_of(op: Any) -> str:
    return op.name + ("/" + op.variant_test_name if op.variant_test_name else "")


def internal(op: Any) -> bool:
    """Whether the operator is undocumented: names with a leading underscore, dispatcher overloads, jiterator functions."""
    last = op.name.split(".")[-1]
    overload = isinstance(op.op, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))
    dispatched = "aten" in names_of(op.op.__code__) if hasattr(op.op, "__code__") else False
    return overload or dispatched or op.name.startswith("torch.") or (last.startswith("_") and not last.startswith("__")) or last.startswith("jiterator")


def seed(text: str) -> None:
    number = zlib.crc32(text.encode())
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def widened(p: Any, narrow: str) -> Any:
    """Packed arguments, with tensors and dtypes of the narrow type replaced by the wider one."""
    if isinstance(p, tuple) and p and p[0] == "tensor" and p[1] == narrow:
        wide = UNPACKER.unpack(("object", 0, p), {}).detach().to(getattr(torch, WIDER[narrow]))
        return packed_as(wide, p[5])
    if isinstance(p, tuple) and p == ("path", "torch." + narrow):
        return ("path", "torch." + WIDER[narrow])
    if isinstance(p, (tuple, list)):
        return type(p)(widened(x, narrow) for x in p)
    return p


def packed_as(t: torch.Tensor, requires_grad: bool) -> Any:
    return PACKER.pack(t.requires_grad_(requires_grad), {})[2]


class Run:
    """Runs a packed call in PyTorch: its packed result and gradients."""

    def __init__(self, call: Any, process: Any, given: Any, with_gradients: bool, twice: bool, in_place: bool) -> None:
        objects: dict[int, Any] = {}
        function = UNPACKER.unpack(call, {})
        torch.manual_seed(1)
        args, keywords = UNPACKER.unpack(given[0], objects), UNPACKER.unpack(given[1], objects)
        if in_place:
            out = work.write_in_place(function, args, keywords, torch)
        else:
            out = function(*args, **keywords)
        self.views = shares(out, (args, keywords))
        self.result = PACKER.pack(out, {})
        self.processed = PACKER.pack(UNPACKER.unpack(process, {})(out), {}) if process else None
        self.gradients = None
        if with_gradients:
            found = work.gradients(out, UNPACKER.unpack(process, {}) if process else None, (args, keywords, work.parameters_of(function)), torch, twice)
            self.gradients = [PACKER.pack(g, {}) for g in found]


def shares(out: Any, given: Any) -> list[bool]:
    """For each tensor in the result, whether it shares memory with an argument."""
    storages = {t.untyped_storage()._cdata for t in work.tensors_in(given, torch) if t.layout is torch.strided}
    return [t.layout is torch.strided and t.untyped_storage()._cdata in storages for t in work.tensors_in(out, torch)]


def arrays_in(p: Any) -> list[Any]:
    """All packed tensors in packed data."""
    if isinstance(p, tuple) and p and p[0] == "tensor":
        return [p]
    if isinstance(p, (tuple, list)):
        return [t for x in p for t in arrays_in(x)]
    return []


def truth_of(call: Any, process: Any, given: Any, run: Run, dtype: str, options: tuple[bool, bool, bool]) -> Any:
    """The result in the wider dtype, if PyTorch's own error in the narrow one is more than a quarter of the tolerance; else None."""
    if dtype not in WIDER or dtype not in TOLERANCES:
        return None
    try:
        wide = Run(call, process, widened(given, dtype), *options)
    except Exception:  # noqa: BLE001
        return None
    narrow_parts, wide_parts = arrays_in((run.result, run.gradients)), arrays_in((wide.result, wide.gradients))
    if len(narrow_parts) != len(wide_parts) or any(a[2] != b[2] for a, b in zip(narrow_parts, wide_parts)):
        return None
    if any(beyond(a, b, 0.25) for a, b in zip(narrow_parts, wide_parts)):
        return {"result": wide.result, "gradients": wide.gradients}
    return None


def record_sample(form: str, call: Any, process: Any, given: Any, dtype: str, options: tuple[bool, bool, bool]) -> dict[str, Any]:
    """Records a sample with PyTorch's result. Raises what PyTorch raises."""
    run = Run(call, process, given, *options)
    again = Run(call, process, given, False, False, options[2])
    repeats = run.result == again.result
    found = {"form": form, "call": call, "process": process, "given": given, "options": options, "repeats": repeats, "result": run.result,
             "views": run.views, "processed": run.processed, "gradients": run.gradients if repeats else None, "truth": None}
    if repeats:
        found["truth"] = truth_of(call, process, given, run, dtype, options)
    return found


@contextlib.contextmanager
def noted(found: dict[str, Any]) -> Iterator[None]:
    """Context manager for recording a sample: counts exceptions from PyTorch and values that can't be packed."""
    try:
        yield
    except CannotPack as e:
        found["cannot"].append(str(e))
    except Exception as e:  # noqa: BLE001
        found["raised"] += 1
        found["cannot"].append(f"PyTorch: {type(e).__name__}: {str(e)[:200]}")


def with_what_it_can(call: Any, process: Any, given: Any, dtype: str, with_gradients: bool, twice: bool) -> dict[str, Any]:
    """Records a sample; without second derivatives if PyTorch does not support them for it."""
    if size_of(given) > LARGE:
        raise CannotPack(f"more than {LARGE >> 20} MiB")
    try:
        return record_sample("function", call, process, given, dtype, (with_gradients, twice, False))
    except RuntimeError:
        if not twice:
            raise
        return record_sample("function", call, process, given, dtype, (with_gradients, False, False))


def size_of(p: Any) -> int:
    return sum(len(t[4]) for t in arrays_in(p))


def forms_of(op: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yields (form, callable, whether it writes its first argument) for the operator's method, in-place and alias forms."""
    spellings = [("", op.method_variant, op.inplace_variant)]
    for alias in op.aliases:
        yield f"alias {alias.name}", alias.op, False
        spellings.append((alias.name + ", ", alias.method_variant, alias.inplace_variant))
    for prefix, method, in_place in spellings:
        if method is not None and method is not op.op and id(method) in PACKER.paths:
            yield prefix + "method", method, False
        if in_place is not None and in_place is not op.op and id(in_place) in PACKER.paths:
            yield prefix + "in place", in_place, True


def identity(f: Any) -> bool:
    """Whether a sample's output processing function returns its argument unchanged."""
    code = getattr(f, "__code__", None)
    return code is not None and code.co_code == (lambda x: x).__code__.co_code


def record(op: Any, dtype: str, limit: int, with_forms: bool) -> dict[str, Any]:
    """Records all samples of an operator and dtype."""
    torch_dtype = getattr(torch, dtype)
    with_gradients = op.supports_autograd and torch_dtype in op.supported_backward_dtypes("cpu")
    seed(f"{key_of(op)} {dtype}")
    found: dict[str, Any] = {"samples": [], "raised": 0, "cannot": []}
    call = PACKER.pack(op.op, {})
    for i, sample in enumerate(op.sample_inputs("cpu", torch_dtype, requires_grad=with_gradients)):
        if i >= limit:
            break
        seen: dict[int, Any] = {}
        twice = with_gradients and dtype == "float64" and i < TWICE_OF and bool(op.supports_gradgrad)
        with noted(found):
            given = (PACKER.pack([sample.input, *sample.args], seen), PACKER.pack(dict(sample.kwargs), seen))
            process = None if identity(sample.output_process_fn_grad) else PACKER.pack(sample.output_process_fn_grad, {})
            found["samples"].append(with_what_it_can(call, process, given, dtype, with_gradients, twice))
            if with_forms and i < FORMS_OF and isinstance(sample.input, torch.Tensor):
                for form, function, in_place in forms_of(op):
                    with contextlib.suppress(Exception):  # some forms do not accept every sample
                        found["samples"].append(record_sample(form, PACKER.pack(function, {}), None, given, dtype, (False, False, in_place)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--share", default="0/1", help="i/n: this process's share of the operators")
    parser.add_argument("--again", action="store_true", help="also what is recorded already")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    only, (share, shares_in_all) = set(filter(None, given.only.split(","))), map(int, given.share.split("/"))
    from . import record_layers

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    jobs = [(key_of(op), op.name, d, internal(op), lambda op=op, d=d, first=d == dtypes_of(op)[0]: record(op, d, given.limit, first)) for op in op_db for d in dtypes_of(op)]
    jobs += [(name, name, d, False, job) for name, d, job in record_layers.jobs()]
    for number, (key, name, dtype, hidden, job) in enumerate(jobs):
        target = given.folder / f"{key.replace('/', '.')}.{dtype}.pickle"
        if (only and name not in only and key not in only) or number % shares_in_all != share or (target.exists() and not given.again):
            continue
        try:
            found = job()
        except Exception as e:  # noqa: BLE001
            found = {"samples": [], "raised": 0, "cannot": [f"{type(e).__name__}: {str(e)[:300]}"]}
        found.update(op=key, dtype=dtype, internal=hidden)
        part = target.with_suffix(".part")
        part.write_bytes(pickle.dumps(found, protocol=4))
        part.rename(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""naru's side of the board: runs recorded samples and classifies each result. It is a child process of `board.py`, since a sample may crash it.

Reads lines `FILE FIRST` from standard input. For each sample from FIRST on, prints its index on a line before running it, and a JSON line
afterwards.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import warnings
from typing import Any

import naru

from ..sanitized import SANITIZED
from . import work
from .close import TOLERANCES, array_of, differs
from .plain import CannotPack, Missing, Packer, Unpacker

ADDRESS_SPACE = 12 << 30
PACKER, UNPACKER = Packer(naru, {}), Unpacker("naru")
UNDEFINED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted", "resize_", "resize_as_"}


def compare(got: Any, want: Any, truth: Any, values: bool) -> str:
    """Describes the difference between packed data; "" if there is none."""
    if want[0] == "object":
        if got[0] != "object":
            return f"{got[0]} {got[1]!s:.40} where PyTorch gives a tensor"
        truth = truth[2] if truth and truth[0] == "object" else None
        return compare_tensors(got[2], want[2], truth, values)
    if want[0] in ("tuple", "list", "named", "size"):
        if got[0] not in ("tuple", "list", "named", "size") or (want[0] in ("list",)) != (got[0] in ("list",)):
            return f"{got[0]} where PyTorch gives {want[0]}"
        if want[0] == "size":
            return "" if list(got[1]) == list(want[1]) else f"{got[1]} for {want[1]}"
        if len(got[1]) != len(want[1]):
            return f"{len(got[1])} results for {len(want[1])}"
        inner = truth[1] if truth and truth[0] == want[0] and len(truth[1]) == len(want[1]) else [None] * len(want[1])
        for i, (g, w, t) in enumerate(zip(got[1], want[1], inner)):
            if said := compare(g, w, t, values):
                return f"result {i}: {said}"
        return ""
    if want[0] == "is" and got[0] == "is":
        a, b = got[1], want[1]
        if type(a) is not type(b):
            return f"{type(a).__name__} for {type(b).__name__}"
        close = not values or a == b or a != a and b != b or (isinstance(a, (float, complex)) and abs(a - b) <= 1e-5 + 1.3e-6 * abs(b))
        return "" if close else f"{a} for {b}"
    return "" if got == want else f"{got!s:.60} for {want!s:.60}"


def compare_tensors(got: Any, want: Any, truth: Any, values: bool) -> str:
    if got[0] != want[0]:
        return f"layout {got[0]} for {want[0]}"
    if got[0] != "tensor":
        for g, w in zip(got[1:], want[1:]):
            said = compare_tensors(g, w, None, values) if isinstance(w, tuple) and w and w[0] == "tensor" else "" if g == w else f"{g} for {w}"
            if said:
                return said
        return ""
    if values:
        return differs(got, want, truth)
    return "" if got[1:3] == want[1:3] else f"{got[1:3]} for {want[1:3]}"


def no_views(out: Any, given: Any, want: Any, views: list[bool]) -> str:
    """Describes what is wrong with a result that should be a view: its strides, or that it is not a view; "" if nothing."""
    tensors = work.tensors_in(out, naru)
    if not any(views) or len(tensors) != len(views):
        return ""
    storages = {t.untyped_storage().data_ptr() for t in work.tensors_in(given, naru) if t.layout is naru.strided}
    for t, p, view in zip(tensors, packed_tensors(want), views):
        if not view or t.layout is not naru.strided or t.numel() == 0:
            continue
        if t.untyped_storage().data_ptr() not in storages:
            return "no view of its argument"
        if any(n > 1 and a != b for n, a, b in zip(t.shape, t.stride(), p[3])):
            return f"strides {tuple(t.stride())} for {p[3]} of shape {tuple(t.shape)}"
    return ""


def packed_tensors(p: Any) -> list[Any]:
    if isinstance(p, tuple) and p and p[0] in ("tensor", "coo", "csr"):
        return [p]
    return [t for x in p for t in packed_tensors(x)] if isinstance(p, (tuple, list)) else []


def outcome_of(sample: dict[str, Any], op: str) -> tuple[str, str]:
    """Returns (right, wrong, refused, missing or crash; the reason)."""
    with_gradients, twice, in_place = sample["options"]
    stage = ""
    try:
        objects: dict[int, Any] = {}
        call = UNPACKER.unpack(sample["call"], {})
        args, keywords = UNPACKER.unpack(sample["given"][0], objects), UNPACKER.unpack(sample["given"][1], objects)
        naru.manual_seed(1)
        out = work.write_in_place(call, args, keywords, naru) if in_place else call(*args, **keywords)
        values = sample["repeats"] and op.split("/")[0] not in UNDEFINED
        truth = sample["truth"] or {"result": None, "gradients": None}
        process = UNPACKER.unpack(sample["process"], {}) if sample["process"] else None
        if said := compare(PACKER.pack(out, {}), sample["result"], truth["result"], values):
            if not another_answer(op, out, sample, args, keywords, process):
                return "wrong", said
            if op in PLACES:  # equal elements were selected in another order, so the gradient differs
                return "right", ""
        if said := no_views(out, (args, keywords), sample["result"], sample["views"]):
            return "wrong", said
        if not sample["gradients"]:
            return "right", ""
        stage = "gradient: "
        found = [PACKER.pack(g, {}) for g in work.gradients(out, process, (args, keywords, work.parameters_of(call)), naru, twice)]
        said = compare_gradients(found, sample["gradients"], truth["gradients"])
        return ("wrong", stage + said) if said else ("right", "")
    except Missing as e:
        return "missing", f"{stage}{e} is not in naru yet"
    except (AttributeError, ImportError) as e:
        return "missing", f"{stage}{type(e).__name__}: {first_line(e)}"
    except CannotPack as e:
        return "wrong", f"{stage}gives {e}"
    except (SystemError, RecursionError) as e:
        return "crash", f"{stage}{type(e).__name__}: {first_line(e)}"
    except Exception as e:  # noqa: BLE001
        return "refused", f"{stage}{type(e).__name__}: {first_line(e)}"


# Decompositions that are unique only up to signs (or a unitary factor): compare the result after the sample's output processing function.
NOT_UNIQUE = {"svd", "linalg.svd", "linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank"}
# Functions that return indices, with the position of their dim argument. Equal elements may be returned in any order.
PLACES = {"sort": 1, "argsort": 1, "topk": 2, "kthvalue": 2, "mode": 1}


def another_answer(op: str, out: Any, sample: dict[str, Any], args: list[Any], keywords: dict[str, Any], process: Any) -> bool:
    """Whether a result that differs from PyTorch's is equally valid, for functions whose result is not unique."""
    if op in NOT_UNIQUE and process and sample["processed"]:
        return not compare(PACKER.pack(process(out), {}), sample["processed"], None, True)
    if op not in PLACES:
        return False
    x, places = args[0].detach(), out if isinstance(out, naru.Tensor) else out[1]
    theirs = UNPACKER.unpack(sample["result"], {})
    dim = keywords.get("dim", args[PLACES[op]] if len(args) > PLACES[op] else -1)
    if places.dtype != naru.int64 or x.ndim == 0:
        return False
    their_places = theirs if isinstance(theirs, naru.Tensor) else theirs[1]
    if places.shape != their_places.shape:
        return False
    if places.ndim < x.ndim:
        places, their_places = places.unsqueeze(dim), their_places.unsqueeze(dim)
    a, b = (naru.take_along_dim(x, p, dim) for p in (places, their_places))
    same = not compare(PACKER.pack(a, {}), PACKER.pack(b, {}), None, True)
    return same and (isinstance(out, naru.Tensor) or not compare(PACKER.pack(out[0], {}), sample["result"][1][0], None, True))


def compare_gradients(got: list[Any], want: list[Any], truth: list[Any] | None) -> str:
    if len(got) != len(want):
        return f"{len(got)} gradients for {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        exact = truth[i] if truth and len(truth) == len(want) else None
        if (g[0] == "object") != (w[0] == "object"):
            if no_gradient(g) and no_gradient(w):
                continue
            return f"{i}: {'none' if g[0] != 'object' else 'one'} where PyTorch gives {'none' if w[0] != 'object' else 'one'}"
        if said := compare(g, w, exact, True):
            return f"{i}: {said}"
    return ""


def no_gradient(p: Any) -> bool:
    """Whether a gradient is None or zero within the tolerance: PyTorch itself returns either."""
    if p[0] != "object" or p[2][0] != "tensor":
        return p == ("is", None)
    return not (abs(array_of(p[2])) > TOLERANCES.get(p[2][1], (0, 0))[1]).any()


def first_line(e: BaseException) -> str:
    return str(e).split("\n")[0][:300]


def main() -> None:
    warnings.simplefilter("ignore")
    naru.random.set_algorithm("pytorch")
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for line in sys.stdin:
        path, first = line.rsplit(" ", 1)
        with open(path, "rb") as f:
            recorded = pickle.load(f)
        for i, sample in enumerate(recorded["samples"]):
            if i >= int(first):
                print(i, flush=True)
                outcome, reason = outcome_of(sample, recorded["op"])
                print(json.dumps([outcome, reason]), flush=True)
        print("done", flush=True)


if __name__ == "__main__":
    main()

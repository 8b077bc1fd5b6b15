"""Records samples of PyTorch's modules (module_db) and optimizers (optim_db) in the same form as operators: the function is a module or an
optimizer of a class."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterator

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

from .record import PACKER, noted, record_sample, seed

DTYPES = ("float32", "float64")
SIZES = ((3, 4), (4,), ())


def record_module(info: Any, dtype: str) -> dict[str, Any]:
    """Records a module's samples in training and evaluation mode: results, and gradients of arguments and parameters."""
    found: dict[str, Any] = {"samples": [], "raised": 0, "cannot": []}
    torch_dtype = getattr(torch, dtype)
    for training in (True, False):
        seed(f"{info.name} {dtype} {training}")
        for sample in info.module_inputs_func(info, device="cpu", dtype=torch_dtype, requires_grad=True, training=training):
            made, given = sample.constructor_input, sample.forward_input
            if given is None:
                continue
            with noted(found):
                module = info.module_cls(*made.args, **made.kwargs).to(torch_dtype).train(training)
                seen: dict[int, Any] = {}
                packed = (PACKER.pack(list(given.args), seen), PACKER.pack(dict(given.kwargs), seen))
                if info.is_lazy:  # has parameters only after its first call
                    module(*given.args, **given.kwargs)
                parts = (list(made.args), dict(made.kwargs), dict(module.state_dict()), training, torch_dtype)
                call = ("layer", PACKER.pack(info.module_cls, {}), *(PACKER.pack(p, {}) for p in parts))
                found["samples"].append(record_sample("train" if training else "eval", call, None, packed, dtype, (True, False, False)))
    return found


def record_optimizer(info: Any, dtype: str) -> dict[str, Any]:
    """Records the parameters after some steps of an optimizer, for each of its option sets."""
    found: dict[str, Any] = {"samples": [], "raised": 0, "cannot": []}
    for sample in info.optim_inputs_func(device="cpu", dtype=getattr(torch, dtype)):
        seed(f"{info.optim_cls.__name__} {sample.desc} {dtype}")
        sizes = ((3, 4), (4, 2)) if info.optim_cls.__name__ == "Muon" else SIZES
        given = (PACKER.pack([torch.randn(s, dtype=getattr(torch, dtype)) for s in sizes], {}), PACKER.pack({}, {}))
        with noted(found):
            call = ("optimizer", PACKER.pack(info.optim_cls, {}), PACKER.pack(dict(sample.kwargs), {}))
            found["samples"].append(record_sample("function", call, None, given, dtype, (False, False, False)))
    return found


def jobs() -> Iterator[tuple[str, str, Callable[[], dict[str, Any]]]]:
    """Returns (name, dtype, recording function)."""
    for dtype in DTYPES:
        for info in module_db:
            if getattr(torch, dtype) in info.dtypes:
                yield f"{info.name}" if info.name.startswith("nn.") else f"nn.{info.name}", dtype, partial(record_module, info, dtype)
        for info in optim_db:
            yield f"optim.{info.optim_cls.__name__}", dtype, partial(record_optimizer, info, dtype)

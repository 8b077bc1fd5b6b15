"""`torch.utils.flop_counter`: counts floating-point operations of matrix products, convolutions and attention, by module and operator.

The core counts (naru/flops.h): operations count per operator call, whether the program, a layer or backward calls it.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from ..ops import OpOverloadPacket
from ..overrides import TorchFunctionMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FlopCounterMode", "register_flop_formula"]

_SUFFIXES = ("", "K", "M", "B", "T")

flop_registry: dict[Any, Callable[..., int]] = {}


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """Converts a formula over shapes into one over tensors."""
    if getattr(formula, "_get_raw", False):
        return formula

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(lambda x: x.shape if isinstance(x, _C.Tensor) else x, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: registers the function as the operation count of an operator call.

    Args:
        targets: operators of `torch.ops`, one or a list. ValueError for anything else.
        get_raw: pass the arguments, and the result as `out_val`; otherwise shapes replace tensors, and the result is `out_shape`.

    >>> import naru
    >>> @naru.library.custom_op("example::half", mutates_args=())
    ... def half(x: naru.Tensor) -> naru.Tensor:
    ...     return x / 2
    >>> @register_flop_formula(naru.ops.example.half)
    ... def operations(shape, out_shape=None):
    ...     return shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = half(naru.ones(3))
    >>> counter.get_total_flops()
    3
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"got {target} which is of type {type(target)}"
                )
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


class _Formulas(TorchFunctionMode):
    """Calls user-defined formulas instead of the core's count."""

    def __init__(self, counter: FlopCounterMode, formulas: dict[Any, Callable[..., int]]) -> None:
        self._counter, self._formulas = counter, formulas

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "_qualname", None) or "aten::" + getattr(func, "__name__", "").strip("_")
        formula = self._formulas.get(operator := OpOverloadPacket(name, func))
        if formula is None:
            return func(*args, **kwargs)
        self._counter._settle()
        result = func(*args, **kwargs)
        self._counter._settle({operator: formula(*args, **kwargs, out_val=result)})
        return result


class FlopCounterMode:
    """Counts the operations of calls within `with FlopCounterMode() as counter:`, including backward.

    A multiplication and an addition are one operation each. Attention counts as if nothing were masked. Counts depend only on shapes, so tensors on
    the meta device count as well. Only the thread that entered is counted.

    Args:
        mods: ignored, with a UserWarning.
        depth: the depth of modules in the table.
        display: whether to print the table at the end.
        custom_mapping: {operator: formula}, as in `register_flop_formula`; a formula whose attribute `_get_raw` is true gets tensors.
        skip_unsupported: ignored: operators without a formula count as 0.

    >>> import naru
    >>> layer = naru.nn.Linear(3, 4)
    >>> with FlopCounterMode(display=False) as counter:
    ...     layer(naru.ones(2, 3)).sum().backward()
    >>> counter.get_total_flops(), counter.get_flop_counts()["Linear"]
    (96, {<OpOverloadPacket(op='aten.addmm')>: 48, <OpOverloadPacket(op='aten.mm')>: 48})
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None, skip_unsupported: bool = False
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display, self.skip_unsupported = depth, display, skip_unsupported
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {**flop_registry, **{operator: _of_shapes(formula) for operator, formula in (custom_mapping or {}).items()}}
        self.mod_tracker = ModuleTracker(self._settle)
        self._formulas = _Formulas(self, self.flop_registry)
        self._counter: _C._FlopCounter | None = None

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        if self.flop_registry:
            self._formulas.__enter__()
        self._counter, self._settled = _C._FlopCounter(), {}
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._counter is not None
        self._counter.stop()
        self._settle()
        if self.flop_registry:
            self._formulas.__exit__(*exc)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def _settle(self, instead: dict[Any, int] | None = None) -> None:
        """Adds the operations counted since the last call, or those given in `instead`, to the modules being called."""
        if self._counter is None:
            return
        now = self._counter.by_operator
        new = {OpOverloadPacket(f"aten::{op}"): count - self._settled.get(op, 0) for op, count in now.items()} if instead is None else instead
        self._settled = now
        for module in self.mod_tracker.parents:
            for operator, count in new.items():
                if count:
                    self.flop_counts[module][operator] += count

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {operator: operations}}; "Global" is the whole program, and a module includes the modules it calls."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_total_flops(self) -> int:
        """The total number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_unsupported_ops(self) -> Counter[str]:
        """Empty: no operator is excluded as unsupported."""
        return Counter()

    def get_table(self, depth: int | None = None) -> str:
        """A text table with a line per module, down to `depth` (default: the counter's own), and a line per operator in it."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = min(len(_SUFFIXES) - 1, max(0, len(str(total)) - 2) // 3)  # at least two digits before the point

        def lines(module: str, indent: str) -> list[tuple[str, str, str]]:
            counts = self.flop_counts[module]
            named = [(module, sum(counts.values())), *((f" - {operator}", count) for operator, count in counts.items())]
            share = [f"{count / total:.2%}" if total else "0%" for _, count in named]
            return [(indent + name, f"{n / 1000**unit:.3f}{_SUFFIXES[unit]}", part) for (name, n), part in zip(named, share)]

        modules = sorted(m for m in self.flop_counts if m != "Global" and (depth is None or m.count(".") < depth))
        whole = any(sum(self.flop_counts[m].values()) >= total for m in modules)  # a module that accounts for everything
        rows = [] if whole or not total else lines("Global", "")
        for module in modules:
            rows += lines(module, " " * (module.count(".") + (not whole)))
        rows = [("Module", "FLOP", "% Total"), *(rows or [("Global", "0", "0%")])]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2]))
        return "\n".join(f"{name:<{widths[0]}}  {n:>{widths[1]}}  {part:>{widths[2]}}" for name, n, part in rows)


__getattr__ = _missing.module_getattr(__name__)

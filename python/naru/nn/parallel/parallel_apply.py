"""Modules applied at the same time, each in a thread of its own and on its own device."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ... import _C
from ...utils._exceptions import ExceptionWrapper
from ...streams import StreamContext, current_stream
from .comm import device_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def _first_device(value: Any) -> _C.device | None:
    if isinstance(value, Tensor):
        return value.device
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_first_device, value)), None)
    if isinstance(value, dict):
        return next(filter(None, map(_first_device, value.values())), None)
    return None


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None, devices: Sequence[Any] | None = None
) -> list[Any]:
    """module(*input, **kwargs) for each of `modules`, on `devices` (None: where its input is). An input that is no tuple is the only argument.
    Raises the first replica's error, with its type, its traceback as text, and the replica's number and device.

    Args:
        inputs: an argument, or a tuple of them, for each module.
        kwargs_tup: arguments by name for each module.

    >>> with naru.virtual("cuda", count=2):
    ...     xs = [naru.tensor([-1.0], device="cuda:0"), naru.tensor([2.0], device="cuda:1")]
    ...     [y.item() for y in naru.nn.parallel.parallel_apply([naru.nn.ReLU(), naru.nn.Tanh()], xs)]
    [0.0, 0.9640275835990906]
    """
    count = len(modules)
    if len(inputs) != count:
        raise AssertionError(f"The number of modules {count} is not equal to the number of inputs {len(inputs)}")
    named = kwargs_tup if kwargs_tup is not None else [{}] * count
    if len(named) != count or (devices is not None and len(devices) != count):
        raise AssertionError(f"parallel_apply: wanted {count} dicts of named arguments and devices, got {len(named)} and {len(devices or ())}")
    places = [None if d is None else device_of(d) for d in (devices or [None] * count)]
    streams = [None if d is None or d.type == "cpu" else current_stream(d.type, d) for d in places]
    grad = _C.is_grad_enabled()
    results: list[Any] = [None] * count

    def work(i: int, module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        before = _C._set_grad_enabled(grad)
        place, stream = places[i] or _first_device(args), streams[i]
        try:
            if place is None:
                raise RuntimeError(f"parallel_apply: replica {i} has no tensor among its arguments that would tell its device; pass devices=")
            if stream is None and place.type != "cpu":
                stream = current_stream(place.type, place)
            with StreamContext(stream):
                results[i] = module(*(args if isinstance(args, (list, tuple)) else (args,)), **kwargs)
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {place.index if place is not None and place.type == 'cuda' else place}")
        finally:
            _C._restore_grad_mode(before)

    if count == 1:
        work(0, modules[0], inputs[0], named[0])
    else:
        threads = [threading.Thread(target=work, args=(i, *each)) for i, each in enumerate(zip(modules, inputs, named))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results

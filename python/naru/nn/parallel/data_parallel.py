"""`DataParallel`: a module that splits its batch over several devices."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from ... import _C
from ..modules.module import Module
from .comm import device_of
from .parallel_apply import parallel_apply
from .replicate import Copies, replicate
from .scatter_gather import gather, scatter_kwargs

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def _kind() -> str | None:
    return next((k for k in _C._ACCELERATORS if _C.device_count(k)), None)


def _index(device: _C.device) -> Any:
    return device.index if device.type == "cuda" else device


class DataParallel(Module):
    """Runs `module` on several devices at once, each with a part of the batch, and gathers the results on `output_device`.

    device_ids: indices or devices (all of the best kind); the module's parameters and buffers must be on the first. dim: the batch dimension.
    Gradients are accumulated in the original parameters. A batch smaller than the number of devices uses fewer of them. Without devices, the
    module runs unchanged. Replicas' parameters are kept between calls and copied again only when the originals have changed.

    >>> with naru.virtual("cuda", count=4):
    ...     model = naru.nn.DataParallel(naru.nn.Linear(3, 2).to("cuda"))
    ...     x = naru.ones(6, 3, device="cuda")
    ...     naru.allclose(model(x), model.module(x), atol=1e-5), str(model(x).device)
    (True, 'cuda:0')
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        kind = _kind()
        self.module = module
        self.dim = dim
        self._copies = Copies()
        if kind is None:
            self.device_ids: list[Any] = []
            return
        if device_ids is None:
            device_ids = [_C.device(kind, i) for i in range(_C.device_count(kind))]
        if not device_ids:
            raise RuntimeError("no available devices were found")
        self._places = [device_of(d, kind) for d in device_ids]
        self._output = device_of(output_device, kind) if output_device is not None else self._places[0]
        self.device_ids = [_index(d) for d in self._places]
        self.output_device = _index(self._output)
        self.src_device_obj = self._places[0]
        if len(self._places) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: {t.device}. To fix it, call "
                    f"module.to('{self.src_device_obj}') first"
                )
        args, named = self.scatter(inputs, kwargs, self.device_ids)
        if not args and not named:
            args, named = ((),), ({},)
        if len(self._places) == 1:
            return self.module(*args[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(args)])
        return self.gather(self.parallel_apply(replicas, args, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Replicas of the module, one on each device; tensors that have not changed since the last call are not copied again."""
        return replicate(module, self._places[: len(device_ids)], not _C.is_grad_enabled(), self._copies)

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Splits the arguments into pieces, one for each device."""
        return scatter_kwargs(inputs, kwargs, self._places[: len(device_ids)], dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Any, kwargs: Any) -> list[Any]:
        """The replicas' results, each computed in its own thread."""
        return parallel_apply(replicas, inputs, kwargs, self._places[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Concatenates the results on one device."""
        return gather(outputs, self._output, dim=self.dim)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_copies": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._copies = Copies()


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """module(*inputs, **module_kwargs), split over `device_ids` along `dim`; the result is on `output_device` (by default the first; -1: the CPU).

    Args:
        module: a module whose parameters are on the first device.
        inputs: a tensor, or a tuple of arguments. module_kwargs: arguments by name.
        device_ids: devices or indices; all of the best kind if None.
        output_device: a device or an index.
        dim: the batch dimension.

    >>> with naru.virtual("cuda", count=2):
    ...     naru.nn.parallel.data_parallel(naru.nn.ReLU().to("cuda"), naru.tensor([-1.0, 2.0], device="cuda"), [0, 1]).tolist()
    [0.0, 2.0]
    """
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*inputs, **(module_kwargs or {}))

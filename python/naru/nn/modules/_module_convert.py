"""Moving, casting and mode switches of whole modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C, __future__ as _future
from ..parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

Tensor = _C.Tensor


class ConvertMethods:
    """The methods of `Module` that change all of its parameters and buffers."""

    if TYPE_CHECKING:
        training: bool
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        buffers: Callable[[], Iterator[Any]]
        children: Callable[[], Iterator[Any]]
        parameters: Callable[[], Iterator[Any]]

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Calls `fn` on every submodule, children first, and on this module; returns self.

        Args:
            fn: a function that accepts a module.

        >>> _ = naru.nn.Sequential(naru.nn.ReLU(), naru.nn.Tanh()).apply(lambda module: print(type(module).__name__))
        ReLU
        Tanh
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the values of all parameters, gradients and buffers by the results of `fn`.

        Parameters stay the same objects, so existing optimizers keep working.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._apply_to_parameter(name, param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(self, name: str, param: Any, fn: Callable[[Tensor], Tensor]) -> None:
        grad = param.grad
        with _C.no_grad():
            made = fn(param)
            new_grad = None if grad is None else fn(grad.detach())
        if new_grad is not None and new_grad.requires_grad != grad.requires_grad:
            new_grad = new_grad.requires_grad_(grad.requires_grad)
        if _future.get_swap_module_params_on_conversion():
            self._swap_parameter(name, param, made, new_grad)
            return
        with _C.no_grad():
            if _future.get_overwrite_module_params_on_conversion() or made.layout != param.layout or made.is_meta != param.is_meta:
                self._parameters[name] = param = Parameter(made, param.requires_grad)
            else:
                param.data = made
            if grad is not None:
                param.grad = new_grad

    def _swap_parameter(self, name: str, param: Any, made: Tensor, new_grad: Tensor | None) -> None:
        """Swaps the converted tensors into the existing objects of the parameter and its gradient."""
        from ...utils import swap_tensors

        grad = param.grad
        if not isinstance(made, Parameter):
            made = Parameter(made, param.requires_grad)
        try:
            if grad is not None:
                param.grad = None  # so that the gradient has no other reference, which swap_tensors requires
            swap_tensors(param, made)
            if grad is not None and new_grad is not None:
                swap_tensors(grad, new_grad)
                param.grad = grad
        except Exception as error:
            if param.grad is None:
                param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error  # type: ignore[attr-defined]

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts parameters and buffers, in place: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`.

        Only floating-point tensors are cast; `memory_format` applies to tensors of 4 and 5 dimensions. Returns self.

        >>> layer = naru.nn.Linear(3, 2).to(naru.float64)
        >>> layer.weight.dtype
        torch.float64
        >>> with naru.virtual("cuda", count=1):
        ...     str(naru.nn.Linear(3, 2).to("cuda").weight.device)
        'cuda:0'
        """
        memory_format = kwargs.get("memory_format")
        device, dtype, non_blocking = _parse_to(args, kwargs)
        if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        if device is not None and device.type != "meta" and any(t.is_meta for t in (*self.parameters(), *self.buffers())):
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                "when moving module from meta to a different device."
            )

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else t.dtype
            new_device = device if device is not None else t.device
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(new_device, new_dtype, non_blocking, memory_format=memory_format)
            if device is not None:
                return t.to(new_device, new_dtype, non_blocking)
            return t.to(new_dtype)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to `device` without copying their values.

        Args:
            device: the target device. recurse: whether to move submodules, too.

        >>> layer = naru.nn.Linear(3, 2, device="meta").to_empty(device="cpu")
        >>> layer.weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: _C.empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU.

        >>> naru.nn.Linear(3, 2).cpu().weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Moves parameters and buffers to a cuda device (the current one if None).

        >>> with naru.virtual("cuda", count=2):
        ...     str(naru.nn.Linear(3, 2).cuda(1).weight.device)
        'cuda:1'
        """
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Moves parameters and buffers to an xpu device (the current one if None).

        >>> with naru.virtual("xpu", count=1):
        ...     str(naru.nn.Linear(3, 2).xpu().weight.device)
        'xpu:0'
        """
        return self._apply(lambda t: t.to(_C.device("xpu") if device is None else _C.device("xpu", device) if isinstance(device, int) else device))

    def float(self) -> Self:
        """Casts floating-point parameters and buffers to float32.

        >>> naru.nn.Linear(3, 2, dtype=naru.float64).float().weight.dtype
        torch.float32
        """
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Casts floating-point parameters and buffers to float64.

        >>> naru.nn.Linear(3, 2).double().weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Casts floating-point parameters and buffers to float16.

        >>> naru.nn.Linear(3, 2).half().weight.dtype
        torch.float16
        """
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Casts floating-point parameters and buffers to bfloat16.

        >>> naru.nn.Linear(3, 2).bfloat16().weight.dtype
        torch.bfloat16
        """
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers to `dst_type`.

        >>> naru.nn.Linear(3, 2).type(naru.float64).weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def train(self, mode: bool = True) -> Self:
        """Sets training mode (which affects Dropout, batch norm and similar layers) on all submodules; returns self.

        Args:
            mode: True for training, False for evaluation.

        >>> layer = naru.nn.Dropout().eval()
        >>> layer.train().training
        True
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode: the same as `train(False)`.

        >>> naru.nn.Dropout().eval()(naru.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switches gradients on or off for all parameters; returns self.

        >>> layer = naru.nn.Linear(3, 2).requires_grad_(False)
        >>> [p.requires_grad for p in layer.parameters()]
        [False, False]
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets all gradients to None, or zeroes them with set_to_none=False.

        >>> layer = naru.nn.Linear(2, 1)
        >>> layer(naru.ones(2)).sum().backward()
        >>> layer.zero_grad()
        >>> layer.weight.grad is None
        True
        """
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def share_memory(self) -> Self:
        """Moves parameters and buffers into memory shared with processes that are forked later: each one sees the others' writes.

        NotImplementedError where tensors can't be shared. Tensors on other devices are not moved.

        >>> naru.nn.Linear(3, 2).share_memory().weight.is_shared()
        True
        """

        def share(tensor: Tensor) -> Tensor:
            tensor.share_memory_()
            if tensor.numel() and tensor.device.type == "cpu" and not tensor.is_shared():
                raise NotImplementedError("share_memory: tensors can't be shared with other processes yet; send copies, e.g. state_dict()")
            return tensor

        return self._apply(share)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: naru compiles kernels as it runs.

        >>> layer = naru.nn.ReLU()
        >>> layer.compile()
        >>> layer(naru.tensor([-1.0, 1.0]))
        tensor([0., 1.])
        """


def _parse_to(args: tuple, kwargs: dict) -> tuple[Any, Any, bool]:
    """Parses the arguments of `Module.to` into (device, dtype, non_blocking)."""
    device, dtype, non_blocking = kwargs.pop("device", None), kwargs.pop("dtype", None), kwargs.pop("non_blocking", False)
    tensor = kwargs.pop("tensor", None)
    kwargs.pop("memory_format", None)
    if kwargs.pop("copy", False):
        raise RuntimeError(".to() does not accept copy argument")
    if kwargs:
        raise TypeError(f"to() received an invalid combination of arguments - unexpected keyword '{next(iter(kwargs))}'")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    elif rest:
        if isinstance(rest[0], _C.dtype):
            dtype = rest.pop(0)
        else:
            device = rest.pop(0)
            if rest:
                dtype = rest.pop(0)
                if dtype is not None and not isinstance(dtype, _C.dtype):
                    raise TypeError(
                        f"to() received an invalid combination of arguments - got {type(dtype).__name__} after a device, but expected a dtype"
                    )
    if rest:
        non_blocking = rest.pop(0)
    if device is not None and not isinstance(device, _C.device):
        if not isinstance(device, (str, int)):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(device).__name__}), but expected a "
                "device, a dtype or a tensor"
            )
        device = _C.device(device)
    return device, dtype, bool(non_blocking)

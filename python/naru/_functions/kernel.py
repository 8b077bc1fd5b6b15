"""Kernels of your own, written once in a small C dialect and run on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
Extent = "int | tuple[int, ...] | None"


class KernelContext:
    """What a backward function is given beside the gradients."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.grid, self.blocks, self.threads = context.extent()

    def __getitem__(self, name: str) -> Any:
        """A forward argument by its parameter's name; an output has the value that the kernel left."""
        return self._context.argument(name)


class Kernel:
    """A kernel that can be called; `naru.kernel` makes them."""

    def __init__(self, source: str, name: str, backward: str | Callable[..., Any] | None = None, exact: bool = True) -> None:
        # Behind everything, where it moves no line.
        self._kernel = _C._Kernel(source if exact else source.rstrip() + "\n#pragma naru inexact\n", name)
        self.__name__ = name
        if isinstance(backward, Kernel):
            backward = backward.__name__
        if isinstance(backward, str):
            self._kernel.set_backward_kernel(backward)
        elif callable(backward):
            self._kernel.set_backward(_Backward(backward, name, self._kernel.inputs, self._kernel.outputs))
        elif backward is not None:
            raise TypeError(f"kernel(): backward must be a function or the name of a kernel in the source, got {type(backward).__name__}")

    def __call__(self, *args: Any, grid: Any = None, blocks: Any = None, threads: Any = None, shared: int = 0) -> None:
        """Runs it on the device of its arguments, behind what was asked of the device before; waits for nothing.

        grid: how many items run, exactly: an int, or a tuple of up to three, x first. threads: how many make a group
        (256, (16, 16) or (8, 8, 4) unless given). Or blocks and threads: that many groups of so many items.
        shared: the bytes of a shared array without a length, as CUDA's `extern __shared__ float part[]`.
        """
        self._kernel.run(args, grid, blocks, threads, shared)

    def __repr__(self) -> str:
        return f"<{self._kernel.signature}>"


class _Backward:
    """Calls a user's function; puts what it returns in the order of the parameters."""

    def __init__(self, function: Callable[..., Any], name: str, inputs: list[str], outputs: list[str]) -> None:
        self.function = function
        self.name = name
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, context: Any, grads: list[Tensor]) -> list[Tensor | None]:
        found = self.function(KernelContext(context), *grads)
        names = self.inputs + self.outputs
        if isinstance(found, dict):
            unknown = [key for key in found if key not in names]
            if unknown:
                raise ValueError(f"backward of the kernel '{self.name}' returned a gradient for {unknown[0]!r}; its tensors are {names}")
            found = [found.get(key) for key in names]
        elif not isinstance(found, (tuple, list)):
            found = [found]
        for key, grad in zip(names, found):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"backward of the kernel '{self.name}' returned {type(grad).__name__} for '{key}'; wanted a Tensor or None")
        return list(found)


def kernel(source: str, name: str, backward: str | Callable[..., Any] | None = None, *, exact: bool = True) -> Kernel:
    """The kernel `name` of a source in naru's C dialect (docs/kernels.md), which runs on every device.

    `k(*args, grid=n)` runs exactly n items; `k(*args, blocks=b, threads=t)` runs b groups of t. Pointers take contiguous
    tensors of their type: pointers to `const` are read, others written. It is compiled at the first call on a device and
    kept on disk. What does not fit a parameter is an error that names it; what the compiler refuses is shown by line.

    >>> import naru
    >>> source = '''
    ... kernel void vec_add(const float* a, const float* b, float* out) {
    ...   int i = global_id(0);
    ...   out[i] = a[i] + b[i];
    ... }'''
    >>> vec_add = naru.kernel(source, "vec_add")
    >>> a, b, out = naru.arange(4.0), naru.ones(4), naru.empty(4)
    >>> vec_add(a, b, out, grid=4)
    >>> out
    tensor([1., 2., 3., 4.])

    backward makes it differentiable: a function `f(ctx, *grads)` that is given the gradients of the outputs, with `ctx["a"]`
    the forward arguments, and returns those of the inputs; or the name of another kernel of the source, whose parameters
    are named like the forward's, with `grad_out` for what comes in and `grad_a` for what is to be written.

    >>> square = naru.kernel('''
    ... kernel void square(const float* x, float* y) { int i = global_id(0); y[i] = x[i] * x[i]; }
    ... kernel void square_backward(const float* x, const float* grad_y, float* grad_x) {
    ...   int i = global_id(0);
    ...   grad_x[i] = 2 * x[i] * grad_y[i];
    ... }''', "square", backward="square_backward")
    >>> x, y = naru.tensor([1.0, 2.0, 3.0], requires_grad=True), naru.empty(3)
    >>> square(x, y, grid=3)
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])

    exact=False lets NVIDIA's compiler make one operation of a product and a sum, and use what only the one generation of GPUs has (`wgmma` and the like on
    an H100): faster, and not the bits of other devices.
    """
    return Kernel(source, name, backward, exact)

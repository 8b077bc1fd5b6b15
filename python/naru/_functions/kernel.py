"""User kernels, written once in a small C dialect and run on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
Extent = "int | tuple[int, ...] | None"


class KernelContext:
    """The context argument of a backward function, next to the gradients."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.grid, self.blocks, self.threads = context.extent()

    def __getitem__(self, name: str) -> Any:
        """A forward argument by its parameter's name; an output has the value that the kernel wrote."""
        return self._context.argument(name)


class Kernel:
    """A callable kernel, made by `naru.kernel`."""

    def __init__(self, source: str, name: str, backward: str | Callable[..., Any] | None = None, exact: bool = True) -> None:
        # Appended at the end, so that line numbers in errors stay right.
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
        """Launches it on the device of its arguments, after all work submitted before; does not wait.

        grid: exactly how many items run: an int, or a tuple of up to three, x first. threads: the size of a work group
        (256, (16, 16) or (8, 8, 4) unless given). Or blocks and threads: the number of groups and their size.
        shared: bytes of a shared array declared without a length, as CUDA's `extern __shared__ float part[]`.
        """
        self._kernel.run(args, grid, blocks, threads, shared)

    def __repr__(self) -> str:
        return f"<{self._kernel.signature}>"


class _Backward:
    """Calls a user's backward function; orders its results by the parameters."""

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

    `k(*args, grid=n)` runs exactly n items; `k(*args, blocks=b, threads=t)` runs b groups of t. Pass contiguous tensors of
    the matching dtype for pointers: pointers to `const` are read, others written. It is compiled at the first call on a device and
    cached on disk. An argument that does not match is an error that names its parameter; compiler errors are shown by line.

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

    backward makes it differentiable: a function `f(ctx, *grads)` that receives the gradients of the outputs, with `ctx["a"]`
    the forward arguments, and returns those of the inputs; or the name of another kernel in the source, whose parameters
    have the forward's names, with `grad_out` for the incoming and `grad_a` for the computed gradients.

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

    exact=False allows NVIDIA's compiler to contract a product and a sum into one operation, and instructions that only one GPU generation has
    (`wgmma` and the like on an H100): faster, but not bitwise equal to other devices.
    """
    return Kernel(source, name, backward, exact)

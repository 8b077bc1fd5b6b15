"""`Function`: an operation whose forward and backward are written by the user."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C
from . import forward_ad
from .grad_mode import enable_grad, set_grad_enabled

if TYPE_CHECKING:
    import inspect

Tensor = _C.Tensor

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionCtx:
    """What forward leaves for backward: the `ctx` of a `Function`'s methods.

    >>> class Double(naru.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.factor = 2
    ...         return ctx.factor * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         print(ctx.needs_input_grad, ctx.factor)
    ...         return ctx.factor * grad
    >>> Double.apply(naru.ones(1, requires_grad=True)).backward()
    (True,) 2
    """

    _to_save: tuple = ()
    _saved: Any = None  # what the node has saved of them, once there is one
    _non_differentiable: tuple = ()
    _dirty: tuple = ()
    _materialize: bool = True
    _for_forward: tuple = ()
    _in_jvp: bool = False
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward; an in-place change to one of them makes backward fail, as it should."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(tensor).__name__}")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for jvp. Where there is no backward to keep them for, `saved_tensors` are these."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_forward can only save variables, but argument is of type {type(tensor).__name__}")
        self._for_forward = tensors
        if not self._to_save:
            self.save_for_backward(*tensors)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`; in jvp, those given to `save_for_forward`. RuntimeError if one was changed in place since,
        or backward has freed them."""
        if self._in_jvp:
            return self._for_forward
        return self._to_save if self._saved is None else self._saved.get()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The older name of `saved_tensors`, which warns."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Says that no gradient flows through these outputs."""
        self._non_differentiable = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Says which inputs forward changed in place (and returns)."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """With False, gradients that nothing flowed into come as None rather than zeros."""
        self._materialize = value


class Function:
    """Base of operations with a derivative of their own.

    A subclass defines the static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, which returns one
    gradient (or None) for each argument of forward; `forward(*args)` with `setup_context(ctx, inputs, output)`
    works too. It is called by `apply`.

    >>> import naru
    >>> class Cube(naru.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x ** 2
    >>> x = naru.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation; runs without recording gradients."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Fills `ctx` after forward, where forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of forward's arguments, given those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """(outputs, where their batch is), for a batch of calls: `in_dims` says where that of each argument is, info.batch_size its size.

        A subclass defines it, or sets generate_vmap_rule = True, to be called within `torch.func.vmap`.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The forward derivative: of the outputs, given those of forward's arguments (None for what is no tensor).

        Called where an argument has a tangent (`autograd.forward_ad`). Without it, forward derivatives are the derivative of backward here;
        without a backward, it serves that, too.
        """
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and, where an argument requires gradients, records backward. Within vmap: see `vmap`."""
        nested = any(isinstance(arg, Tensor) and not issubclass(type(arg), Tensor) for arg in args)
        if nested or any(_C._batch_level(arg) for arg in args):
            import importlib

            return importlib.import_module("naru.nested._functions" if nested else "naru.func._functions").apply(cls, args, kwargs)
        if (kwargs or getattr(cls.forward, "__defaults__", None)) and cls.setup_context is not Function.setup_context:
            args, kwargs = _with_defaults(cls.forward, args, kwargs), {}
        ctx = FunctionCtx()
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        recording = _C._is_recorded(tensors)
        ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        levels = forward_ad._here.levels
        pushed = _Pushed.of(cls, ctx, args, levels) if levels and cls.jvp is not Function.jvp else []
        with _C.no_grad():
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        if ctx._dirty and not all(any(d is arg for arg in args) for d in ctx._dirty):
            warnings.warn(
                "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to mark_dirty().",
                stacklevel=2,
            )
        if not recording and not pushed:
            return result
        single = not isinstance(result, (tuple, list))
        items = [result] if single else list(result)
        where = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
        raw = list(items)
        if where and recording:
            outputs, ctx._saved = _C._record_function(
                cls.__name__ + "Backward",
                tensors,
                [items[i] for i in where],
                _Backward(cls, ctx, args, where, len(items), [call.duals for call in pushed]),
                ctx._dirty,
                ctx._non_differentiable,
                ctx._to_save,
                ctx._materialize,
            )
            for i, output in zip(where, outputs):
                items[i] = output
            if ctx._saved is not None:
                ctx._to_save = ()
        for call in pushed:
            call.give(raw, items)
        if single:
            return items[0]
        return type(result)(items) if type(result) in (tuple, list) else type(result)(*items)


@functools.lru_cache(256)
def _signature(forward: Any) -> inspect.Signature:
    import inspect

    return inspect.signature(forward)


def _with_defaults(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of a forward, those that were left out too: setup_context takes them apart."""
    bound = _signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class InplaceFunction(Function):
    """`Function` by the name that older programs derive theirs from; an instance keeps `inplace`.

    >>> class Doubled(naru.autograd.function.InplaceFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return 2 * grad
    >>> Doubled.apply(naru.ones(1))
    tensor([2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Pushed:
    """A call of a function some of whose arguments have tangents, of one level of forward derivatives."""

    def __init__(self, cls: type[Function], ctx: FunctionCtx, args: tuple, tangents: list[Any], duals: list[forward_ad._Dual]) -> None:
        self.cls = cls
        self.ctx = ctx
        self.args = args
        self.duals = duals
        self.given = tangents
        self.versions = [None if t is None else t._version for t in tangents]
        self.outside = any(d.outside for d in duals) or any(t is None and isinstance(arg, Tensor) and arg.requires_grad for t, arg in zip(tangents, args))

    @classmethod
    def of(cls, function: type[Function], ctx: FunctionCtx, args: tuple, levels: list[list[forward_ad._Dual]]) -> list[_Pushed]:
        calls = []
        for duals in levels:
            tangents = [forward_ad._tangent(arg, duals) if duals and _inexact(arg) and arg.requires_grad else None for arg in args]
            if any(t is not None for t in tangents):
                calls.append(cls(function, ctx, args, tangents, duals))
        return calls

    def give(self, raw: list[Any], outputs: list[Any]) -> None:
        """Calls jvp after forward gave `raw`, and gives its results to the outputs, where they stand."""
        none = not self.ctx._materialize  # which forward or setup_context has said
        tangents = [t if t is not None or none or not _inexact(arg) else _C.zeros_like(arg) for t, arg in zip(self.given, self.args)]
        self.ctx._in_jvp = True
        try:
            with forward_ad._With(None), set_grad_enabled(_C.is_grad_enabled() and self.outside):
                found = self.cls.jvp(self.ctx, *tangents)
        finally:
            self.ctx._in_jvp = False
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(outputs):
            raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(found)})")
        for i, tangent in enumerate(found):
            if tangent is not None and not isinstance(tangent, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}.")
            if not _inexact(raw[i]) or any(raw[i] is t for t in self.ctx._non_differentiable):
                if tangent is not None:
                    raise RuntimeError(
                        f"Function's jvp returned a gradient at position {i}, but the corresponding forward output is not a differentiable Tensor. "
                        "You should return None at that position instead."
                    )
                continue
            if tangent is None:
                raise RuntimeError(
                    f"jvp of {self.cls.__name__} returned None for output {i}, whose tangent is wanted; return a tensor of its shape (zeros, where it "
                    "does not depend on the arguments)"
                )
            self._check(raw[i], tangent)
            outputs[i] = forward_ad._set_tangent(outputs[i], tangent, self.duals, self.outside)

    def _check(self, output: Tensor, tangent: Tensor) -> None:
        """What forward does in place, or by a view, jvp does too."""
        if any(output is t for t in self.ctx._dirty):
            for arg, given, version in zip(self.args, self.given, self.versions):
                if arg is not output or given is None:
                    continue
                if given._version == version or tangent is not given:
                    done = "modifying the forward mode gradients inplace" if given._version == version else "returning the forward mode gradients as-is"
                    raise RuntimeError(
                        f"An inplace custom Function is not {done}. If the forward is modifying an input inplace, then the jvp function must modify "
                        "the corresponding gradient inplace and return it as-is."
                    )
            return
        for arg, given in zip(self.args, self.given):
            if given is None or not (output is arg or output._base is arg or (output._base is not None and output._base is arg._base)):
                continue
            if tangent._base is None:
                raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.")
            if tangent._base is not given and given._base is None:
                raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of the given grad input.")
            if tangent._base is not given and tangent._base is not given._base:
                raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input.")


def _inexact(arg: Any) -> bool:
    return isinstance(arg, Tensor) and (arg.is_floating_point() or arg.is_complex())


def _both(*_: Any) -> Any:
    raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")


class _Backward:
    """Called with a gradient (or None) for each output that is a tensor; returns one for each argument that is."""

    def __init__(self, cls: type[Function], ctx: FunctionCtx, args: tuple, where: list[int], outputs: int, levels: list[list]) -> None:
        self.levels = levels  # of forward derivatives, where jvp gave the outputs their tangents
        self.cls = cls
        self.ctx = ctx
        self.is_tensor = [isinstance(arg, Tensor) for arg in args]
        self.where = where
        self.outputs = outputs
        if cls.vjp is not Function.vjp and cls.backward is not Function.backward:
            self.backward = _both
            return
        self.backward = next((f for f, default in ((cls.vjp, Function.vjp), (cls.backward, Function.backward)) if f is not default), None)
        if self.backward is None:
            self.backward = cls.backward if cls.jvp is Function.jvp else self._transposed_jvp
            self.tangents = [arg.detach() if t else None for arg, t in zip(args, self.is_tensor)]

    def _transposed_jvp(self, ctx: FunctionCtx, *grads: Any) -> list[Any]:
        """Backward of a class that has but a jvp, which is linear in its tangents: the gradients of that."""
        recording = _C.is_grad_enabled()
        with enable_grad():
            tangents = [_C.zeros_like(t).requires_grad_(t.is_floating_point() or t.is_complex()) if t is not None else None for t in self.tangents]
            out = self.cls.jvp(ctx, *tangents)
        pairs = [(o, g) for o, g in zip(out if isinstance(out, (tuple, list)) else (out,), grads) if isinstance(o, Tensor) and o.requires_grad and g is not None]
        asked = [t for t in tangents if t is not None and t.requires_grad]
        if not pairs:
            return [None] * len(tangents)
        outputs, starts = zip(*pairs)
        found = iter(_C._grad(list(outputs), asked, list(starts), recording, recording, True))
        return [next(found) if t is not None and t.requires_grad else None for t in tangents]

    def __call__(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        if self.levels and any(forward_ad._here.unpacked is level for level in self.levels):
            return [None] * sum(self.is_tensor)
        full: list[Any] = [None] * self.outputs
        for i, grad in zip(self.where, grads):
            full[i] = grad
        result = self.backward(self.ctx, *full)
        if not isinstance(result, (tuple, list)):
            result = (result,)
        wanted = len(self.is_tensor)
        if len(result) > wanted and all(r is None for r in result[wanted:]):
            result = result[:wanted]
        if len(result) != wanted:
            raise RuntimeError(
                f"function {self.cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {wanted}, got {len(result)})"
            )
        out = []
        for i, (value, is_tensor) in enumerate(zip(result, self.is_tensor)):
            if is_tensor:
                if value is not None and not isinstance(value, Tensor):
                    raise RuntimeError(
                        f"expected Variable or None (got {type(value).__name__}): function {self.cls.__name__}Backward, gradient {i}"
                    )
                out.append(value)
            elif value is not None:
                raise RuntimeError(
                    f"function {self.cls.__name__}Backward returned a gradient different than None at position {i + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
        return out


def once_differentiable(fn: Any) -> Any:
    """Decorator of a backward, `fn`, that is not itself differentiable: runs it without recording.

    >>> class Sine(naru.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x.sin()
    ...     @staticmethod
    ...     @naru.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return grad * ctx.saved_tensors[0].cos()
    >>> x = naru.zeros(1, requires_grad=True)
    >>> naru.autograd.grad(Sine.apply(x), x, create_graph=True)[0].requires_grad
    False
    """
    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with _C.no_grad():
            found = fn(ctx, *grads)
        if not (_C.is_grad_enabled() and any(isinstance(g, Tensor) and g.requires_grad for g in grads)):
            return found
        single = not isinstance(found, tuple)
        items = [found] if single else list(found)
        where = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
        again = _DifferentiatedTwice.apply(*(items[i].detach().requires_grad_() for i in where))
        for i, item in zip(where, again):
            items[i] = item
        return items[0] if single else tuple(items)

    return wrapper


class _DifferentiatedTwice(Function):
    """Gives tensors on, and refuses backward through them."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

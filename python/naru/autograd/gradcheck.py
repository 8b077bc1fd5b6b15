"""Gradients compared with finite differences. The work is done in C++."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _sparse_tensors
from . import forward_ad
from .function import Function
from .grad_mode import enable_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference.

    >>> x = naru.ones(1, dtype=naru.float64, requires_grad=True)
    >>> try:
    ...     naru.autograd.gradcheck(lambda t: t * t.detach(), x)
    ... except RuntimeError as error:
    ...     print(type(error).__name__, "-", str(error).splitlines()[0])
    GradcheckError - Jacobian mismatch for output 0 with respect to input 0,
    """


class _Given(NamedTuple):
    """The arguments of a function, and the tensors to differentiate by: floating-point arguments; for sparse ones, their values."""

    func: Callable[..., Any]
    args: list[Any]
    places: list[int]
    tensors: list[Tensor]
    patterns: dict[int, Tensor]  # by argument index: the sparse tensors whose values are differentiated

    def called(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        given = list(self.args)
        for i, tensor in zip(self.places, tensors):
            given[i] = _sparse_tensors.with_values(self.patterns[i], tensor) if i in self.patterns else tensor
        with enable_grad():
            result = self.func(*given)
        return [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, Tensor)]


def _given(func: Callable[..., Any], inputs: Any, masked: bool) -> _Given:
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and _inexact(arg)]
    patterns = {i: args[i].detach() if masked else _all_stored(args[i]) for i in places if args[i].layout is not _C.strided}
    tensors = [_sparse_tensors.parts_of(patterns[i])[-1].clone().requires_grad_(args[i].requires_grad) if i in patterns else args[i] for i in places]
    for i, t in zip(places, tensors):
        if not t.requires_grad:
            continue
        if t.dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                f"inputs are not of double precision floating point or complex (it is {t.dtype}).",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping, as it changes one "
                "element after the other; pass a clone of it."
            )
    if not any(t.requires_grad for t in tensors):
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")
    return _Given(func, args, places, tensors, patterns)


def _all_stored(t: Tensor) -> Tensor:
    """`t` as a sparse tensor that stores all its elements."""
    t = t.detach()
    dense = t.to_dense()
    numbers = _C.arange(1, dense.numel() + 1, device=t.device).reshape(dense.shape)
    if t.layout is _C.sparse_coo:
        pattern = numbers.to_sparse(t.sparse_dim()).coalesce()
    else:
        blocks = tuple(t.values().shape[1:3]) if t.layout in (_C.sparse_bsr, _C.sparse_bsc) else None
        pattern = numbers.to_sparse(layout=t.layout, blocksize=blocks)
    return _sparse_tensors.with_values(pattern, dense.reshape(-1)[_sparse_tensors.parts_of(pattern)[-1] - 1])


def _steady(called: Callable[..., list[Tensor]], outputs: list[Tensor]) -> Callable[..., list[Tensor]]:
    """`called`, with an AssertionError if perturbed inputs change the shapes or dtypes of the outputs."""

    def again(tensors: Sequence[Tensor]) -> list[Tensor]:
        found = called(tensors)
        for name, was, now in (("shape", [o.shape for o in outputs], [o.shape for o in found]), ("dtype", [o.dtype for o in outputs], [o.dtype for o in found])):
            if was != now:
                raise AssertionError(f"Expected `func` to return outputs with the same {name} when inputs are perturbed, but got: {was} and {now}")
        return found

    return again


def _numbers(
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    check_grad_dtypes: bool = False,
) -> tuple:
    """The numeric options; AssertionError if two of the flags contradict each other."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    return eps, atol, rtol, nondet_tol, check_grad_dtypes


def _inexact(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _direction(like: Tensor) -> Tensor:
    """A random tensor of norm 1 with positive elements, so that errors do not cancel."""
    drawn = _C.rand(like.shape, dtype=_C.float64).to(device=like.device, dtype=like.dtype)
    return drawn / max(_C.norm(drawn).item().real, 1e-30)


def _along_directions(
    called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], starts: list[Tensor]
) -> tuple[Callable[[tuple], list[Tensor]], list[Tensor], float]:
    """`called` as a function of scalars: each input moves along one direction, each output is its product with another.

    Returns the function, the scalars, and how far a product may multiply the error of one element. `starts`: the outputs' directions, if given.
    """
    watched = [i for i, t in enumerate(tensors) if t.requires_grad]
    moves = {i: _direction(tensors[i].detach()) for i in watched}
    given = [t.detach() for t in tensors]
    shapes = [o.detach() for o in called(tuple(tensors)) if _inexact(o)]
    weights = [s.detach() for s in starts] or [_direction(o) for o in shapes]

    def along(numbers: tuple) -> list[Tensor]:
        steps = dict(zip(watched, numbers))
        with enable_grad():
            moved = tuple(t + steps[i] * moves[i] if i in moves else t for i, t in enumerate(given))
            return [(o * w).sum() for o, w in zip([o for o in called(moved) if _inexact(o)], weights)]

    numbers = [_C.zeros((), dtype=tensors[i].dtype, device=tensors[i].device).requires_grad_() for i in watched]
    spread = [max((abs(t.abs().sum().item()) for t in group), default=1.0) for group in (moves.values(), weights)]
    return along, numbers, max(1.0, spread[0] * spread[1])


def _fast(options: dict[str, Any], tensors: list[Tensor]) -> bool:
    watched = [t for t in tensors if t.requires_grad]
    dense = all(t.layout is _C.strided for t in watched)
    return bool(options.get("fast_mode") and not options.get("check_grad_dtypes") and watched and dense)


def _products(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], i: int, tangent: Tensor) -> list[Tensor]:
    """The Jacobian by tensor i times `tangent`, in forward mode."""
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(t.detach(), tangent) if k == i else t.detach() for k, t in enumerate(tensors)]
        found = [forward_ad.unpack_dual(o) for o in called(tuple(duals))]
        return [_C.zeros_like(primal.detach()) if product is None else product for primal, product in found]


def _forward_failure(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], eps: float, atol: float, rtol: float) -> str | None:
    """Compares products of the Jacobian with unit vectors to central differences. Returns the failure, or None."""
    given = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
    for i, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            continue
        for j, direction in itertools.product(range(tensor.numel()), (1, 1j) if tensor.is_complex() else (1,)):
            unit = _C.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
            unit[j] = direction
            step = unit.reshape(tensor.shape)
            around = [called(tuple((t + sign * eps * step).detach().requires_grad_() if k == i else t for k, t in enumerate(given))) for sign in (1, -1)]
            for number, (high, low, product) in enumerate(zip(*around, _products(called, tensors, i, step))):
                numerical = (high.detach() - low.detach()) / (2 * eps)
                if not _C.allclose(product, numerical.to(product.dtype), rtol, atol):
                    return (
                        f"Jacobian computed with forward mode mismatch for output {number} with respect to input {i},\n"
                        f"numerical:{numerical}\nanalytical:{product}\n(the column of element {j})"
                    )
    return None


def _batched_failure(given: _Given) -> str | None:
    """Compares the products of the Jacobian with a batch of two tangents to those with each tangent. Returns the failure, or None."""
    vmap = forward_ad._transforms().vmap
    advice = "gradcheck failed while testing batched gradient computation with forward-mode AD (check_batched_forward_grad)."
    for i, tensor in enumerate(given.tensors):
        if not tensor.requires_grad:
            continue
        tangents = _C.stack([_C.randn_like(tensor.detach()) for _ in range(2)])
        product = functools.partial(_products, given.called, given.tensors, i)
        wanted = [_C.stack(list(rows)) for rows in zip(*map(product, tangents))]
        try:
            found = vmap(lambda tangent, product=product: tuple(product(tangent)))(tangents)
        except RuntimeError as error:
            return f"While computing batched gradients, got: {error}\n\n{advice}"
        for number, (got, one_by_one) in enumerate(zip(found, wanted)):
            if not _C.allclose(got, one_by_one):
                return f"For output {number} and input {i}:\n\n{advice}\n\nGot:\n{got}\n\nExpected:\n{one_by_one}"
    return None


def _constant_failure(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], eps: float) -> str | None:
    """Checks that outputs without derivatives do not change with the inputs. Returns the failure, or None."""
    for i, tensor in enumerate(tensors):
        for j in range(tensor.numel() if tensor.requires_grad else 0):
            step = _C.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
            step[j] = eps
            around = [called(tuple(t.detach() + sign * step.reshape(t.shape) if k == i else t for k, t in enumerate(tensors))) for sign in (1, -1)]
            if not all(_C.equal(high, low) for high, low in zip(*around)):
                return f"Numerical gradient for function expected to be zero: it has no differentiable output, and changes with input {i}"
    return None


def _zero_failure(given: _Given, outputs: list[Tensor], masked: bool) -> str | None:
    """Checks the gradients for output gradients of zeros. Returns the failure, or None."""
    watched = [t for t in (given.args[i] for i in given.places) if t.requires_grad]
    for t, g in zip(watched, _C._grad(outputs, watched, [_C.zeros_like(o.detach()) for o in outputs], True, False, True)):
        if g is None:
            continue
        if g.layout is not _C.strided:
            if g.layout != t.layout:
                return f"grad is incorrect layout ({g.layout} is not {t.layout})"
            kind = str(g.layout).replace("torch.", "").replace("_coo", "")
            for name in ("sparse_dim", "dense_dim"):
                if (got := getattr(g, name)()) != (wanted := getattr(t, name)()):
                    return f"grad is {kind} tensor, but has incorrect {name} {got}, expected {wanted}"
            g, t = g.to_dense(), t.detach().to_dense()
        if not (_C.allclose(g, _C.zeros_like(g)) if masked else bool(g.eq(0).all())):
            return "backward not multiplied by grad_output"
        for name in ("dtype", "device", "shape"):
            if getattr(g, name) != getattr(t, name):
                return f"grad is incorrect {dict(dtype='type', shape='size').get(name, name)}"
    return None


class _Undefined(Function):
    """The identity, whose backward returns no gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        return None


def _undefined_failure(given: _Given) -> str | None:
    """Checks the gradients where outputs have none: all outputs, then one at a time. Returns the failure, or None."""
    watched = [t for t in (given.args[i] for i in given.places) if t.requires_grad]
    note = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
    count = len(_differentiable(given.func, given.args))
    for missing in (range(count), *([i] for i in range(count) if count > 1)):
        outputs = [_Undefined.apply(o) if i in missing else o for i, o in enumerate(_differentiable(given.func, given.args))]
        starts = [_C.zeros_like(o.detach()) for o in outputs]
        try:
            found = _C._grad(outputs, watched, starts, True, False, True)
        except RuntimeError as error:
            _say_how_to_leave_out()
            return f"Expected backward function to handle undefined output grads. {note} ({error})"
        if not all(g is None or bool(_dense(g).eq(0).all()) for g in found):
            _say_how_to_leave_out()
            return f"Expected all input grads to be undefined or zero when all output grads are undefined or zero. {note}"
    return None


def _undefined_forward_failure(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor]) -> str | None:
    """Checks the tangents of the outputs if an input has none, compared with a tangent of zeros. Returns the failure, or None."""
    watched = [i for i, t in enumerate(tensors) if t.requires_grad]
    drawn = {i: _C.randn_like(tensors[i].detach()) for i in watched}
    for i in watched:
        with forward_ad.dual_level():
            plain = [t.detach() for t in tensors]
            duals = [forward_ad.make_dual(t, drawn[k]) if k in drawn and k != i else t for k, t in enumerate(plain)]
            zeros = [forward_ad.make_dual(t, _C.zeros_like(t)) if k == i else d for k, (t, d) in enumerate(zip(plain, duals))]
            both = [[forward_ad.unpack_dual(o).tangent for o in called(tuple(given))] for given in (zeros, duals)]
        for number, (wanted, got) in enumerate(zip(*both)):
            if wanted is not None and got is not None and not _C.allclose(got, wanted):
                return (
                    f"Mismatch in tangent values for output with index: {number} when input: {plain[i]} has an undefined tangent value.  Got: {got} "
                    f"but expected: {wanted}"
                )
    return None


def _say_how_to_leave_out() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
        'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def _dense(t: Tensor) -> Tensor:
    return t if t.layout is _C.strided else t.to_dense()


def _gradient_of(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], starts: list[Tensor]) -> tuple[Callable, list[Tensor]]:
    """The gradient as a function of the tensors and of the start gradients (random if `starts` is empty), and these arguments."""
    outputs = [o for o in called(tuple(tensors)) if o.requires_grad]
    starts = starts or [_C.randn_like(o) for o in outputs]
    inputs = [t.requires_grad for t in tensors] + [False] * len(starts)
    wanted = [i for i, t in enumerate(tensors) if t.requires_grad]

    def gradient(given: tuple) -> list[Tensor]:
        given = tuple(t if t.requires_grad or not is_input else t.detach().requires_grad_() for t, is_input in zip(given, inputs))
        results = [o for o in called(given[: len(tensors)]) if o.requires_grad]
        grads = _C._grad(results, [given[i] for i in wanted], list(given[len(tensors) :]), True, True, True)
        return [_C.zeros_like(given[i]) if g is None else g for i, g in zip(wanted, grads)]

    return gradient, [*tensors, *(g if g.requires_grad else g.detach().requires_grad_() for g in starts)]


def _differentiable(func: Callable[..., Any], args: list[Any]) -> list[Tensor]:
    with enable_grad():
        result = func(*args)
    return [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, Tensor) and o.requires_grad]


def _told(failure: str | None, raise_exception: bool) -> bool:
    if failure is not None and raise_exception:
        raise GradcheckError(failure)
    return failure is None


def gradcheck(func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **options: Any) -> bool:
    """Compares the gradients of `func` with central differences of step eps, for each of `inputs` that requires grad. Returns True;
    RuntimeError (returns False without `raise_exception`) if they differ.

    `options`: eps, atol, rtol. nondet_tol: how much two backward passes may differ. fast_mode compares one product of the Jacobian with random
    directions instead of all its elements, unless check_grad_dtypes requires each gradient. check_forward_ad: also checks products of the Jacobian
    in forward mode; check_batched_forward_grad: also two tangents within vmap, compared with one at a time. check_batched_grad has no effect:
    batched gradients take one backward for each entry. check_undefined_grad: an output without a gradient gives no gradient or zeros, and an
    input without a tangent counts as one with a tangent of zeros. masked: for sparse inputs, only stored elements are checked; otherwise all are.

    >>> naru.autograd.gradcheck(naru.sin, naru.tensor([0.5], dtype=naru.float64, requires_grad=True))
    True
    """
    numbers = _numbers(**options)
    masked = bool(options.get("masked"))
    given = _given(func, inputs, masked)
    outputs = given.called(given.tensors)
    if any(o.layout is not _C.strided for o in outputs):
        raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck.")
    called, tensors = _steady(given.called, outputs), given.tensors
    if not any(o.requires_grad for o in outputs):
        return _told(_constant_failure(called, tensors, numbers[0]), raise_exception)
    backward = options.get("check_backward_ad", True)
    # Sparse gradients must have the sparsity of their inputs before they can be split into components.
    failure = _zero_failure(given, _differentiable(func, given.args), masked) if backward and given.patterns else None
    if _fast(options, tensors):
        called, tensors, errors = _along_directions(called, tensors, [])
        numbers = (numbers[0], numbers[1] * errors, *numbers[2:])
    if failure is None and backward:
        failure = _C._gradcheck(called, tensors, *numbers)
    if failure is None and options.get("check_forward_ad"):
        failure = _forward_failure(called, tensors, *numbers[:3])
    if failure is None and options.get("check_forward_ad") and options.get("check_undefined_grad", True):
        failure = _undefined_forward_failure(given.called, given.tensors)
    if failure is None and options.get("check_batched_forward_grad"):
        failure = _batched_failure(given)
    if failure is None and backward and not given.patterns:
        failure = _zero_failure(given, _differentiable(func, given.args), masked)
    if failure is None and backward and options.get("check_undefined_grad", True):
        failure = _undefined_failure(given)
    return _told(failure, raise_exception)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **options: Any,
) -> bool:
    """Compares the second derivatives of `func` by `inputs` and by `grad_outputs` with differences of the first; see `gradcheck` for
    `options` and `raise_exception`.

    grad_outputs: the gradients of the outputs to start from; random ones if None, which are not contiguous if `gen_non_contig_grad_outputs`.
    `check_rev_over_rev`: by a backward through the backward. `check_fwd_over_rev`: by products of the gradient's Jacobian with unit vectors, as
    check_forward_ad of gradcheck does for the function.

    >>> naru.autograd.gradgradcheck(naru.sin, naru.tensor([0.5], dtype=naru.float64, requires_grad=True))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    numbers = _numbers(**options)
    given = _given(func, inputs, bool(options.get("masked")))
    called, tensors = given.called, given.tensors
    starts = [] if grad_outputs is None else [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    if gen_non_contig_grad_outputs and not starts:
        with_gradients = [o.detach() for o in called(tensors) if o.requires_grad]
        starts = [_C.stack([_C.randn_like(o)] * 2, -1).select(-1, 0).requires_grad_() for o in with_gradients]
    if _fast(options, tensors):
        called, tensors, errors = _along_directions(called, tensors, starts)
        numbers, starts = (numbers[0], numbers[1] * errors, *numbers[2:]), []
    failure = _C._gradgradcheck(called, tensors, starts, *numbers) if check_rev_over_rev else None
    if failure is None and check_fwd_over_rev:
        failure = _forward_failure(*_gradient_of(called, tensors, starts), *numbers[:3])
    return _told(failure, raise_exception)

"""Gradients compared with finite differences. The core does the work."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference."""


def _refuse(name: str, value: Any, accepted: tuple) -> None:
    if value not in accepted:
        raise NotImplementedError(f"{name}={value!r} is not supported yet: naru has no such mode, and would check nothing")


def _of_tensors(func: Callable[..., Any], inputs: Any) -> tuple[Callable[[tuple], list[Tensor]], list[Tensor]]:
    """`func` as a function of the tensors among its inputs that have derivatives, and these."""
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    where = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and _inexact(arg)]

    def called(tensors: tuple) -> list[Tensor]:
        given = list(args)
        for i, tensor in zip(where, tensors):
            given[i] = tensor
        result = func(*given)
        return [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, Tensor)]

    return called, [args[i] for i in where]


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
    """The options that the core takes; those that it lacks are refused."""
    if check_batched_grad and not check_backward_ad:
        raise ValueError("Setting check_batched_grad=True requires check_backward_ad to be True")
    _refuse("check_batched_forward_grad", check_batched_forward_grad, (False,))
    if not check_backward_ad:
        _refuse("check_backward_ad", check_backward_ad, (True,) if not check_forward_ad else (True, False))
    _refuse("masked", masked, (None, False))
    return eps, atol, rtol, nondet_tol, check_grad_dtypes


def _inexact(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _direction(like: Tensor) -> Tensor:
    """A random tensor of length 1 whose elements are positive, so that errors do not cancel."""
    drawn = _C.rand(like.shape, dtype=_C.float64).to(device=like.device, dtype=like.dtype)
    return drawn / max(_C.norm(drawn).item().real, 1e-30)


def _along_directions(
    called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], starts: list[Tensor]
) -> tuple[Callable[[tuple], list[Tensor]], list[Tensor], float]:
    """`called` of numbers instead of tensors: each input moves along one direction, each output is its product with another.

    The numbers, and how many times the error of one element may be in a product. `starts`: the outputs' directions, if they are given.
    """
    watched = [i for i, t in enumerate(tensors) if t.requires_grad]
    moves = {i: _direction(tensors[i].detach()) for i in watched}
    given = [t.detach() for t in tensors]
    shapes = [o.detach() for o in called(tuple(tensors)) if _inexact(o)]
    weights = [s.detach() for s in starts] or [_direction(o) for o in shapes]

    def along(numbers: tuple) -> list[Tensor]:
        steps = dict(zip(watched, numbers))
        moved = tuple(t + steps[i] * moves[i] if i in moves else t for i, t in enumerate(given))
        return [(o * w).sum() for o, w in zip([o for o in called(moved) if _inexact(o)], weights)]

    numbers = [_C.zeros((), dtype=tensors[i].dtype, device=tensors[i].device).requires_grad_() for i in watched]
    spread = [max((abs(t.abs().sum().item()) for t in group), default=1.0) for group in (moves.values(), weights)]
    return along, numbers, max(1.0, spread[0] * spread[1])


def _fast(options: dict[str, Any], tensors: list[Tensor]) -> bool:
    watched = [t for t in tensors if t.requires_grad]
    dense = all(t.layout is _C.strided for t in watched)
    return bool(options.get("fast_mode") and not options.get("check_grad_dtypes") and watched and dense)


def _forward_failure(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], eps: float, atol: float, rtol: float) -> str | None:
    """What is wrong with the products of the Jacobian with unit vectors, beside central differences; or None."""
    given = [t.detach() for t in tensors]
    for i, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            continue
        for j, direction in itertools.product(range(tensor.numel()), (1, 1j) if tensor.is_complex() else (1,)):
            unit = _C.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
            unit[j] = direction
            step = unit.reshape(tensor.shape)
            around = [called(tuple(t + sign * eps * step if k == i else t for k, t in enumerate(given))) for sign in (1, -1)]
            tangents = [step if k == i else _C.zeros_like(t) for k, t in enumerate(given)]
            products = _C._jvp(called, given, tangents, False, False)[1]
            for number, (high, low, product) in enumerate(zip(*around, products)):
                numerical = (high.detach() - low.detach()) / (2 * eps)
                if not _C.allclose(product, numerical.to(product.dtype), rtol, atol):
                    return (
                        f"Jacobian computed with forward mode mismatch for output {number} with respect to input {i},\n"
                        f"numerical:{numerical}\nanalytical:{product}\n(the column of element {j})"
                    )
    return None


def _gradient_of(called: Callable[[tuple], list[Tensor]], tensors: list[Tensor], starts: list[Tensor]) -> tuple[Callable, list[Tensor]]:
    """The gradient as a function of the tensors and of what it starts from (random where `starts` is empty), and these."""
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


def _told(failure: str | None, raise_exception: bool) -> bool:
    if failure is not None and raise_exception:
        raise GradcheckError(failure)
    return failure is None


def gradcheck(func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **options: Any) -> bool:
    """True if d func / d input agrees with central differences of step `eps`, for every input that requires grad.

    Options are those of torch.autograd.gradcheck. nondet_tol: how far two backward passes may differ. fast_mode compares one product of
    the Jacobian with random directions instead of all its elements, unless check_grad_dtypes asks for each gradient. check_forward_ad: products of the Jacobian with unit vectors, too. check_batched_grad adds nothing: batched gradients are a backward
    for each entry here. check_batched_forward_grad raises NotImplementedError.
    """
    numbers = _numbers(**options)
    called, tensors = _of_tensors(func, inputs)
    if _fast(options, tensors):
        called, tensors, errors = _along_directions(called, tensors, [])
        numbers = (numbers[0], numbers[1] * errors, *numbers[2:])
    failure = _C._gradcheck(called, tensors, *numbers) if options.get("check_backward_ad", True) else None
    if failure is None and options.get("check_forward_ad"):
        failure = _forward_failure(called, tensors, *numbers[:3])
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
    """True if the second derivatives of `func` agree with differences of the first; see `gradcheck`.

    grad_outputs: the gradients of the outputs to start from; random ones if None. check_rev_over_rev: by a backward through the backward.
    check_fwd_over_rev: by products of the gradient's Jacobian with unit vectors, as check_forward_ad of gradcheck takes them of the function's.
    """
    _refuse("gen_non_contig_grad_outputs", gen_non_contig_grad_outputs, (False,))
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise ValueError("gradgradcheck: expected at least one of check_fwd_over_rev and check_rev_over_rev to be True")
    numbers = _numbers(**options)
    called, tensors = _of_tensors(func, inputs)
    starts = [] if grad_outputs is None else [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    if _fast(options, tensors):
        called, tensors, errors = _along_directions(called, tensors, starts)
        numbers, starts = (numbers[0], numbers[1] * errors, *numbers[2:]), []
    failure = _C._gradgradcheck(called, tensors, starts, *numbers) if check_rev_over_rev else None
    if failure is None and check_fwd_over_rev:
        failure = _forward_failure(*_gradient_of(called, tensors, starts), *numbers[:3])
    return _told(failure, raise_exception)

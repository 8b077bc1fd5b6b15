"""Gradients compared with finite differences. The core does the work."""

from __future__ import annotations

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
    """`func` as a function of the tensors among its inputs alone, and these."""
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    where = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]

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
    unsupported = {"check_forward_ad": check_forward_ad, "check_batched_grad": check_batched_grad, "check_batched_forward_grad": check_batched_forward_grad}
    for option, value in unsupported.items():
        _refuse(option, value, (False,))
    _refuse("check_backward_ad", check_backward_ad, (True,))
    _refuse("masked", masked, (None, False))
    return eps, atol, rtol, nondet_tol, check_grad_dtypes


def _told(failure: str | None, raise_exception: bool) -> bool:
    if failure is not None and raise_exception:
        raise GradcheckError(failure)
    return failure is None


def gradcheck(func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **options: Any) -> bool:
    """True if d func / d input agrees with central differences of step `eps`, for every input that requires grad.

    Options are those of torch.autograd.gradcheck. nondet_tol: how far two backward passes may differ. fast_mode checks everything all the
    same. check_forward_ad, check_batched_grad and check_batched_forward_grad raise NotImplementedError.
    """
    numbers = _numbers(**options)
    return _told(_C._gradcheck(*_of_tensors(func, inputs), *numbers), raise_exception)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """True if the second derivatives of `func` agree with differences of the first; see `gradcheck`.

    grad_outputs: the gradients of the outputs to start from; random ones if None.
    """
    _refuse("gen_non_contig_grad_outputs", gen_non_contig_grad_outputs, (False,))
    numbers = _numbers(**options)
    starts = [] if grad_outputs is None else [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    return _told(_C._gradgradcheck(*_of_tensors(func, inputs), starts, *numbers), raise_exception)

"""grad, vjp, jvp, Jacobians and Hessians of functions.

Within a vmap the inputs are differentiated as the copies that each entry has, so that gradients come entry by entry. Forward derivatives are
found by walking the recorded graph from the inputs on (src/autograd/engine/forward.h).
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd import forward_ad, grad as autograd_grad
from ..autograd.grad_mode import enable_grad
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._batched import here, is_batched, level_of, value_of
from ._vmap import vmap

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def _layers(x: Any) -> tuple[Any, list[int]]:
    """The plain tensor within, and the levels around it, the lowest first."""
    levels = []
    while is_batched(x):
        levels.append(level_of(x))
        x = value_of(x)
    return x, levels[::-1]


def _around(plain: Tensor, levels: list[int]) -> Any:
    for number in levels:
        plain = _C._make_batched(plain, number)
    return plain


def _lifted(x: Any) -> tuple[Tensor, list[int]]:
    """The plain tensor with a dimension for each vmap under way: each entry has a copy of its own."""
    plain, levels = _layers(x)
    for i, level in enumerate(here.levels):
        if level.number not in levels:
            plain = plain.unsqueeze(i).expand((*tuple(plain.shape)[:i], level.size, *tuple(plain.shape)[i:]))
            levels.insert(i, level.number)
    return plain, levels


class _Nesting(threading.local):
    """How many functions whose derivative is wanted the thread is in."""

    depth = 0


_nesting = _Nesting()


class _Inputs:
    """Arguments of a function, as tensors of their own whose gradients are wanted."""

    def __init__(self, trees: Any, writable: bool = False) -> None:
        given, self.spec = tree_flatten(trees)
        for x in given:
            if not isinstance(x, Tensor):
                raise ValueError(f"Expected all inputs to be differentiated to be Tensors, got {type(x).__name__}")
            if not (x.is_floating_point() or x.is_complex()):
                raise RuntimeError(f"only Tensors of floating point dtype can require gradients (got {x.dtype})")
        lifted = [_lifted(x) for x in given]
        self.outer = _nesting.depth > 0 or any(p.requires_grad for p, _ in lifted)  # the program may differentiate once more
        with enable_grad():
            self.plain = [p.view_as(p) if p.requires_grad else p.detach().requires_grad_() for p, _ in lifted]
            self.shown = self.plain
            if writable:  # in place, as forward mode allows: what gradients go along stays as it was
                self.plain = [p.view_as(p) for p in self.plain]
                for p in self.plain:
                    _C._mark_tangent(p)
                self.shown = [_C._at_gradient_edge(*_C._gradient_edge(p), plain) for p, (plain, _) in zip(self.plain, lifted)]
        self.levels = [levels for _, levels in lifted]

    def trees(self) -> Any:
        return tree_unflatten([_around(p, levels) for p, levels in zip(self.shown, self.levels)], self.spec)

    def gradients(self, outputs: list[Tensor], starts: list[Tensor | None], create_graph: bool, retain: bool = True) -> list[Any]:
        wanted = [(o, s) for o, s in zip(outputs, starts) if o.requires_grad]
        if wanted:
            found = autograd_grad([o for o, _ in wanted], self.plain, [s for _, s in wanted], retain_graph=retain, create_graph=create_graph, allow_unused=True)
        else:
            found = (None,) * len(self.plain)
        zeros = [_C.zeros_like(p.detach()) if g is None else g for g, p in zip(found, self.plain)]
        return [_around(g, levels) for g, levels in zip(zeros, self.levels)]


class _Within:
    """While a function is run whose derivative is wanted: results of inner derivatives stay differentiable."""

    def __enter__(self) -> None:
        _nesting.depth += 1

    def __exit__(self, *exc: object) -> None:
        _nesting.depth -= 1


def _argnums(argnums: Any, args: tuple) -> tuple[tuple[int, ...], bool]:
    single = isinstance(argnums, int)
    if not single and not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = (argnums,) if single else argnums
    if not given:
        raise RuntimeError("argnums must be non-empty")
    for n in given:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = tuple(n % len(args) for n in given)
    if len(set(numbers)) < len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return numbers, single


def _replaced(args: tuple, numbers: tuple[int, ...], values: Any) -> tuple:
    new = list(args)
    for n, v in zip(numbers, values):
        new[n] = v
    return tuple(new)


def _with_aux(output: Any, api: str, has_aux: bool) -> tuple[Any, Any]:
    """(output, aux) of what a function gave; aux is None where it gives none."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for x in tree_flatten(output[1])[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)} ({api}: in aux)")
    return output


def _outputs(output: Any, api: str) -> tuple[list[Any], Any]:
    """The tensors that a function gave, and how they lay."""
    flat, spec = tree_flatten(output)
    if output is None or not flat:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {output})")
    for o in flat:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")
    return flat, spec


def _without_history(tree: Any, keep: bool) -> Any:
    def cut(x: Any) -> Any:
        if not isinstance(x, Tensor) or keep:
            return x
        plain, levels = _layers(x)
        return _around(plain.detach(), levels)

    return tree_map(cut, tree)


def _reaches_outside(outputs: list[Tensor], inside: list[Tensor]) -> bool:
    """Whether gradients of the outputs flow to tensors that the program made itself."""
    seen = {_C._gradient_edge(p)[0] for p in inside}  # the objects: what is let go leaves its address to another
    todo = [o.grad_fn for o in outputs if o.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name() == "torch::autograd::AccumulateGrad":
            return True
        todo += [n for n, _ in node.next_functions if n is not None]
    return False


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradient, value) of `func`, which gives one number (and, with `has_aux`, something else beside it).

    `argnums`: by which arguments, a number or several. Arguments may be nested containers of tensors.

    >>> grad_and_value(lambda x: (x * x).sum())(naru.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers, single = _argnums(argnums, args)
        inputs = _Inputs(tuple(args[n] for n in numbers))
        with enable_grad(), _Within():
            output = func(*_replaced(args, numbers, inputs.trees()), **kwargs)
        output, aux = _with_aux(output, "grad_and_value(f)(*args)", has_aux)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim() != 0:
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to "
                "use the vjp or jacrev APIs instead?"
            )
        plain, _ = _layers(output)
        create = _C.is_grad_enabled() and (inputs.outer or _reaches_outside([plain], inputs.plain))
        found = inputs.gradients([plain], [_C.ones_like(plain.detach())], create_graph=create, retain=create)
        gradients = tree_unflatten(found, inputs.spec)
        result = (gradients[0] if single else gradients), _without_history(output, create)
        return (result[0], (result[1], _without_history(aux, create))) if has_aux else result

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which gives one number, by its arguments `argnums`; with `has_aux` (gradient, aux).

    >>> grad(grad(lambda x: x**3))(naru.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = both(*args, **kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), a function of cotangents like the outputs that gives their products with the Jacobian of `func` at `primals`), and aux
    with `has_aux`.

    >>> y, products = vjp(naru.sin, naru.tensor(0.0))
    >>> products(naru.tensor(3.0))
    (tensor(3.),)
    """
    inputs = _Inputs(primals)
    with enable_grad(), _Within():
        output = func(*inputs.trees())
    output, aux = _with_aux(output, "vjp(f, *primals)", has_aux)
    flat, spec = _outputs(output, "vjp(f, *primals)")
    plain = [_layers(o) for o in flat]
    outer = inputs.outer or _reaches_outside([p for p, _ in plain], inputs.plain)

    def products(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = tree_flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if given_spec != spec:
            raise RuntimeError(f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: {given_spec}, primal output: {spec}")
        create = _C.is_grad_enabled() and (outer or any(isinstance(c, Tensor) and _layers(c)[0].requires_grad for c in given))
        found = _pulled(inputs, plain, given, create if create_graph is None else create_graph)
        return tree_unflatten(found, inputs.spec)

    keep = outer and _C.is_grad_enabled()
    shown = _without_history(output, keep)
    return (shown, products, _without_history(aux, keep)) if has_aux else (shown, products)


def _pulled(inputs: _Inputs, outputs: list[tuple[Tensor, list[int]]], cotangents: list[Any], create: bool) -> list[Any]:
    """Products of cotangents. Those of a vmap that began after the function was run are taken one after the other."""
    import warnings

    known = {n for levels in inputs.levels for n in levels} | {n for _, levels in outputs for n in levels}
    later = [level for level in here.levels if level.number not in known and any(level.number in _layers(c)[1] for c in cotangents)]
    if later:
        level = later[-1]
        warnings.warn(
            f"There is a performance drop because a vjp whose function was run outside of vmap is called {level.size} times, once for each entry; "
            "torch.func.jacrev runs the function within.",
            stacklevel=3,
        )
        rows = []
        for i in range(level.size):
            one = [value_of(c).select(0, i) if is_batched(c) and level_of(c) == level.number else c for c in cotangents]
            rows.append(_pulled(inputs, outputs, one, create))
        return [_C._make_batched(_C.stack(list(column)), level.number) for column in zip(*rows)]
    starts = []
    for (plain, levels), c in zip(outputs, cotangents):
        value, at = _layers(c)
        missing = [n for n in levels if n not in at]
        for n in missing:
            i = levels.index(n)
            value = value.unsqueeze(i).expand((*tuple(value.shape)[:i], plain.shape[i], *tuple(value.shape)[i:]))
        starts.append(value.expand_as(plain) if value.dim() == plain.dim() else value)
    return inputs.gradients([p for p, _ in outputs], starts, create_graph=create)


def _pushed(
    inputs: _Inputs, outputs: list[tuple[Tensor, list[int]]], tangents: list[Any], create: bool, duals: list[forward_ad._Dual] | None = None
) -> list[Any]:
    """Products of the Jacobian with tangents. `duals`: those of the inputs, and of the results of functions of the user's that have a jvp."""
    duals = duals or [forward_ad._Dual(p, t, create) for p, t in zip(inputs.plain, tangents)]
    reaching = [i for i, (p, _) in enumerate(outputs) if p.requires_grad]
    found: list[Any] = [None] * len(outputs)
    for i, tangent in zip(reaching, forward_ad._pushed([outputs[i][0] for i in reaching], duals, create)):
        found[i] = tangent
    return [_around(_C.zeros_like(p.detach()) if f is None else f, levels) for f, (p, levels) in zip(found, outputs)]


def _linear(outputs: list[tuple[Tensor, list[int]]], places: list[Tensor], tangents: list[Any], create: bool) -> list[Any]:
    """The outputs, linear functions of `places`, at `tangents`: the derivative of backward by the gradient that it starts with."""
    with enable_grad():
        starts = [_C.zeros_like(p.detach()).requires_grad_() for p, _ in outputs]
        wanted = [(p, s) for (p, _), s in zip(outputs, starts) if p.requires_grad]
        found: Any = (None,) * len(starts)
        if wanted:
            first = autograd_grad([p for p, _ in wanted], places, [s for _, s in wanted], create_graph=True, allow_unused=True)
            pairs = [(g, t) for g, t in zip(first, tangents) if g is not None and g.requires_grad]
            if pairs:
                found = autograd_grad([g for g, _ in pairs], starts, [t for _, t in pairs], create_graph=create, retain_graph=True, allow_unused=True)
    return [_around(_C.zeros_like(p.detach()) if f is None else f, levels) for f, (p, levels) in zip(found, outputs)]


def _tangents(inputs: _Inputs, tangents: Any, name: str) -> list[Any]:
    given, spec = tree_flatten(tangents)
    if spec != inputs.spec:
        raise RuntimeError(f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {inputs.spec} and tangents with structure {spec}")
    plain = []
    for t, p, levels in zip(given, inputs.plain, inputs.levels):
        value, at = _layers(t)
        for i, n in enumerate(levels):
            if n not in at:
                value = value.unsqueeze(i).expand((*tuple(value.shape)[:i], p.shape[i], *tuple(value.shape)[i:]))
        if value.shape != p.shape:
            raise RuntimeError(f"{name}: Expected primal and tangent to have the same shape, got {tuple(p.shape)} and {tuple(value.shape)}")
        plain.append(value)
    return plain


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(func(*primals), the Jacobian of `func` at the tuple `primals` times the tuple `tangents`); with `has_aux` and aux. with `strict`
    an output that does not depend on them is a RuntimeError. RuntimeError for other shapes or containers.

    >>> jvp(naru.sin, (naru.tensor(0.0),), (naru.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    api = "jvp(f, primals, tangents)"
    if tree_flatten(tangents)[1] == tree_flatten(primals)[1]:
        for x in (*tree_flatten(primals)[0], *tree_flatten(tangents)[0]):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{api}: Expected primals and tangents to only contain Tensors, got {type(x)}")
    inputs = _Inputs(primals, writable=True)
    if not inputs.plain:
        raise RuntimeError(f"{api}: Expected primals and tangents to have at least one Tensor")
    given = _tangents(inputs, tangents, api)
    outer = _C.is_grad_enabled() and (inputs.outer or any(t.requires_grad for t in given))
    duals = [forward_ad._Dual(p, t, outer) for p, t in zip(inputs.plain, given)]
    with enable_grad(), _Within(), forward_ad._With(duals):
        output = func(*inputs.trees())
    output, aux = _with_aux(output, api, has_aux)
    flat, spec = _outputs(output, api)
    if strict and not all(_layers(o)[0].requires_grad for o in flat):
        raise RuntimeError(f"{api}: The output of f is independent of the inputs. This is not allowed with strict=True.")
    found = _pushed(inputs, [_layers(o) for o in flat], given, outer, duals)
    result = _without_history(output, outer), tree_unflatten(found, spec)
    return (*result, _without_history(aux, outer)) if has_aux else result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), a function of tangents that gives the products of the Jacobian of `func` at `primals` with them, without running func
    again).

    >>> y, product = naru.func.linearize(lambda x: x**2, naru.tensor([1.0, 3.0]))
    >>> product(naru.tensor([1.0, 0.0])), product(naru.tensor([0.0, 1.0]))
    (tensor([2., 0.]), tensor([0., 6.]))
    """
    inputs = _Inputs(primals, writable=True)
    places = [_C.zeros_like(p.detach()).requires_grad_() for p in inputs.plain]
    duals = [forward_ad._Dual(p, t, True) for p, t in zip(inputs.plain, places)]
    with enable_grad(), _Within(), forward_ad._With(duals):
        output = func(*inputs.trees())
    flat, spec = tree_flatten(output)
    outputs = [_layers(o) for o in flat]
    own = len(duals) > len(places)  # a function of the user's gave its results tangents: these are linear in those of the inputs
    if own:
        outputs = [_layers(t) for t in _pushed(inputs, outputs, places, True, duals)]

    def product(*tangents: Any) -> Any:
        levels = {n for each in inputs.levels for n in each}
        given, given_spec = tree_flatten(tangents)
        later = [level for level in here.levels if level.number not in levels and any(level.number in _layers(t)[1] for t in given)]
        if later:  # a batch of tangents: entry by entry
            level = later[-1]
            rows = []
            for i in range(level.size):
                one = [value_of(t).select(0, i) if is_batched(t) and level_of(t) == level.number else t for t in given]
                rows.append(tree_flatten(product(*tree_unflatten(one, given_spec)))[0])
            return tree_unflatten([_C._make_batched(_C.stack(list(column)), level.number) for column in zip(*rows)], spec)
        plain = _tangents(inputs, tangents, "linearize(f, *primals)")
        create = _C.is_grad_enabled() and any(t.requires_grad for t in plain)
        found = _linear(outputs, places, plain, create) if own else _pushed(inputs, outputs, plain, create)
        return tree_unflatten(found, spec)

    return _without_history(output, False), product


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, whose results are the same: in PyTorch the calls that it makes become others without in-place changes, for compilers; what runs here
    needs that nowhere. `remove`: "mutations" or "mutations_and_views"; RuntimeError for others.

    >>> naru.func.functionalize(lambda x: x.clone().add_(1))(naru.ones(2))
    tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n     remove=\"mutations\": all "
            'inplace and out= operators will be removed from the program, but view operators will be preserved.\n     remove="mutations_and_views": '
            "all inplace and out= operators will be removed, and all view operators will be replaced with their corresponding non-aliasing variants"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper

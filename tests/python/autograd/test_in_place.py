"""Every in-place method writes what the function of its name computes: alone, with a gradient, under vmap, and both together."""

import warnings

import naru as torch
import pytest

ROWS = torch.tensor([0, 2])
MASK = torch.tensor([[True, False, True], [False, True, False], [True, True, False]])
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm".split()
# The other arguments of methods that are not called with one tensor, or none.
ARGUMENTS = {
    "addbmm": lambda e: (e.clone().unsqueeze(0), e.clone().unsqueeze(0)), "baddbmm": lambda e: (e.clone(), e.clone()),
    "addmm": lambda e: (e.clone(), e.clone()), "addmv": lambda e: (e.clone(), e[1].clone()), "addr": lambda e: (e[0].clone(), e[1].clone()),
    "addcmul": lambda e: (e.clone(), e.clone()), "addcdiv": lambda e: (e.clone(), e.clone()), "lerp": lambda e: (e.clone() * 2, 0.25),
    "index_add": lambda e: (0, ROWS, e[:2].clone()), "index_copy": lambda e: (1, ROWS, e[:, :2].clone()), "index_fill": lambda e: (0, ROWS, 5.0),
    "index_put": lambda e: ((ROWS,), e[:2].clone()), "put": lambda e: (ROWS, e[0, :2].clone()), "masked_scatter": lambda e: (MASK, e.clone()),
    "masked_fill": lambda e: (MASK, 5.0), "index_reduce": lambda e: (0, ROWS, e[:2].clone(), "prod"),
    "scatter": lambda e: (0, torch.zeros(1, 3, dtype=torch.int64), e[:1].clone()), "scatter_add": lambda e: (0, torch.zeros(1, 3, dtype=torch.int64), e[:1].clone()),
    "scatter_reduce": lambda e: (0, torch.zeros(1, 3, dtype=torch.int64), e[:1].clone(), "prod"), "as_strided": lambda e: ((2, 2), (3, 1)),
    "cumsum": lambda e: (0,), "cumprod": lambda e: (1,), "renorm": lambda e: (2, 0, 1.0), "clamp": lambda e: (0.7, 1.1), "clip": lambda e: (0.7, 1.1),
    "squeeze": lambda e: (0,), "unsqueeze": lambda e: (0,), "transpose": lambda e: (0, 1), "swapaxes": lambda e: (0, 1), "swapdims": lambda e: (0, 1),
    "polygamma": lambda e: (1,), "mvlgamma": lambda e: (1,), "celu": lambda e: (), "threshold": lambda e: (0.7, 0.1), "fill": lambda e: (2.0,),
    "clamp_max": lambda e: (0.9,), "clamp_min": lambda e: (0.9,), "pow": lambda e: (3,), "float_power": lambda e: (3,),
}  # fmt: skip
BINARY = """add sub mul div subtract multiply divide true_divide atan2 arctan2 copysign eq ne lt le gt ge greater greater_equal less less_equal not_equal floor_divide
fmod remainder heaviside hypot igamma igammac ldexp logical_and logical_or logical_xor nextafter xlogy fmax fmin logaddexp logaddexp2 maximum minimum zeta""".split() + BITS
LEFT_OUT = {
    "detach": "changes no element", "requires_grad": "changes no element", "rename": "names of dimensions are not supported",
    "resize_as_sparse": "of sparse tensors", "resize": "its function differs", "resize_as": "its function differs", "float_power": "computes float64, which a float32 tensor does not take",
    **dict.fromkeys(("bernoulli", "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu", "geometric", "normal", "random"), "random"),
}  # fmt: skip


def methods():
    for name in dir(torch.Tensor):
        base = name[:-1]
        if name.endswith("_") and not name.startswith("_") and not name.endswith("__") and base not in LEFT_OUT and (hasattr(torch.Tensor, base) or hasattr(torch, base)):
            yield base


METHODS = sorted(methods())


def arguments(name, e):
    if name in ARGUMENTS:
        return ARGUMENTS[name](e)
    return ((e * 2).clone(),) if name in BINARY else ()


def entries(name):
    """Two entries, of numbers that every function takes."""
    x = torch.arange(18.0).reshape(2, 3, 3) * 0.05 + 0.05
    if name in ("acosh", "arccosh", "mvlgamma", "zeta"):
        x = x + 1
    return (x * 20).to(torch.int64) if name in (*BITS, "bitwise_not") else x


def target(name, e):
    return e.clone().unsqueeze(0) if name in ("squeeze", "baddbmm") else e.clone()


def by_method(name, e):
    e = target(name, e)
    written = getattr(e, name + "_")(*arguments(name, e))
    assert written is e
    return e


def by_function(name, e):
    e = target(name, e)
    found = getattr(e, name, None) or (lambda *rest: getattr(torch, name)(e, *rest))
    return found(*arguments(name, e)).to(e.dtype)


def gradient(f, name, x):
    x = x.clone().requires_grad_()
    y = f(name, x * 1)
    (y * torch.arange(1.0, 1 + y.numel()).reshape(y.shape)).sum().backward()
    return x.grad


def attempt(f):
    """The gradient, or None where there is none."""
    try:
        return f()
    except RuntimeError as error:
        assert "derivative" in str(error) or "does not require grad" in str(error) or "not implemented" in str(error), error
        return None


@pytest.mark.parametrize("name", METHODS)
def test_an_in_place_method_writes_what_the_function_computes(name):
    x = entries(name)
    wanted = [by_function(name, e) for e in x]
    for e, want in zip(x, wanted, strict=True):
        assert torch.equal(by_method(name, e), want)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.func.vmap(lambda e: by_method(name, e))(x), torch.stack(wanted))
    if not x.is_floating_point() or not wanted[0].is_floating_point():
        return
    want = attempt(lambda: gradient(by_function, name, x[0]))
    got = attempt(lambda: gradient(by_method, name, x[0]))
    assert (got is None) == (want is None) and (want is None or torch.allclose(got, want))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", [n for n in METHODS if n not in (*BITS, "bitwise_not")])
def test_16_bits_are_rounded_as_the_function_rounds_them(name, dtype):
    x = (entries(name) * 1.0137).to(dtype)
    try:
        want = by_function(name, x[0])
    except (RuntimeError, NotImplementedError):
        with pytest.raises((RuntimeError, NotImplementedError)):
            by_method(name, x[0])
        return
    assert torch.equal(by_method(name, x[0]), want)


DIFFERENTIABLE = "addbmm addmm addmv baddbmm cumprod index_add index_copy index_put index_reduce masked_scatter put renorm scatter_reduce t tril unsqueeze exp mul pow lerp".split()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_an_in_place_method_has_its_gradient_under_vmap(name):
    x = entries(name)

    def loss(e):
        y = by_method(name, e * 1)
        return (y * y).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = torch.func.vmap(torch.func.grad(loss))(x)
    assert torch.allclose(got, torch.stack([torch.func.grad(loss)(e) for e in x]))


@pytest.mark.parametrize("name", ["addmm", "index_add", "index_copy", "fill_diagonal", "masked_scatter"])
def test_a_tensor_without_the_batch_is_not_written_from_entries(name):
    def write(e):
        target = torch.zeros(3, 3)
        return target.fill_diagonal_(e[0, 0]) if name == "fill_diagonal" else getattr(target, name + "_")(*arguments(name, e))

    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.vmap(write)(entries(name))


@pytest.mark.parametrize("name", ["resize_", "resize_as_", "set_"])
def test_what_cannot_be_done_for_a_batch_is_refused(name):
    with pytest.raises(NotImplementedError, match=f"vmap: {name}"):
        torch.func.vmap(lambda e: getattr(e.clone(), name)(*((3, 3),) if name == "resize_" else (e,)))(entries("exp"))


@pytest.mark.parametrize(("name", "args"), [("cumsum_", (-1,)), ("cumprod_", (-1,)), ("exp_", ()), ("unsqueeze_", (-1,)), ("transpose_", (1, 2)), ("swapaxes_", (1, 2))])
def test_in_place_methods_write_to_nested_tensors(name, args):
    nest = torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(3, 3)], layout=torch.jagged)
    want = getattr(nest, name[:-1])(*args)
    assert getattr(nest, name)(*args) is nest
    assert [c.tolist() for c in nest.unbind()] == [c.tolist() for c in want.unbind()] and nest.dim() == want.dim()


def test_in_place_methods_of_complex_numbers():
    x = torch.tensor([3 + 4j, 0j, -2j])
    for name in ("sgn", "square", "exp", "conj_physical", "reciprocal", "neg", "sqrt", "log", "tanh", "absolute"):
        y = x[:1].clone() if name in ("reciprocal", "log") else x.clone()
        want = getattr(y, name)()
        if want.is_complex():
            assert torch.equal(getattr(y, name + "_")(), want)


def test_scatter_with_reduce_and_matmul_in_place_have_gradients():
    places = torch.zeros(1, 3, dtype=torch.int64)
    x = entries("exp")[0].requires_grad_()

    def multiplied(e):
        e = e * 1
        e.scatter_(0, places, e[:1].clone(), reduce="multiply")
        e @= e.clone()
        return e.sum()

    def plain(e):
        first = torch.scatter(e, 0, places, e[:1].clone(), reduce="multiply")
        return (first @ first).sum()

    (got,), (want,) = torch.autograd.grad(multiplied(x), x), torch.autograd.grad(plain(x), x)
    assert torch.allclose(got, want)


IN_PLACE = {
    "amax": lambda t, w: t.scatter_reduce_(0, torch.tensor([0, 0, 1]), w, "amax"),
    "amin": lambda t, w: t.scatter_reduce_(0, torch.tensor([0, 0, 1]), w, "amin", include_self=False),
    "prod": lambda t, w: t.scatter_reduce_(0, torch.tensor([0, 0, 1]), w, "prod"),
    "indexed": lambda t, w: t.index_reduce_(0, torch.tensor([0, 0, 1]), w, "amax"),
    "multiplied": lambda t, w: t.scatter_(0, torch.tensor([0, 0, 1]), w, reduce="multiply"),
    "ldexp": lambda t, w: t.ldexp_(w),
    "addr": lambda t, w: t.expand(3, 3).clone().addr_(w, w),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_tensor_without_a_gradient_is_written_from_one_that_has_it(name):
    """The other operand's gradient needs what the tensor was before."""
    w = torch.tensor([0.5, 3.0, 2.0], requires_grad=True)
    written = IN_PLACE[name](torch.full((3,), 2.0), w * 1)
    written.square().sum().backward()
    found, w.grad = w.grad, None
    again = IN_PLACE[name](torch.full((3,), 2.0, requires_grad=True) * 1, w * 1)
    assert torch.equal(again, written)
    again.square().sum().backward()
    assert torch.equal(found, w.grad) and found.abs().sum() > 0


def test_matmul_in_place_keeps_what_the_other_factor_needs():
    a, b = torch.arange(4.0).reshape(2, 2), torch.eye(2).mul(3).requires_grad_()
    c = a.clone()
    c @= b
    c.sum().backward()
    assert torch.equal(c, a * 3) and torch.equal(b.grad, a.t() @ torch.ones(2, 2))

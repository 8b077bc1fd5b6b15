"""The operator cases, type promotion and a training run compared with PyTorch itself. `./run test --torch` runs this in PyTorch's environment."""
import inspect
import itertools
import os
import types

import numpy as np
import pytest

if os.environ.get("NARU_ORACLE") != "torch":
    pytest.skip("PyTorch is compared with by ./run test --torch only", allow_module_level=True)

torch = pytest.importorskip("torch")

import naru  # noqa: E402
from naru.testing import linalg_cases, loss_cases, network_cases, operator_cases  # noqa: E402
from naru.testing.operator_cases import as_tuple, differentiable  # noqa: E402


def with_torch(module, make, *arguments):
    """The same list, with torch in naru's place."""
    return types.FunctionType(make.__code__, {**module.__dict__, "naru": torch})(*arguments)


OURS, THEIRS = operator_cases.other_cases(), with_torch(operator_cases, operator_cases.other_cases)
for module in (network_cases, loss_cases):
    for family in module.FAMILIES:
        for mine, other in zip(family(operator_cases.Case), with_torch(module, family, operator_cases.Case)):
            if mine.extra.get("oracle", True):
                OURS.append(mine)
                THEIRS.append(other)


def whole_module_with_torch(module):
    """The module made again with torch in naru's place, its helpers too."""
    made = types.ModuleType(module.__name__)
    exec(inspect.getsource(module).replace("\nimport naru\n", "\nimport torch as naru\n"), made.__dict__)
    return made


# PyTorch rejects the derivative of cond (it overwrites the inverse that it has saved).
for mine, other in zip(linalg_cases.linalg_cases(operator_cases.Case), whole_module_with_torch(linalg_cases).linalg_cases(operator_cases.Case)):
    if mine.name not in ("linalg.cond 1", "linalg.cond fro"):
        OURS.append(mine)
        THEIRS.append(other)


def run(case, library, arrays):
    operands = [library.tensor(a) for a in arrays]
    wanted = differentiable(case, arrays) if case.gradient else []
    for i in wanted:
        operands[i].requires_grad_()
    out = as_tuple(case.run(*operands))
    if wanted:
        (out[0] * out[0]).sum().backward()
    return [t.detach().numpy() for t in out], [operands[i].grad.numpy() for i in wanted]


@pytest.mark.parametrize("ours, theirs", list(zip(OURS, THEIRS)), ids=[c.name for c in OURS])
def test_values_and_gradients_are_pytorchs(ours, theirs):
    arrays = ours.operands(11)
    (values, gradients), (wanted, wanted_gradients) = run(ours, naru, arrays), run(theirs, torch, arrays)
    for got, want in zip(values + gradients, wanted + wanted_gradients):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
OPERANDS = [("tensor", d) for d in DTYPES] + [("number", d) for d in DTYPES] + [("python", v) for v in (True, 2, 2.5)]


def operand(library, kind, what):
    if kind == "python":
        return what
    return library.ones((2,) if kind == "tensor" else (), dtype=getattr(library, what))


@pytest.mark.parametrize("op", ["add", "mul", "div", "eq", "maximum"])
def test_results_have_pytorchs_types(op):
    for (k1, w1), (k2, w2) in itertools.product(OPERANDS, OPERANDS):
        if k1 == "python" or (k2 == "python" and op == "maximum"):
            continue
        want = getattr(torch, op)(operand(torch, k1, w1), operand(torch, k2, w2)).dtype
        got = getattr(naru, op)(operand(naru, k1, w1), operand(naru, k2, w2)).dtype
        assert str(got) == str(want), f"{op}({k1} {w1}, {k2} {w2})"


BAD_CALLS = {
    "shapes": lambda t: t.ones(2, 3) + t.ones(4),
    "matmul": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "view": lambda t: t.ones(2, 3).view(5),
    "index": lambda t: t.ones(3)[5],
    "too many indices": lambda t: t.ones(3)[0, 0],
    "dim": lambda t: t.ones(3).sum(4),
    "item": lambda t: t.ones(3).item(),
    "bool of many": lambda t: bool(t.ones(3)),
    "backward without gradient": lambda t: t.ones(3).backward(),
    "integers require grad": lambda t: t.ones(3, dtype=t.int64).requires_grad_(),
    "leaf in place": lambda t: t.ones(3, requires_grad=True).add_(1),
    "mean of integers": lambda t: t.ones(3, dtype=t.int64).mean(),
    "cat": lambda t: t.cat([t.ones(2, 3), t.ones(2, 4)]),
    "device string": lambda t: t.device("gpu"),
    "numpy with grad": lambda t: t.ones(3, requires_grad=True).numpy(),
    "in-place type": lambda t: t.ones(3, dtype=t.int64).add_(0.5),
    "whole numbers by 0 in place": lambda t: t.ones(3, dtype=t.int64).floor_divide_(0),
    "bool by - ": lambda t: -t.ones(3, dtype=t.bool),
    "bits of floats": lambda t: t.ones(3) & 1,
    "expanded in place": lambda t: t.ones(1).expand(3).normal_(),
    "empty max": lambda t: t.ones(0).max(),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_raises_pytorchs_kind_of_error(name):
    with pytest.raises(Exception) as theirs:
        BAD_CALLS[name](torch)
    with pytest.raises(Exception) as ours:
        BAD_CALLS[name](naru)
    assert isinstance(ours.value, type(theirs.value)), f"{type(ours.value)}: {ours.value}; PyTorch: {type(theirs.value)}: {theirs.value}"


@pytest.mark.parametrize("name, options", [("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}), ("Adam", {"lr": 0.01}),
                                           ("AdamW", {"lr": 0.01, "weight_decay": 0.1}), ("RMSprop", {"lr": 0.01})])
def test_training_follows_pytorchs_curve(name, options):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 5)), rng.integers(0, 3, 16)
    weights = [rng.standard_normal(s) * 0.3 for s in ((8, 5), (8,), (3, 8), (3,))]

    def curve(t):
        model = t.nn.Sequential(t.nn.Linear(5, 8), t.nn.GELU(), t.nn.Linear(8, 3)).double()
        with t.no_grad():
            for p, w in zip(model.parameters(), weights):
                p.copy_(t.tensor(w))
        optimizer = getattr(t.optim, name)(model.parameters(), **options)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = t.nn.functional.cross_entropy(model(t.tensor(x)), t.tensor(y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(curve(naru), curve(torch), rtol=1e-9)

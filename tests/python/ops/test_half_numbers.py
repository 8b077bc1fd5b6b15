"""Numbers beside float16 and bfloat16 elements: where PyTorch 2.15 rounds them to the elements' type first, and where it does not. The expected values are
those of float32 arithmetic on the number rounded (or not), rounded once more."""

import copy
import subprocess
import sys

import naru
import naru.nn.functional as F
import pytest

NUMBERS = [0.3, -0.3, 0.1, 2.7, 1 / 3, 1e-3, 7.77]
# Of x and a number that is rounded first.
ROUNDED = {
    "add": lambda x, s: x + s, "radd": lambda x, s: s + x, "sub": lambda x, s: x - s, "rsub": lambda x, s: s - x, "remainder": lambda x, s: x % s, "rmod": lambda x, s: s % x,
    "fmod": naru.fmod, "pow": lambda x, s: x.abs() ** s, "rpow": lambda x, s: abs(s) ** x, "eq": lambda x, s: x == s, "ne": lambda x, s: x != s, "lt": lambda x, s: x < s,
    "le": lambda x, s: x <= s, "gt": lambda x, s: x > s, "ge": lambda x, s: x >= s, "hardshrink": lambda x, s: F.hardshrink(x, abs(s)), "softshrink": lambda x, s: F.softshrink(x, abs(s)),
    "isin": naru.isin, "add_": lambda x, s: x.clone().add_(s), "lt_": lambda x, s: x.clone().lt_(s), "sub with alpha": lambda x, s: naru.sub(x, naru.ones_like(x), alpha=s),
}
# And of one that is not.
EXACT = {
    "mul": lambda x, s: x * s, "div": lambda x, s: x / s, "div trunc": lambda x, s: naru.div(x, s, rounding_mode="trunc"), "div floor": lambda x, s: naru.div(x, s, rounding_mode="floor"),
    "leaky_relu": F.leaky_relu, "elu": F.elu, "lerp": lambda x, s: naru.lerp(x, x * 2, s), "clamp": lambda x, s: naru.clamp(x, -abs(s), abs(s)),
}


def values(dtype):
    return naru.tensor([((-1) ** i * (0.01 + i * i * 0.037)) % 7 - 3.3 for i in range(150)] + NUMBERS, dtype=naru.float64).to(dtype)


def held(number, dtype):
    return naru.tensor(number, dtype=naru.float64).to(dtype).item()


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
@pytest.mark.parametrize("name", [*ROUNDED, *EXACT])
@pytest.mark.parametrize("count", [150 + len(NUMBERS), 5000])  # at once, and as a group of the queue
def test_a_number_is_rounded_where_pytorch_rounds_it(name, dtype, count, device):
    f = ROUNDED.get(name) or EXACT[name]
    x = values(dtype).repeat(-(-count // 157))[:count].to(device)
    for number in NUMBERS:
        s = held(number, dtype) if name in ROUNDED else number
        want = f(x.float(), s)
        got = f(x, number)
        assert naru.equal(got, want.to(got.dtype)), number


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_what_is_filled_with_a_number_equals_it(dtype):
    for number in NUMBERS:
        x = naru.full((3,), number, dtype=dtype)
        assert (x == number).all() and (x - number == 0).all() and not (x < number).any()
    assert (naru.full((1,), float("inf"), dtype=naru.float16) == 70000).item()  # which float16 does not hold
    assert naru.tensor([256.0, 257.0], dtype=naru.bfloat16).eq(257).tolist() == [True, True]


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_the_ends_of_a_linspace_are_rounded_first(dtype):
    assert naru.equal(naru.linspace(0, 0.3, 9, dtype=dtype), naru.linspace(0, held(0.3, dtype), 9, dtype=naru.float64).to(dtype))


def test_decimals_of_float16_are_counted_in_float32():
    assert naru.round(naru.tensor([2.35, 2.45, 60000.0], dtype=naru.float16), decimals=3).tolist() == naru.round(
        naru.tensor([2.35, 2.45, 60000.0], dtype=naru.float16).float(), decimals=3
    ).half().tolist()
    assert naru.round(naru.tensor([2.35], dtype=naru.float16), decimals=1).item() == naru.tensor(2.3, dtype=naru.float16).item()  # 2.35 is 2.3496...


def test_processes_without_a_seed_draw_different_numbers():
    program = "import naru; print(naru.initial_seed(), naru.rand(4).tolist(), naru.randint(0, 2**31, (4,)).tolist())"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs[0] != runs[1] and runs[0].split(" ")[0] != runs[1].split(" ")[0]
    seeded = [subprocess.run([sys.executable, "-c", program.replace("print", "naru.manual_seed(5); print", 1)], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert seeded[0] == seeded[1] and seeded[0].startswith("5 ")


STEPS = {
    "SGD": {}, "SGD with momentum": {"momentum": 0.9}, "SGD by Nesterov": {"momentum": 0.9, "nesterov": True}, "Adam": {}, "Adam amsgrad": {"amsgrad": True}, "AdamW": {},
    "RMSprop": {}, "RMSprop with momentum": {"momentum": 0.9}, "RMSprop centered": {"centered": True}, "Adamax": {}, "NAdam": {}, "NAdam decoupled": {"decoupled_weight_decay": True},
    "RAdam": {}, "Adadelta": {}, "Rprop": {}, "ASGD": {}, "ASGD averaged": {"t0": 0}, "Adagrad": {}, "Adafactor": {"eps": (1e-8, 1e-3)},
}  # fmt: skip


@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_steps_of_16_bit_parameters_are_rounded_once(dtype, name, decay):
    """Each step, and the state it leaves, is that of float64 from the same state, rounded."""
    kind, options = getattr(naru.optim, name.split()[0]), {"lr": 0.1, **STEPS[name]}
    if decay and name != "Rprop":
        options["weight_decay"] = decay
    half_a_place = 2.0**-11 if dtype is naru.float16 else 2.0**-8
    for gradients in ([0.0] * 3, [1e-4] * 12, [1.0, -1.0, 0.5], [1e3] * 3, [3e-5, 1e3, -1e-4]):
        if name == "Adafactor" and dtype is naru.float16 and 1e3 in gradients:
            continue  # its state would be infinite, and Adafactor's next one NaN
        p = naru.nn.Parameter(naru.tensor([1.0, -0.3], dtype=dtype))
        steps = kind([p], **options)
        for i, g in enumerate(gradients):
            q = naru.nn.Parameter(p.detach().double())
            wide = kind([q], **options)
            wide.load_state_dict(copy.deepcopy(steps.state_dict()))
            p.grad = naru.tensor([g, -g / 3], dtype=dtype)
            q.grad = p.grad.double()
            steps.step(), wide.step()
            for what, got, want in [("p", p, q), *((key, value, wide.state[q][key]) for key, value in steps.state[p].items())]:
                if not isinstance(got, naru.Tensor) or got.dtype is not dtype:
                    continue
                got, want = got.detach().double(), want.detach()
                # Squares of 1e3 may be infinite in float16. A sum near 0 of numbers of float32 has their error.
                near = (got == want.to(dtype)) | ((got - want).abs() <= 1.001 * half_a_place * want.abs() + 2.0**-25 + 1e-6 * abs(p.detach()).max().item())
                assert near.all(), (gradients, i, what, got, want)
            assert p.isfinite().all(), (gradients, i)

"""Random calls whose numbers are hard: results and gradients beside those of the same function in float64.

    python -m tools.fuzz.numbers [--seconds N] [--calls N] [--seed S]     fuzz; exit status 1 and a line for each thing found
    python -m tools.fuzz.numbers --seed S --only INDEX                    one call again, with its numbers

Drawn are many equal elements, great means beside small deviations, numbers near overflow and underflow, poles and the ends of domains, constant and
masked rows, tensors without elements or dimensions. Found is: a result that is farther from float64's than rounding and the sum's length allow; NaN or
infinity where that is finite; a gradient of NaN where the function has a finite derivative; and what differs when the memory it is computed in held
something else before (every public function, with the arguments of tools.fuzz.api). Call number I of seed S is the same call every time.
"""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from typing import Any

import naru
import naru.nn.functional as F

from .api import Calls, arguments, child, described, fuzz
from .subjects import CANCELS, ELEMENTWISE, OF_TWO, POLES, ROWS, SAME_AS_LIMIT, SQUARES

Tensor = naru.Tensor
DTYPES = [naru.float32, naru.float16, naru.bfloat16]
UNIT = {naru.float32: 2.0**-23, naru.float16: 2.0**-10, naru.bfloat16: 2.0**-7}  # of the last place
LARGEST = {naru.float32: 3.4028234663852886e38, naru.float16: 65504.0, naru.bfloat16: 3.3895313892515355e38}
LEAST = {naru.float32: 2.0**-149, naru.float16: 2.0**-24, naru.bfloat16: 2.0**-133}
# Functions that return uninitialized memory on purpose, or draw from more than the generator.
UNWRITTEN = re.compile(r"empty|resize|_?new$|^(Tensor|.*Storage.*|set_data)$|data_ptr|id$|hash|seed|version|Generator|stride")


def evaluated(text: str, x: Tensor, y: Tensor | None = None) -> Tensor:
    return eval(text, {"t": naru, "F": F, "x": x, "y": y, "n": x.shape[-1] if x.dim() else 1, "inf": math.inf, "zeros": lambda n: naru.zeros(n, dtype=naru.int64)})


def far(got: Tensor, want: Tensor, allowed: Tensor, dtype: Any) -> str:
    """Where `got` is not `want` within `allowed`; '' where it is everywhere."""
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)} for {tuple(want.shape)}"
    got, most = got.detach().double(), LARGEST[dtype]
    over = want.abs() >= most * (1 - UNIT[dtype])  # may be infinity, or just not
    near = (got - want).abs() <= allowed.nan_to_num(0.0, 0.0, 0.0) + UNIT[dtype] * want.abs() + 2 * LEAST[dtype]
    fine = naru.where(want.isnan(), got.isnan(), naru.where(over, (got.sign() == want.sign()) & (got.abs() >= most * (1 - 4 * UNIT[dtype])), near))
    if bool(fine.all()):
        return ""
    at = int((~fine).flatten().to(naru.uint8).argmax())
    return f"{got.flatten()[at].item()} for {want.flatten()[at].item()} at {at}, allowed {allowed.flatten()[at].item():.3g}"


def gradient(text: str, x: Tensor, weights: random.Random, y: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """The function's value, and the gradient of a weighted sum of it by x."""
    x = x.detach().clone().requires_grad_()
    value = evaluated(text, x, y)
    if not value.requires_grad:
        return value, None
    w = naru.tensor([weights.choice([1, 0.5, -0.5, 2]) for _ in range(min(value.numel(), 64))], dtype=naru.float64)
    w = w.repeat(-(-value.numel() // max(len(w), 1)))[: value.numel()].reshape(value.shape).to(value.dtype)
    return value, naru.autograd.grad(value, x, w)[0]


class Numbers:
    """The calls of a seed, by number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.calls: Any = None

    def rows(self, rng: random.Random, dtype: Any) -> tuple[str, Tensor]:
        """Numbers of the type, with two dimensions."""
        kind = rng.choice(["equal", "normal", "offset", "great", "small", "poles", "constant", "masked", "short"])
        n = rng.choice([300, 2000, 5000]) if kind in ("equal", "normal") else rng.choice([2, 3, 5, 64, 1000])
        rows = 1 if n > 1000 else rng.choice([1, 2, 3])
        top = math.log10(LARGEST[dtype])
        if kind == "equal":
            x = naru.full((rows, n), rng.choice([1.0, 1 / 16, 0.1, 3.0, 100.0]), dtype=naru.float64)
        elif kind == "constant":
            x = naru.full((rows, n), rng.choice([0.0, 1.0, -2.5, 1e3, 1e-6]), dtype=naru.float64)
        elif kind in ("poles", "masked", "short"):
            n = rng.choice([1, 2, 3, 4, 6])
            choices = POLES if kind == "poles" else [-math.inf, -math.inf, 1.0, 2.0, 0.0] if kind == "masked" else [0.0, 1.0, 1.0, 2.0, -3.0]
            x = naru.tensor([[rng.choice(choices) for _ in range(n)] for _ in range(rows)], dtype=naru.float64)
        else:
            x = naru.tensor([[rng.gauss(0, 1) for _ in range(n)] for _ in range(rows)], dtype=naru.float64)
            if kind == "offset":
                x = x + rng.choice([1e3, 1e5, 1e7] if dtype is naru.float32 else [30.0, 1e3])
            elif kind == "great":
                x = x * 10.0 ** (rng.uniform(0.4, 0.97) * top)
            elif kind == "small":
                x = x * 10.0 ** -(rng.uniform(0.4, 0.95) * (37 if dtype is not naru.float16 else 6))
        return f"{kind} {tuple(x.shape)}", x.clamp(-LARGEST[dtype], LARGEST[dtype]).where(x.isfinite(), x).to(dtype)

    def of_rows(self, rng: random.Random) -> tuple[str, str]:
        dtype = rng.choice(DTYPES)
        text, bound = rng.choice(ROWS)
        kind, x = self.rows(rng, dtype)
        about = f"{text} of {kind}, {dtype}"
        if float(x[x.isfinite()].double().abs().sum()) * x.shape[-1] > LARGEST[naru.float32] and re.search("mean|loss|pool|entropy", text):
            return about, ""  # the sum that is divided afterwards is infinite, as PyTorch's
        if any(word in text for word in SQUARES):
            seen = x.double().abs()[x.isfinite() & (x != 0)]
            most, least = (1e12, 1e-12) if "corrcoef" not in text or dtype is not naru.float16 else (100, 0.01)
            if seen.numel() and (float(seen.amax()) > most or float(seen.amin()) < least):
                return about, ""
        if kind.startswith("offset") and ("_norm" in text or "attention" in text):
            return about, ""  # the mean, or a product, is rounded to the type that it is computed in, as in PyTorch
        seed = rng.random()
        try:
            want, want_gradient = gradient(text, x.double(), random.Random(seed))
        except (RuntimeError, IndexError, ValueError) as error:
            want = error
        try:
            got, got_gradient = gradient(text, x, random.Random(seed))
        except (RuntimeError, IndexError, ValueError) as error:
            return about, "" if isinstance(want, Exception) else f"raised {error!r}"
        if isinstance(want, Exception):
            return about, f"accepted, where float64 raised {want!r}"
        want = want.detach()
        n, wide = x.shape[-1], x.double()
        unit = UNIT[dtype]
        step = n * 2.0**-24
        if bound == "exact":
            allowed = 0 * want
        elif bound == "sum":  # each addition may lose a last place of what has been added
            allowed = step * evaluated(text, wide.abs()).abs().detach().nan_to_num(0.0, 0.0, 0.0)
        elif bound == "unit":  # of results about 1
            allowed = (want.abs() + 1) * (step + 4 * unit)
        else:
            allowed = want.abs() * (step + 4 * unit + 1e-5) + n * LEAST[naru.float32]
        wrong = far(got, want, allowed, dtype)
        if wrong:
            return about, wrong
        lost = (got.double().isinf() & want.isfinite()) | ((got == 0) & (want != 0))  # of which gradients follow
        if want_gradient is None or bool(lost.any()) or "attention" in text or ("sumexp" in text and bool((wide.abs() > 64).any())):  # exp(x - result), as in PyTorch
            return about, ""
        finite = want_gradient.abs().nan_to_num(0.0, 0.0, 0.0)
        most = wide.abs()[wide.isfinite()]
        steep = 2 / min(max(float(most.amax()), 1e-30), 1.0) if most.numel() and bound == "unit" else 0.0  # what is left of 1 - 1, by the scale of x
        allowed = (step + 4 * unit + 1e-5) * (finite + (finite.amax() if finite.numel() else 0.0)) + (step + 4 * unit) * steep
        wrong = "" if bound == "forward" else far(got_gradient, want_gradient, allowed, dtype)
        if not wrong and want.isfinite().all() and n <= 6:
            wrong = self.beside_limit(text, wide, want_gradient, random.Random(seed))
        return about, wrong and f"gradient: {wrong}"

    def beside_limit(self, text: str, x: Tensor, found: Tensor, weights: random.Random) -> str:
        """Whether a derivative is NaN although the differences on both sides agree; infinite elements are seen as great ones."""
        if not found.isnan().any() or x.isnan().any():
            return ""
        state = weights.getstate()

        def total(z: Tensor) -> float:
            weights.setstate(state)
            value = evaluated(text, z)
            w = naru.tensor([weights.choice([1, 0.5, -0.5, 2]) for _ in range(min(value.numel(), 64))], dtype=naru.float64)
            return float((value * w[: value.numel()].reshape(value.shape)).sum())

        seen = x.clamp(-1e3, 1e3)
        here = total(x)
        if not math.isfinite(here) or abs(total(seen) - here) > 1e-9 * (1 + abs(here)):
            return ""
        for at in found.isnan().nonzero().tolist():
            slopes = []
            for h in (1e-5, -1e-5):
                z = seen.clone()
                z[tuple(at)] += h
                slopes.append((total(z) - here) / h)
            if all(map(math.isfinite, slopes)) and abs(slopes[0] - slopes[1]) <= 1e-3 * (1 + abs(slopes[0])):
                return f"nan at {at}, where the function has the slope {slopes[0]:.6g}"
        return ""

    def elementwise(self, rng: random.Random) -> tuple[str, str]:
        dtype = rng.choice(DTYPES)
        text = rng.choice([t for t in ELEMENTWISE + OF_TWO if t not in CANCELS])
        values = [rng.choice(POLES) if rng.random() < 0.6 else rng.gauss(0, 1) * 10 ** rng.uniform(-4, 4) for _ in range(32)]
        x = naru.tensor(values, dtype=naru.float64).to(dtype)
        y = naru.tensor([rng.choice(POLES) if rng.random() < 0.6 else rng.gauss(0, 3) for _ in range(32)], dtype=naru.float64).to(dtype)
        wide, beside = x.double(), y.double()
        seed = rng.random()
        want, want_gradient = gradient(text, wide, random.Random(seed), beside)
        got, got_gradient = gradient(text, x, random.Random(seed), y)
        about = f"{text} of {x.tolist()}, {y.tolist() if text in OF_TWO else ''} {dtype}"
        # As far as numbers that differ by their last place are from each other.
        unit = 2.0**-23
        moved = [evaluated(text, wide * (1 + a * unit), beside * (1 + b * unit)).detach() for a in (-1, 1) for b in (-1, 1)]
        want = want.detach()
        if want.dtype is naru.bool:
            return about, "" if bool((got == want).all()) else "differs"
        apart = naru.stack([(m - want).abs().nan_to_num(0.0, 0.0, 0.0) for m in moved]).amax(0)
        wrong = far(got, want, 4 * apart + 8 * unit * want.abs() + (LEAST[naru.float32] + (unit if "gelu" in text else 0)) * wide.abs(), dtype)
        if wrong or want_gradient is None:
            return about, wrong
        for i in want_gradient.isnan().nonzero().flatten().tolist() if text not in SAME_AS_LIMIT else []:
            one, two = wide[i : i + 1], beside[i : i + 1]
            if not (bool(one.isfinite()) and bool(two.isfinite()) and bool(want[i].isfinite())):
                continue
            h = 1e-6 * max(1.0, abs(float(one)))
            left, right = (float((evaluated(text, one + s * h, two) - want[i]) / (s * h)) for s in (-1, 1))
            if math.isfinite(left) and math.isfinite(right) and abs(left - right) <= 1e-3 * (1 + abs(left)):
                return about, f"gradient: nan at {float(one)}, {float(two)}, where the function has the slope {left:.6g}"
        return about, ""

    def memory(self, rng: random.Random, index: int) -> tuple[str, str]:
        """A call of any public function, twice, in memory that held something else."""
        self.calls = self.calls or Calls(self.seed)
        try:
            name, positional, named, _ = self.calls.make(index)
        except RuntimeError as error:
            return f"arguments that can't be made: {error}", ""
        plain = (Tensor, int, float, str, bool, type(None))  # lists may be endless
        about = f"{name} {[described(v) if isinstance(v, plain) else type(v).__name__ for v in (*positional, *named.values())]} {[ascii(k) for k in named]}"
        if UNWRITTEN.search(name.rpartition(".")[2]):
            return about, ""
        found = []
        for left in (math.nan, 13.0):
            name, positional, named, _ = self.calls.make(index)
            if any(isinstance(v, Tensor) and v.numel() > 10**5 for v in (*positional, *named.values())):
                return about, ""
            leave_behind(left)
            naru.manual_seed(index)
            naru.set_grad_enabled(True)
            try:
                result = self.calls.table[name](*positional, **named)
                if name.startswith("nn."):
                    return about, ""
                found.append([bits(part) for part in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(part, Tensor)])
            except Exception as error:  # noqa: BLE001
                if isinstance(error, naru.OutOfMemoryError):  # memory that others use, too
                    return about, ""
                found.append(type(error).__name__)
        return about, "" if found[0] == found[1] else f"depends on what memory held: {str(found)[:200]}"

    def found(self, index: int) -> str:
        """What is wrong with one call, and which it is, or ''."""
        about, wrong = self.run(index)
        return wrong and f"{wrong}: {about}"

    def run(self, index: int) -> tuple[str, str]:
        """One call: what it is, and what is wrong with it, or ''."""
        rng = random.Random(f"numbers {self.seed}:{index}")
        how = rng.random()
        if how < 0.4:
            return self.of_rows(rng)
        return self.elementwise(rng) if how < 0.7 else self.memory(rng, index)


def bits(x: Tensor) -> Any:
    if x.numel() > 10**5 or x.layout is not naru.strided or x.device.type == "meta":
        return str(x.shape)
    return (str(x.dtype), tuple(x.shape), repr(x.detach().cpu().resolve_conj().resolve_neg().tolist()))


def leave_behind(number: float) -> None:
    """Freed memory of many sizes that holds a number all over, for the next allocations."""
    sizes = [*range(16, 272, 16), 512, 1024, 4096] * 3
    held = [naru.full((size,), number, device=device) for device in ("cpu", "cuda:0") for size in sizes]
    del held


def main() -> int:
    given = arguments(__doc__).parse_args()
    numbers = Numbers(given.seed)
    if given.child is not None:
        child(numbers.found, given.child, given.count, given.progress)
        return 0
    if given.only is not None:
        warnings.simplefilter("ignore")
        about, wrong = numbers.run(given.only)
        print(about, wrong or "nothing wrong", sep="\n")
        return 0
    return 1 if fuzz(given.seconds, given.seed, given.calls, "numbers") else 0


if __name__ == "__main__":
    sys.exit(main())

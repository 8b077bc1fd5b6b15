"""The greatest error of elementwise functions of float32, over all 2^32 numbers, against the same functions of float64.

    ./run python -m tools.ulp [FUNCTION ...] [--step N]

Errors are in units of the last place of the exact value. --step looks at every N-th number only. pow is tried at random pairs: 2^32 / step of them."""
import argparse

import numpy as np

import naru

UNARY = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
         "atanh", "sigmoid", "rsqrt", "erf", "erfc", "erfinv", "lgamma", "digamma"]
CHUNK = 1 << 22


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The distance of float32 numbers from float64 ones, in float32's ulp of the latter; infinite where only one is NaN, or a sign is wrong."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        exponent = np.maximum(np.frexp(want)[1] - 24, -149)
        wide = np.where(np.isinf(got), np.copysign(2.0**128, want), got.astype(np.float64))
        error = np.abs(np.ldexp(wide - want, -exponent))
    same = (np.isnan(got) & np.isnan(want)) | (np.isinf(rounded) & (got == rounded)) | ((want == 0) & (got == 0))
    error = np.where(same, 0, error)
    wrong = (np.isnan(got) != np.isnan(want)) | ((np.signbit(got) != np.signbit(want)) & ~np.isnan(want)) | (np.isinf(want) & ~same)
    return np.where(wrong, np.inf, error)


def report(name: str, operands: list[np.ndarray], worst: tuple[float, list[float]]) -> tuple[float, list[float]]:
    """The worst of what is known and of these operands."""
    f = getattr(naru, name)
    single = f(*(naru.from_numpy(x) for x in operands)).numpy()
    double = f(*(naru.from_numpy(x).double() for x in operands)).numpy()
    error = ulps(single, double)
    at = int(np.argmax(error))
    return max(worst, (float(error[at]), [float(x[at]) for x in operands]), key=lambda found: found[0])


def main() -> None:
    """Prints a line for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=[*UNARY, "pow"])
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    for name in options.functions:
        worst: tuple[float, list[float]] = (0.0, [])
        for first in range(0, 1 << 32, CHUNK * options.step):
            if name == "pow":
                # Every third chunk: bases around 1; every third: exponents that lead to moderate results; else any bits.
                x = random.integers(0, 1 << 32, CHUNK, dtype=np.uint32).view(np.float32)
                y = random.integers(0, 1 << 32, CHUNK, dtype=np.uint32).view(np.float32)
                kind = first // (CHUNK * options.step) % 3
                with np.errstate(all="ignore"):
                    if kind == 0:
                        x, y = (random.random(CHUNK) * 0.4 + 0.8).astype(np.float32), ((random.random(CHUNK) - 0.5) * 1200).astype(np.float32)
                    if kind == 1:
                        x = np.abs(x)
                        y = ((random.random(CHUNK) * 282 - 152) / np.log2(x.astype(np.float64))).astype(np.float32)
                operands = [x, y]
            else:
                operands = [np.arange(first, min(first + CHUNK * options.step, 1 << 32), options.step, dtype=np.uint64).astype(np.uint32).view(np.float32)]
            worst = report(name, operands, worst)
        print(f"{name:8} {worst[0]:.4f} ulp at {', '.join(float(x).hex() for x in worst[1])}", flush=True)


if __name__ == "__main__":
    main()

"""Results of operators for special values: nan, infinities, -0, subnormal numbers, no elements, one element, the extremes of integers. A subject is
a call as text, with the same meaning for torch and for naru (t, F), on operands of one dtype. PyTorch 2.15's results are in special_values.json,
one line per subject. To regenerate it, run

    .venv-peers/bin/python tests/python/support/special_values.py      (any Python that has torch)

`./run test --torch` compares the file with PyTorch. test_special_values.py compares naru with it."""
import json
import math
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("special_values.json")

NAN, INF = math.nan, math.inf
LIMITS = {"float32": (1e-45, 1.1754943508222875e-38, 3.4028234663852886e38), "float64": (5e-324, 2.2250738585072014e-308, 1.7976931348623157e308)}
PLAIN = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1.5, -1.5, 2.5, 3.0, -3.0, 20.5, 89.0, -89.0, -104.0, 720.0, -746.0, 1e10, -1e10]
FEW = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0]


def extremes(dtype):
    """Numbers of an integer type, its limits among them."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return sorted({low, low + 1 if low else 1, -1 if low else 1, 0, 1, 2, 7, high - 1, high})


def numbers(dtype, few=False):
    if not dtype.startswith("float"):
        return extremes(dtype)
    least, normal, most = LIMITS[dtype]
    return FEW + [least, most, -most] if few else PLAIN + [least, -least, 3 * normal / 4, normal, -normal, most, -most]


FLOATS, INTEGERS = ("float32", "float64"), ("uint8", "int8", "int16", "int32", "int64")
# Calls with one tensor: those for floating-point types, and those also for integers.
ONE = """abs neg positive sign square reciprocal sqrt rsqrt floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid logical_not isnan isinf isfinite isposinf isneginf signbit nan_to_num logit deg2rad
    special.entr special.i0 special.i0e special.i1 special.i1e special.ndtr special.ndtri special.log_ndtr special.erfcx sinc""".split()
ONE_OF_F = "relu relu6 silu logsigmoid gelu softsign mish hardsigmoid hardswish elu celu selu softplus leaky_relu hardtanh hardshrink softshrink tanhshrink".split()
ONE_OF_INTEGERS = "abs neg sign square logical_not bitwise_not sqrt exp isnan signbit".split()
TWO = """add sub mul div floor_divide remainder fmod pow atan2 maximum minimum fmax fmin hypot copysign xlogy logaddexp logaddexp2 eq ne lt le gt ge
    logical_and logical_or logical_xor nextafter heaviside special.xlog1py isclose""".split()
TWO_OF_INTEGERS = "add sub mul div floor_divide remainder fmod pow maximum minimum eq lt bitwise_and bitwise_or bitwise_xor logical_and gcd".split()
SHIFTS = [0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 65, -1, -64]
ROWS = [[NAN, 1, 2], [1, 2, NAN], [INF, 1, 2], [-INF, 1, INF], [-INF, -INF, -INF], [-0.0, -0.0, -0.0], [0.0, -0.0, 0.0], [3.0, 3.0, 1.0], "most", "least"]
REDUCTIONS = """sum mean prod amax amin argmax argmin any all var std logsumexp cumsum cumprod nansum nanmean median nanmedian max min sort cummax cummin
    logcumsumexp softmax log_softmax count_nonzero mode unique_consecutive norm aminmax diff argsort""".split()
ARGUMENTS = {"std": "1", "var": "1", "norm": "2, 1", "aminmax": "dim=1", "unique_consecutive": "dim=1", "diff": "1, 1"}
OF_INTEGER_ROWS = "sum prod amax argmin any cumsum cumprod mean sort median".split()
OF_NOTHING = "sum mean prod amax max argmax any all var std norm cumsum sort median nansum logsumexp softmax count_nonzero min unique".split()
CASTS = [NAN, INF, -INF, -0.0, 0.5, -0.5, 1.9, -1.9, 127.9, 128.0, 255.0, 256.0, -1.0, -129.0, 32768.0, 65536.0, 2147483648.0, -2147483649.0, 9.3e18, -9.3e18, 1e30]


def spread(values):
    """Every value with every other."""
    return [a for a in values for _ in values], [b for _ in values for b in values]


def elementwise():
    """(name, call of x and y, type, x, y or None)"""
    for dtype in FLOATS:
        x = numbers(dtype)
        for name in ONE:
            yield name, f"t.{name}(x)", dtype, x, None
        for name in ONE_OF_F:
            yield name, f"F.{name}(x)", dtype, x, None
        yield "gelu_tanh", "F.gelu(x, approximate='tanh')", dtype, x, None
        yield "threshold", "F.threshold(x, 0.5, 9.0)", dtype, x, None
        a, b = spread(numbers(dtype, few=True))
        for name in TWO:
            yield name, f"t.{name}(x, y)", dtype, a, b
        yield "div_trunc", "t.div(x, y, rounding_mode='trunc')", dtype, a, b
        yield "add_scaled", "t.add(x, y, alpha=2)", dtype, a, b
        yield "lerp", "t.lerp(x, y, 0.5)", dtype, a, b
        yield "clamp", "x.clamp(y, y * 0 + 2)", dtype, a, b
        yield "clamp_min", "x.clamp(min=y)", dtype, a, b
        yield "clamp_max", "x.clamp(max=y)", dtype, a, b
        yield "where", "t.where(x > 0, x, y)", dtype, a, b
        yield "zeta", "t.special.zeta(x, y)", dtype, a, b
    for dtype in INTEGERS:
        for name in ONE_OF_INTEGERS:
            yield name, f"t.{name}(x)", dtype, numbers(dtype), None
        pairs = spread(numbers(dtype))
        for name in TWO_OF_INTEGERS:
            a, b = pairs
            if "div" in name or name in ("remainder", "fmod"):  # PyTorch rejects 0, and its quotient of the least integer by -1 traps
                kept = [(p, q) for p, q in zip(a, b) if q and not (q == -1 and p == np.iinfo(dtype).min)]
                a, b = map(list, zip(*kept))
            yield name, f"t.{name}(x, y)", dtype, a, b
        shifts = [s for s in SHIFTS if s >= 0 or dtype != "uint8"]
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            yield name, f"t.{name}(x, y)", dtype, [v for v in numbers(dtype) for _ in shifts], shifts * len(numbers(dtype))


def reductions():
    for dtype in FLOATS:
        least, _, most = LIMITS[dtype]
        rows = [[most, most, -most] if r == "most" else [least, least, -3 * least] if r == "least" else r for r in ROWS]
        for name in REDUCTIONS:
            yield name, f"t.{name}(x, {ARGUMENTS.get(name, '1')})", dtype, rows, None
    for dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        for name in OF_INTEGER_ROWS:
            yield name, f"t.{name}(x, {'dim=1, dtype=t.float64' if name == 'mean' else 1})", dtype, [[high, high, 1], [low, low, 0], [2, 0, low], [3, 3, 3]], None
    for name in OF_NOTHING:
        for call, x in ((f"t.{name}(x)", []), (f"t.{name}(x)", 2.5), (f"t.{name}(x)", [NAN]), (f"t.{name}(x, 0)", [[], []]), (f"t.{name}(x, 1)", [[], []])):
            if (name == "unique" and "," in call) or ("," not in call and name in ("cumsum", "logsumexp", "softmax")):
                continue
            yield f"{name} of nothing", call.replace(", ", ", dim=") if name == "norm" else call, "float32", x, None


def casts():
    for dtype in INTEGERS + ("bool", "float16", "bfloat16"):
        for source in FLOATS:
            yield f"to {dtype}", f"x.to(t.{dtype})", source, CASTS, None
    for dtype in INTEGERS + ("bool", "float16", "float32"):
        yield f"to {dtype}", f"x.to(t.{dtype})", "int64", extremes("int64") + extremes("int32") + extremes("uint8"), None


def subjects():
    """{key: (call, type, x, y)}"""
    found = {}
    for _, call, dtype, x, y in (*elementwise(), *reductions(), *casts()):
        shape = f" of {x}" if isinstance(x, float) or len(x) < 2 or x == [[], []] else ""
        found[f"{call} {dtype}{shape}"] = (call, dtype, x, y)
    return found


def token(v):
    if isinstance(v, (bool, np.bool_)):
        return "TF"[not v]
    text = str(v)
    return text[:-2] if text.endswith(".0") else text


def text_of(t):
    """A tensor's type (where it says something) and elements."""
    name = str(t.dtype).removeprefix("torch.")
    array = (t.float() if name == "bfloat16" else t).cpu().numpy()
    shape = "" if array.ndim == 1 and array.size else f"{list(array.shape)} ".replace(", ", ",")
    return f"{name} {shape}" + " ".join(token(v) for v in array.flatten())


def answer(library, functional, subject):
    """What a library says: the results' texts, or the kind of error and the first line of its words."""
    call, dtype, x, y = subject
    made = {"t": library, "F": functional, "x": library.tensor(x, dtype=getattr(library, dtype))}
    if y is not None:
        made["y"] = library.tensor(y, dtype=getattr(library, dtype))
    try:
        out = eval(call, made)
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return " | ".join(text_of(o) for o in (out if isinstance(out, tuple) else (out,)))


def write(answers):
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items()) + "\n}\n")


if __name__ == "__main__":
    import warnings

    import torch

    warnings.simplefilter("ignore")
    write({key: answer(torch, torch.nn.functional, subject) for key, subject in subjects().items()})

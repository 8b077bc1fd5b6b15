"""Measures how far naru.array_api conforms to the standard: `python -m tools.array_api` prints the table of docs/array-api.md and every deviation.

Names and signatures are compared with those of array-api-strict; special values are checked against the sentences in the docstrings of the package
array-api ("If ``x_i`` is ``NaN``, the result is ``NaN``."). Neither package is a dependency of naru: pip install array-api-strict array-api.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

inf, nan, pi = math.inf, math.nan, math.pi
Test = Callable[[float], bool]
VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -1.5, 100.0, -57.25, inf, -inf, nan]
ANGLES = {"π": pi, "π/2": pi / 2, "π/4": pi / 4, "3π/4": 3 * pi / 4, "πj/2": pi / 2, "πj/4": pi / 4, "3πj/4": 3 * pi / 4}
OWN = "get_array_api_strict_flags set_array_api_strict_flags reset_array_api_strict_flags ArrayAPIStrictFlags Device".split()


def is_odd(v: float) -> bool:
    return math.isfinite(v) and v % 2 == 1


KINDS: dict[str, Test] = {
    "a finite number": math.isfinite,
    "finite": math.isfinite,
    "a positive finite number": lambda v: 0 < v < inf,
    "a negative finite number": lambda v: -inf < v < 0,
    "a nonzero finite number": lambda v: v != 0 and math.isfinite(v),
    "an odd integer value": is_odd,
    "not an odd integer value": lambda v: not is_odd(v),
    "not an integer value": lambda v: not (math.isfinite(v) and v == int(v)),
    "already integer-valued": lambda v: math.isfinite(v) and v == int(v),
    "any value": lambda v: True,
}
SIDES: dict[str, Callable[[float, float], bool]] = {
    "greater than": lambda v, x: v > x,
    "less than": lambda v, x: v < x,
    "greater than or equal to": lambda v, x: v >= x,
    "less than or equal to": lambda v, x: v <= x,
}


def value(text: str) -> Test | None:
    """Returns a test for the number that a text names: "NaN", "-0", "+infinity", "1", "+π/2"."""
    sign, digits = (-1.0 if text.startswith("-") else 1.0), text.lstrip("+-").replace("infinity", "inf")
    if digits == "NaN":
        return math.isnan
    if digits in ANGLES:
        return lambda v: abs(v - sign * ANGLES[digits]) < 1e-6
    try:
        wanted = sign * float(digits)
    except ValueError:
        return None
    signed = wanted != 0 or text[0] in "+-"
    return lambda v: v == wanted and (not signed or math.copysign(1, v) == sign)


def kind(text: str) -> Test | None:
    """Returns a test for numbers that match a description ("is ...")."""
    if text in KINDS:
        return KINDS[text]
    if found := re.fullmatch(r"``([^`]+)``", text):
        return value(found[1])
    if found := re.fullmatch(r"either ``([^`]+)`` or ``([^`]+)``", text):
        one, other = value(found[1]), value(found[2])
        return (lambda v: one(v) or other(v)) if one and other else None
    if found := re.fullmatch(r"not (?:equal to )?``([^`]+)``", text):
        but = value(found[1])
        return (lambda v: not but(v)) if but else None
    if found := re.fullmatch(r"((?:greater|less) than(?: or equal to)?) ``([^`]+)``", text):
        side, bound = SIDES[found[1]], float(found[2])
        return lambda v: side(v, bound)
    return None


def condition(text: str) -> Callable[[dict[str, float]], bool] | None:
    """Returns a test of the operands, by name, for one condition of a sentence."""
    found = re.fullmatch(r"``(abs\()?(x_i|x1_i|x2_i|a|b)\)?`` is (.*)", text.strip(" ,"))
    test = kind(found[3]) if found else None
    if not found or test is None:
        return None
    name, absolute = found[2], bool(found[1])
    return lambda operands: test(abs(operands[name]) if absolute else operands[name])


def result(text: str, operands: dict[str, float]) -> Callable[[Any], bool] | None:
    """Returns a test of the result. For complex results, signs that the text leaves open are not checked."""
    open_sign = {part: bool(re.search(rf"signs? of (?:the )?(?:\w+ and )?{part}", text)) for part in ("real", "imaginary")}
    found = re.match(r"``([^`]+)``", text)
    if not found or "note" in text and "Python" in text and "may return" in text:
        return None
    said = found[1]
    if said in ("True", "False"):
        return lambda v: v is (said == "True")
    if said in operands:
        x = operands[said]
        return lambda v: v == x and math.copysign(1, v) == math.copysign(1, x) or math.isnan(v) and math.isnan(x)
    if parts := re.fullmatch(r"(\S+) ([+-]) (\S+?) ?j?", said):
        tests = []
        for part, name in ((parts[1], "real"), (parts[2] + parts[3], "imaginary")):
            test = value(part)
            if test is None:
                return None
            tests.append((lambda t: lambda v: t(v) or t(-v))(test) if open_sign[name] else test)
        return lambda z: tests[0](z.real) and tests[1](z.imag)
    return value(said)


def statements() -> Iterator[tuple[str, str]]:
    """Yields (function, sentence) for the standard's special values."""
    package = find_spec("array_api")
    if package is None or not package.origin:
        sys.exit("tools.array_api: wanted the package array-api; pip install array-api")
    text = Path(package.origin).with_name("_2024_12.py").read_text()
    for found in re.finditer(r"^class (\w+)\[[^\n]*\n((?:    .*\n|\n)+)", text, re.M):
        for sentence in re.findall(r'^\s+- (If .*?)(?=\n\s+- |\n\s*\n|\n\s*\.\.|\n\s*""")', found[2], re.M | re.S):
            yield found[1], re.sub(r" \(i\.e\., [^)]*\)| \(including ``NaN``\)| an implementation-dependent approximation to", "", re.sub(r"\s+", " ", sentence))


def operands_of(conditions: str) -> list[dict[str, float]] | None:
    """All operands that satisfy the conditions of a sentence; None if it can't be parsed."""
    if both := re.fullmatch(r"either ``x1_i`` or ``x2_i`` is ``(.*?)``", conditions):
        test = value(both[1])
        return [{"x1_i": a, "x2_i": b} for a, b in itertools.product(VALUES, repeat=2) if test and (test(a) or test(b))]
    parts = [condition(p) for p in re.split(r", and |, | and (?=``(?:x|a|b|abs))", re.sub(r", even if.*", "", conditions))]
    if None in parts:
        return None
    named = set(re.findall(r"``(?:abs\()?(x_i|x1_i|x2_i|a|b)\)?``", conditions))
    names = ("a", "b") if named <= {"a", "b"} else ("x1_i", "x2_i") if named <= {"x1_i", "x2_i"} else ("x_i",)
    every = [dict(zip(names, values)) for values in itertools.product(VALUES, repeat=len(names))]
    return [operands for operands in every if all(part(operands) for part in parts if part)]


def plain(x: Any) -> Any:
    kind = str(x.dtype)
    return bool(x) if kind.endswith("bool") else complex(x) if "complex" in kind else float(x)


def is_right(xp: Any, name: str, sentence: str) -> bool | None:
    """Whether a sentence holds in a namespace; None if it can't be parsed."""
    found = re.fullmatch(r"If (.*?),? the result is (.*)", sentence)
    function, every = getattr(xp, name, None), operands_of(found[1]) if found else None
    if not found or not function or not every or result(found[2], every[0]) is None:
        return None
    for operands in every:
        holds = result(found[2], operands)
        if holds is None:
            return None
        for dtype in (xp.complex64, xp.complex128) if "a" in operands else (xp.float32, xp.float64):
            given = [complex(*operands.values())] if "a" in operands else list(operands.values())
            if not holds(plain(function(*(xp.asarray([v], dtype=dtype) for v in given))[0])):
                return False
    return True


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """(name, kind, default) of each parameter; names of positional-only parameters are left out, since they do not matter."""
    named = inspect.signature(function).parameters.values()
    return [("" if p.kind is p.POSITIONAL_ONLY else p.name, p.kind, None if "UNDEF" in repr(p.default) else p.default) for p in named]


def names(strict: Any, xp: Any) -> tuple[list[str], list[str], list[str]]:
    """Returns all functions of the standard, the missing ones, and those with a different signature."""
    every, missing, differ = [], [], []
    for extension in ("", "linalg", "fft"):
        theirs, ours = (getattr(strict, extension), getattr(xp, extension)) if extension else (strict, xp)
        for name in theirs.__all__:
            wanted = getattr(theirs, name)
            if name in OWN or not callable(wanted) or (inspect.isclass(wanted) and name != "__array_namespace_info__"):
                continue
            every.append(f"{extension}.{name}".lstrip("."))
            if not hasattr(ours, name):
                missing.append(every[-1])
                continue
            try:
                same = parameters(wanted) == parameters(getattr(ours, name))
            except ValueError:  # a function of the extension has no Python signature, and accepts PyTorch's parameters
                same = all(p.kind is p.POSITIONAL_ONLY for p in inspect.signature(wanted).parameters.values()) or name.endswith("_like")
            if not same:
                differ.append(every[-1])
    return every, missing, differ


def main() -> None:
    import warnings

    import array_api_strict as strict
    from naru import array_api as xp

    warnings.simplefilter("ignore")
    every, missing, differ = names(strict, xp)
    held: dict[str, list[bool | None]] = {library: [] for library in ("naru", "strict")}
    for name, sentence in statements():
        for library, namespace in (("naru", xp), ("strict", strict)):
            held[library].append(is_right(namespace, name, sentence))
        if held["naru"][-1] is False:
            print(f"not right{'' if held['strict'][-1] else ' (nor array_api_strict)'}: {name}: {sentence}")
    for name in missing + differ:
        print(f"missing or of another signature: {name}")
    read = [len([h for h in found if h is not None]) for found in held.values()]
    print(f"| functions | {len(every) - len(missing)} of {len(every)} | {len(every)} of {len(every)} |")
    print(f"| signatures | {len(every) - len(missing) - len(differ)} of {len(every)} | |")
    print(f"| special values | {held['naru'].count(True)} of {read[0]} | {held['strict'].count(True)} of {read[1]} |")
    print(f"{len(held['naru']) - read[0]} sentences could not be read")


if __name__ == "__main__":
    main()

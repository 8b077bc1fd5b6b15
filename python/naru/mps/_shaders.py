"""Kernels in Metal's language as kernels in naru's dialect, which run on every device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .. import _C
from .._functions.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a parameter says of where an item is, and the dialect's function.
_PLACES = {
    "thread_position_in_grid": "global_id",
    "thread_position_in_threadgroup": "local_id",
    "threadgroup_position_in_grid": "group_id",
    "threads_per_threadgroup": "local_size",
    "threads_per_grid": "global_size",
    "threadgroups_per_grid": "num_groups",
}
# Functions that are overloaded in Metal's language, and have a name for float32 in the dialect.
_OF_FLOATS = """exp exp2 log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sqrt rsqrt pow fmod fabs floor ceil trunc round rint
    fmin fmax fma copysign ldexp""".split()
# Each with why it is refused.
_REFUSED = {
    r"\btemplate\b": "templates",
    r"\bas_type\b": "as_type",
    r"\b(?:half|bfloat)\b": "arithmetic in half or bfloat",
    r"\b(?:bool|char|uchar|short|ushort|int|uint|long|ulong|float|half|packed_float)[234]\b": "vectors",
    r"\b(?:simd|quad)_\w+": "functions of SIMD groups",
    r"\b(?:texture|sampler)\w*": "textures",
    r"\batomic_\w+": "atomic types",
    r"\babs\s*\(": "abs, whose type the text does not say (write fabs, or x < 0 ? -x : x)",
}


def _refuse(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"compile_shader: naru translates Metal's language to its own kernels, which have no {what}. Write the kernel for naru.kernel (docs/kernels.md)"
    )


def _closing(text: str, opening: int) -> int:
    """The place of the parenthesis or brace that closes the one at `opening`."""
    begin = text[opening]
    end, depth = {"(": ")", "{": "}"}[begin], 0
    for place in range(opening, len(text)):
        depth += (text[place] == begin) - (text[place] == end)
        if depth == 0:
            return place
    raise ValueError(f"compile_shader: a kernel has no end: {end!r} is missing")


def _parameter(text: str, position: int) -> tuple[int, str, str, dict[str, str]]:
    """Of one parameter: the number of its argument (-1: it says where the item is), its text, what begins the body, and words to replace in it."""
    attribute = re.search(r"\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\]", text)
    declared = re.sub(r"\[\[.*?\]\]", "", text).strip()
    found = re.fullmatch(r"([\w\s]*?)\s*([*&]?)\s*(?:restrict\s+|__restrict__?\s+)?(\w+)", declared)
    if not found:
        raise ValueError(f"compile_shader: wanted a parameter such as `device float* x [[buffer(0)]]`, got {declared!r}")
    words, mark, name = found[1].split(), found[2], found[3]
    kind = " ".join(w for w in words if w not in ("device", "constant", "const", "volatile", "thread"))
    if attribute and attribute[1] != "buffer":
        function = _PLACES.get(attribute[1])
        if function is None:
            raise _refuse(f"parameters that are [[{attribute[1]}]]")
        if re.fullmatch(r"u(?:int|short)[23]", kind):
            return -1, "", "", {rf"\b{name}\s*\.\s*{axis}\b": f"{function}({d})" for d, axis in enumerate("xyz")}
        return -1, "", f" unsigned int {name} = (unsigned int){function}(0);", {}
    number = int(attribute[2]) if attribute else position
    if mark == "*":
        return number, f"{'const ' if 'const' in words or 'constant' in words else ''}{kind}* {name}", "", {}
    if mark == "&" and "constant" in words:
        return number, f"{kind} {name}", "", {}
    raise _refuse(f"parameters such as `{declared}`")


def translated(source: str) -> tuple[str, list[str]]:
    """The source in naru's dialect, and the names of its kernels. NotImplementedError for what the dialect lacks."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), re.sub(r"//[^\n]*", "", source), flags=re.DOTALL)
    text = re.sub(r"^[ \t]*(?:#include[^\n]*|using namespace metal\s*;)", "", text, flags=re.MULTILINE)
    names: list[str] = []
    head = re.compile(r"(?:\[\[\s*(?:kernel|max_total_threads_per_threadgroup\s*\(\s*\d+\s*\))\s*\]\]\s*)?(?:kernel\s+)?void\s+(\w+)\s*\(")
    place = 0
    while match := head.search(text, place):
        if "kernel" not in match[0].partition("void")[0]:
            place = match.end()
            continue
        end = _closing(text, match.end() - 1)
        given, position = [], 0
        for part in re.split(r",(?![^\[]*\]\])", text[match.end() : end]):
            if part.strip():
                given.append(_parameter(part, position))
                position += given[-1][0] >= 0
        brace = text.find("{", end)
        if brace < 0:
            raise ValueError(f"compile_shader: the kernel {match[1]} has no body")
        stop = _closing(text, brace)
        body = text[brace + 1 : stop]
        for _, _, _, words in given:
            for old, new in words.items():
                body = re.sub(old, new, body)
        parameters = ", ".join(p for number, p, _, _ in sorted(given, key=lambda g: g[0]) if number >= 0)
        lines = "\n" * text[match.start() : brace].count("\n")
        written = f"kernel void {match[1]}({parameters}){lines} {{" + "".join(begin for _, _, begin, _ in given)
        text = text[: match.start()] + written + body + text[stop:]
        names.append(match[1])
        place = match.start() + len(written)
    if not names:
        raise ValueError("compile_shader: the source has no `kernel void name(...)`")
    for pattern, what in _REFUSED.items():
        if re.search(pattern, text):
            raise _refuse(what)
    text = re.sub(r"\bthreadgroup_barrier\s*\([^)]*\)", "barrier()", text)
    text = re.sub(r"\bsimdgroup_barrier\b", "threadgroup_barrier", text)
    for old, new in (("threadgroup", "shared"), ("thread", "private")):
        text = re.sub(rf"\b{old}\b", new, text)
    text = re.sub(r"\bdevice\s+", "", text)
    functions = "|".join(_OF_FLOATS)
    text = re.sub(rf"(?<![\w.])(?:metal::)?(?:precise::|fast::)?({functions})\s*\(", r"\1f(", text)
    return re.sub(r"\bmetal::", "", text), names


class ShaderKernel:
    """A kernel of a `ShaderLibrary`. It takes tensors for buffers, and numbers for `constant T&`, in the order of their numbers."""

    def __init__(self, source: str, name: str) -> None:
        self._kernel = Kernel(source, name, None, True)

    def __call__(
        self, *args: Any, threads: int | Sequence[int] | None = None, group_size: int | Sequence[int] | None = None, arg_casts: Any = None
    ) -> None:
        """Runs it for `threads` items, by default as many as the first tensor has elements, in groups of `group_size`. `arg_casts` is ignored: the kernel
        says its numbers' types."""
        if threads is None:
            first = next((a for a in args if isinstance(a, _C.Tensor)), None)
            if first is None:
                raise ValueError("a kernel without tensors needs threads=")
            threads = first.numel()
        grid = threads if isinstance(threads, int) else tuple(threads)
        if group_size is None:
            self._kernel(*args, grid=grid)
        else:
            self._kernel(*args, grid=grid, threads=group_size if isinstance(group_size, int) else tuple(group_size))


class ShaderLibrary:
    """The kernels of a source in Metal's language, as attributes.

    Args:
        source: text in Metal's language, as far as `compile_shader` takes it.

    >>> from naru.mps import compile_shader
    >>> text = "kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 2.0f * x[i]; }"
    >>> [name for name in dir(compile_shader(text)) if not name.startswith("_")]
    ['twice']
    """

    def __init__(self, source: str) -> None:
        text, names = translated(source)
        self._kernels = {name: ShaderKernel(text, name) for name in names}

    def __getattr__(self, name: str) -> ShaderKernel:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise AttributeError(f"the source has no kernel {name!r}; it has {', '.join(kernels)}")
        return kernels[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kernels]

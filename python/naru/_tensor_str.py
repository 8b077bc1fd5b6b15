"""Printing of tensors, letter for letter as PyTorch prints them.

`tensor_str` is what `repr(tensor)` calls. Of a large tensor only the edges are read, and a tensor on a device is
copied to the host once.
"""

from __future__ import annotations

import math

from . import _C


class _PrintOptions:
    """The options that `set_printoptions` changes."""

    __slots__ = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = _PrintOptions()

_PROFILES: dict[str, tuple] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed.

    Args:
        precision: digits after the point (4).
        threshold: a tensor with more elements than this is summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters to a line (80).
        profile: "default", "short" or "full"; the other arguments override it.
        sci_mode: True or False forces scientific notation on or off; None lets the values decide.

    >>> import naru
    >>> naru.set_printoptions(precision=2)
    >>> naru.tensor([1.12345])
    tensor([1.12])
    >>> naru.set_printoptions(profile="default")
    """
    opts = PRINT_OPTS
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_PROFILES)}, got {profile!r}")
        opts.precision, opts.threshold, opts.edgeitems, opts.linewidth = _PROFILES[profile]
    if precision is not None:
        opts.precision = precision
    if threshold is not None:
        opts.threshold = threshold
    if edgeitems is not None:
        opts.edgeitems = edgeitems
    if linewidth is not None:
        opts.linewidth = linewidth
    opts.sci_mode = sci_mode


def get_printoptions() -> dict[str, object]:
    """The current options as a dict."""
    return {name: getattr(PRINT_OPTS, name) for name in _PrintOptions.__slots__}


class printoptions:
    """A context manager that sets print options and puts the old ones back at its end."""

    def __init__(self, **options: object) -> None:
        self._options = options

    def __enter__(self) -> None:
        self._saved = get_printoptions()
        set_printoptions(**self._options)  # type: ignore[arg-type]

    def __exit__(self, *exc: object) -> None:
        for name, value in self._saved.items():
            setattr(PRINT_OPTS, name, value)


def _flatten(data: object, out: list) -> list:
    if isinstance(data, list):
        for item in data:
            _flatten(item, out)
    else:
        out.append(data)
    return out


class _Style:
    """How the elements of one tensor are written: notation and column width, chosen from all elements shown."""

    def __init__(self, values: list, floating: bool) -> None:
        self.floating = floating
        self.width = 1
        self.template = "{}"
        self.point = False
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        precision = PRINT_OPTS.precision
        plain, sci = f"{{:.{precision}f}}", f"{{:.{precision}e}}"
        finite = [v for v in values if v != 0 and math.isfinite(v)]
        integral = all(v == math.floor(v) for v in finite)
        if not finite:  # zeros, infinities and NaN alone never ask for scientific notation
            self.template, self.point = "{:.0f}", True
            return
        low, high = min(map(abs, finite)), max(map(abs, finite))
        use_sci = high / low > 1000.0 or high > 1.0e8 or (not integral and low < 1.0e-4)
        if PRINT_OPTS.sci_mode is not None:
            use_sci = PRINT_OPTS.sci_mode
        self.point = integral and not use_sci
        self.template = sci if use_sci else "{:.0f}" if integral else plain
        self.width = max(len(self.template.format(v)) + self.point for v in finite)

    def __call__(self, value: object) -> str:
        text = self.template.format(value)
        if self.point and math.isfinite(value):  # type: ignore[arg-type]
            text += "."
        return text.rjust(self.width)


def _row(row: list, indent: int, cut: bool, style: _Style) -> str:
    """One innermost dimension, broken into lines of at most `linewidth` characters."""
    edge = PRINT_OPTS.edgeitems
    if cut:
        cells = [style(v) for v in row[:edge]] + [" ..."] + [style(v) for v in row[len(row) - edge :]]
    else:
        cells = [style(v) for v in row]
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (style.width + 2))
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _block(data: object, cuts: list[bool], indent: int, style: _Style) -> str:
    """The nested brackets of `data`; `cuts[d]` says that dimension d is shown by its edges only."""
    if not cuts:
        return style(data)
    assert isinstance(data, list)
    if len(cuts) == 1:
        return _row(data, indent, cuts[0], style)
    parts = [_block(item, cuts[1:], indent + 1, style) for item in data]
    if cuts[0]:
        edge = PRINT_OPTS.edgeitems
        parts = parts[:edge] + ["..."] + parts[len(parts) - edge :]
    return "[" + ("," + "\n" * (len(cuts) - 1) + " " * (indent + 1)).join(parts) + "]"


def _body(tensor: _C.Tensor, indent: int) -> str:
    shape = list(tensor.shape)
    edge = PRINT_OPTS.edgeitems
    cuts = [False] * len(shape)
    if tensor.numel() > PRINT_OPTS.threshold:
        for dim, size in enumerate(shape):
            if size > 2 * edge:
                cuts[dim] = True
                if edge == 0:
                    tensor = tensor.narrow(dim, 0, 0)
                else:
                    tensor = _C.cat((tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge)), dim)
    if tensor.device.type != "cpu":
        tensor = tensor.to("cpu")
    data = tensor.tolist()
    style = _Style(_flatten(data, []), tensor.is_floating_point())
    return _block(data, cuts, indent, style)


def _grad_fn_name(grad_fn: object) -> str:
    name = getattr(grad_fn, "name", None)
    text = name() if callable(name) else type(grad_fn).__name__
    return text.rsplit("::", 1)[-1]


def tensor_str(tensor: _C.Tensor, *, prefix: str = "tensor(") -> str:
    """The text of `repr(tensor)`: values, then what differs from the defaults (device, size, dtype, graph).

    >>> import naru
    >>> print(tensor_str(naru.tensor([[1.5, 2.0], [3.0, 4.0]])))
    tensor([[1.5000, 2.0000],
            [3.0000, 4.0000]])
    """
    notes: list[str] = []
    indent = len(prefix)
    if tensor.device.type != "cpu":
        notes.append(f"device='{tensor.device}'")
    default = _C.get_default_dtype()
    plain = tensor.detach()
    if tensor.device.type == "meta":
        notes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            notes.append(f"dtype={tensor.dtype}")
        body = "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            notes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            notes.append(f"dtype={tensor.dtype}")
        body = "[]"
    else:
        if tensor.dtype not in (default, _C.int64, _C.bool):
            notes.append(f"dtype={tensor.dtype}")
        body = _body(plain, indent)
    if tensor.grad_fn is not None:
        notes.append(f"grad_fn=<{_grad_fn_name(tensor.grad_fn)}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")

    text = prefix + body
    column = len(text) - text.rfind("\n") + 1
    for note in notes:
        if column + len(note) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"

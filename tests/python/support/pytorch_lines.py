"""Runs a line of code and describes the result in one line: the value, the warnings, or the error."""
import ast
import warnings

import numpy as np


def shown(value):
    if type(value).__name__ == "Tensor" or hasattr(value, "tolist") and hasattr(value, "stride"):
        return f"{_rounded(value.tolist())} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (tuple, list)) and type(value).__name__ != "Size" and value and hasattr(value[0], "tolist"):
        return "(" + ", ".join(shown(v) for v in value) + ")"
    if type(value).__name__ == "Size":
        return str(tuple(value))
    return str(value) if isinstance(value, (bool, int, float, str, tuple, type(None))) else type(value).__name__


def _rounded(value):
    """Numbers to four digits: functions of mathematics may differ in the last bit."""
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def outcome(torch, line):
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np}
    *first, last = ast.parse(line).body
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(ast.Module(first, []), line, "exec"), names)
            if isinstance(last, ast.Expr):
                text = shown(eval(compile(ast.Expression(last.value), line, "eval"), names))
            else:
                exec(compile(ast.Module([last], []), line, "exec"), names)
                text = ""
        except Exception as error:
            text = f"{type(error).__name__}: {str(error).splitlines()[0][:70].strip()}"
    return text + "".join(f" [warns: {str(w.message).splitlines()[0][:40].strip()}]" for w in warned[:1])

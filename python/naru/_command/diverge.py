"""`naru diverge`: finds the first operator of a program whose results differ in any bit between two devices or settings."""

from __future__ import annotations

import json
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
from typing import Any

from .. import _C
from ..multiprocessing._parent import before_exec
from . import screen

# Dtypes whose bytes `struct` can decode; for the others the bytes are shown.
_FORMATS = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "bool": "?"}

# What stands between two settings that a comma should separate.
_ANOTHER = re.compile(r"\s+(?=\w+=)")
_WORDS = {1: "B", 2: "H", 4: "I", 8: "Q"}  # formats that read elements as bits, by element size


def _setting(text: str) -> tuple[str, dict[str, str]]:
    """Parses "cuda:0,NARU_FUSE=0" into a device ("": the script's own) and variables. Raises ValueError with a message."""
    device, variables = "", {}
    for word in filter(None, (w.strip() for w in text.split(","))):
        name, equals, value = word.partition("=")
        if equals and _ANOTHER.search(value):
            raise ValueError(f"'{word}' has two settings; separate them by commas: {name}={_ANOTHER.sub(',', value)}")
        if equals:
            variables[name] = value.replace(";", ",")
        elif device:
            raise ValueError(f"'{text}' names two devices")
        else:
            try:
                device = str(_C.device(word))
            except RuntimeError as error:
                raise ValueError(f"'{word}' is neither a device nor NAME=VALUE") from error
    return device, variables


class _Failed(Exception):
    """A side that failed before its end; holds its error output."""


def _path(of_another: bool) -> str:
    """PYTHONPATH of a side: this naru's folder first; for another installation, which has its own naru, without this folder."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and os.path.realpath(p) != home]
    return os.pathsep.join(others if of_another else [home, *others])


def _run(program: list[str], sides: list[tuple[str, str, dict[str, str]]], folder: str, stop: int = -1) -> None:
    """Runs both sides concurrently; each writes NAME.notes in `folder`, and NAME.values if it stops at `stop`."""
    children = []
    for name, device, variables in sides:
        notes, values = (os.path.join(folder, f"{name}.{kind}") for kind in ("notes", "values"))
        command = [variables.get("python", sys.executable), "-m", "naru._command._diverge_child", notes, device, str(stop), values, *program]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": _path("python" in variables), **variables}
        children.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=before_exec()))
    said = [child.communicate()[1] for child in children]
    for (name, device, variables), child, words in zip(sides, children, said):
        if child.returncode:
            last = "\n".join(words.strip().splitlines()[-12:])
            raise _Failed(f"{name} ({_text_of(device, variables)}) ended with status {child.returncode}:\n{last}")


def _text_of(device: str, variables: dict[str, str]) -> str:
    return ", ".join(filter(None, [device, *(f"{name}={value}" for name, value in variables.items())])) or "as it is"


def first_difference(a: str, b: str) -> tuple[int, list[Any] | None, list[Any] | None]:
    """The index of the first record that differs between two files of notes, and both records (None: the file has ended). Returns (count, None,
    None) if the files are equal."""
    number = 0
    with open(a, encoding="utf-8") as left, open(b, encoding="utf-8") as right:
        for one, other in zip(left, right):
            if one != other:
                return number, json.loads(one), json.loads(other)
            number += 1
        # zip has already consumed a line of the left file that has no counterpart, so read both again.
    with open(a, encoding="utf-8") as left, open(b, encoding="utf-8") as right:
        rest = [next((json.loads(line) for i, line in enumerate(file) if i == number), None) for file in (left, right)]
    return number, rest[0], rest[1]


def _numbers(kept: dict[str, Any]) -> list[Any] | None:
    kind, data = kept["dtype"], kept["bytes"]
    if kind == "bfloat16":
        return list(struct.unpack(f"<{len(data) // 2}f", b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))))
    if kind not in _FORMATS:
        return None
    return list(struct.unpack(f"<{len(data) // kept['size']}{_FORMATS[kind]}", data))


def _place(index: int, shape: list[int]) -> str:
    out: list[int] = []
    for n in reversed(shape):
        out.insert(0, index % n)
        index //= n
    return str(out)


def compared(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Compares two results of one shape: number of differing elements, the first of them, and the greatest difference."""
    size, left, right = a["size"], a["bytes"], b["bytes"]
    if size in _WORDS:
        words = memoryview(left).cast(_WORDS[size]), memoryview(right).cast(_WORDS[size])
        differ = [i for i, (x, y) in enumerate(zip(*words)) if x != y]
    else:
        differ = [i for i in range(len(left) // size) if left[i * size : (i + 1) * size] != right[i * size : (i + 1) * size]]
    out: dict[str, Any] = {"dtype": a["dtype"], "shape": a["shape"], "elements": len(left) // size, "differ": len(differ)}
    if not differ:
        return out
    first = differ[0]
    numbers = _numbers(a), _numbers(b)
    out["first"] = {"at": _place(first, a["shape"])}
    for side, data, values in zip("ab", (left, right), numbers):
        bits = "0x" + data[first * size : (first + 1) * size][::-1].hex()
        out["first"][side] = {"bits": bits, "value": None if values is None else values[first]}
    if numbers[0] is not None and numbers[1] is not None:
        out["largest"] = max(abs(float(numbers[0][i]) - float(numbers[1][i])) for i in differ)
    return out


def _tensor_text(kept: dict[str, Any]) -> str:
    values = _numbers(kept)
    known = [v for v in values or () if v == v]  # without NaN
    text = f"{kept['dtype']} {kept['shape']}"
    return f"{text}, from {min(known):.9g} to {max(known):.9g}" if known else text


def diverge(program: list[str], a: str, b: str) -> dict[str, Any]:
    """Runs a program (as for `naru run`) twice and finds the first operator whose results differ in any bit.

    Each side is a device, environment variables, or both: "cpu", "cuda:0", "cpu,NARU_FUSE=0"; python=PATH is the interpreter of another
    installation. All of the script's tensors are placed on a side's device, whatever the script says; without a device they are where the script
    puts them. Operators are those called from Python, the nodes of backward() and the steps of optimizers; each runs unfused.

    Returns:
        "same": number of operators with equal bits; "operator": None if all are equal, else a dict with name, line, "inputs" and "results". "why"
            is "bits", "program" (the other side called another operator, line or shape, which is in "other") or "end" (one side ended earlier).

    Raises:
        ValueError: for a side that is neither a device nor variables. RuntimeError: if the script fails, with its error output.
    """
    sides = [(name, *_setting(text)) for name, text in (("a", a), ("b", b))]
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, f"{name}.notes") for name in "ab"]
        failed: _Failed | None = None
        try:
            try:
                _run(program, sides, folder)
            except _Failed as error:  # an earlier difference may be the cause
                failed = error
            number, left, right = first_difference(*files) if all(map(os.path.exists, files)) else (0, None, None)
            if failed and (left is None or right is None):
                raise failed
            found: dict[str, Any] = {"program": " ".join(program), "a": _text_of(*sides[0][1:]), "b": _text_of(*sides[1][1:]), "same": number, "operator": None}
            if left is None and right is None:
                return found
            shown = left or right
            assert shown is not None
            found["operator"] = {"name": shown[0], "line": shown[1]}
            if left is None or right is None:
                found["why"] = "end"
                return found
            if left[:3] != right[:3] or [out[:2] for out in left[3]] != [out[:2] for out in right[3]]:
                found["why"], found["other"] = "program", {"name": right[0], "line": right[1]}
                return found
            found["why"] = "bits"
            _run(program, sides, folder, stop=number)
        except _Failed as error:
            raise RuntimeError(str(error)) from None
        kept = []
        for name in "ab":
            with open(os.path.join(folder, f"{name}.values"), "rb") as file:
                kept.append(pickle.load(file))
    found["operator"]["inputs"] = [
        ("" if t["bytes"] == other["bytes"] else "NOT the same in both, though no operator that was seen made it: ") + _tensor_text(t)
        for t, other in zip(kept[0]["inputs"], kept[1]["inputs"])
    ]
    found["operator"]["results"] = [compared(*pair) for pair in zip(kept[0]["outputs"], kept[1]["outputs"])]
    return found


def text_of(found: dict[str, Any]) -> str:
    """The result as text for people."""
    head = f"naru diverge {found['program']}: a = {found['a']}, b = {found['b']}"
    operator = found["operator"]
    if operator is None:
        return f"{head}\nall {found['same']} operators gave the same bits"
    where = operator["line"] or "(a line of the library)"
    lines = [head, f"{found['same']} operators gave the same bits; the next is", f"  {operator['name']} at {where}"]
    if found["why"] == "end":
        return "\n".join([*lines, "which only one of both runs came to"])
    if found["why"] == "program":
        other = found["other"]
        return "\n".join([*lines, f"in a, and {other['name']} at {other['line']} in b, or its sizes differ: the program goes another way there"])
    lines += [f"  input {i}: {text}" for i, text in enumerate(operator["inputs"])]
    for i, r in enumerate(operator["results"]):
        text = f"  result {i}: {r['dtype']} {r['shape']}: "
        if not r["differ"]:
            lines.append(text + "the same bits")
            continue
        first = r["first"]
        shown = [f"{side} {first[side]['value']!r} ({first[side]['bits']})" for side in "ab"]
        most = f"; greatest difference {r['largest']:.3g}" if "largest" in r else ""
        lines.append(f"{text}{r['differ']} of {r['elements']} elements differ, first at {first['at']}: {', '.join(shown)}{most}")
    return "\n".join(lines)


def main(program: list[str], a: str, b: str, as_json: bool) -> int:
    """`naru diverge`: returns 0 if all bits are equal, 1 if not, 2 if it can't run."""
    if program[0] == "-":
        return screen.wrong("diverge", "a program on standard input can't be read twice: write it to a file")
    try:
        with screen.progress("running both sides"):
            found = diverge(program, a, b)
    except (ValueError, RuntimeError) as error:
        return screen.wrong("diverge", str(error))
    print(json.dumps(found, indent=2) if as_json else text_of(found))
    return 1 if found["operator"] else 0

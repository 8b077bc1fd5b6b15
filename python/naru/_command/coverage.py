"""`naru devices --coverage`: how each device of the machine supports each operator.

The operators are those of the instruction set, and support is queried from the backend, as on every call.
"""

from __future__ import annotations

import json
from typing import Any

from .. import _C, fallback
from .screen import say, show_table

LEGEND = (
    "native: the device does it. fallback: the cpu does it, with copies there and back. absent: an error at the call\n"
    "(NARU_FALLBACK=warn makes it a fallback). All other operators are made of these; an operator's derivative is listed where it is\n"
    "served otherwise than the operator itself."
)


def coverage() -> dict[str, Any]:
    """{"devices": [names], "operators": [{"name", "family", "devices": {device: "native", "fallback" or "absent"}}]}.

    Families: elementwise, derivative (of an elementwise operator, by one operand), internal (parts of others), reduction, scan, index,
    sort, product, type. A dtype that a device does not support is absent whatever the fallback policy.

    >>> import naru
    >>> with naru.virtual("mps", without=["sort"]):
    ...     [o["devices"]["mps:0"] for o in coverage()["operators"] if o["name"] in ("sort", "exp")]
    ['native', 'absent']
    """
    devices = [d["device"] for d in _C.devices()]
    operators: dict[str, dict[str, Any]] = {}
    for device in devices:
        otherwise = "absent" if fallback.get_policy(device.partition(":")[0]) == "error" else "fallback"
        for name, family, supported in _C._coverage(device):
            served = "native" if supported else "absent" if family == "type" else otherwise
            operators.setdefault(name, {"name": name, "family": family, "devices": {}})["devices"][device] = served
    return {"devices": devices, "operators": list(operators.values())}


_COLOURS = {"native": "green", "fallback": "yellow", "absent": "red"}


def show_coverage() -> None:
    """Prints one line per operator, one column per device, and a summary line."""
    found = coverage()
    served = {o["name"]: o["devices"] for o in found["operators"]}
    rows: list[tuple[str, ...]] = [("operator", "family", *found["devices"])]
    counts: dict[str, dict[str, int]] = {device: {} for device in found["devices"]}
    for o in found["operators"]:
        if o["family"] == "derivative" and o["devices"] == served[o["name"].partition("'")[0]]:
            continue
        rows.append((o["name"], o["family"], *o["devices"].values()))
        for device, how in o["devices"].items():
            counts[device][how] = counts[device].get(how, 0) + 1
    show_table(rows, lambda cell: _COLOURS.get(cell, ""))
    say("")
    for device, count in counts.items():
        say(f"{device}: " + ", ".join(f"{n} {how}" for how, n in count.items()))
    say("\n" + LEGEND)


def coverage_json() -> str:
    """`coverage()` as JSON."""
    return json.dumps(coverage(), indent=2)

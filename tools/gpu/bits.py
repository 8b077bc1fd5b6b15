"""Compares every operator case of naru.testing.operator_cases on a device, forward and gradients, bit for bit with the cpu.

    python bits.py K/N OUT.jsonl [--device cuda:0] [--seconds S] [--names FILE] [--resume] [--library]

Runs the K-th of N shares. Each case writes a line of JSON immediately: {"case", "what": "bits" | "close" | "WRONG" | "ERROR" | "LOST" | "CRASHED" |
"not run", "ms", "text"}. Deterministic algorithms are on, so that naru's own kernels run; --library turns them off, and results are compared with
float64 within the cases' bounds. A case that loses the device ends the process with status 3; --resume continues after it, and after a case that
crashed the process.
"""

import argparse
import json
import sys
import time
import traceback
from pathlib import Path

BEGUN = time.monotonic()
import naru  # noqa: E402
import numpy as np  # noqa: E402
from naru.testing.operator_cases import CASES, compare, on_device, result_bits  # noqa: E402


def difference(ours, theirs):
    """Describes the first difference between the bytes of two lists of results; '' if there is none."""
    text = ""
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x == y:
            continue
        if len(x) != len(y):
            text += f"result {i}: {len(x)} and {len(y)} bytes; "
            continue
        at = np.flatnonzero(np.frombuffer(x, np.uint8) != np.frombuffer(y, np.uint8))
        word = at[0] // 4 * 4
        text += f"result {i}: {len(at)} of {len(x)} bytes, first at byte {at[0]}: {x[word : word + 8].hex()} {y[word : word + 8].hex()}; "
    return text


def run(case, device, library):
    """Runs a case; returns its outcome and a text about it."""
    with naru.fallback.policy("count"):
        if library:
            arrays = case.operands(1)
            for dtype in (naru.float32, naru.float64):
                compare(case, case.run(*on_device(arrays, device, dtype)), arrays, dtype)
            return "close", ""
        naru.use_deterministic_algorithms(True)
        try:
            text = difference(result_bits(case), result_bits(case, device))
        finally:
            naru.use_deterministic_algorithms(False)
        return "WRONG" if text else "bits", text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("share")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--names", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--library", action="store_true")
    a = parser.parse_args()
    k, n = map(int, a.share.split("/"))
    wanted = set(a.names.read_text().split("\n")) if a.names else None
    mine = [c for i, c in enumerate(CASES) if i % n == k and (not wanted or c.name in wanted)]
    now = a.out.with_suffix(".now")  # the case in progress
    known = [json.loads(line) for line in a.out.read_text().splitlines()] if a.resume and a.out.exists() else []
    with open(a.out, "a" if a.resume else "w", buffering=1) as out:

        def say(**row):
            known.append(row)
            out.write(json.dumps(row) + "\n")

        if a.resume and now.exists() and (name := now.read_text()) not in ("", *(r["case"] for r in known)):
            say(case=name, what="CRASHED", ms=0, text="the process ended in it")
        done = {r["case"] for r in known}
        for case in mine:
            if case.name in done:
                continue
            start = time.monotonic()
            if start - BEGUN > a.seconds:
                say(case=case.name, what="not run", ms=0, text="")
                continue
            now.write_text(case.name)
            try:
                what, text = run(case, a.device, a.library)
            except Exception as error:  # noqa: BLE001
                what = "LOST" if "was lost" in str(error) else "ERROR"
                text = f"{type(error).__name__}: {error} | {traceback.format_exc().strip().splitlines()[-3:]}"[:1500]
            say(case=case.name, what=what, ms=round(1e3 * (time.monotonic() - start)), text=text)
            if what == "LOST":
                return 3
    now.write_text("")
    wrong = [r for r in known if r["what"] not in ("bits", "close", "not run")]
    print(f"{sum(r['what'] in ('bits', 'close') for r in known)} right, {len(wrong)} not, {sum(r['what'] == 'not run' for r in known)} not run")
    for r in wrong[:20]:
        print(f"  {r['what']} {r['case']}: {r['text'][:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

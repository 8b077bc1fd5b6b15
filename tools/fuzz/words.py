"""What the programs of the corpus may use without a word of their own."""

from __future__ import annotations

import gc
import io
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import naru

from ..sanitized import SANITIZED

ONES = b"\0\0\x80?" * 4  # four of float32


def kernel(body: str, name: str = "k", params: str = "const float* a, float* o", before: str = "") -> Any:
    """A kernel of the user's, of which only this is worth saying."""
    return naru.kernel(f"{before}\nkernel void {name}({params}) {{ {body} }}", name)


def archive(pickle: bytes, records: Mapping[str, bytes] | None = None) -> io.BytesIO:
    """A file as torch.save writes it, with this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("archive/data.pkl", pickle)
        z.writestr("archive/version", "3\n")
        z.writestr("archive/byteorder", "little")
        for name, record in (records or {}).items():
            z.writestr("archive/" + name, record)
    file.seek(0)
    return file


def text(word: str) -> bytes:
    """A text within a pickle."""
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def tensor(shape: Sequence[int], stride: Sequence[int], offset: int = 0, numel: int = 4, key: str = "0", kind: str = "FloatStorage") -> bytes:
    """The pickle of a tensor, true or not."""

    def number(i: int) -> bytes:
        digits = i.to_bytes((i.bit_length() + 8) // 8 or 1, "little", signed=True)
        return b"\x8a" + bytes([len(digits)]) + digits

    def numbers(t: Sequence[int]) -> bytes:
        return b"(" + b"".join(map(number, t)) + b"t"

    storage = b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + text("cpu") + number(numel) + b"tQ"
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(shape) + numbers(stride)
            + b"\x89ccollections\nOrderedDict\n)RtR.")  # fmt: skip


def ends(program: str) -> None:
    """Runs a program to its end, which is what may go wrong."""
    # One arena for all threads: the limit is on addresses.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, env=env)
    if done.returncode or "terminate called" in done.stderr or "Fatal" in done.stderr:
        raise SystemError(f"ended with {done.returncode}: {done.stderr[-200:]}")


def keeps_nothing(f: Callable[[], object], times: int = 3000) -> None:
    """Calls f often, which has no more memory in the end than at first. As often as it takes for what is kept to outgrow the slabs that memory comes
    in, and for what warms up to end."""

    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096

    for _ in range(times // 2):
        f()
    before = resident()
    for _ in range(times):
        f()
    if not SANITIZED and (kept := resident() - before) > times * 2048:
        raise SystemError(f"keeps {kept // times} bytes a call")



WORDS = {w.__name__: w for w in (kernel, archive, text, tensor, ends, keeps_nothing)} | {"ONES": ONES}

"""`naru bench`: measures products of square matrices, copies and launches on each device, for naru and other libraries.

Each library has a small adapter object; what is measured, and how, is written once. Other libraries run in a separate process: `python -m
naru._command.bench LIBRARY SIZE DTYPE REPEAT [DEVICE ...]` prints their rows as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

DTYPES = ("float32", "float64", "float16", "bfloat16")
PEERS = ("numpy", "torch", "mlx")
LAUNCHES = 500
COPY_BYTES = 256 << 20


def seconds_of(work: Callable[[], object], wait: Callable[[], object], rounds: int = 3) -> float:
    """The minimum time of `work` followed by `wait`, in seconds, after one warm-up run. Runs at least `rounds` times and for at least 100 ms."""
    work()
    wait()
    best, begun = float("inf"), time.perf_counter()
    while rounds > 0 or time.perf_counter() - begun < 0.1:
        start = time.perf_counter()
        work()
        wait()
        best, rounds = min(best, time.perf_counter() - start), rounds - 1
    return best


def measure(side: Any, device: str, size: int, dtype: str, repeat: int) -> dict[str, Any]:
    """Measures one device: products (seconds each), copies (bytes per second), launches (seconds). A value that the library cannot provide is None."""
    wait = lambda: side.wait(device)  # noqa: E731
    a, b = side.random(device, size, dtype), side.random(device, size, dtype)
    seconds = seconds_of(lambda: [side.product(a, b) for _ in range(repeat)], wait, 2)
    operations = 2 * size**3 * repeat
    row: dict[str, Any] = {"library": side.name, "version": side.version, "device": device, "name": side.device_name(device)}
    row["product"] = {"seconds": seconds, "count": repeat, "tflops": operations / seconds / 1e12, "error": side.error(a, b)}
    count = max(1, min(COPY_BYTES, size * size * 4) // 4)
    row["copy"] = {name: {"bytes": 4 * count, "seconds": s, "gb_per_s": 4 * count / s / 1e9} for name, s in side.copies(device, count)}
    row["launch"] = side.launches(device)
    return row


class Torch:
    """Adapter for naru and PyTorch, which share their API."""

    def __init__(self, library: Any, name: str) -> None:
        self.torch, self.name, self.version = library, name, str(library.__version__)

    def devices(self) -> list[str]:
        cuda = [f"cuda:{i}" for i in range(self.torch.cuda.device_count())]
        return ["cpu", *cuda, *(["mps"] if self.torch.backends.mps.is_available() else [])]

    def device_name(self, device: str) -> str:
        return self.torch.cuda.get_device_name(device) if device.startswith("cuda") else ""

    def wait(self, device: str) -> None:
        kind = device.partition(":")[0]
        if kind != "cpu":
            module = getattr(self.torch, kind)
            module.synchronize(*([device] if kind != "mps" else []))

    def random(self, device: str, size: int, dtype: str) -> Any:
        return self.torch.randn(size, size, device=device).to(getattr(self.torch, dtype))

    def product(self, a: Any, b: Any) -> Any:
        return a @ b

    def error(self, a: Any, b: Any) -> float:
        """The maximum error of a sample of rows, relative to the largest element, compared with float64 on the cpu."""
        rows = slice(None, None, max(1, len(a) // 4))
        got, wanted = (a @ b)[rows].cpu().double(), a[rows].cpu().double() @ b.cpu().double()
        return float((got - wanted).abs().max() / wanted.abs().max())

    def copies(self, device: str, count: int) -> Iterator[tuple[str, float]]:
        there, host = self.torch.zeros(count, device=device), self.torch.zeros(count)
        wait = lambda: self.wait(device)  # noqa: E731
        other = self.torch.ones(count, device=device)
        yield "within", seconds_of(lambda: other.copy_(there), wait, 5)
        if device == "cpu":
            return
        for kind, memory in (("pageable", host), ("pinned", self._pinned(host))):
            if memory is not None:
                yield f"to_device_{kind}", seconds_of(lambda m=memory: there.copy_(m, non_blocking=True), wait, 5)
                yield f"to_host_{kind}", seconds_of(lambda m=memory: m.copy_(there, non_blocking=True), wait, 5)

    def _pinned(self, host: Any) -> Any:
        try:
            return host.pin_memory()
        except (RuntimeError, NotImplementedError):
            return None

    def launches(self, device: str) -> dict[str, float]:
        """Time per small in-place addition, unfused: back to back, and with a wait after each."""
        x, y = self.torch.zeros(1000, device=device), self.torch.zeros(1000, device=device)
        wait = lambda: self.wait(device)  # noqa: E731

        def queued() -> None:
            for _ in range(LAUNCHES):
                x.add_(y)

        def waited() -> None:
            for _ in range(LAUNCHES):
                x.add_(y)
                wait()

        return {"queued_seconds": seconds_of(queued, wait) / LAUNCHES, "synchronous_seconds": seconds_of(waited, wait) / LAUNCHES}


class Naru(Torch):
    """Adapter for naru on every device of the machine, with fusion off."""

    def __init__(self) -> None:
        import naru

        super().__init__(naru, "naru")

    def devices(self) -> list[str]:
        return [d["device"] for d in self.torch._C.devices()]

    def device_name(self, device: str) -> str:
        return self.torch._C.device_name(device)

    def wait(self, device: str) -> None:
        self.torch._C.synchronize(device)

    def launches(self, device: str) -> dict[str, float]:
        before = self.torch._C.set_fusion(False)
        try:
            return super().launches(device)
        finally:
            self.torch._C.set_fusion(before)

    def _pinned(self, host: Any) -> Any:
        return host.pin_memory()


class Arrays:
    """Adapter for NumPy and MLX. No copies are measured: NumPy has no device, MLX's memory is shared."""

    name = "numpy"

    def __init__(self) -> None:
        import numpy

        self.numpy, self.version = numpy, str(numpy.__version__)

    def devices(self) -> list[str]:
        return ["cpu"]

    def device_name(self, device: str) -> str:
        return ""

    def wait(self, device: str) -> None:
        pass

    def random(self, device: str, size: int, dtype: str) -> Any:
        if dtype not in ("float32", "float64"):
            raise RuntimeError(f"NumPy has no products of {dtype} by a library")
        return self.numpy.random.default_rng(0).standard_normal((size, size)).astype(dtype)

    def product(self, a: Any, b: Any) -> Any:
        return a @ b

    def error(self, a: Any, b: Any) -> float:
        rows = slice(None, None, max(1, len(a) // 4))
        got, wanted = self.numpy.asarray(a @ b, "float64")[rows], self.numpy.asarray(a[rows], "float64") @ self.numpy.asarray(b, "float64")
        return float(abs(got - wanted).max() / abs(wanted).max())

    def copies(self, device: str, count: int) -> Iterator[tuple[str, float]]:
        a, b = self.numpy.zeros(count, "float32"), self.numpy.ones(count, "float32")
        yield "within", seconds_of(lambda: self.numpy.copyto(b, a), lambda: None, 5)

    def launches(self, device: str) -> dict[str, float]:
        x, y = self.numpy.zeros(1000, "float32"), self.numpy.zeros(1000, "float32")

        def work() -> None:
            for _ in range(LAUNCHES):
                self.numpy.add(x, y, out=x)

        seconds = seconds_of(work, lambda: None) / LAUNCHES
        return {"queued_seconds": seconds, "synchronous_seconds": seconds}


class Mlx(Arrays):
    """Adapter for MLX on its default device. MLX is lazy, so results are evaluated explicitly."""

    name = "mlx"

    def __init__(self) -> None:
        super().__init__()
        import mlx.core as mx

        self.mx, self.version = mx, str(getattr(mx, "__version__", "?"))

    def devices(self) -> list[str]:
        return ["mps" if "gpu" in str(self.mx.default_device()).lower() else "cpu"]

    def wait(self, device: str) -> None:
        self.mx.synchronize()

    def random(self, device: str, size: int, dtype: str) -> Any:
        return self.mx.random.normal((size, size)).astype(getattr(self.mx, dtype))

    def product(self, a: Any, b: Any) -> Any:
        self.mx.eval(c := a @ b)
        return c

    def error(self, a: Any, b: Any) -> float:
        return super().error(*(self.numpy.array(x.astype(self.mx.float32)) for x in (a, b)))

    def copies(self, device: str, count: int) -> Iterator[tuple[str, float]]:
        return iter(())

    def launches(self, device: str) -> dict[str, float]:
        x = self.mx.zeros(1000)

        def work() -> None:
            for _ in range(LAUNCHES):
                self.mx.eval(x + 1)

        seconds = seconds_of(work, self.mx.synchronize) / LAUNCHES
        return {"queued_seconds": seconds, "synchronous_seconds": seconds}


def _peer_side(library: str) -> Any:
    if library == "torch":
        import torch

        return Torch(torch, "torch")
    return {"numpy": Arrays, "mlx": Mlx}[library]()


def peer(library: str, size: int, dtype: str, repeat: int, devices: list[str] | None = None) -> tuple[list[dict[str, Any]], str]:
    """Measures another library in a child process: returns its rows, and the reason if there are none or too few. devices: if given, only these
    (naru's names)."""
    if importlib.util.find_spec(library) is None:
        return [], "not installed in this Python"
    # Run the file directly, so that the other library is measured without naru loaded.
    command = [sys.executable, os.path.abspath(__file__), library, str(size), dtype, str(repeat), *(devices or ())]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONSAFEPATH": "1"})
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return rows, "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]


if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
    _side = _peer_side(sys.argv[1])
    for _device in _side.devices():
        if sys.argv[5:] and not {_device, f"{_device}:0"} & set(sys.argv[5:]):
            continue
        print(json.dumps(measure(_side, _device, int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))), flush=True)

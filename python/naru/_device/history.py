"""Memory history: what held how much of a device's memory, when, for what, and from which line; as a page, a trace, or PyTorch's snapshot."""

from __future__ import annotations

import json
import threading
import time
import weakref
from bisect import bisect_right
from pathlib import Path
from typing import Any

from .. import _C
from .._serialization.atomic_file import atomic_file
from ._history_files import Offsets, chrome_trace, snapshot, write_page
from .memory import as_device

_FIELDS = ("seconds", "bytes", "number", "allocated", "reserved", "operator", "line", "role", "address", "context")

_recorded: set[str] = set()  # the devices being recorded


class _Watch:
    """Context of allocations while memory is recorded: active modules by path, optimizer steps, and the owners of tensors."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, str]] = []  # seconds, on the clock of perf_counter
        self.names: list[tuple[float, int, str]] = []  # time, address of a tensor's memory, the tensor's name
        self._paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._parameters: dict[int, str] = {}
        self._here = threading.local()
        self._handles: list[Any] = []
        self._step = 0

    def start(self) -> None:
        from ..nn.modules import _global_hooks as modules
        from ..optim import _optimizer_hooks as optimizers

        self._handles = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        _C._memory_within("")

    def _stack(self) -> list[str]:
        if not hasattr(self._here, "stack"):
            self._here.stack = []
        return self._here.stack

    def _enter(self, module: Any, args: Any) -> None:
        stack = self._stack()
        if not stack and module not in self._paths:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._paths[inner] = f"{root}.{name}" if name else root
            for name, parameter in module.named_parameters():
                self._parameters[id(parameter)] = f"{root}.{name}"
                self._call(parameter, f"{root}.{name}", "parameter")
        stack.append(self._paths.get(module) or type(module).__name__)
        _C._memory_within(stack[-1])

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        stack = self._stack()
        if stack:
            stack.pop()
        _C._memory_within(stack[-1] if stack else "")

    def _call(self, tensor: Any, name: str, role: str) -> None:
        if isinstance(tensor, _C.Tensor):
            _C._mark_memory(tensor, role)
            if address := _C._memory_address(tensor):
                self.names.append((time.perf_counter(), address, name))

    def _name(self, parameter: Any) -> str:
        return self._parameters.get(id(parameter), "a parameter")

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        _C._memory_within(f"{type(optimizer).__name__}.step")
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._call(parameter, self._name(parameter), "parameter")
                if parameter.grad is not None:
                    self._call(parameter.grad, "gradient of " + self._name(parameter), "gradient")

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        _C._memory_within("")
        for parameter, state in optimizer.state.items():
            for key, value in state.items() if isinstance(state, dict) else ():
                self._call(value, f"{key} of {self._name(parameter)}", "optimizer state")
        self._step += 1
        self.mark(f"step {self._step}")

    def mark(self, text: str) -> None:
        self.steps.append((time.perf_counter(), text))


class memory_history:
    """Records the allocations of devices in a block; `page(path)` shows them as one self-contained HTML page.

    For each allocation it keeps the category (parameter, gradient, activation: saved for backward, optimizer state), the module
    being called, and the call stack. Optimizer steps are marked. There is no cost unless a history is being recorded.

    Args:
        device: a device, or a list of devices; None: the current one of the best kind.
        name: the name of this run in pages and files.

    >>> import naru
    >>> with naru.memory_history("cpu") as h:
    ...     x = naru.ones(1 << 20); x = x + 1; _ = x.sum().item()
    >>> max(e["bytes"] for e in h.events) >= 4 << 20
    True
    """

    def __init__(self, device: Any = None, name: str = "") -> None:
        devices = device if isinstance(device, (list, tuple)) else [device]
        self.devices = list(dict.fromkeys(_C.device(_C._describe_device(as_device(d))["device"]) for d in devices))  # with their indices
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.steps: list[tuple[float, str]] = []
        self._slabs: dict[str, list[tuple[float, int, int]]] = {}
        self._watch: _Watch | None = None
        self._contexts: dict[int, Any] = {}

    @property
    def device(self) -> Any:
        """The first device."""
        return self.devices[0]

    def __enter__(self) -> memory_history:
        for device in self.devices:
            if str(device) in _recorded:
                raise RuntimeError(f"memory_history: a history of {device} is being recorded already (by memory_history, or by a profiler with profile_memory)")
            _C.synchronize(device)
        _recorded.update(map(str, self.devices))
        _C._record_memory_contexts(True)
        self._watch = _Watch()
        self._watch.start()
        self._began, self._wall = time.perf_counter(), time.time()
        for device in self.devices:
            _C._record_memory_history(device, True)
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._watch is not None
        self._watch.stop()
        _C._record_memory_contexts(False)
        _recorded.difference_update(map(str, self.devices))
        try:
            self._update()
        finally:
            self._watch = None
            for device in self.devices:
                _C._record_memory_history(device, False)

    def _update(self) -> None:
        """Fetches what has been recorded so far, within the block."""
        watch = self._watch
        if watch is None:
            return
        self.events = []
        for device in self.devices:
            _C.synchronize(device)
            events, self._slabs[str(device)] = _C._memory_history(device)
            found = [dict(zip(_FIELDS, event)) for event in events]
            self._name_blocks(found, watch)
            for event in found:
                event["device"] = str(device)
            self.events += found
        self.steps = [(at - self._began, text) for at, text in watch.steps]

    def _name_blocks(self, events: list[dict[str, Any]], watch: _Watch) -> None:
        """Adds names to events, by which block was at an address when the name was recorded; and the recorded contexts."""
        at: dict[int, list[tuple[float, int]]] = {}
        for event in events:
            if event["bytes"] > 0:
                at.setdefault(event["address"], []).append((event["seconds"], event["number"]))
            if event["context"] not in self._contexts:
                self._contexts[event["context"]] = _C._memory_context(event["context"])
        names: dict[int, str] = {}
        for when, address, name in watch.names:
            blocks = at.get(address, [])
            if i := bisect_right(blocks, (when - self._began, 1 << 62)):
                names[blocks[i - 1][1]] = name
        for event in events:
            within, backward, stack = self._contexts[event["context"]] or ("", False, [])
            event.update(name=names.get(event["number"], ""), within=within, backward=backward, stack=stack)

    def mark(self, text: str) -> None:
        """Marks this point in time on the page; optimizer steps are marked automatically."""
        if self._watch is None:
            raise RuntimeError("memory_history.mark: it is called within the block that is recorded")
        self._watch.mark(text)

    def _of(self, device: Any) -> list[dict[str, Any]]:
        return [event for event in self.events if event["device"] == str(device)]

    def holders(self) -> list[tuple[str, int, int]]:
        """(line and operator, peak bytes, allocations), the greatest first."""
        self._update()
        found = [h for d in self.devices for h in _C._memory_holders([tuple(event[f] for f in _FIELDS[:7]) for event in self._of(d)])]
        return sorted(found, key=lambda h: -h[1])

    def run(self) -> dict[str, Any]:
        """The data of this history in pages and files: a run, in the format described at the top of src/runtime/profile/page.html."""
        self._update()
        steps = [[at * 1e3, text] for at, text in self.steps]
        panels = []
        for device in self.devices:
            events = self._of(device)
            offsets = Offsets(events, self._slabs.get(str(device), []))
            places: dict[Any, int] = {}
            rows = []
            for e in events:
                key = (e["line"], e["operator"], e["role"], e["name"], e["within"], e["backward"], e["context"] // 2)
                place = places.setdefault(key, len(places))
                rows.append([round(e["seconds"] * 1e3, 6), e["bytes"], e["number"], e["allocated"], e["reserved"], place, offsets(e["address"])])
            names = ("line", "op", "role", "name", "within", "backward")
            kept = [{**dict(zip(names, key)), "stack": (self._contexts.get(2 * key[-1]) or self._contexts.get(2 * key[-1] + 1) or ("", 0, []))[2]} for key in places]
            panels.append({"kind": "memory", "device": str(device), "places": kept, "events": rows, "steps": steps})
        return {"name": self.name, "panels": panels}

    def page(self, path: str | Path) -> Path:
        """Writes the page: bytes over time by category, each block at its address, the largest holders, and what would lower the peak."""
        return write_page(path, f"naru: memory of {', '.join(map(str, self.devices))}", [self.run()])

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON, for a later `memory_history.compare`, possibly in another process."""
        with atomic_file(path, "w", encoding="utf-8") as file:
            json.dump({"format": "naru memory history", "version": 1, "run": self.run()}, file)
        return Path(path)

    @staticmethod
    def compare(path: str | Path, *histories: memory_history | str | Path) -> Path:
        """Writes one page for several runs, or for the ranks of one: histories, or files that `save` wrote. The page lists what grew from the first
        to the last, by line.

        >>> import naru, tempfile, os
        >>> with naru.memory_history("cpu", "small") as a: _ = naru.ones(1 << 18)
        >>> with naru.memory_history("cpu", "large") as b: _ = naru.ones(1 << 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = naru.memory_history.compare(os.path.join(folder, "both.html"), a, b)
        """
        runs = []
        for history in histories:
            if isinstance(history, memory_history):
                runs.append(history.run())
                continue
            with open(history, encoding="utf-8") as file:
                saved = json.load(file)
            if not isinstance(saved, dict) or saved.get("format") != "naru memory history":
                raise ValueError(f"memory_history.compare: '{history}' is no file of memory_history.save")
            runs.append({**saved["run"], "name": saved["run"]["name"] or Path(history).stem})
        if not runs:
            raise ValueError("memory_history.compare: wanted at least one history or file of one")
        for i, run in enumerate(runs):
            run["name"] = run["name"] or f"run {i + 1}"
        return write_page(path, f"naru: memory of {len(runs)} runs", runs)

    def export_chrome_trace(self, path: str | Path) -> Path:
        """Writes bytes by category as counters, and the steps, in Chrome's trace format for Perfetto (ui.perfetto.dev) and chrome://tracing;
        gzipped if the name ends with .gz."""
        self._update()
        return chrome_trace(self, Path(path))

    def snapshot(self) -> dict[str, Any]:
        """The history in the format of PyTorch's `torch.cuda.memory._snapshot()`."""
        self._update()
        return snapshot(self)

    def dump_snapshot(self, path: str | Path) -> Path:
        """Writes `snapshot()` as PyTorch's `_dump_snapshot` does, for pytorch.org/memory_viz."""
        import pickle

        with atomic_file(path) as file:
            pickle.dump(self.snapshot(), file, protocol=4)
        return Path(path)

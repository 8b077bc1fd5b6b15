"""The child process of `naru diverge`: runs a script and records each operator's result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import sys
from typing import Any

import naru
from naru import _C
from naru._serialization.atomic_file import atomic_file
from naru.overrides import TorchFunctionMode

_PACKAGE = os.path.dirname(os.path.abspath(naru.__file__)) + os.sep
# Functions that return uninitialized memory: it is zeroed, so that leftover contents do not count as a difference.
_EMPTY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"}
# Functions that hand values to the host: their inputs have been compared already.
_TO_HOST = {"numpy", "__array__", "tolist", "item"}


def _tensors(value: Any) -> list[Any]:
    """The tensors in nested results or arguments, in order."""
    if isinstance(value, _C.Tensor):
        return [value._held() if value.is_nested else value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [t for inner in value for t in _tensors(inner)]


def _bytes(tensor: Any) -> bytes:
    if tensor.layout is not naru.strided:
        tensor = tensor.to_dense()
    return bytes(_C._bytes_of(tensor.detach().resolve_conj().cpu().contiguous()))


def _shape(tensor: Any) -> list[Any]:
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]


def _digest(tensor: Any) -> str:
    return hashlib.blake2b(_bytes(tensor), digest_size=12).hexdigest()


def _kept(tensor: Any) -> dict[str, Any]:
    """A tensor as stored in the report: dtype, shape, bytes and element size."""
    dtype, shape = _shape(tensor)
    return {"dtype": dtype, "shape": shape, "bytes": _bytes(tensor), "size": tensor.element_size()}


def _line() -> str:
    """The innermost source line outside of naru."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_PACKAGE, "<frozen")):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Recorder(TorchFunctionMode):
    """Writes a line to a file for each operator's result. `stop`: index of the operator whose inputs and outputs are saved to the file `values`,
    after which the process exits. `device`: where all of the script's tensors are placed, whatever the script says; None leaves them where it says."""

    def __init__(self, path: str, device: Any, stop: int = -1, values: str = "") -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._file = open(path, "x", encoding="utf-8")  # noqa: SIM115
        self._device, self._stop, self._values = device, stop, values
        self._count = 0
        self._made: dict[int, tuple[Any, str]] = {}  # backward nodes by id: the node, and the source line of the call that created it
        self._hooks: list[Any] = []

    def note(self, name: str, line: str, inputs: list[Any], outputs: list[Any]) -> None:
        """Records an operator that has run."""
        outputs = [t for t in outputs if t is not None and t.device.type != "meta"]
        if not outputs:
            return
        if self._count == self._stop:
            with atomic_file(self._values) as file:
                pickle.dump({"inputs": [_kept(t) for t in inputs if t is not None], "outputs": [_kept(t) for t in outputs]}, file)
            self._file.close()
            sys.stdout.flush()
            os._exit(0)
        self._count += 1
        out = [[*_shape(t), _digest(t)] for t in outputs]
        self._file.write(json.dumps([name, line, [_shape(t) for t in inputs if t is not None], out]) + "\n")

    def close(self) -> None:
        self._file.close()

    def _moved(self, name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments, with each device that the script names replaced by this run's."""
        is_to = name in ("to", "type")

        def other(value: Any) -> Any:
            if isinstance(value, _C.device) and value.type != "meta":
                return self._device
            if is_to and isinstance(value, str):
                return self._device
            return value

        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": other(_C.device(kwargs["device"]))}
        return tuple(other(a) for a in args), kwargs

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        name, kwargs = getattr(func, "__name__", str(func)), kwargs or {}
        line = _line()
        if self._device is not None:
            if name in ("cuda", "xpu"):
                func, name, args, kwargs = _C.Tensor.to, "to", (args[0], self._device), {}
            args, kwargs = self._moved(name, args, kwargs)
        if name in _TO_HOST:
            return func(args[0].cpu(), *args[1:], **kwargs) if name in ("numpy", "__array__") else func(*args, **kwargs)
        if name == "backward":
            self._watch_backward(_tensors(args[:1]))
            try:
                return func(*args, **kwargs)
            finally:
                self._made.clear()
        inputs = _tensors((args, kwargs))
        # Inputs written in place are recorded afterwards; their earlier values were some operator's result.
        kept = [t.detach().clone() for t in inputs] if self._count == self._stop and (name.endswith("_") or "out" in kwargs) else inputs
        out = func(*args, **kwargs)
        results = _tensors(out)
        if name in _EMPTY:
            with naru.no_grad():
                for t in results:
                    t.detach().zero_()
            return out
        if name == "__setitem__":
            results = inputs[:1]
        for t in results:
            if t.grad_fn is not None:
                self._made[id(t.grad_fn)] = (t.grad_fn, line)
        if not (results and name in ("__get__", "detach", "requires_grad_")):
            self.note(name, line, kept, results)
        return out

    def _watch_backward(self, roots: list[Any]) -> None:
        """Hooks each node that backward will run, which counts as an operator: its results are the gradients of the node's inputs."""
        for handle in self._hooks:
            handle.remove()
        self._hooks.clear()
        seen: set[int] = set()
        waiting = [t.grad_fn for t in roots if t.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            self._hooks.append(node.register_hook(self._hook_of(node)))
            waiting += [inner for inner, _ in node.next_functions if inner is not None]

    def _hook_of(self, node: Any) -> Any:
        name = node.name()
        line = self._made.get(id(node), (None, ""))[1]

        def hook(inputs: Any, outputs: Any) -> None:
            with naru.no_grad():
                self.note(f"{name} (backward)", line, list(outputs), list(inputs))

        return hook

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Optimizer hook: records the parameters and the optimizer state."""
        with naru.no_grad():
            params = [p for group in optimizer.param_groups for p in group["params"]]
            states = [t for p in params for t in _tensors(optimizer.state.get(p, {}))]
            self.note(f"{type(optimizer).__name__}.step", _line(), [p.grad for p in params], params + states)


def main(arguments: list[str]) -> int:
    """arguments: the output file for notes, the device ('': the script's own), the operator index to stop at (-1: none), the file for values, then
    the program and its arguments."""
    path, device, stop, values, *program = arguments
    from naru._command.program import run_program
    from naru.optim.optimizer import register_optimizer_step_post_hook

    naru.manual_seed(0)  # both runs must draw the same numbers, and the script may not set a seed
    chosen = _C.device(device) if device else None
    # Report a variable that cannot be read, or a missing device, even if the script never asks for devices.
    try:
        _C.devices()
        if chosen is not None:
            naru.ones(1, device=chosen)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    if chosen is not None:
        naru.set_default_device(chosen)
    recorder = Recorder(path, chosen, int(stop), values)
    handle = register_optimizer_step_post_hook(recorder.after_step)
    try:
        with recorder:
            return run_program("diverge", program)
    finally:
        handle.remove()
        recorder.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The safetensors format: files of named tensors that can be read without running any code. The API is that of `safetensors.torch`.

>>> import naru, os, tempfile
>>> from naru.safetensors import load_file, save_file
>>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
>>> save_file({"x": naru.arange(3)}, path, {"made by": "me"})
>>> load_file(path)
{'x': tensor([0, 1, 2])}
"""

from __future__ import annotations

import os
from typing import Any

from . import _C

Tensor = _C.Tensor

SafetensorError = ValueError
__version__ = "0.8.0"  # the version of the safetensors package whose API this is


def storage_ptr(tensor: Tensor) -> int:
    """The address of the storage of `tensor`: tensors with equal addresses share memory.

    >>> x = naru.arange(4)
    >>> naru.safetensors.storage_ptr(x) == naru.safetensors.storage_ptr(x[2:])
    True
    """
    return tensor.untyped_storage().data_ptr()


def storage_size(tensor: Tensor) -> int:
    """The size of the storage of `tensor` in bytes.

    >>> naru.safetensors.storage_size(naru.arange(4)[2:])
    32
    """
    return tensor.untyped_storage().nbytes()


def _checked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    owners: dict[int, str] = {}
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if not t.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Call .contiguous() on it first")
        if t.numel() == 0:
            continue
        other = owners.setdefault((str(t.device), t.untyped_storage().data_ptr()), name)
        if other != name:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again: "
                f"{[other, name]}. Save one of them, or a clone()"
            )
    return tensors


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Writes `tensors`, a dict of dense tensors on any device that share no memory (RuntimeError), to `filename`, with the text entries of
    `metadata`. ValueError for values that are not tensors or not contiguous.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.safetensors")
    ...     naru.safetensors.save_file({"x": naru.arange(3)}, path)
    ...     naru.safetensors.load_file(path)
    {'x': tensor([0, 1, 2])}
    """
    _C._save_safetensors(os.fspath(filename), list(_checked(tensors).items()), list((metadata or {}).items()))


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with `tensors` and the text entries of `metadata`; see `save_file`.

    >>> naru.safetensors.load(naru.safetensors.save({"x": naru.arange(3)}))
    {'x': tensor([0, 1, 2])}
    """
    return _C._to_safetensors(list(_checked(tensors).items()), list((metadata or {}).items()))


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """Loads the tensors of the file `filename` on `device`. On the CPU they are mapped from the file, and pages are read when accessed; writing
    to them does not change the file. ValueError for a file that is truncated, inconsistent, or has a dtype that naru does not have.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.safetensors")
    ...     naru.safetensors.save_file({"x": naru.ones(2), "y": naru.zeros(1)}, path)
    ...     naru.safetensors.load_file(path)
    {'x': tensor([1., 1.]), 'y': tensor([0.])}
    """
    tensors, _ = _C._load_safetensors(os.fspath(filename))
    return {name: t.to(device) for name, t in tensors}


def load(data: bytes) -> dict[str, Tensor]:
    """Loads tensors from the bytes of a file, `data`.

    >>> naru.safetensors.load(naru.safetensors.save({"x": naru.ones(2)}))
    {'x': tensor([1., 1.])}
    """
    return dict(_C._parse_safetensors(data)[0])


def save_model(model: Any, filename: str, metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Writes the state of `model` to `filename`, with the text entries of `metadata`. Of tensors that share memory one is written, and the
    metadata maps the other names to it. `force_contiguous`: copy tensors that are not contiguous first.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     naru.safetensors.save_model(naru.nn.Linear(2, 1), path)
    ...     sorted(naru.safetensors.load_file(path))
    ['bias', 'weight']
    """
    kept: dict[str, Tensor] = {}
    owners: dict[Any, str] = {}
    notes = dict(metadata or {})
    for name, t in model.state_dict().items():
        place = (str(t.device), t.data_ptr(), tuple(t.shape))
        if t.numel() and place in owners:
            notes[name] = owners[place]
            continue
        owners[place] = name
        kept[name] = t.contiguous() if force_contiguous else t
    save_file(kept, filename, notes)


def load_model(model: Any, filename: str | os.PathLike, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Loads the file `filename` into `model`. Returns the missing names and the unexpected ones, either of which raise
    RuntimeError if `strict`. `device` is ignored: values are copied to where the module is.

    >>> import os, tempfile
    >>> a, b = naru.nn.Linear(2, 1), naru.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     naru.safetensors.save_model(a, path)
    ...     naru.safetensors.load_model(b, path)
    ([], [])
    >>> naru.equal(a.weight, b.weight)
    True
    """
    tensors, metadata = _C._load_safetensors(os.fspath(filename))
    state = dict(tensors)
    for name, other in metadata:
        if other in state and name not in state and name in model.state_dict():
            state[name] = state[other]
    missing, unexpected = model.load_state_dict(state, strict=strict)
    return list(missing), list(unexpected)


class PySafeSlice:
    """A `tensor` of a file that can be sliced; slices are moved to `device`.

    >>> part = naru.safetensors.PySafeSlice(naru.arange(6).reshape(2, 3), "cpu")
    >>> part.get_shape(), part.get_dtype(), part[:, 1]
    ([2, 3], 'I64', tensor([1, 4]))
    """

    def __init__(self, tensor: Tensor, device: Any) -> None:
        self._tensor, self._device = tensor, device

    def get_shape(self) -> list[int]:
        """The sizes."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """The dtype, as the file names it."""
        return {"complex64": "C64", "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
                "int8": "I8", "uint8": "U8", "bool": "BOOL"}[str(self._tensor.dtype).split(".")[-1]]  # fmt: skip

    def __getitem__(self, index: Any) -> Tensor:
        return self._tensor[index].to(self._device)


class safe_open:
    """`with safe_open("x.safetensors", framework="pt", device="cpu") as f: f.get_tensor("x")`: reads tensors of `filename` on request, on
    `device`. `framework`: "pt" (ValueError for others). `backend` is ignored.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.safetensors")
    ...     naru.safetensors.save_file({"x": naru.arange(6).reshape(2, 3)}, path)
    ...     with naru.safetensors.safe_open(path) as f:
    ...         f.keys(), f.get_slice("x")[:, :1]
    (['x'], tensor([[0],
            [3]]))
    """

    def __init__(self, filename: str | os.PathLike, framework: str = "pt", device: Any = "cpu", *, backend: Any = None) -> None:
        if framework not in ("pt", "torch", "pytorch", "naru"):
            raise ValueError(f"framework: wanted 'pt', got {framework!r}")
        tensors, metadata = _C._load_safetensors(os.fspath(filename))
        self._tensors: dict[str, Tensor] = dict(tensors)
        self._metadata: dict[str, str] = dict(metadata)
        self._device = device

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: object) -> None:
        self._tensors = {}

    def keys(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._tensors)

    def offset_keys(self) -> list[str]:
        """The names in the order of their data in the file."""
        return list(self._tensors)

    def metadata(self) -> dict[str, str] | None:
        """The file's text entries; None if there are none."""
        return dict(self._metadata) or None

    def _find(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise ValueError(f"File does not contain tensor {name}; it has {self.keys()}")
        return self._tensors[name]

    def get_tensor(self, name: str) -> Tensor:
        """Loads a tensor on the device."""
        return self._find(name).to(self._device)

    def get_slice(self, name: str) -> PySafeSlice:
        """A tensor that can be sliced: `f.get_slice("x")[:, :10]`."""
        return PySafeSlice(self._find(name), self._device)

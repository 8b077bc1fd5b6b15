"""Converts values of either library to plain data (tuples, bytes, numbers) and back. The two processes of the board exchange this data.

This module imports neither library: `pack` and `unpack` are given the library to use.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import marshal
import types
from typing import Any

import numpy as np

# The NumPy dtype of each dtype's elements in memory. Dtypes that NumPy lacks are stored as integers of the same size (complex32: two of them).
MEMORY = {
    "bool": "?", "uint8": "u1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint16": "u2", "uint32": "u4", "uint64": "u8",
    "float16": "f2", "bfloat16": "i2", "float32": "f4", "float64": "f8", "complex32": "i4", "complex64": "c8", "complex128": "c16",
}  # fmt: skip
NOT_NUMPYS = ("bfloat16", "complex32")


class CannotPack(Exception):
    """A value that cannot be converted to plain data."""


class Missing(Exception):
    """A PyTorch name that the library lacks."""


def dtype_name(dtype: Any) -> str:
    return str(dtype).split(".")[-1]


# --- tensors ----------------------------------------------------------------------------------------------------------


def memory_of(t: Any, library: Any) -> tuple[np.ndarray, int]:
    """Returns a dense tensor's storage as a 1-d array and the tensor's offset in it. Of a much larger storage only the range from the tensor's
    first to last element is kept."""
    name = dtype_name(t.dtype)
    if name not in MEMORY:
        raise CannotPack(f"dtype {name}")
    t = t.detach()
    extent = 0 if t.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    whole, offset = t.untyped_storage().nbytes() // t.element_size(), t.storage_offset()
    if whole > 4 * extent + 1024 or offset + extent > whole:
        flat, offset = t.as_strided((extent,), (1,), offset), 0
    else:
        flat = t.as_strided((whole,), (1,), 0)
    if name == "bfloat16":
        flat = flat.view(library.int16)
    elif name == "complex32":
        flat = flat.view(library.int32)
    return flat.numpy(force=True), offset


def pack_tensor(t: Any, library: Any) -> tuple[Any, ...]:
    layout = str(t.layout).split(".")[-1]
    if layout == "sparse_coo":
        d = t.detach()
        return ("coo", pack_tensor(d._indices(), library), pack_tensor(d._values(), library), tuple(t.shape), t.is_coalesced(), t.requires_grad)
    if layout == "sparse_csr":
        d = t.detach()
        return ("csr", *(pack_tensor(p, library) for p in (d.crow_indices(), d.col_indices(), d.values())), tuple(t.shape), t.requires_grad)
    if layout != "strided" or t.device.type != "cpu":
        raise CannotPack(f"a tensor of layout {layout} on {t.device}")
    if t.is_conj() or t.is_neg():
        t = t.detach().resolve_conj().resolve_neg().requires_grad_(t.requires_grad)
    memory, offset = memory_of(t, library)
    return ("tensor", dtype_name(t.dtype), tuple(t.shape), tuple(t.stride()), memory.tobytes(), t.requires_grad, offset)


def unpack_tensor(p: tuple[Any, ...], library: Any) -> Any:
    if p[0] == "coo":
        t = library.sparse_coo_tensor(unpack_tensor(p[1], library), unpack_tensor(p[2], library), p[3])
        return (t.coalesce() if p[4] else t).detach().requires_grad_(p[5])
    if p[0] == "csr":
        parts = [unpack_tensor(q, library) for q in p[1:4]]
        return library.sparse_csr_tensor(*parts, p[4]).detach().requires_grad_(p[5])
    _, name, shape, stride, data, requires_grad, offset = p
    flat = library.tensor(np.frombuffer(data, MEMORY[name]))
    if name in NOT_NUMPYS:
        flat = flat.view(getattr(library, name))
    dense = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    plain = offset == 0 and (stride == dense or flat.numel() == 0) and flat.numel() == int(np.prod(shape))
    t = flat.reshape(shape) if plain else flat.as_strided(shape, stride, offset)
    return t.detach().requires_grad_() if requires_grad else t


# --- everything else -------------------------------------------------------------------------------------------------

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class Packer:
    """Converts values of a library to plain data. Functions are stored by their public path or, if they have none, by their code."""

    def __init__(self, library: Any, paths: dict[int, str]) -> None:
        self.library, self.paths = library, paths

    def pack(self, v: Any, seen: dict[int, Any]) -> Any:
        lib = self.library
        if isinstance(v, PLAIN) and not isinstance(v, (np.generic,)) and type(v).__module__ == "builtins":
            return ("is", v)
        if isinstance(v, lib.Tensor):
            if id(v) not in seen:
                seen[id(v)] = (len(seen), v)  # keep a reference, so that the id is not reused
            return ("object", seen[id(v)][0], pack_tensor(v, lib))
        if isinstance(v, lib.Size):
            return ("size", tuple(v))
        if isinstance(v, (list, tuple)):
            fields = [n for n in dir(type(v)) if type(getattr(type(v), n)).__name__ == "member_descriptor"]
            if type(v).__module__.startswith("torch.return_types"):
                return ("named", [self.pack(x, seen) for x in v], fields)
            return (type(v).__name__ if type(v) in (list, tuple) else "tuple", [self.pack(x, seen) for x in v])
        if isinstance(v, dict):
            return ("dict", [(self.pack(k, seen), self.pack(x, seen)) for k, x in v.items()])
        if isinstance(v, slice):
            return ("slice", [self.pack(x, seen) for x in (v.start, v.stop, v.step)])
        if isinstance(v, (lib.dtype, lib.layout, lib.memory_format)):
            return ("path", str(v))
        if isinstance(v, lib.device):
            return ("device", str(v))
        if isinstance(v, np.ndarray) and v.dtype.kind in "biufc":
            return ("array", v.dtype.str, v.shape, v.tobytes())
        if isinstance(v, np.generic):
            return ("array", v.dtype.str, (), v.tobytes())
        if isinstance(v, range):
            return ("range", v.start, v.stop, v.step)
        return self.pack_callable(v, seen)

    def pack_callable(self, v: Any, seen: dict[int, Any]) -> Any:
        if id(v) in self.paths:
            return ("path", self.paths[id(v)])
        if isinstance(v, (self.library._ops.OpOverload, self.library._ops.OpOverloadPacket)):
            return ("path", f"torch.ops.{v}")
        if getattr(v, "__name__", "") == "freeze_rng_state":  # of PyTorch's tests: preserves the RNG state of devices that are not used here
            return ("path", "contextlib.nullcontext")
        if isinstance(v, types.ModuleType):
            return ("path", v.__name__)
        if isinstance(v, functools.partial):
            return ("partial", self.pack(v.func, seen), self.pack(tuple(v.args), seen), self.pack(v.keywords, seen))
        if isinstance(v, (types.BuiltinFunctionType, type)) or (isinstance(v, types.FunctionType) and not v.__module__.startswith("torch")):
            module = sys_module(v)
            if module and public(module) and functools.reduce(lambda o, n: getattr(o, n, None), v.__qualname__.split("."), importlib.import_module(module)) is v:
                return ("path", f"{module}.{v.__qualname__}")
        if isinstance(v, types.FunctionType):
            return self.pack_function(v, seen)
        if type(v).__name__.endswith("OpInfo"):  # the sample functions of decompositions read their operator's name
            return ("made", ("path", "types.SimpleNamespace"), self.pack({"name": v.name}, seen))
        if dataclasses.is_dataclass(v) and not isinstance(v, type):
            fields = {f.name: getattr(v, f.name) for f in dataclasses.fields(v) if f.init}
            return ("made", self.pack(type(v), seen), self.pack(fields, seen))
        if isinstance(v, self.library.nn.Module) and not v.state_dict():  # rebuilt from the attributes that are named like the constructor's parameters
            fields = {n: getattr(v, "norm" if n == "p" else n) for n in inspect.signature(type(v)).parameters}
            return ("made", self.pack(type(v), seen), self.pack(fields, seen))
        raise CannotPack(f"{type(v).__module__}.{type(v).__qualname__}")

    def pack_function(self, f: types.FunctionType, seen: dict[int, Any]) -> Any:
        if id(f) in seen:
            return ("again", seen[id(f)][0])
        number = len(seen)
        seen[id(f)] = (number, f)
        names = {n: f.__globals__[n] for n in sorted(names_of(f.__code__)) if n in f.__globals__}
        cells = [c.cell_contents for c in f.__closure__ or ()]
        return ("function", number, marshal.dumps(f.__code__), f.__name__, self.pack(f.__defaults__, seen), self.pack(f.__kwdefaults__, seen),
                [self.pack_if(c, seen) for c in cells], [(n, self.pack_if(x, seen)) for n, x in names.items()])

    def pack_if(self, v: Any, seen: dict[int, Any]) -> Any:
        """Packs an object that a function refers to; if that fails, stores the error, since the function may never use the object."""
        try:
            return self.pack(v, seen)
        except CannotPack as e:
            return ("unknown", str(e))


def sys_module(v: Any) -> str | None:
    return v.__module__ if isinstance(getattr(v, "__module__", None), str) else None


def public(module: str) -> bool:
    return not module.startswith("torch") or ("._" not in module and not module.startswith("torch.testing"))


def names_of(code: types.CodeType) -> set[str]:
    """All names read by a code object and those nested in it."""
    return set(code.co_names).union(*(names_of(c) for c in code.co_consts if isinstance(c, types.CodeType)))


class Unpacker:
    """Converts plain data to values of the library `name`; PyTorch's paths are resolved in that library."""

    def __init__(self, name: str) -> None:
        self.name, self.library = name, importlib.import_module(name)

    def find(self, path: str) -> Any:
        parts = path.split(".")
        if parts[0] != "torch":
            module = importlib.import_module(parts[0])
            for i in range(1, len(parts)):
                if not hasattr(module, parts[i]):
                    module = importlib.import_module(".".join(parts[: i + 1]))
                else:
                    module = getattr(module, parts[i])
            return module
        v = self.library
        for part in parts[1:]:
            try:
                v = getattr(v, part)
            except AttributeError:
                raise Missing(path) from None
        return v

    def unpack(self, p: Any, objects: dict[int, Any]) -> Any:
        kind = p[0]
        if kind == "is":
            return p[1]
        if kind == "object":
            if p[1] not in objects:
                objects[p[1]] = unpack_tensor(p[2], self.library)
            return objects[p[1]]
        if kind == "size":
            return self.library.Size(p[1])
        if kind in ("tuple", "list", "named", "slice"):
            values = [self.unpack(x, objects) for x in p[1]]
            return values if kind == "list" else slice(*values) if kind == "slice" else tuple(values)
        if kind == "dict":
            return {self.unpack(k, objects): self.unpack(x, objects) for k, x in p[1]}
        if kind == "path":
            return self.find(p[1])
        if kind == "device":
            return self.library.device(p[1])
        if kind == "array":
            return np.frombuffer(p[3], p[1]).reshape(p[2])[()]
        if kind == "range":
            return range(*p[1:])
        if kind == "partial":
            return functools.partial(self.unpack(p[1], objects), *self.unpack(p[2], objects), **self.unpack(p[3], objects))
        if kind == "made":
            return self.unpack(p[1], objects)(**self.unpack(p[2], objects))
        if kind == "layer":
            from .work import layer

            args, keywords, state, training, dtype = (self.unpack(x, objects) for x in p[2:])
            return layer(self.unpack(p[1], objects), args, keywords, state, training, dtype)
        if kind == "optimizer":
            from .work import optimizer

            return optimizer(self.unpack(p[1], objects), self.unpack(p[2], objects), self.library)
        if kind == "unknown":
            return p
        if kind == "again":
            return objects[p[1]]
        return self.unpack_function(p, objects)

    def unpack_function(self, p: Any, objects: dict[int, Any]) -> Any:
        _, number, code, name, defaults, keyword_defaults, cells, names = p
        namespace: dict[str, Any] = {"__builtins__": __builtins__}
        f = types.FunctionType(marshal.loads(code), namespace, name, None, tuple(types.CellType() for _ in cells))
        objects[number] = f
        f.__defaults__, f.__kwdefaults__ = self.unpack(defaults, objects), self.unpack(keyword_defaults, objects)
        for cell, x in zip(f.__closure__ or (), cells):
            cell.cell_contents = self.unpack(x, objects)
        for n, x in names:
            namespace[n] = self.unpack(x, objects)
        return f

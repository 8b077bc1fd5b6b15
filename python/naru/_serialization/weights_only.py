"""Reads a pickle as data: the implementation of `load(weights_only=True)`.

A pickle is a program for a small stack machine. This machine implements only opcodes that make plain data, calls only the functions in
its table, and modifies only objects that it created itself: a file can neither run code nor modify anything that outlives the load. The
size of what a file creates is bounded by the file's own length.
"""

from __future__ import annotations

import codecs
import enum
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from typing import IO, TYPE_CHECKING, Any

from .. import _C, _utils
from .allowed import MAX_INT, cut_short, new_tensor, plain_globals, refused
from .storages import LoadedStorage, StorageType

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

# Maximum nesting depth of containers. (`pickle` itself writes no more than the recursion limit.)
MAX_DEPTH = 1000
# Maximum number of elements of a structure per byte of the file, counting shared elements each time they occur.
MAX_REPEATS = 16
_FREE = 1_000_000
# Maximum number of elements of a tuple used as a key: its hash is computed at each use.
_MAX_KEY = 1000


_U16, _U32, _I32, _U64, _F64 = (struct.Struct(form) for form in ("<H", "<I", "<i", "<Q", ">d"))

# Plain types that opcodes may add to.
_DICTS = (dict, OrderedDict, Counter, defaultdict)
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset, OrderedDict, Counter, defaultdict))
_KEYS = frozenset((str, int, float, bool, complex, bytes, type(None), _C.dtype, _C.device, _C.Size, StorageType))


class WeightsOnlyUnpickler:
    """Reads one pickle as data.

    Args:
        file: open for reading, at the pickle's first byte.
        length: number of bytes from there to the end.
        storage: returns the storage for a persistent id.
        safe: additional allowed globals, by (module, name).
        encoding: for strings written by Python 2; "bytes" keeps them as bytes.
    """

    def __init__(
        self, file: IO[bytes], length: int, storage: Callable[[Any], Any], safe: dict[tuple[str, str], Any], encoding: str = "utf-8"
    ) -> None:
        self._file, self._length, self._storage, self._encoding = file, length, storage, encoding
        self._plain = plain_globals()
        self._safe = safe
        self._globals = {id(known) for table in (self._plain, safe) for known in table.values()}
        self._safe_classes = tuple(c for c in safe.values() if isinstance(c, type))
        self._bare: dict[int, type] = {}  # classes, by id, that are instantiated empty, without calling __init__, and then given a state
        self._most = MAX_REPEATS * length + _FREE
        self._memo: dict[int, Any] = {}
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        # By id, keeping the object alive while its id is used: objects made by this load, and (depth, size) of nested containers.
        self._made: dict[int, Any] = {}
        self._extents: dict[int, tuple[Any, int, int]] = {}

    def load(self) -> Any:
        """Reads the object. UnpicklingError if the pickle is invalid or not plain data, EOFError if it is cut short."""
        read, run = self._file.read, _INSTRUCTIONS
        try:
            while True:
                code = read(1)
                if code == b".":
                    if self._marks or len(self._stack) != 1:
                        raise refused("The pickle in the file is not valid: it ends with something left over.")
                    return self._stack.pop()
                instruction = run.get(code)
                if instruction is None:
                    if not code:
                        raise cut_short()
                    raise refused(f"Unsupported operand {code[0]}")
                instruction(self)
        except pickle.UnpicklingError:
            raise
        except (IndexError, KeyError, UnicodeError, struct.error) as error:
            raise refused(f"The pickle in the file is not valid: {type(error).__name__}: {error}") from error

    # --- bytes

    def _read(self, size: int) -> bytes:
        data = self._file.read(size) if size <= self._length else b""
        if len(data) != size:
            raise cut_short()
        return data

    def _number(self, form: struct.Struct) -> int:
        return form.unpack(self._read(form.size))[0]

    def _byte(self) -> int:
        data = self._file.read(1)
        if not data:
            raise cut_short()
        return data[0]

    def _line(self) -> str:
        line = self._file.readline(min(self._length, 1 << 20))
        if not line.endswith(b"\n"):
            raise refused("The pickle in the file is not valid: a line of more than 2^20 bytes.") if len(line) == 1 << 20 else cut_short()
        return line[:-1].decode("utf-8")

    def _old_text(self, data: bytes) -> Any:
        return data if self._encoding == "bytes" else data.decode(self._encoding)

    # --- containers

    def _extent(self, obj: Any) -> tuple[int, int]:
        """(depth, size) of an object."""
        if type(obj) not in _CONTAINERS:
            return 0, 1
        known = self._extents.get(id(obj))
        return (1, len(obj) + 1) if known is None else known[1:]

    def _grown(self, container: Any, items: Any) -> None:
        """Updates the extent of `container` after `items` were added to it."""
        if _CONTAINERS.isdisjoint(map(type, items)):
            return
        depth = weight = 0
        for item in items:
            if type(item) in _CONTAINERS:
                d, w = self._extent(item)
                depth, weight = max(depth, d), weight + w
        known = self._extents.get(id(container))
        # The initial extent counts the container's own elements, including those that are not containers.
        before = (1, len(container) + 1) if known is None else known[1:]
        depth, weight = max(depth + 1, before[0]), before[1] + weight
        if depth > MAX_DEPTH:
            raise refused(f"The file nests containers more than {MAX_DEPTH} deep.")
        if weight > self._most:
            raise refused(f"The file's {self._length} bytes repeat one another more than {MAX_REPEATS} times.")
        self._extents[id(container)] = (container, depth, weight)

    def _key(self, key: Any) -> Any:
        if type(key) in _KEYS or isinstance(key, (Tensor, self._safe_classes)):
            return key
        if type(key) in (tuple, frozenset) and self._extent(key)[1] <= _MAX_KEY:
            for part in key:
                self._key(part)
            return key
        raise refused(f"A {type(key).__name__} can't be a key in a file that is read as data.")

    def _items(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _push_tuple(self, count: int | None = None) -> None:
        if count is None:
            made = tuple(self._items())
        else:
            if len(self._stack) < count:
                raise IndexError("the stack is empty")
            made = tuple(self._stack[-count:])
            del self._stack[-count:]
        self._grown(made, made)
        self._stack.append(made)

    def _push_list(self) -> None:
        made = self._items()
        self._grown(made, made)
        self._stack.append(made)

    def _push_dict(self) -> None:
        items = self._items()
        self._stack.append({})
        self._set_items(items)

    def _append_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise refused(f"Can only append to lists, but got {type(target)}")
        target.extend(items)
        self._grown(target, items)

    def _add_items(self) -> None:
        items = [self._key(item) for item in self._items()]
        target = self._stack[-1]
        if type(target) is not set:
            raise refused(f"Can only add to sets, but got {type(target)}")
        target.update(items)
        self._grown(target, items)

    def _push_frozenset(self) -> None:
        made = frozenset(self._key(item) for item in self._items())
        self._grown(made, made)
        self._stack.append(made)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in _DICTS and not (isinstance(target, dict) and self._may_build(target)):
            raise refused(f"Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got {type(target)}")
        if len(items) % 2:
            raise refused("The pickle in the file is not valid: a key without a value.")
        for i in range(0, len(items), 2):
            target[self._key(items[i])] = items[i + 1]
        self._grown(target, items)

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items([key, value])

    # --- objects

    def _push_global(self, module: str, name: str) -> None:
        key = (module, name)
        if key in self._plain:
            self._stack.append(self._plain[key])
        elif key in self._safe:
            self._stack.append(self._safe[key])
        elif (known := self._mentioned(module, name)) is not None:
            self._stack.append(known)
        else:
            raise refused(
                "The file names a class or function that is not plain data, and loading it could "
                f"run anything.\n\tUnsupported global: GLOBAL {module}.{name} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
                "manager to allowlist this global if you trust this class/function, or set `weights_only=False` if you trust "
                "the file."
            )

    def _mentioned(self, module: str, name: str) -> Any:
        """The global of that name if a file may refer to it, but not call it; None otherwise."""
        return None

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise refused("The pickle in the file is not valid: a global without a name.")
        self._push_global(module, name)

    def _called(self, func: Any, args: Any, kwargs: Any = None) -> None:
        if type(args) is not tuple or (kwargs is not None and type(kwargs) is not dict):
            raise refused("The pickle in the file is not valid: arguments that are none.")
        if func in (set, frozenset, dict, OrderedDict, Counter, defaultdict):
            for part in (part for arg in args if type(arg) in (list, tuple) for part in arg):
                self._key(part if func in (set, frozenset, Counter) else part[0])  # check the key before it is hashed
        result = func(*args, **(kwargs or {}))
        if type(result) in _CONTAINERS:
            self._grown(result, [part for arg in args if type(arg) in _CONTAINERS for part in (arg.values() if isinstance(arg, dict) else arg)])
        if isinstance(func, type) and type(result) is func and not isinstance(result, enum.Enum):
            self._made[id(result)] = result
        self._stack.append(result)

    def _reduce(self) -> None:
        args, func = self._stack.pop(), self._stack.pop()
        if not callable(func) or not id(func) in self._globals:
            raise refused(f"Trying to call reduce for unrecognized function {str(func)[:80]}")
        self._called(func, args)

    def _new_object(self, kwargs: Any = None) -> None:
        args, cls = self._stack.pop(), self._stack.pop()
        if isinstance(cls, type) and id(cls) in self._bare and args == () and not kwargs:
            made = object.__new__(cls)
            self._made[id(made)] = made
            self._stack.append(made)
            return
        if cls is new_tensor or not callable(cls) or not id(cls) in self._globals:
            raise refused(f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {str(cls)[:80]}")
        if cls in self._safe_classes and type(args) is tuple:
            made = cls.__new__(cls, *args, **(kwargs or {}))
            if type(made) is cls and not isinstance(made, enum.Enum):
                self._made[id(made)] = made
            self._stack.append(made)
        else:  # plain types are made by calling their class or function
            self._called(cls, args, kwargs)

    def _new_object_with_names(self) -> None:
        self._new_object(self._stack.pop())

    def _may_build(self, obj: Any) -> bool:
        """Whether the object was made by this load, and its class allows setting a state."""
        return id(obj) in self._made and (type(obj) is OrderedDict or type(obj) in self._safe_classes or id(type(obj)) in self._bare)

    def _build(self) -> None:
        state, obj = self._stack.pop(), self._stack[-1]
        if not self._may_build(obj):
            what = f"the class or function {getattr(obj, '__name__', obj)}" if isinstance(obj, type) or callable(obj) else type(obj)
            raise refused(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {what}: "
                "a file may set the state of nothing but objects that it has made."
            )
        if type(obj) is not OrderedDict and hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
            return
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        _utils._with_state(obj, state)
        for name, value in (slots or {}).items():
            setattr(obj, name, value)

    def _persistent(self) -> None:
        pid = self._stack.pop()
        if type(pid) is not tuple or len(pid) < 5 or pid[0] not in ("storage", b"storage"):
            raise refused(f"Only persistent_load of storage is allowed, but got {str(pid)[:80]}")
        if not isinstance(pid[1], StorageType) or type(pid[4]) is not int or pid[4] < 0:
            raise refused("The file refers to a storage of unknown type or size.")
        storage = self._storage(pid)
        if not isinstance(storage, LoadedStorage):
            raise refused("The file refers to a storage that is none.")
        self._stack.append(storage)

    # --- other opcodes

    def _put(self, number: int) -> None:
        if number < 0:
            raise refused("The pickle in the file is not valid: a negative place in the memo.")
        self._memo[number] = self._stack[-1]

    def _big_int(self, size: int) -> None:
        if not 0 <= size <= MAX_INT:
            raise refused(f"The file has an integer of {size} bytes; at most {MAX_INT} are allowed.")
        self._stack.append(int.from_bytes(self._read(size), "little", signed=True))

    def _int_text(self) -> None:
        text = self._line().rstrip("L")
        if len(text) > MAX_INT:
            raise refused(f"The file has an integer of {len(text)} digits; at most {MAX_INT} are allowed.")
        self._stack.append({"00": False, "01": True}[text] if text in ("00", "01") else int(text))

    def _string_line(self) -> None:
        text = self._line().encode("latin1")
        if len(text) < 2 or text[:1] not in (b"'", b'"') or text[:1] != text[-1:]:
            raise refused("The pickle in the file is not valid: a text without quotes.")
        self._stack.append(self._old_text(codecs.escape_decode(text[1:-1])[0]))

    def _protocol(self) -> None:
        if self._read(1)[0] > pickle.HIGHEST_PROTOCOL:
            raise refused("unsupported pickle protocol")

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._items()

    def _get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []


def _instructions() -> dict[bytes, Callable[[WeightsOnlyUnpickler], Any]]:
    p, u = pickle, WeightsOnlyUnpickler
    table: dict[bytes, Callable[[Any], Any]] = {
        p.PROTO: u._protocol,
        p.FRAME: lambda m: m._read(8),
        p.MARK: u._mark,
        p.POP: u._pop,
        p.POP_MARK: u._items,
        p.DUP: lambda m: m._push(m._stack[-1]),
        # Values.
        p.NONE: lambda m: m._push(None),
        p.NEWTRUE: lambda m: m._push(True),
        p.NEWFALSE: lambda m: m._push(False),
        p.LONG1: lambda m: m._big_int(m._byte()),
        p.LONG4: lambda m: m._big_int(m._number(_I32)),
        p.INT: u._int_text,
        p.LONG: u._int_text,
        p.FLOAT: lambda m: m._push(float(m._line())),
        p.UNICODE: lambda m: m._push(m._line().encode("latin1").decode("raw-unicode-escape")),
        p.STRING: u._string_line,
        # Containers.
        p.EMPTY_TUPLE: lambda m: m._push(()),
        p.EMPTY_LIST: lambda m: m._push([]),
        p.EMPTY_DICT: lambda m: m._push({}),
        p.EMPTY_SET: lambda m: m._push(set()),
        p.TUPLE: u._push_tuple,
        p.TUPLE1: lambda m: m._push_tuple(1),
        p.TUPLE2: lambda m: m._push_tuple(2),
        p.TUPLE3: lambda m: m._push_tuple(3),
        p.LIST: u._push_list,
        p.DICT: u._push_dict,
        p.FROZENSET: u._push_frozenset,
        p.APPEND: lambda m: m._append_items([m._stack.pop()]),
        p.APPENDS: lambda m: m._append_items(m._items()),
        p.ADDITEMS: u._add_items,
        p.SETITEM: u._set_item,
        p.SETITEMS: lambda m: m._set_items(m._items()),
        # Objects.
        p.GLOBAL: lambda m: m._push_global(m._line(), m._line()),
        p.STACK_GLOBAL: u._stack_global,
        p.REDUCE: u._reduce,
        p.NEWOBJ: u._new_object,
        p.NEWOBJ_EX: u._new_object_with_names,
        p.BUILD: u._build,
        p.BINPERSID: u._persistent,
        # The memo. (A dict: a list could be made as long as the largest index in the file.)
        p.PUT: lambda m: m._put(int(m._line()[:20])),
        p.GET: lambda m: m._get(int(m._line()[:20])),
        p.MEMOIZE: lambda m: m._put(len(m._memo)),
    }
    # One-byte opcodes are most of a file.
    table[p.BININT1] = lambda m: m._stack.append(m._byte())
    table[p.BINPUT] = lambda m: m._put(m._byte())
    table[p.BINGET] = lambda m: m._stack.append(m._memo[m._byte()])
    table[p.SHORT_BINUNICODE] = lambda m: m._push(m._read(m._byte()).decode("utf-8", "surrogatepass"))
    table[p.SHORT_BINBYTES] = lambda m: m._push(m._read(m._byte()))
    table[p.SHORT_BINSTRING] = lambda m: m._push(m._old_text(m._read(m._byte())))
    table[p.LONG_BINPUT] = lambda m: m._put(m._number(_U32))
    table[p.LONG_BINGET] = lambda m: m._get(m._number(_U32))
    for code, form in ((p.BININT, _I32), (p.BININT2, _U16), (p.BINFLOAT, _F64)):
        table[code] = lambda m, form=form: m._push(m._number(form))
    for code, form in ((p.BINUNICODE, _U32), (p.BINUNICODE8, _U64)):
        table[code] = lambda m, form=form: m._push(m._read(m._number(form)).decode("utf-8", "surrogatepass"))
    for code, form in ((p.BINBYTES, _U32), (p.BINBYTES8, _U64)):
        table[code] = lambda m, form=form: m._push(m._read(m._number(form)))
    table[p.BINSTRING] = lambda m: m._push(m._old_text(m._read(m._number(_U32))))
    table[p.BYTEARRAY8] = lambda m: m._push(bytearray(m._read(m._number(_U64))))
    return table


_INSTRUCTIONS = _instructions()

"""Arguments for random calls: mostly of the type that a parameter names, sometimes of another, sometimes hostile."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import naru

INTS = [0, 1, 2, 3, -1, -2, 4, 7, 64, 65, 255, 300]
EVIL_INTS = [2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**62), -(2**63), 2**63, 2**64, -(2**64), 2**100]
FLOATS = [0.0, 0.5, 1.0, -1.0, 2.5, 1e-8, 3.7, -0.0]
EVIL_FLOATS = [float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e-320, 2.0**63, 1e19]
TEXTS = ["mean", "sum", "none", "cpu", "cuda", "mps", "cuda:1", "linear", "fro", "nuc", "ij", "xy", "floor", "trunc", "tanh", "constant", "i,i->", "ij,jk->ik", "..."]
EVIL_TEXTS = ["", "\ud800", "cpu\0", "cpu:", "cuda:-1", "cuda:999999999999999999999", "x" * 10000, "é", "{", "%s%n", "->", "a" * 60]
DTYPES = [naru.float32, naru.float64, naru.float16, naru.bfloat16, naru.int64, naru.int32, naru.int16, naru.int8, naru.uint8, naru.bool, naru.complex64, naru.complex128]


class Clears:
    """An integer that empties the list it stands in."""

    def __init__(self, owner: list[Any], value: int) -> None:
        self.owner, self.value = owner, value

    def __index__(self) -> int:
        self.owner.clear()
        return self.value

    def __float__(self) -> float:
        self.owner.clear()
        return float(self.value)


class Raises:
    """Raises at whatever it is asked."""

    def __index__(self) -> int:
        raise KeyError("index")

    def __float__(self) -> float:
        raise KeyError("float")

    def __len__(self) -> int:
        raise KeyError("len")

    def __getitem__(self, key: object) -> object:
        raise KeyError("item")

    def __bool__(self) -> bool:
        raise KeyError("bool")


class Values:
    """Draws arguments from a stream of random numbers of its own: equal seeds draw equal arguments."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.endless = True  # whether a tensor may have more elements than can be looked at

    def shape(self) -> tuple[int, ...]:
        return tuple(self.rng.choice([0, 1, 1, 2, 2, 3, 4, 5, 8]) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5])))

    def tensor(self) -> naru.Tensor:
        r = self.rng
        dtype = r.choice([naru.float32] * 6 + DTYPES)
        shape = self.shape()
        device = r.choice(["cpu"] * 8 + ["cuda:0", "mps"])
        if device == "mps" and dtype in (naru.float64, naru.complex128):
            device = "cpu"
        count = 1
        for n in shape:
            count *= n
        numbers = [r.choice([0, 1, 2, 3, -1, 0.5, 4]) for _ in range(count)]
        if dtype.is_floating_point and r.random() < 0.1:
            numbers = [r.choice([float("nan"), float("inf"), 0.0, 1e30, 1.0]) for _ in numbers]
        if dtype == naru.uint8:
            numbers = [abs(int(n)) for n in numbers]
        if dtype.is_complex:
            numbers = [complex(n, r.choice([0, 1, -2])) for n in numbers]
        x = naru.tensor(numbers, dtype=dtype, device=device).reshape(shape)
        how = r.random()
        if how < 0.1 and x.dim() > 1:
            x = x.transpose(0, -1)
        elif how < 0.15:
            x = x.unsqueeze(0).expand(r.choice([0, 2, 3]), *x.shape)
        elif how < 0.2 and x.dim() > 0:
            x = x[r.choice([0, 1]) :: r.choice([1, 2])]
        elif how < 0.23:
            x = naru.ones(1, dtype=dtype).expand(r.choice([2**20, 2**62] if self.endless else [2**10]))
        elif how < 0.25:
            x = naru.ones([1] * 70, dtype=dtype)
        if (dtype.is_floating_point or dtype.is_complex) and r.random() < 0.3:
            x = x.detach().requires_grad_() if r.random() < 0.5 else x.detach().requires_grad_() * 1
        return x

    def integer(self) -> Any:
        return self.rng.choice(INTS) if self.rng.random() < 0.75 else self.rng.choice(EVIL_INTS)

    def number(self) -> Any:
        how = self.rng.random()
        if how < 0.4:
            return self.integer()
        return self.rng.choice(FLOATS) if how < 0.8 else self.rng.choice(EVIL_FLOATS) if how < 0.95 else self.rng.choice([True, False])

    def text(self) -> str:
        return self.rng.choice(TEXTS) if self.rng.random() < 0.7 else self.rng.choice(EVIL_TEXTS)

    def integers(self) -> Any:
        items = [self.integer() for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4, 70]))]
        how = self.rng.random()
        if how < 0.05:
            items[:0] = [Clears(items, self.rng.choice([0, 1, 2]))]
        return tuple(items) if 0.05 < how < 0.5 else items

    def tensors(self) -> Any:
        items: list[Any] = [self.tensor() for _ in range(self.rng.choice([0, 1, 2, 2, 3]))]
        if items and self.rng.random() < 0.3:
            items = [items[0]] * len(items)
        if self.rng.random() < 0.1:
            items.append(self.anything())
        return items if self.rng.random() < 0.6 else tuple(items)

    def index(self) -> Any:
        r = self.rng
        return r.choice([
            self.integer, lambda: slice(self.integer(), self.integer(), self.integer()), lambda: None, lambda: ..., self.tensor, self.integers,
            lambda: True, lambda: slice(None), lambda: tuple(self.index() for _ in range(r.randrange(4))), lambda: np.array([0, 1]), self.anything,
        ])()  # fmt: skip

    def nested(self) -> Any:
        r = self.rng
        how = r.random()
        if how < 0.1:
            own: list[Any] = []
            own += [own] * r.choice([1, 2])
            return own
        if how < 0.2:
            deep: list[Any] = [r.choice([1, 1.5])] * r.choice([0, 1])
            for _ in range(r.choice([3, 40, 200])):
                deep = [deep] * r.choice([1, 2])
            return deep
        if how < 0.25:
            items: list[Any] = [1, 2.5, 3]
            items[1:1] = [Clears(items, 1)]
            return items
        return [[self.number() for _ in range(2)] for _ in range(2)] if how < 0.6 else [self.number() for _ in range(r.randrange(4))]

    def anything(self) -> Any:
        r = self.rng
        return r.choice([
            self.tensor, self.tensor, self.number, self.text, self.integers, self.tensors, self.nested, lambda: None, lambda: None, Raises, object,
            lambda: r.choice(DTYPES), lambda: naru.device(r.choice(["cpu", "cuda:0", "mps"])), lambda: np.ones(self.shape()), lambda: {}, lambda: b"abc",
            lambda: naru.Generator(), lambda: range(3), lambda: len, lambda: naru.nn.Linear(2, 2), lambda: np.float32(1), lambda: 1j, lambda: bytearray(8),
            lambda: slice(0, 2), lambda: int, lambda: naru.Size([2, 2]), lambda: naru.contiguous_format, lambda: memoryview(b"12345678"),
        ])()  # fmt: skip

    def of_hint(self, hint: str) -> Any:
        """An argument for a parameter with this annotation; now and then one of another type."""
        r = self.rng
        if r.random() < 0.12:
            return self.anything()
        if "None" in hint and r.random() < 0.3:
            return None
        kinds = [make for word, make in self._kinds() if word in hint]
        return (r.choice(kinds) if kinds else self.anything)()

    def _kinds(self) -> list[tuple[str, Any]]:
        r = self.rng
        table = [
            ("Sequence[Tensor]", self.tensors), ("Sequence[builtins.int]", self.integers), ("Sequence[int]", self.integers), ("list[int]", self.integers),
            ("builtins.int", self.integer), ("builtins.float", self.number), ("builtins.bool", lambda: r.choice([True, False])), ("_dtype", lambda: r.choice(DTYPES)),
            ("_device", self.text), ("str", self.text), ("Generator", naru.Generator), ("Any", self.anything), ("float", self.number), ("int", self.integer),
            ("bool", lambda: r.choice([True, False])),
        ]  # fmt: skip
        return table if r.random() < 0.02 else table + [("Tensor", self.tensor)]

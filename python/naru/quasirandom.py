"""`torch.quasirandom`: points that fill a cube more evenly than random points.

The direction numbers of Sobol' sequences come from SciPy (`pip install scipy`), which is imported when an engine is created.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from . import _C, _missing

if TYPE_CHECKING:
    from ._C import Tensor, dtype as DType

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> Tensor:
    """The direction numbers of each dimension as int64, (dimension, bits)."""
    try:
        from scipy.stats.qmc import Sobol
    except ImportError:
        raise ImportError("SobolEngine: its direction numbers come from SciPy; install it: pip install scipy") from None
    table = getattr(Sobol(dimension, scramble=False, bits=bits), "_sv", None)
    if getattr(table, "shape", None) != (dimension, bits):
        import scipy

        raise ImportError(f"SobolEngine: SciPy {scipy.__version__} keeps its direction numbers elsewhere; install another: pip install 'scipy>=1.9,<1.18'")
    return _C.from_numpy(table.astype("int64"))


class SobolEngine:
    """Draws the points of the Sobol' sequence in the unit cube of `dimension` dimensions (1 to 21201), in order. `scramble`: with Owen's random
    matrices and a random shift, drawn from a generator with `seed`, or from the default one if it is None; the values are PyTorch's after
    `naru.random.set_algorithm("pytorch")`.

    >>> import naru
    >>> engine = naru.quasirandom.SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = _directions(operator.index(dimension), self.MAXBIT)
        self.shift = self._scramble() if scramble else _C.zeros(dimension, dtype=_C.int64, device="cpu")
        self.quasi = self.shift.clone()
        # In the current default dtype, as in PyTorch.
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points, (n, dimension), of `dtype` (float32 or float64; the default dtype if None), written to `out` if given. ValueError
        beyond 2**30 points.

        >>> import naru
        >>> naru.quasirandom.SobolEngine(1).draw(4).flatten()
        tensor([0.0000, 0.5000, 0.7500, 0.2500])
        """
        dtype = _C.get_default_dtype() if dtype is None else dtype
        first = self.num_generated == 0
        if first and n == 1:
            result = self._first_point.to(dtype)
        else:
            n = self._counted(n)
            if dtype not in (_C.float32, _C.float64):
                kind = _C.empty(0, dtype=dtype).type()[len("torch.") : -len("Tensor")]
                raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{kind}': wanted torch.float32 or torch.float64")
            states = self._states(self.num_generated, n)
            result = states.to(dtype) * 2.0**-self.MAXBIT
            if first:
                result[:1] = self._first_point.to(dtype)
            if n:
                self.quasi = states[-1].to(_C.int64)
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `2**m` points; `out` and `dtype` as in `draw`. ValueError if the total number of points drawn would not be a power of two.

        >>> import naru
        >>> naru.quasirandom.SobolEngine(3).draw_base2(2).shape
        torch.Size([4, 3])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously generated, "
                f"then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Restarts at the first point; returns the engine.

        >>> import naru
        >>> engine = naru.quasirandom.SobolEngine(2)
        >>> naru.equal(engine.draw(3), engine.reset().draw(3))
        True
        """
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips `n` points; returns the engine.

        >>> import naru
        >>> naru.quasirandom.SobolEngine(1).fast_forward(2).draw(2).flatten()
        tensor([0.7500, 0.2500])
        """
        if n:
            self.num_generated += self._counted(n)
            self.quasi = self._states(self.num_generated - 1, 1)[0].to(_C.int64)
        return self

    def _counted(self, n: int) -> int:
        """Returns `n` if that many more points can be drawn."""
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(f"_sobol_engine_draw(): argument 'n' (position 2) must be int, not {type(n).__name__}") from None
        asked = n if self.num_generated else n - 1  # the first point is precomputed
        if asked < 0:
            raise ValueError(f"n must be non-negative, but got {asked}")
        if self.num_generated + n > 2**self.MAXBIT:
            raise ValueError(f"SobolEngine can generate at most {2**self.MAXBIT} points, {self.num_generated + n} were asked for")
        return n

    def _states(self, first: int, count: int) -> Tensor:
        """Points `first` to `first + count` as integers (int32). The xor of the Gray codes of a point number's high and low part is the Gray code of the
        number: two tables of about sqrt(`count`) rows suffice."""
        low = (count.bit_length() + 1) // 2
        start, end = first >> low, (first + max(count, 1) - 1) >> low
        rows = self._combined(_C.arange(start, end + 1, device="cpu") << low) ^ self.shift.to(_C.int32)
        table = rows.unsqueeze(1) ^ self._combined(_C.arange(1 << low, device="cpu"))
        return table.reshape(-1, self.dimension)[first - (start << low) :][:count]

    def _combined(self, numbers: Tensor) -> Tensor:
        """The xor of the direction numbers selected by the bits of the Gray codes of `numbers` (int64): (len(numbers), dimension), int32."""
        codes = (numbers ^ (numbers >> 1)).to(_C.int32).unsqueeze(1)
        directions = self.sobolstate.to(_C.int32).t()
        result = _C.zeros(len(numbers), self.dimension, dtype=_C.int32, device="cpu")
        for bit in range(int(numbers[-1]).bit_length()):
            result ^= ((codes >> bit) & 1) * directions[bit]
        return result

    def _scramble(self) -> Tensor:
        """Multiplies the bits of `sobolstate`, most significant first, by random triangular matrices modulo 2; returns a random shift."""
        bits, generator = self.MAXBIT, None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        drawn = _C.randint(2, (self.dimension, bits), device="cpu", generator=generator)
        matrices = _C.randint(2, (self.dimension, bits, bits), device="cpu", generator=generator).tril().to(_C.float32)
        matrices.diagonal(0, -2, -1).fill_(1)
        powers = _C.arange(bits - 1, -1, -1, device="cpu")
        parts = (self.sobolstate.unsqueeze(1) >> powers.unsqueeze(1)) & 1
        products = (matrices @ parts.to(_C.float32)).to(_C.int64) & 1  # at most 30 ones: exact
        self.sobolstate = (products << powers.unsqueeze(1)).sum(1)
        return (drawn << _C.arange(bits, device="cpu")).sum(1)

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"] + ["scramble=True"] * bool(self.scramble) + ([f"seed={self.seed}"] if self.seed is not None else [])
        return f"{type(self).__name__}({', '.join(parts)})"


__getattr__ = _missing.module_getattr(__name__)

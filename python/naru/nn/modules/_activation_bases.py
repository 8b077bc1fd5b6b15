"""Base classes of activations that share the same options."""

from __future__ import annotations

from .module import Module


class _Inplace(Module):
    """Base of the activations whose only option is `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Alpha(Module):
    """Base of the activations with `alpha` and `inplace`."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class _Lambda(Module):
    """Base of the activations with `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class _Along(Module):
    """Base of the functions along a dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        if isinstance(dim, bool) or (dim is not None and not isinstance(dim, int)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"

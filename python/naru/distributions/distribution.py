"""`Distribution`, the base class of all distributions."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C, _missing
from .._functions.naming import inherit_docs
from . import constraints
from .utils import lazy_property

Tensor = _C.Tensor

__all__ = ["Distribution"]


class Distribution:
    """A distribution over events of shape `event_shape`, for each element of a batch of parameters of shape `batch_shape`.

    validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    Args:
        batch_shape, event_shape: see above.

    Subclasses set `arg_constraints` and `support`, and define what applies of `rsample` or `sample`, `log_prob`, `entropy`, `mean`, `variance`.

    >>> from naru.distributions import Distribution, constraints
    >>> class Coin(Distribution):
    ...     arg_constraints = {}
    ...     support = constraints.boolean
    ...     def log_prob(self, value):
    ...         return naru.full_like(value, 0.5).log()
    >>> Coin().log_prob(naru.tensor([0.0, 1.0])).exp()
    tensor([0.5000, 0.5000])
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_docs(cls)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets the default of `validate_args`.

        Args:
            value: whether distributions check their arguments by default.

        >>> naru.distributions.Distribution.set_default_validate_args(False)
        >>> naru.distributions.Normal(0.0, -1.0).scale
        tensor(-1.)
        >>> naru.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = _C.Size(), event_shape: Any = _C.Size(), validate_args: bool | None = None) -> None:
        self._batch_shape = _C.Size(batch_shape)
        self._event_shape = _C.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy "
                    f"the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Returns the distribution with its parameters expanded to another batch shape.

        Args:
            batch_shape: the new batch shape, to which the parameters broadcast.

        >>> naru.distributions.Normal(0.0, 1.0).expand((2,)).batch_shape
        torch.Size([2])
        """
        raise NotImplementedError

    @property
    def batch_shape(self) -> _C.Size:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> _C.Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints on the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The set of events."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The mode."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        """Draws events of shape sample_shape + batch_shape + event_shape, without autograd history.

        >>> naru.distributions.Normal(naru.zeros(3), 1.0).sample((2,)).shape
        torch.Size([2, 3])
        """
        with _C.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        """Draws events as a differentiable function of the parameters.

        Args:
            sample_shape: leading dimensions, before batch_shape.

        >>> scale = naru.tensor(2.0, requires_grad=True)
        >>> naru.distributions.Uniform(0.0, scale).rsample().requires_grad
        True
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """The older form of sample((n,))."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2)
        return self.sample(_C.Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density (or probability) of an event.

        Args:
            value: events (..., *batch_shape, *event_shape); ValueError if one is outside of the support.

        >>> naru.distributions.Bernoulli(0.25).log_prob(naru.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a result of at most `value`.

        >>> naru.distributions.Exponential(1.0).cdf(naru.tensor(1.0))
        tensor(0.6321)
        """
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`.

        Args:
            value: probabilities.

        >>> naru.distributions.Uniform(0.0, 4.0).icdf(naru.tensor(0.25))
        tensor(1.)
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All events of a discrete distribution, along the first dimension.

        Args:
            expand: whether to expand them to the batch shape.

        >>> naru.distributions.Categorical(naru.ones(3)).enumerate_support()
        tensor([0, 1, 2])
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats.

        >>> naru.distributions.Bernoulli(0.5).entropy()
        tensor(0.6931)
        """
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp of the entropy.

        >>> naru.distributions.Categorical(naru.ones(3)).perplexity()
        tensor(3.)
        """
        return _C.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = _C.Size()) -> _C.Size:
        if not isinstance(sample_shape, _C.Size):
            sample_shape = _C.Size(sample_shape)
        return _C.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        assert support is not None
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of "
                f"the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                ".expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls: type, batch_shape: Any, _instance: Any, *names: str) -> Any:
        """Implements `expand` for a class whose named parameters have the batch shape."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = _C.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = ", ".join(f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names)
        return f"{self.__class__.__name__}({shown})"


__getattr__ = _missing.module_getattr(__name__)

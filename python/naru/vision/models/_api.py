"""The registry of networks, and the values that `weights=` accepts. naru downloads nothing: weights come from files that are already present."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ..transforms._presets import ImageClassification

if TYPE_CHECKING:
    from collections.abc import Callable

_BUILDERS: dict[str, tuple[Callable[..., Any], type[WeightsEnum]]] = {}


class Weights(NamedTuple):
    """A set of weights: the name of its `file` in PyTorch's hub folder, the preprocessing that its inputs need (`transforms`), and facts about it
    (`meta`).

    >>> naru.vision.models.ResNet18_Weights.DEFAULT.value.file
    'resnet18-f37072fd.pth'
    """

    file: str
    transforms: Callable[[], Any]
    meta: dict[str, Any]


class WeightsEnum(Enum):
    """Base class of `ResNet18_Weights` and the like, whose members name weights.

    >>> naru.vision.models.get_weight("ResNet18_Weights.DEFAULT").meta
    {'num_classes': 1000}
    """

    @property
    def transforms(self) -> Callable[[], Any]:
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        return self.value.meta

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Loads the parameters from the file in the hub folder. Raises RuntimeError if it is missing."""
        return _load(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (type(self), self._name_)


def classification(file: str, **preset: Any) -> Weights:
    """Weights in `file` for the 1000 ImageNet classes; `preset`: preprocessing options that differ from the defaults.

    >>> from naru.vision.models._api import classification
    >>> classification("net.pth", resize_size=232).transforms().resize_size
    [232]
    """
    return Weights(file, functools.partial(ImageClassification, **{"crop_size": 224, **preset}), {"num_classes": 1000})


def weights_enum(name: str, members: dict[str, Weights], default: str, module: str) -> Any:
    """Creates a WeightsEnum called `name` in `module` with these `members`, and the alias DEFAULT for `default`.

    >>> from naru.vision.models._api import classification, weights_enum
    >>> weights_enum("Net_Weights", {"V1": classification("net.pth")}, "V1", "mine").DEFAULT
    Net_Weights.V1
    """
    made = WeightsEnum(name, {**members, "DEFAULT": members[default]}, module=module)
    made.__doc__ = f"""What `weights=` may name: {', '.join(members)}; DEFAULT is {default}.

    >>> naru.vision.models.{name}.DEFAULT
    {name}.{default}
    """
    return made


def checkpoint_folder() -> str:
    """The folder where PyTorch's hub keeps weights files: under TORCH_HOME, XDG_CACHE_HOME or ~/.cache."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub", "checkpoints")


def _load(weights: WeightsEnum) -> dict[str, Any]:
    from ...serialization import load

    path = os.path.join(checkpoint_folder(), weights.value.file)
    if not os.path.isfile(path):
        raise RuntimeError(
            f"the weights {weights!r} are not on this machine, and naru downloads nothing: put the file {weights.value.file} into "
            f"{checkpoint_folder()}, or make the model with weights=None and call model.load_state_dict(torch.load(FILE)) with a file of yours"
        )
    return load(path, map_location="cpu", weights_only=True)


def _as_weights(cls: type[WeightsEnum], value: Any) -> WeightsEnum | None:
    if value is None or isinstance(value, cls):
        return value
    if isinstance(value, str):
        name = value.removeprefix(cls.__name__ + ".")
        if name in cls.__members__:
            return cls[name]
        raise ValueError(f"{cls.__name__} has no weights '{value}'; it has {', '.join(cls.__members__)}")
    raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(value).__name__}.")


def _old_arguments(cls: type[WeightsEnum], arguments: dict[str, Any]) -> None:
    """Handles `pretrained=True`, which torchvision had before `weights`."""
    if "pretrained" not in arguments:
        return
    wanted = arguments.pop("pretrained")
    warnings.warn(
        "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future, please use 'weights' instead.", stacklevel=3
    )
    if "weights" not in arguments:
        arguments["weights"] = wanted if wanted is None or isinstance(wanted, (str, WeightsEnum)) else "IMAGENET1K_V1" if wanted else None


def register(cls: type[WeightsEnum]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: turns a function of keyword arguments that returns a network into one that also accepts `weights`, a member of `cls`, and
    `progress`, and registers it by name for `get_model`.

    >>> import inspect
    >>> list(inspect.signature(naru.vision.models.resnet18).parameters)
    ['weights', 'progress', 'kwargs']
    """

    def decorate(build: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(build)
        def builder(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> Any:
            chosen = _as_weights(cls, weights)
            if chosen is None:
                return build(**kwargs)
            classes = chosen.meta["num_classes"]
            if kwargs.setdefault("num_classes", classes) != classes:
                raise ValueError(f"The parameter 'num_classes' expected value {classes} but got {kwargs['num_classes']} instead.")
            state = _load(chosen)
            model = build(**kwargs)
            model.load_state_dict(state)
            return model

        @functools.wraps(build)
        def outer(*old: Any, **kwargs: Any) -> Any:
            # Positional arguments, too, come from older torchvision versions.
            kwargs.update(zip(("weights" if not isinstance(old[0], bool) else "pretrained", "progress"), old) if old else ())
            _old_arguments(cls, kwargs)
            return builder(**kwargs)

        outer.__signature__ = inspect.signature(builder, follow_wrapped=False)  # type: ignore[attr-defined]
        outer.__doc__ = (
            f"{build.__doc__}\n\n    weights: None, or a member of `{cls.__name__}`, whose file must be in the hub's folder (RuntimeError). `progress` is taken.\n"
            "    Other arguments are those of the class."
        )
        _BUILDERS[build.__name__] = (outer, cls)
        return outer

    return decorate


def list_models(module: Any = None, include: Any = None, exclude: Any = None) -> list[str]:
    """Returns the names that `get_model` accepts: those in `module`, if given, that match a wildcard in `include` and none in `exclude`.

    >>> list_models(include="resnet1*")
    ['resnet101', 'resnet152', 'resnet18']
    """
    import fnmatch

    names = {name for name, (build, _) in _BUILDERS.items() if module is None or build.__module__.startswith(module.__name__)}
    wanted, unwanted = ([value] if isinstance(value, str) else list(value or []) for value in (include, exclude))
    if include:
        names = {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in wanted)}
    return sorted(name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in unwanted))


def _registered(name: str) -> tuple[Callable[..., Any], type[WeightsEnum]]:
    if name.lower() not in _BUILDERS:
        raise ValueError(f"Unknown model {name}: naru.vision has {', '.join(sorted(_BUILDERS))}")
    return _BUILDERS[name.lower()]


def get_model_builder(name: str) -> Callable[..., Any]:
    """Returns the function that builds the model `name`. Raises ValueError if there is none.

    >>> naru.vision.models.get_model_builder("resnet18").__name__
    'resnet18'
    """
    return _registered(name)[0]


def get_model(name: str, **config: Any) -> Any:
    """Builds and returns the network `name` with the options `config`. Raises ValueError if there is no such network.

    >>> naru.vision.models.get_model("mobilenet_v2", width_mult=0.25, num_classes=3).classifier[-1]
    Linear(in_features=1280, out_features=3, bias=True)
    """
    return get_model_builder(name)(**config)


def get_model_weights(name: Any) -> type[WeightsEnum]:
    """Returns the weights enum of a network, given its `name` or its function.

    >>> list(naru.vision.models.get_model_weights("resnet50"))
    [ResNet50_Weights.IMAGENET1K_V1, ResNet50_Weights.IMAGENET1K_V2]
    """
    return _registered(name if isinstance(name, str) else name.__name__)[1]


def get_weight(name: str) -> WeightsEnum:
    """Returns the weights with the full `name`, such as 'ResNet18_Weights.DEFAULT'. Raises ValueError if there are none.

    >>> naru.vision.models.get_weight("ResNet18_Weights.DEFAULT")
    ResNet18_Weights.IMAGENET1K_V1
    """
    cls, _, member = name.partition(".")
    for _, known in _BUILDERS.values():
        if known.__name__ == cls and member in known.__members__:
            return known[member]
    raise ValueError(f"Unknown weights {name}")

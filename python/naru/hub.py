"""`torch.hub`: loads models from a folder with a `hubconf.py`, and files that are already in the cache: naru downloads nothing.

GitHub repositories are not downloaded: clone one, and pass its folder with source="local".
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse as urlparse

from . import _missing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = _HASH = re.compile(r"-([a-f0-9]*)\.")
_folder: dict[str, str] = {}


def get_dir() -> str:
    """The folder in which files are cached: the one set, $TORCH_HOME/hub, or ~/.cache/torch/hub.

    >>> import os
    >>> os.path.basename(naru.hub.get_dir())
    'hub'
    """
    if "hub" in _folder:
        return _folder["hub"]
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    return os.path.expanduser(os.getenv("TORCH_HOME") or os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch"))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raises RuntimeError: naru downloads nothing. The error names `url`, the file to download, and `dst`, where to put it. `hash_prefix` and
    `progress` are ignored.

    >>> naru.hub.download_url_to_file("https://example.org/w.pth", "w.pth")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.hub: naru downloads nothing; fetch https://example.org/w.pth yourself, and put it at w.pth
    """
    raise RuntimeError(f"torch.hub: naru downloads nothing; fetch {url} yourself, and put it at {dst}")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder in which files are cached to `d`.

    >>> before = naru.hub.get_dir()
    >>> naru.hub.set_dir("weights"); naru.hub.get_dir()
    'weights'
    >>> naru.hub.set_dir(before)
    """
    _folder["hub"] = os.path.expanduser(d)


def _check_source(source: str) -> None:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            "torch.hub: naru fetches no repositories yet; clone it, and call torch.hub with the folder and source='local'"
        )


def _configuration(folder: str) -> Any:
    """The folder's hubconf.py as a module."""
    path = os.path.join(folder, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: Any, model: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True,
         source: str = "github") -> Any:  # fmt: skip
    """The names of the models in a folder, `github`. `source`: "local" (if omitted, a local folder is recognized).
    `force_reload`, `skip_validation`, `trust_repo` and `verbose` are ignored. NotImplementedError for a repository.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def tiny(): ...")
    ...     naru.hub.list(folder)
    ['tiny']
    """
    if os.path.isdir(github):
        source = "local"
    _check_source(source)
    module = _configuration(github)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         source: str = "github") -> str | None:  # fmt: skip
    r"""The docstring of `model`, a callable in the hubconf.py of a folder, `github`. `source`, `force_reload`, `skip_validation` and `trust_repo` as
    for `list`. RuntimeError if there is no such callable.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def tiny():\n    'One layer.'")
    ...     naru.hub.help(folder, "tiny")
    'One layer.'
    """
    if os.path.isdir(github):
        source = "local"
    _check_source(source)
    return _entry(_configuration(github), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    r"""Calls `model` of a folder's hubconf.py with the remaining arguments and returns the result.

    `repo_or_dir`: the folder. `source`: "local". `trust_repo`, `force_reload`, `verbose` and `skip_validation` are ignored. ValueError for
    a source other than "github" and "local"; NotImplementedError for "github"; FileNotFoundError if the folder has no hubconf.py;
    RuntimeError if it has no such callable, or needs packages that are not installed.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("import naru\ndef tiny(n): return naru.nn.Linear(n, 1)")
    ...     naru.hub.load(folder, "tiny", 2, source="local")
    Linear(in_features=2, out_features=1, bias=True)
    """
    _check_source(source.lower())
    folder = os.path.abspath(repo_or_dir)
    module = _configuration(folder)
    sys.path.insert(0, folder)
    try:
        return _entry(module, model)(*args, **kwargs)
    finally:
        sys.path.remove(folder)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """`torch.load` of a file, previously downloaded from `url`, that is already in `model_dir` (by default get_dir()/checkpoints) under
    `file_name` (by default the last part of the URL): naru downloads nothing.

    `map_location`: as for load. `check_hash`: the file's name is `name-<first digits of its SHA256>.ext`, and the hash must match. `weights_only`
    and `progress` are ignored: the file is always read as with weights_only=True, as downloaded files must not run code.
    FileNotFoundError if the file is not there.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     naru.save({"w": naru.ones(1)}, os.path.join(folder, "w.pth"))
    ...     naru.hub.load_state_dict_from_url("https://example.org/w.pth", folder)
    {'w': tensor([1.])}
    """
    from .serialization import load as read

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"torch.hub: naru downloads nothing; fetch {url} yourself, and put it at {path}")
    match = _HASH.search(name) if check_hash else None
    if match is not None:
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
        if not found.startswith(match[1]):
            raise RuntimeError(f'invalid hash value (expected "{match[1]}", got "{found}")')
    return read(path, map_location=map_location, weights_only=True)


class _Quiet:
    """Replaces the tqdm progress bar if the package is not installed: passes the iterable through and shows nothing."""

    def __init__(self, iterable: Any = (), *args: Any, **kwargs: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Any:
        return iter(self._iterable)

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing, like the other methods."""

    set_description = set_postfix = refresh = close = write = update


if TYPE_CHECKING:
    tqdm: Any

_missing_name = _missing.module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        return _missing_name(name)
    try:  # imported on first use: it is rarely needed
        from tqdm import tqdm
    except ImportError:
        return _Quiet
    return tqdm

"""`torch.hub`: models from a folder with a `hubconf.py`, and files by address.

Repositories of GitHub are not fetched: clone one, and name its folder with source="local".
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from typing import Any

from . import _missing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_HASH = re.compile(r"-([a-f0-9]*)\.")
_folder: dict[str, str] = {}


def get_dir() -> str:
    """The folder in which files are kept: the one set, $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    if "hub" in _folder:
        return _folder["hub"]
    home = os.getenv("TORCH_HOME") or os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder in which files are kept."""
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
    """The names of a folder's models. source: "local" (PyTorch's has none: a folder is taken as one without being told)."""
    if os.path.isdir(github):
        source = "local"
    _check_source(source)
    module = _configuration(github)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         source: str = "github") -> str | None:  # fmt: skip
    """The docstring of a folder's model."""
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
    """What the callable `model` of a folder's hubconf.py returns for the arguments.

    ValueError for another source than "github" and "local"; NotImplementedError for "github"; FileNotFoundError where the folder has no
    hubconf.py; RuntimeError where it has no such callable, or wants packages that are not there.
    """
    _check_source(source.lower())
    folder = os.path.abspath(repo_or_dir)
    module = _configuration(folder)
    sys.path.insert(0, folder)
    try:
        return _entry(module, model)(*args, **kwargs)
    finally:
        sys.path.remove(folder)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Writes what is at an address to the file `dst`. RuntimeError where its SHA256 does not begin with hash_prefix; then nothing is written."""
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "naru.hub"})) as source, tempfile.NamedTemporaryFile(  # noqa: S310
        delete=False, dir=os.path.dirname(dst) or "."
    ) as target:
        try:
            while data := source.read(1 << 20):
                target.write(data)
                digest.update(data)
            target.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            os.replace(target.name, dst)
        finally:
            if os.path.exists(target.name):
                os.unlink(target.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """`torch.load` of what is at an address; a file that is there already is not fetched again.

    check_hash: the file's name is `name-<first digits of its SHA256>.ext`. The file is read as by weights_only=True in any case: a file from
    elsewhere may not run anything.
    """
    from urllib.parse import urlparse

    from .serialization import load as read

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        if progress:
            sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        match = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, match[1] if match else None, progress=progress)
    return read(path, map_location=map_location, weights_only=True)


__getattr__ = _missing.module_getattr(__name__)

"""`torch.distributed.checkpoint.format_utils`: from checkpoints of several ranks to files of `torch.save`, and back."""

from __future__ import annotations

from typing import Any

from ... import _missing
from ._ranks import Ranks
from .default_planner import DefaultSavePlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_loader import _load
from .state_dict_saver import _save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    """Writes a checkpoint's tensors, whole, and its objects to a file of `torch.save`. One process does it.

    Args:
        dcp_checkpoint_dir: the checkpoint's folder.
        torch_save_path: the file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = naru.distributed.checkpoint.save({"a": {"b": naru.ones(2)}}, checkpoint_id=folder)
    ...     file = os.path.join(folder, "all.pt")
    ...     naru.distributed.checkpoint.format_utils.dcp_to_torch_save(folder, file)
    ...     naru.load(file)
    {'a': {'b': tensor([1., 1.])}}
    """
    from ...serialization import save

    made: dict[str, Any] = {}
    _load(made, FileSystemReader(dcp_checkpoint_dir), _EmptyStateDictLoadPlanner(), Ranks(None, True))
    save(made, torch_save_path)


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    """Writes what is in a file of `torch.save` as a checkpoint. One process does it. The file may hold pickles: take only files that you trust.

    Args:
        torch_save_path: the file.
        dcp_checkpoint_dir: the checkpoint's folder.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "all.pt")
    ...     naru.save({"a": naru.ones(2)}, file)
    ...     naru.distributed.checkpoint.format_utils.torch_save_to_dcp(file, os.path.join(folder, "checkpoint"))
    ...     sorted(os.listdir(os.path.join(folder, "checkpoint")))
    ['.metadata', '__0_0.distcp']
    """
    from ...serialization import load

    state = load(torch_save_path, map_location="cpu", weights_only=False)
    _save(state, FileSystemWriter(dcp_checkpoint_dir), DefaultSavePlanner(), Ranks(None, True))


__getattr__ = _missing.module_getattr(__name__)

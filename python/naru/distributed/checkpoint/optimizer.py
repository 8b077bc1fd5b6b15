"""`torch.distributed.checkpoint.optimizer`: an optimizer's state that was saved with a model's."""

from __future__ import annotations

from typing import Any

from ... import _C, _missing
from ..tensor._dtensor import DTensor, wrapped
from ..tensor._layout import local_part
from ._ranks import Ranks
from .default_planner import DefaultLoadPlanner, place
from .metadata import BytesStorageMetadata
from .state_dict_loader import _load

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict: dict[str, Any], optimizer_key: str, storage_reader: Any, planner: Any = None) -> dict[str, Any]:
    """The optimizer's state of a checkpoint: tensors of a parameter's shape lie as the model's parameter of that name. All ranks call it.

    Args:
        model_state_dict: the model's state dict, of DTensors.
        optimizer_key: under which key the optimizer's state was saved.
        storage_reader: what reads.
        planner: who reads what; a DefaultLoadPlanner by default.

    >>> import tempfile
    >>> layer = naru.nn.Linear(2, 1)
    >>> adam, helper = naru.optim.Adam(layer.parameters()), naru.distributed.checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = helper.save({"optim": helper.state_dict.get_optimizer_state_dict(layer, adam)}, checkpoint_id=folder)
    ...     reader = helper.FileSystemReader(folder)
    ...     found = helper.optimizer.load_sharded_optimizer_state_dict(layer.state_dict(), "optim", reader)
    >>> list(found["optim"]["state"])
    ['weight', 'bias']
    """
    metadata = storage_reader.read_metadata()
    made: dict[str, Any] = {}
    for name, saved in metadata.state_dict_metadata.items():
        path = (metadata.planner_data or {}).get(name, (name,))
        if path[0] != optimizer_key:
            continue
        if isinstance(saved, BytesStorageMetadata):
            place(made, path, None)
            continue
        like = model_state_dict.get(path[2]) if len(path) > 2 else None
        if isinstance(like, DTensor) and tuple(like.shape) == tuple(saved.size):
            local = _C.empty(local_part(like._spec)[0], dtype=saved.properties.dtype, device=like.device)
            place(made, path, wrapped(local, like._spec))
        else:
            place(made, path, _C.empty(saved.size, dtype=saved.properties.dtype))
    _load(made, storage_reader, planner or DefaultLoadPlanner(), Ranks(None, False))
    return made


__getattr__ = _missing.module_getattr(__name__)

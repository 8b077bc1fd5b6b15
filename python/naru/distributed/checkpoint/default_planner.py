"""`torch.distributed.checkpoint.default_planner`: each rank writes what it has, once, and reads what it needs."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from typing import Any

from ... import _C, _missing
from .metadata import Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType, metadata_of, parts_of, read_items, write_items

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]

Tensor = _C.Tensor


def _is_value(value: Any) -> bool:
    """Whether an object is written as it is: all but dicts, and lists that hold tensors or dicts."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(isinstance(v, Tensor) or (isinstance(v, (Mapping, list)) and not _is_value(v)) for v in value)


def flatten(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple]]:
    """The values of nested dicts and lists by names with dots, and the path to each.

    Args:
        state_dict: the dicts.

    >>> naru.distributed.checkpoint.default_planner.flatten({"a": {"b": 1}})
    ({'a.b': 1}, {'a.b': ('a', 'b')})
    """
    flat: dict[str, Any] = {}
    paths: dict[str, tuple] = {}

    def visit(path: tuple, value: Any) -> None:
        if path and _is_value(value):
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path
        elif isinstance(value, Mapping):
            for key, v in value.items():
                visit((*path, str(key)), v)
        else:
            for i, v in enumerate(value):
                visit((*path, i), v)

    visit((), state_dict)
    return flat, paths


def place(root: Any, path: tuple, value: Any) -> None:
    """Puts a value where the path leads, making dicts and lists on the way.

    Args:
        root: the dict where the path begins.
        path: keys, and indices of lists.
        value: the value.

    >>> root = {}
    >>> naru.distributed.checkpoint.default_planner.place(root, ("a", 1), "b")
    >>> root
    {'a': [None, 'b']}
    """
    at = root
    for key, following in zip(path, (*path[1:], None)):
        if isinstance(at, list):
            at.extend([None] * (key + 1 - len(at)))
        elif key not in at and isinstance(key, str) and key.isdigit() and int(key) in at:
            key = int(key)
        if following is None:
            at[key] = value
            return
        if (at[key] if isinstance(at, list) else at.get(key)) is None:
            at[key] = [] if isinstance(following, int) else {}
        at = at[key]


class DefaultSavePlanner(SavePlanner):
    """Tensors that several ranks have are written by one, DTensors by each rank its part.

    Args:
        flatten_state_dict: whether nested dicts are saved by names with dots.
        flatten_sharded_tensors, dedup_replicated_tensors, dedup_save_to_lowest_rank, enable_plan_caching: ignored, but for dedup_save_to_lowest_rank:
            whether it is the first of these ranks, instead of the one with the least to write.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     planner = naru.distributed.checkpoint.DefaultSavePlanner()
    ...     metadata = naru.distributed.checkpoint.save({"a": {"b": naru.ones(2)}}, checkpoint_id=folder, planner=planner)
    >>> list(metadata.state_dict_metadata)
    ['a.b']
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.dedup_save_to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: Any = None, is_coordinator: bool = False) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        self.plan = SavePlan([item for name, value in self.state_dict.items() for item in write_items(name, value)], planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        owners = self._owners(all_plans)
        known: dict[str, Any] = {}
        made = []
        for rank, plan in enumerate(all_plans):
            items = []
            for item in plan.items:
                about = known.setdefault(item.index.fqn, metadata_of(item))
                size = None if item.tensor_data is None else item.tensor_data.size
                if size != getattr(about, "size", None):
                    raise ValueError(f"save: {item.index.fqn} is not the same tensor on all ranks: {about} and {item}")
                if owners[item.index] != rank:
                    continue
                if item.tensor_data is not None:
                    item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(about.chunks)))
                    about.chunks.append(item.tensor_data.chunk)
                items.append(item)
            made.append(dataclasses.replace(plan, items=items))
        paths = {name: path for plan in all_plans for name, path in (plan.planner_data or {}).items()}
        return made, Metadata(known, planner_data=paths if self.flatten_state_dict else None, version="1.0.0")

    def _owners(self, plans: list[SavePlan]) -> dict[Any, int]:
        """The rank that writes each item."""
        having: dict[Any, list[int]] = {}
        sizes = {}
        for rank, plan in enumerate(plans):
            for item in plan.items:
                having.setdefault(item.index, []).append(rank)
                sizes[item.index] = item.tensor_storage_size() or 1
        load = [0] * len(plans)
        owners = {}
        for index in sorted(having, key=lambda index: len(having[index])):  # first what only one rank has
            owners[index] = having[index][0] if self.dedup_save_to_lowest_rank else min(having[index], key=lambda rank: load[rank])
            load[owners[index]] += sizes[index]
        return owners

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def lookup_object(self, index: Any) -> Any:
        """The tensor part, or the object, of that name."""
        value = self.state_dict[index.fqn]
        if not isinstance(value, Tensor):
            return value
        return next(elements for chunk, elements in parts_of(value) if index.offset is None or chunk.offsets == index.offset)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for an object: its pickle, if it is no tensor."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        from ...serialization import save

        made = io.BytesIO()
        save(object, made)
        return made

    def resolve_data(self, write_item: WriteItem) -> Any:
        return self.transform_object(write_item, self.lookup_object(write_item.index))


class DefaultLoadPlanner(LoadPlanner):
    """Reads into the tensors of a state dict, whatever parts they were saved in; other objects are replaced.

    Args:
        flatten_state_dict: whether nested dicts were saved by names with dots.
        flatten_sharded_tensors: ignored.
        allow_partial_load: whether what the checkpoint lacks is left as it is, instead of RuntimeError.

    >>> import tempfile
    >>> x = naru.zeros(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = naru.distributed.checkpoint.save({"a": naru.ones(2)}, checkpoint_id=folder)
    ...     planner = naru.distributed.checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    ...     naru.distributed.checkpoint.load({"a": x, "b": naru.zeros(1)}, checkpoint_id=folder, planner=planner)
    >>> x
    tensor([1., 1.])
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten(state_dict)
        self.state_dict = state_dict

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        items = []
        for name, value in self.state_dict.items():
            saved = self.metadata.state_dict_metadata.get(name)
            if saved is None:
                if self.allow_partial_load:
                    continue
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            if isinstance(saved, TensorStorageMetadata) and isinstance(value, Tensor) and saved.size != value.size():
                raise ValueError(f"Size mismatch between saved {saved.size} and current: {value.size()} for {name}")
            items += read_items(name, saved, value)
        return LoadPlan(items)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        from ...serialization import load

        name = read_item.dest_index.fqn
        found = load(value, weights_only=False)
        if self.flatten_state_dict:
            place(self.original_state_dict, self.mappings[name], found)
        else:
            self.state_dict[name] = found

    def lookup_tensor(self, index: Any) -> Tensor:
        """The part of that name and place of the state dict's tensor."""
        return next(elements for chunk, elements in parts_of(self.state_dict[index.fqn]) if index.offset is None or chunk.offsets == index.offset)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The elements of the part that an item is for."""
        for dim, (first, count) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            tensor = tensor.narrow(dim, first, count)
        return tensor

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        pass


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads all of a checkpoint into an empty dict, or what `keys` begin."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        assert not state_dict and metadata is not None
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        paths = metadata.planner_data or {}
        self.state_dict = {}
        for name, saved in metadata.state_dict_metadata.items():
            path = paths.get(name, (name,))
            parts = name.split(".")
            if self.keys is not None and not any(".".join(parts[:n]) in self.keys for n in range(1, len(parts) + 1)):
                continue
            value = _C.empty(saved.size, dtype=saved.properties.dtype) if isinstance(saved, TensorStorageMetadata) else None
            self.state_dict[name], self.mappings[name] = value, path
            place(state_dict, path, value)




__getattr__ = _missing.module_getattr(__name__)

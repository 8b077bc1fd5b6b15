"""`torch.distributed.device_mesh`: ranks laid out as an n-dimensional array, with a process group for each line along a dimension."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from . import _groups

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DeviceMesh", "init_device_mesh"]


def _as_ranks(mesh: Any) -> Any:
    """An integer tensor on the cpu of a tensor, an array or nested lists of ranks."""
    if isinstance(mesh, _C.Tensor):
        return mesh.detach().to("cpu", _C.int32)
    return _C.tensor(mesh.tolist() if hasattr(mesh, "tolist") else mesh, dtype=_C.int32)


class DeviceMesh:
    """Ranks of the default process group as an array: each dimension is a way to split work. All ranks make it together.

    Args:
        device_type: the kind of devices of tensors on it, as "cpu" or "cuda".
        mesh: the ranks: an integer tensor or nested lists, each rank at most once.
        mesh_dim_names: a name for each dimension, for slicing: `mesh["tp"]` is the line of this rank along "tp".
        backend_override: ignored.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.device_mesh.DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp"))["tp"]
    DeviceMesh((tp=1), 'cpu', stride=(1,))
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        ranks = _as_ranks(mesh)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        _check_names(names, ranks.dim())
        if len(set(ranks.reshape(-1).tolist())) != ranks.numel():
            raise RuntimeError(f"DeviceMesh cannot have duplicate ranks, but found {sorted(ranks.reshape(-1).tolist())}")
        self._begin(device_type, self, ranks, tuple((i,) for i in range(ranks.dim())), names, _rank)
        self._known: dict[tuple[int, ...], Any] = {}  # groups, by the dimensions that they go along
        self._flattened: dict[str, tuple[int, ...]] = {}
        if not _init_backend:
            return
        _start(device_type)
        world = _groups.world()
        if ranks.numel() > world.size():
            raise RuntimeError(f"Mesh should not be bigger than default world size {world.size()}, but found {ranks.numel()} ranks!")
        for dims in self._dims:
            self._make_group(dims)

    def _begin(self, device_type: str, root: Any, ranks: Any, dims: tuple[tuple[int, ...], ...], names: Any, rank: int | None = None) -> None:
        self.device_type = device_type
        self.mesh = ranks
        self._root = root
        self._dims = dims  # for each dimension those of the root that it joins
        self.mesh_dim_names = names
        self._own_rank = rank
        at = (ranks == self.get_rank()).nonzero()
        self._coordinate = tuple(at[0].tolist()) if len(at) else None

    def _make_group(self, dims: tuple[int, ...]) -> None:
        """Makes the groups along these dimensions of the root; all ranks of the world call it."""
        world = _groups.world()
        lines = _lines(self._root.mesh, dims)
        if lines == [list(world.ranks)]:
            self._root._known[dims] = world
            return
        name = "_".join(self._root.mesh_dim_names[i] for i in dims) if self._root.mesh_dim_names else f"{dims[0]}"
        self._root._known[dims] = _groups.split_group(world, lines, group_desc=f"mesh_{name}")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, of all or along the dimension `mesh_dim`."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def get_rank(self) -> int:
        """The global rank of this process."""
        if self._own_rank is not None:
            return self._own_rank
        return _groups.world().rank() if _groups.is_initialized() else int(os.environ.get("RANK", "0"))

    def _dim(self, mesh_dim: int | str | None, what: str) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions", "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"{what}: the mesh has no dimension {mesh_dim!r}; its dimensions are {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"{what}: mesh_dim must be from {-self.ndim} to {self.ndim - 1}, got {mesh_dim}")
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group of this rank's line along `mesh_dim`, a number or a name; None: the only one."""
        if isinstance(mesh_dim, str) and mesh_dim in self._root._flattened:
            return self._root._known[self._root._flattened[mesh_dim]]
        dims = self._dims[self._dim(mesh_dim, "get_group")]
        if dims not in self._root._known:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._root._known[dims]

    def get_all_groups(self) -> list[Any]:
        """The process groups of this rank's lines, one for each dimension."""
        return [self.get_group(i) for i in range(self.ndim)]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This rank's place along each dimension; None if it is not in the mesh."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's place along `mesh_dim`, a number or a name; None: the only dimension."""
        dim = self._dim(mesh_dim, "get_local_rank")
        if self._coordinate is None:
            raise RuntimeError(f"get_local_rank: rank {self.get_rank()} is not in the mesh {self}")
        return self._coordinate[dim]

    def _child(self, dims: Sequence[tuple[int, ...]], names: Any) -> DeviceMesh:
        """The mesh of this rank over these dimensions of the root."""
        root = self._root
        wanted = [i for group in dims for i in group]
        if len(set(wanted)) != len(wanted):
            raise RuntimeError(f"DeviceMesh: the dimensions {names} overlap")
        rest = [i for i in range(root.ndim) if i not in wanted]
        at = root._coordinate or (0,) * root.ndim
        ranks = root.mesh.permute(rest + wanted)
        for i in rest:
            ranks = ranks[at[i]]
        made = DeviceMesh.__new__(DeviceMesh)
        shape = [math.prod(root.mesh.shape[i] for i in group) for group in dims]
        made._begin(self.device_type, root, ranks.reshape(shape).contiguous(), tuple(dims), names, self._own_rank)
        return made

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of this rank along the dimensions of these names."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        dims = []
        for name in names:
            if name in self.mesh_dim_names:
                dims.append(self._dims[self.mesh_dim_names.index(name)])
            elif name in self._root._flattened:
                dims.append(self._root._flattened[name])
            else:
                known = [*self.mesh_dim_names, *self._root._flattened]
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {known}.")
        if any(a >= b for a, b in zip(dims, dims[1:])):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        return self._child(dims, names)

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """The mesh with all dimensions joined into one, of the given name (the names joined by "_"). All ranks call it."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        root = self._root
        dims = tuple(i for group in self._dims for i in group)
        if name in (root.mesh_dim_names or ()) and (root.mesh_dim_names.index(name),) != dims:
            raise ValueError(f"'{name}' already exists for submesh of {root}; give another mesh_dim_name")
        if root._flattened.get(name, dims) != dims:
            raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before, please specify another valid mesh_dim_name.")
        if dims not in root._known:
            self._make_group(dims)
        if len(dims) > 1:
            root._flattened[name] = dims
        return self._child([dims], (name,))

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        return self._dim(mesh_dim_name, "_get_mesh_dim_by_name")

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None, backend_override: Any = None
    ) -> DeviceMesh:
        """The mesh of a process `group`, or of a list of groups that are lines along the dimensions of `mesh`."""
        groups = [group] if isinstance(group, _groups.ProcessGroup) else list(group)
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = groups[0].ranks
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if len(groups) != made.ndim:
            raise ValueError(f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made.mesh.tolist()} and {len(groups)} ProcessGroups")
        made._known = {(i,): each for i, each in enumerate(groups)}
        return made

    def __enter__(self) -> DeviceMesh:
        _current.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _current.pop()

    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, tuple(self.mesh.reshape(-1).tolist()), self.mesh_dim_names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.mesh_dim_names:
            shown = "(" + ", ".join(f"{name}={n}" for name, n in zip(self.mesh_dim_names, self.shape)) + ")"
        else:
            shown = str(self.shape)
        strides = []
        for i in range(self.ndim):
            line = self.mesh.movedim(i, 0).reshape(self.shape[i], -1)[:, 0].tolist()
            strides.append(line[1] - line[0] if len(line) > 1 else math.prod(self.shape[i + 1 :]))
        return f"DeviceMesh({shown}, '{self.device_type}', stride={tuple(strides)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.device_type, self.mesh.tolist(), self.mesh_dim_names)

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self  # groups can't be copied, and nothing changes a mesh


_current: list[DeviceMesh] = []


def _restored(device_type: str, mesh: Any, names: Any) -> DeviceMesh:
    """A mesh from a file: without groups, which ranks would have to make together."""
    return DeviceMesh(device_type, mesh, mesh_dim_names=names, _init_backend=False)


def _check_names(names: tuple[str, ...] | None, dims: int) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError("Each mesh_dim_name must be unique.", f"Found repeated mesh_dim_name in mesh_dim_names {names}")
    if len(names) != dims:
        raise RuntimeError("mesh_shape and mesh_dim_names should have same length!", f"Found len(mesh_dim_names): {len(names)} and {dims} dimensions.")


def _start(device_type: str) -> None:
    """Makes the default process group from the environment, if there is none."""
    if not _groups.is_initialized():
        _groups.init_process_group()


def _lines(ranks: Any, dims: tuple[int, ...]) -> list[list[int]]:
    """The ranks of each line along these dimensions."""
    rest = [i for i in range(ranks.dim()) if i not in dims]
    return ranks.permute([*rest, *dims]).reshape(-1, math.prod(ranks.shape[i] for i in dims)).tolist()


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
) -> DeviceMesh:
    """A mesh of the ranks 0, 1, 2 ... in the order of rows. All ranks call it. Makes the default group from the environment, if there is none.

    Args:
        device_type: the kind of devices, as "cpu" or "cuda".
        mesh_shape: the number of ranks along each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: ignored.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    DeviceMesh((dp=1, tp=1), 'cpu', stride=(1, 1))
    >>> naru.distributed.destroy_process_group()
    """
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    shape = tuple(mesh_shape)
    names = None if mesh_dim_names is None else tuple(mesh_dim_names)
    _check_names(names, len(shape))
    ranks = _C.arange(math.prod(shape), dtype=_C.int32).view(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=names)


__getattr__ = _missing.module_getattr(__name__)

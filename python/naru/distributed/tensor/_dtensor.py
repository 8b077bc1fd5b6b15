"""`DTensor`: a tensor whose elements lie on the ranks of a mesh.

The object is this rank's local tensor (its memory, its gradient and its place in autograd are the local tensor's), with a layout beside it. Operators
come to `__torch_function__`, whose rules (`_rules.py`) say how operands must lie, compute with local tensors, and say how results lie. What the core does
with a tensor's elements one by one, as optimizers' steps, needs no rule.

The gradient of a local tensor always lies as the tensor does, and is whole where the tensor is a pending reduction: rules that break this (a replicated
operand beside a sharded one) sum the gradient at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import _C
from ...overrides import PLAIN_RESULTS, DisableTorchFunctionSubclass, _watch
from ._layout import Spec, _averaged, dual, local_part, moved, normalized, relabelled
from .placement_types import Placement, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..device_mesh import DeviceMesh

Tensor = _C.Tensor
_base = {name: Tensor.__dict__[name] for name in ("grad", "data", "requires_grad", "is_leaf") if name in Tensor.__dict__}


def local_of(tensor: Any) -> Tensor:
    """The local tensor of a DTensor, with its history: a view of it that is a plain tensor."""
    with DisableTorchFunctionSubclass():
        return tensor.as_subclass(Tensor)


def watch() -> None:
    """Has operators come to DTensor from now on; called before the first one is made."""
    if DTensor.__dict__["__torch_function__"] is PLAIN_RESULTS:
        DTensor.__torch_function__ = classmethod(_intercepted)  # type: ignore[method-assign]
        _watch(subclasses=True)


def wrapped(local: Tensor, spec: Spec) -> DTensor:
    """The DTensor over a local tensor, which keeps its history."""
    watch()
    with DisableTorchFunctionSubclass():
        made = local.as_subclass(DTensor)
    made._spec = spec
    return made


def _intercepted(cls: type, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of DTensor."""
    return DTensor._call(func, args, kwargs or {})


class DTensor(Tensor):
    """A tensor whose elements lie on the ranks of a mesh; made by `distribute_tensor`, `DTensor.from_local` and factories.

    All ranks of the mesh call the same operators on it. `shape` is the whole tensor's.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> x = naru.distributed.tensor.DTensor.from_local(naru.ones(2), mesh, [naru.distributed.tensor.Shard(0)])
    >>> (x + x).full_tensor()
    tensor([2., 2.])
    >>> naru.distributed.destroy_process_group()
    """

    _spec: Spec
    _call: Any  # what does an operator: set by _dispatch.py

    __torch_function__ = PLAIN_RESULTS  # until there is one: packages import the class, and calls need not look for it

    # --- layout

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement for each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> Tensor:
        return local_of(self).detach()

    @property
    def shape(self) -> Any:
        """The whole tensor's shape."""
        return _C.Size(self._spec.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the whole tensor's elements."""
        return self.numel() * self.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """The whole tensor's shape, or its size along `dim`."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements of the whole tensor."""
        return math.prod(self._spec.shape)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """The strides that the whole tensor would have."""
        with DisableTorchFunctionSubclass():
            made = list(Tensor.stride(self))
        for m, p in enumerate(self.placements):
            if isinstance(p, Shard):
                count = self.device_mesh.shape[m]
                made = [s * count if s > made[p.dim] else s for s in made]
        return tuple(made) if dim is None else made[dim]

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    # --- autograd

    @property
    def grad(self) -> Any:
        """The gradient, a DTensor that lies as this one does."""
        found = _base["grad"].__get__(self)
        if found is None or isinstance(found, DTensor):
            return found
        kept = self.__dict__.get("_kept_grad")
        if kept is None or kept[0] is not found:
            kept = self.__dict__["_kept_grad"] = (found, wrapped(found, self._spec._replace(placements=dual(self.placements))))
        return kept[1]

    @grad.setter
    def grad(self, value: Any) -> None:
        self.__dict__.pop("_kept_grad", None)
        if isinstance(value, DTensor):
            value = local_of(value.redistribute(placements=dual(self.placements)))
        elif value is not None:
            raise TypeError("grad: the gradient of a DTensor is a DTensor, got a plain tensor; make one with DTensor.from_local")
        _base["grad"].__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def data(self) -> Any:
        """The tensor without its history."""
        return wrapped(_base["data"].__get__(self), self._spec)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise TypeError("data: wanted a DTensor, got a plain tensor; make one with DTensor.from_local")
        _base["data"].__set__(self, local_of(value).detach())
        self._spec = value._spec

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Computes gradients, as `Tensor.backward`; without `gradient` of a tensor of one element. All ranks call it."""
        if gradient is None:
            if self.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            local = _C.ones_like(self._local_tensor)
        elif isinstance(gradient, DTensor):
            local = local_of(gradient.redistribute(placements=dual(self.placements))).detach()
        else:
            raise TypeError("backward: wanted gradient to be a DTensor, got a plain tensor; make one with DTensor.from_local")
        local = local / _averaged(self.placements, self.device_mesh)
        local_of(self).backward(local, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)

    def register_hook(self, hook: Any) -> Any:
        """Registers `hook(grad)`, whose gradient is a DTensor; as `Tensor.register_hook`."""
        spec = self._spec._replace(placements=dual(self.placements))

        def called(grad: Tensor) -> Any:
            made = hook(wrapped(grad, spec))
            return None if made is None else local_of(made.redistribute(placements=spec.placements))

        with DisableTorchFunctionSubclass():
            return Tensor.register_hook(self, called)

    # --- conversions

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The DTensor whose local tensors are given; remembered by autograd.

        Args:
            local_tensor: this rank's part.
            device_mesh: the mesh.
            placements: how the parts lie, for each dimension of the mesh; None: Replicate.
            run_check: whether replicated tensors are taken from the first rank along their dimension.
            shape: the whole tensor's, where parts are not all of one size.
            stride, grad_placements: ignored.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("DTensor.from_local: the local_tensor argument only accepts torch.Tensor but got DTensor")
        made = normalized(placements, device_mesh, local_tensor.dim(), "DTensor.from_local")
        if shape is None:
            sizes = list(local_tensor.shape)
            for m, p in enumerate(made):
                if isinstance(p, Shard):
                    sizes[p.dim] *= device_mesh.shape[m]
        else:
            sizes = list(shape)
        spec = Spec(device_mesh, made, tuple(sizes))
        if device_mesh._coordinate is not None and local_part(spec)[0] != tuple(local_tensor.shape):
            raise RuntimeError(
                f"DTensor.from_local: the local tensor of shape {list(local_tensor.shape)} is not this rank's part {list(local_part(spec)[0])} of a "
                f"tensor of shape {sizes} with {made}; give the whole tensor's shape"
            )
        if run_check:
            from .._collectives import broadcast

            local_tensor = local_tensor.contiguous()
            for m, p in enumerate(made):
                if isinstance(p, Replicate):
                    broadcast(local_tensor.detach(), group=device_mesh.get_group(m), group_src=0)
        return wrapped(local_tensor.view_as(local_tensor), spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part, a plain tensor; remembered by autograd. `grad_placements`: how its gradients lie, if not as this tensor does."""
        local = local_of(self)
        if grad_placements is None:
            return local
        return relabelled(local, self._spec, normalized(grad_placements, self.device_mesh, self.dim(), "to_local"))

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other `placements` on its mesh; remembered by autograd.

        `async_op`, `forward_dtype` and `backward_dtype` are ignored. NotImplementedError for another `device_mesh`.
        """
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("redistribute: from one mesh to another is not there; use full_tensor, and distribute_tensor on the other mesh")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        made = normalized(placements, self.device_mesh, self.dim(), "redistribute")
        if made == self.placements:
            return self
        return wrapped(moved(local_of(self), self._spec, made), self._spec._replace(placements=made))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, a plain one, on each rank; remembered by autograd. `grad_placements`: how its gradients lie, if not all are equal."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def T(self) -> Any:  # noqa: N802
        """With its dimensions in the opposite order."""
        return self.permute(*range(self.dim() - 1, -1, -1))

    @property
    def mT(self) -> Any:  # noqa: N802
        """With its last two dimensions exchanged."""
        return self.transpose(-2, -1)

    @property
    def H(self) -> Any:  # noqa: N802
        """The conjugate of the transpose of a matrix."""
        return self.mH

    @property
    def mH(self) -> Any:  # noqa: N802
        """With its last two dimensions exchanged, conjugated."""
        return self.transpose(-2, -1).conj()

    @property
    def real(self) -> Any:
        """The real parts."""
        return wrapped(local_of(self).real, self._spec)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return wrapped(local_of(self).imag, self._spec)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any().full_tensor())

    def item(self) -> Any:
        """The number of a local tensor of one element, as PyTorch has it: of a pending sum only this rank's part; use `full_tensor().item()`."""
        return self._local_tensor.item()

    def tolist(self) -> Any:
        """RuntimeError, as in PyTorch: which tensor is meant is not clear."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got DTensor; use x.full_tensor().tolist() or x.to_local().tolist()")

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError, as in PyTorch: which tensor is meant is not clear."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses, got DTensor; use x.full_tensor().numpy() or x.to_local().numpy()")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def __bool__(self) -> bool:
        return bool(self._local_tensor)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return self.item().__index__()

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self, **kwargs: Any) -> str:
        local = self._local_tensor
        shown = local.item() if local.dim() == 0 else local
        return f"DTensor(local_tensor={shown}, device_mesh={self.device_mesh}, placements={self.placements})"

    def __deepcopy__(self, memo: dict) -> DTensor:
        if id(self) not in memo:
            copy = wrapped(self._local_tensor.clone(), self._spec)
            if self.requires_grad:
                copy.requires_grad_(True)
            if self.grad is not None:
                copy.grad = self.grad.__deepcopy__(memo)
            if getattr(self, "_is_param", False):
                copy._is_param = True
            memo[id(self)] = copy
        return memo[id(self)]

    def __copy__(self) -> DTensor:
        return wrapped(self._local_tensor, self._spec).requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restored, (self._local_tensor, tuple(self._spec), self.requires_grad, getattr(self, "_is_param", False))


def _restored(local: Tensor, spec: tuple[Any, ...], requires_grad: bool, is_param: bool) -> DTensor:
    """A DTensor from a file."""
    made = wrapped(local, Spec(*spec)).requires_grad_(requires_grad)
    if is_param:
        made._is_param = True
    return made


DTensor.__module__ = "naru.distributed.tensor"

"""Styles: what a plan says of a module's parameters, inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import _missing
from .._dtensor import DTensor
from .._factories import distribute_tensor
from ..placement_types import Placement, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...device_mesh import DeviceMesh

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


def _laid(value: Any, mesh: DeviceMesh, given: Placement, wanted: Placement) -> DTensor:
    """A tensor as a DTensor that lies as wanted; a plain one lies as given."""
    made = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, (given,))
    return made.redistribute(placements=(wanted,))


def _out(value: DTensor, wanted: Placement, local: bool) -> Any:
    made = value.redistribute(placements=(wanted,))
    return made.to_local() if local else made


class ParallelStyle:
    """Base of the styles: `apply` changes a module. `src_data_rank`: whose parameters are taken; None: each rank's own.

    >>> style = naru.distributed.tensor.parallel.ColwiseParallel(output_layouts=naru.distributed.tensor.Replicate())
    >>> isinstance(style, naru.distributed.tensor.parallel.ParallelStyle)
    True
    """

    src_data_rank: int | None = 0

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        """Changes the module's parameters to DTensors, and registers hooks on its inputs and outputs."""
        raise NotImplementedError(f"{type(self).__name__}._apply: a style has to say what it does with a module")

    def _share(self, module: Any, mesh: DeviceMesh, placements: dict[str, Placement]) -> None:
        for name, param in list(module._parameters.items()):
            if param is not None and not isinstance(param, DTensor):
                placement = placements.get(name, Replicate())
                module._parameters[name] = distribute_tensor(param, mesh, [placement], src_data_rank=self.src_data_rank)


def _kind(module: Any, style: str) -> str:
    from ....nn import Embedding, Linear

    if isinstance(module, Linear):
        return "linear"
    if isinstance(module, Embedding):
        return "embedding"
    raise NotImplementedError(f"{style} currently only support nn.Linear and nn.Embedding!, got {type(module).__name__}")


class _Layer(ParallelStyle):
    _input: Placement
    _output: Placement

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True) -> None:
        self.input_layouts = (input_layouts or self._input,)
        self.output_layouts = (output_layouts or self._output,)
        self.use_local_output = use_local_output

    def _hooks(self, module: Any, mesh: DeviceMesh, wanted: Placement) -> Any:
        def before(module: Any, inputs: tuple) -> Any:
            return (_laid(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:])

        module.register_forward_pre_hook(before)
        module.register_forward_hook(lambda module, inputs, output: _out(output, self.output_layouts[0], self.use_local_output))
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layer):
    """Splits a Linear, or an Embedding, by its outputs.

    Args:
        input_layouts: how a plain input lies; Replicate by default.
        output_layouts: how the output is laid; Shard(-1) by default.
        use_local_output: whether the output is a plain tensor.

    >>> naru.distributed.tensor.parallel.ColwiseParallel(output_layouts=naru.distributed.tensor.Replicate())
    ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Replicate(),), use_local_output=True)
    """

    _input, _output = Replicate(), Shard(-1)

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        kind = _kind(module, "ColwiseParallel")
        self._share(module, device_mesh, {"weight": Shard(0), "bias": Shard(0)} if kind == "linear" else {"weight": Shard(1)})
        return self._hooks(module, device_mesh, Replicate())


class RowwiseParallel(_Layer):
    """Splits a Linear by its inputs, or an Embedding by its rows.

    Args:
        input_layouts: how a plain input lies; Shard(-1) by default.
        output_layouts: how the output is laid; Replicate by default.
        use_local_output: whether the output is a plain tensor.

    >>> naru.distributed.tensor.parallel.RowwiseParallel(input_layouts=naru.distributed.tensor.Shard(1))
    RowwiseParallel(input_layouts=(Shard(dim=1),), output_layouts=(Replicate(),), use_local_output=True)
    """

    _input, _output = Shard(-1), Replicate()

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        kind = _kind(module, "RowwiseParallel")
        self._share(module, device_mesh, {"weight": Shard(1)} if kind == "linear" else {"weight": Shard(0)})
        return self._hooks(module, device_mesh, Shard(-1) if kind == "linear" else Replicate())


class SequenceParallel(ParallelStyle):
    """Replicates a module's parameters (LayerNorm, RMSNorm, Dropout), whose input is split along the sequence.

    Args:
        sequence_dim: the dimension.
        use_local_output: whether the output is a plain tensor.

    >>> naru.distributed.tensor.parallel.SequenceParallel(sequence_dim=2)
    SequenceParallel(sequence_dim=2, use_local_output=False)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        wanted = self.sequence_sharding[0]
        for part in module.modules():
            self._share(part, device_mesh, {})

        def before(module: Any, inputs: tuple) -> Any:
            return (_laid(inputs[0], device_mesh, wanted, wanted), *inputs[1:])

        module.register_forward_pre_hook(before)
        if self.use_local_output:
            module.register_forward_hook(lambda module, inputs, output: output.to_local() if isinstance(output, DTensor) else output)
        return module

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"


def _each_of(layouts: Any) -> tuple | None:
    return None if layouts is None else (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Lays a module's inputs as it needs them.

    Args:
        input_layouts: how each plain positional input lies; None for one that is no tensor.
        desired_input_layouts: how each is laid.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same, by name.
        use_local_output: whether the module gets plain tensors.

    >>> naru.distributed.tensor.parallel.PrepareModuleInput(input_layouts=naru.distributed.tensor.Shard(0),
    ...     desired_input_layouts=naru.distributed.tensor.Replicate())
    PrepareModuleInput(input_layouts=(Shard(dim=0),), desired_input_layouts=(Replicate(),), input_kwarg_layouts={}, desired_input_kwarg_layouts={}, use_local_output=False)
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | Sequence[Placement | None] | None = None,
        desired_input_layouts: Placement | Sequence[Placement | None] | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _each_of(input_layouts), _each_of(desired_input_layouts)
        if (self.input_layouts is None) != (self.desired_input_layouts is None) or len(self.input_layouts or ()) != len(self.desired_input_layouts or ()):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.input_kwarg_layouts, self.desired_input_kwarg_layouts = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same names")
        self.use_local_output = use_local_output

    def _prepared(self, value: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
        if given is None or wanted is None or not hasattr(value, "dim"):
            return value
        made = _laid(value, mesh, given, wanted)
        return made.to_local() if self.use_local_output else made

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def before(module: Any, inputs: tuple, named: dict[str, Any]) -> Any:
            if self.input_layouts is not None:
                if len(inputs) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                layouts = zip(inputs, self.input_layouts, self.desired_input_layouts or ())
                inputs = tuple(self._prepared(value, device_mesh, given, wanted) for value, given, wanted in layouts)
            for name, given in self.input_kwarg_layouts.items():
                if name in named:
                    named[name] = self._prepared(named[name], device_mesh, given, self.desired_input_kwarg_layouts[name])
            return inputs, named

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts="
            f"{self.input_kwarg_layouts}, desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Lays a module's outputs as what follows needs them.

    Args:
        output_layouts: how each plain output lies; None for one that is no tensor.
        desired_output_layouts: how each is laid.
        use_local_output: whether the outputs are plain tensors.

    >>> naru.distributed.tensor.parallel.PrepareModuleOutput(output_layouts=naru.distributed.tensor.Shard(0),
    ...     desired_output_layouts=naru.distributed.tensor.Replicate())
    PrepareModuleOutput(output_layouts=(Shard(dim=0),), desired_output_layouts=(Replicate(),), use_local_output=True)
    """

    def __init__(
        self, *, output_layouts: Placement | Sequence[Placement], desired_output_layouts: Placement | Sequence[Placement], use_local_output: bool = True
    ) -> None:
        self.output_layouts, self.desired_output_layouts = _each_of(output_layouts) or (), _each_of(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def after(module: Any, inputs: Any, outputs: Any) -> Any:
            many = isinstance(outputs, (tuple, list))
            each = outputs if many else (outputs,)
            if len(each) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = []
            for value, given, wanted in zip(each, self.output_layouts, self.desired_output_layouts):
                made.append(value if given is None else _out(_laid(value, device_mesh, given, wanted), wanted, self.use_local_output))
            return tuple(made) if many else made[0]

        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_layouts={self.output_layouts}, desired_output_layouts={self.desired_output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    Args:
        input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts: as for PrepareModuleInput.
        use_local_input: whether the module gets plain tensors.
        output_layouts, desired_output_layouts, use_local_output: as for PrepareModuleOutput.

    >>> split, whole = naru.distributed.tensor.Shard(0), naru.distributed.tensor.Replicate()
    >>> style = naru.distributed.tensor.parallel.PrepareModuleInputOutput(input_layouts=split, desired_input_layouts=whole,
    ...     output_layouts=whole, desired_output_layouts=split)
    >>> style.prepare_module_output
    PrepareModuleOutput(output_layouts=(Replicate(),), desired_output_layouts=(Shard(dim=0),), use_local_output=True)
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


__getattr__ = _missing.module_getattr(__name__)

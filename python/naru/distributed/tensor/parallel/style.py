"""Styles: what a plan for parallel modules says of each module. Plain values: packages create them at import; naru applies no plan."""

from __future__ import annotations

from typing import Any

from ...._compat import placeholders

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel"]


class ParallelStyle:
    """Base of the styles. It keeps `options`, the arguments by name.

    >>> style = naru.distributed.tensor.parallel.ColwiseParallel(output_layouts=naru.distributed.tensor.Replicate())
    >>> isinstance(style, naru.distributed.tensor.parallel.ParallelStyle)
    True
    """

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"


class ColwiseParallel(ParallelStyle):
    """Of a layer whose weight is split by columns. `options`: `input_layouts`, `output_layouts` (placements), `use_local_output`.

    >>> naru.distributed.tensor.parallel.ColwiseParallel(output_layouts=naru.distributed.tensor.Replicate())
    ColwiseParallel(output_layouts=Replicate())
    """


class RowwiseParallel(ParallelStyle):
    """Of a layer whose weight is split by rows. `options`: `input_layouts`, `output_layouts` (placements), `use_local_output`.

    >>> naru.distributed.tensor.parallel.RowwiseParallel(input_layouts=naru.distributed.tensor.Shard(1))
    RowwiseParallel(input_layouts=Shard(dim=1))
    """


class SequenceParallel(ParallelStyle):
    """Of a layer whose input is split along the sequence. `options`: `sequence_dim`, `use_local_output`.

    >>> naru.distributed.tensor.parallel.SequenceParallel(sequence_dim=2)
    SequenceParallel(sequence_dim=2)
    """


class PrepareModuleInput(ParallelStyle):
    """How a module's inputs are laid out. `options`: `input_layouts`, `desired_input_layouts` (placements) and others of PyTorch's.

    >>> naru.distributed.tensor.parallel.PrepareModuleInput(input_layouts=naru.distributed.tensor.Shard(0))
    PrepareModuleInput(input_layouts=Shard(dim=0))
    """


class PrepareModuleOutput(ParallelStyle):
    """How a module's outputs are laid out. `options`: `output_layouts`, `desired_output_layouts` (placements), `use_local_output`.

    >>> naru.distributed.tensor.parallel.PrepareModuleOutput(output_layouts=naru.distributed.tensor.Replicate())
    PrepareModuleOutput(output_layouts=Replicate())
    """


__getattr__ = placeholders.module_getattr(__name__)

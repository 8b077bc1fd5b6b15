"""`torch.utils.tensorboard.writer`: the same names as `torch.utils.tensorboard`."""

from __future__ import annotations

from . import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]

"""`torch.utils.tensorboard.writer`: the same names."""

from __future__ import annotations

from . import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]

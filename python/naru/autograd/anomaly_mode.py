"""`torch.autograd.anomaly_mode`: the anomaly detection classes of `torch.autograd`."""

from __future__ import annotations

from . import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]

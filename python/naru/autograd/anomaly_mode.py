"""`torch.autograd.anomaly_mode`: the same names."""

from __future__ import annotations

from . import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]

"""`torch.profiler.profiler`: the same names as `torch.profiler`."""

from __future__ import annotations

from . import ProfilerAction, _default_schedule_fn as _default_schedule_fn, profile, schedule, supported_activities, tensorboard_trace_handler

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]

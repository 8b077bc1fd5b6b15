"""`torch.onnx.errors`: what an export raises."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """What an export warns with."""


class OnnxExporterError(RuntimeError):
    """A module that cannot be written as ONNX."""


class UnsupportedOperatorError(OnnxExporterError):
    """A function of which the exporter knows no ONNX: its message names it."""

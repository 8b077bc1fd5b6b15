"""`torch.onnx.errors`: what an export raises."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """What an export warns with.

    >>> issubclass(naru.onnx.errors.OnnxExporterWarning, UserWarning)
    True
    """


class OnnxExporterError(RuntimeError):
    """A module that cannot be written as ONNX.

    >>> issubclass(naru.onnx.errors.UnsupportedOperatorError, naru.onnx.errors.OnnxExporterError)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """A function of which the exporter knows no ONNX: its message names it.

    >>> issubclass(naru.onnx.errors.UnsupportedOperatorError, RuntimeError)
    True
    """

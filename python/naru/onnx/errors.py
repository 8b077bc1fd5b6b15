"""`torch.onnx.errors`: exceptions and warnings of the exporter."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """Category of the exporter's warnings.

    >>> issubclass(naru.onnx.errors.OnnxExporterWarning, UserWarning)
    True
    """


class OnnxExporterError(RuntimeError):
    """Raised for a module that cannot be exported.

    >>> issubclass(naru.onnx.errors.UnsupportedOperatorError, naru.onnx.errors.OnnxExporterError)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """Raised for a function that has no ONNX form here; the message names it.

    >>> issubclass(naru.onnx.errors.UnsupportedOperatorError, RuntimeError)
    True
    """

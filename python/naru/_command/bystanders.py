"""Under `naru run`, an installed package that can't be imported over naru is an ImportError, whatever it stumbled over.

Packages import one another where they are installed, and go on without one whose import is an ImportError. At import a package may read a name that naru
lacks (AttributeError) or call a placeholder (NotImplementedError): without what is done here, that would end the package that asked, too.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_HOME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))


def _is_narus(error: Exception) -> bool:
    """Whether naru raised the error, or an object of naru lacks the attribute."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HOME):
        return True
    lacking = error.obj if isinstance(error, AttributeError) else None
    module = getattr(lacking if isinstance(lacking, type) else type(lacking), "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("naru", "torch")


def _is_installed(module: ModuleType) -> bool:
    path = getattr(module, "__file__", None) or ""
    return any(part in path for part in _INSTALLED) and not path.startswith(_HOME)


def install() -> None:
    """Makes naru's errors in the code of installed packages ImportErrors, while they are imported."""
    plain = SourceFileLoader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        try:
            plain(self, module)
        except ImportError:
            raise
        except Exception as error:
            if not _is_installed(module) or not _is_narus(error):
                raise
            raise ImportError(f"{module.__name__} can't be imported over naru: {error}", name=module.__name__, path=module.__file__) from error

    # The import system's own frames are not shown in tracebacks, and this one is among them.
    exec_module.__code__ = exec_module.__code__.replace(co_filename=plain.__code__.co_filename)
    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]

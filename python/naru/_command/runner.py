"""`naru run`: runs a script with naru as `torch`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from typing import TYPE_CHECKING, Any

from . import bystanders, renaming, screen
from .._missing import is_pytorchs, provided, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType, TracebackType

_ALIAS = "torch"
_REAL = "naru"
# Names that belong to PyTorch and that naru provides, too.
_ALSO = ("safetensors", "safetensors.torch")
_FUNCTORCH = "functorch"  # a separate package that comes with PyTorch
# Provided by naru only if no package of that name is installed.
_VISION, _REAL_VISION = "torchvision", "naru.vision"


# Modules that `multiprocessing` imports when it starts the first process that is not a fork.
_STARTERS = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")


class _Alias:
    """Pickles as a call of install_torch_alias."""

    def __reduce__(self) -> Any:
        return install_torch_alias, ()


def _tell_children() -> None:
    """Makes `torch` mean naru in all processes that `multiprocessing` starts, before they load the script."""
    from multiprocessing import forkserver, spawn

    plain = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"torch_alias": _Alias(), **plain(name)}

    spawn.get_preparation_data = get_preparation_data
    # By default the fork server would load the script itself.
    if forkserver._forkserver._preload_modules == ["__main__"]:  # type: ignore[attr-defined]
        forkserver.set_forkserver_preload([_REAL])


def is_absent(name: str) -> bool:
    """Whether no package of that name is installed or next to the script: no other finder finds it."""
    others = (finder for finder in sys.meta_path if not isinstance(finder, TorchFinder) and hasattr(finder, "find_spec"))
    return not any(finder.find_spec(name, None) for finder in others)


def _is_naru_vision() -> bool:
    loaded = sys.modules.get(_VISION)
    return loaded is not None and loaded is sys.modules.get(_REAL_VISION)


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves `import torch` and `import torch.X` to the same module objects as `import naru` and `import naru.X`.

    It is first in sys.meta_path, so that an installed PyTorch is never loaded. `torchvision` is naru.vision if torchvision is not installed.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in _STARTERS:
            _tell_children()
        if name in _ALSO:
            real = _REAL + ".safetensors"
        elif name == _ALIAS or name.startswith(_ALIAS + "."):
            real = _REAL + name[len(_ALIAS) :]
        elif name == _FUNCTORCH or name.startswith(_FUNCTORCH + "."):
            real = f"{_REAL}.{name}"
        elif (name == _VISION and is_absent(name)) or (name.startswith(_VISION + ".") and _is_naru_vision()):
            real = _REAL_VISION + name[len(_VISION) :]
        else:
            return None
        try:
            module = (provided(name.partition(".")[2]) if not real.startswith(f"{_REAL}.{_FUNCTORCH}") else None) or importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name is None or not real.startswith(error.name):
                raise
            missing = name.removeprefix(_ALIAS + ".")
            text = f": {said(missing)}" if is_pytorchs(missing) else " (naru does not have it)"
            if name.startswith(_VISION):
                text = f" ({name} is not in naru.vision yet)"
            raise ModuleNotFoundError(f"No module named '{name}'{text}", name=name) from None
        if sys.modules.get(name) is module:  # set by `rename`; the import system would use the module's own spec
            del sys.modules[name]
        return importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__") or name in _ALSO, loader_state=module)

    def create_module(self, spec: Any) -> ModuleType:
        module = spec.loader_state
        # The import system sets the module's spec; exec_module below restores naru's own.
        spec.loader_state = (module, module.__spec__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state[1]

    def get_code(self, name: str) -> Any:
        """Returns the code of naru's module, for `python -m torch.distributed.run`."""
        import importlib.util

        real = _REAL + name[len(_ALIAS) :]
        spec = importlib.util.find_spec(real)
        return spec.loader.get_code(real) if spec is not None and isinstance(spec.loader, importlib.abc.InspectLoader) else None

    def find_distributions(self, context: Any) -> Any:
        """What `importlib.metadata` reports for torch and torchvision: packages query their versions."""
        from .distribution import distributions

        asked = context.name is None or context.name.lower() == _VISION
        # Only looks into folders: other finders may refuse imports (pip's, while it installs).
        return distributions(context.name, asked and importlib.machinery.PathFinder.find_spec(_VISION) is None)


def install_torch_alias() -> None:
    """Makes `torch` mean naru in this process and in those that it starts by `os.fork` or `multiprocessing`."""
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(_ALIAS)
    if loaded is not None and loaded is not sys.modules.get(_REAL):
        raise RuntimeError("torch is already loaded in this process, so it can't be made to mean naru")
    # The finder of child/sitecustomize.py has done its work; left in place, it would answer on our behalf, as another package's finder.
    sys.meta_path[:] = [TorchFinder(), *(finder for finder in sys.meta_path if not hasattr(finder, "waits_for_naru"))]
    renaming.install()
    bystanders.install()
    if any(name in sys.modules for name in _STARTERS):
        _tell_children()
    if os.environ.get("NARU_TORCH_ALIAS_DENY") or os.environ.get("NARU_TORCH_ALIAS_ALLOW"):
        from .denial import install

        install()


def _tell_commands() -> None:
    """Makes `torch` mean naru in interpreters that the script launches, too: `child/sitecustomize.py` is imported first there."""
    folders = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "child")]
    before = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder not in (*folders, "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders + before)
    os.environ["NARU_TORCH_ALIAS"] = sys.implementation.cache_tag or ""


def _is_ours(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen ") or os.path.basename(filename) == "runpy.py"


def _without_runner(trace: TracebackType | None) -> TracebackType | None:
    """The traceback, starting at the script's first frame."""
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _call(action: Callable[[], Any]) -> int:
    """Runs `action`; an exception is shown as the interpreter shows the script's own."""
    try:
        action()
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, RuntimeError) and str(error).startswith("NARU_VIRTUAL: "):
            return screen.wrong("", str(error))
        trace = _without_runner(error.__traceback__)
        error.__traceback__ = trace
        chained: BaseException | None = error
        seen: set[int] = set()
        while chained is not None and id(chained) not in seen:
            seen.add(id(chained))
            chained.__traceback__ = _without_runner(chained.__traceback__)
            chained = chained.__cause__ or chained.__context__
        sys.excepthook(type(error), error, trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _begin(arguments: list[str], folder: str) -> None:
    """Prepares for any program: `torch` is naru here and in child processes; sets sys.argv and the folder that is first in sys.path."""
    install_torch_alias()
    _tell_commands()
    sys.argv = arguments
    sys.path[0:1] = [folder]


def run_script(path: str, arguments: list[str]) -> int:
    """Runs a file as `__main__` with `arguments`; returns the exit status."""
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"naru run: can't open file '{path}': {error.strerror}", file=sys.stderr)
        return 2
    _begin([path, *arguments], os.path.dirname(os.path.abspath(path)))

    import types

    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __builtins__=__builtins__, __cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", path)
    )
    sys.modules["__main__"] = module

    def action() -> None:
        code: CodeType = compile(source, path, "exec", dont_inherit=True)
        exec(code, module.__dict__)

    return _call(action)


def run_module(name: str, arguments: list[str]) -> int:
    """Runs a module as `__main__` with `arguments`, as `python -m` does; returns the exit status."""
    import runpy

    _begin([name, *arguments], os.getcwd())
    return _call(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def run_text(source: str, name: str, arguments: list[str]) -> int:
    """Runs source text as `__main__`, as `python -c` does; `arguments` is its sys.argv, `name` is shown in tracebacks."""
    _begin(arguments, "")

    import types

    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__)
    sys.modules["__main__"] = module

    def action() -> None:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)

    return _call(action)

"""Files of `torch.jit.save`: recognized by their first opcodes, and read as data."""

from __future__ import annotations

import pickletools
from pickle import UnpicklingError
from typing import IO, Any

from ..serialization import _opened, load, load_modules

MARKER = "naru.jit"


def is_marked(file: IO[bytes]) -> bool:
    """Whether an archive's pickle begins as `torch.jit.save` writes it. Reads only its first opcodes, and executes none."""
    from zipfile import BadZipFile, ZipFile

    start = file.tell()
    try:
        with ZipFile(file) as archive:
            name = next((name for name in archive.namelist() if name.endswith("data.pkl")), None)
            if name is None:
                return False
            with archive.open(name) as pickle:
                head = pickle.read(64)
        for code, argument, _ in pickletools.genops(head):
            if code.name in ("GLOBAL", "STACK_GLOBAL", "REDUCE"):
                return False
            if isinstance(argument, str):
                return argument == MARKER
        return False
    except (BadZipFile, ValueError, EOFError, NotImplementedError, OSError, RuntimeError):
        return False
    finally:
        file.seek(start)


def read_marked(f: Any, map_location: Any, weights_only: bool) -> dict[str, Any]:
    """The content of a `torch.jit.save` file: "module" and "extra". ValueError if the file does not exist, RuntimeError for other files."""
    other = "torch.jit.load: this is no file of naru's torch.jit.save"
    try:
        with _opened(f) as file:
            if not is_marked(file):
                raise RuntimeError(f"{other}; torch.load reads checkpoints, and TorchScript of PyTorch's is not read")
            found = load_modules(file, map_location) if weights_only else load(file, map_location=map_location, weights_only=False)
    except FileNotFoundError as error:
        raise ValueError(f"The provided filename {f} does not exist") from error
    except UnpicklingError as error:
        raise RuntimeError(
            f"torch.jit.load: the file holds more than data and modules of classes that this program has imported. Import them first; or, if you trust "
            f"the file, torch.jit.load(file, weights_only=False). ({error})"
        ) from error
    except RuntimeError:
        raise
    except Exception as error:
        raise RuntimeError(f"{other} ({error}), or it is damaged") from error
    if not (type(found) is dict and found.get(MARKER) == 1 and "module" in found and type(found.get("extra")) is dict):
        raise RuntimeError(other)
    return found

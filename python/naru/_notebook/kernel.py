"""`naru jupyter install`: installs a Jupyter kernel in which `import torch` is naru."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from .._command.screen import wrong
from .._serialization.atomic_file import atomic_file

EXTRA = "pip install ipykernel"


def specification(display_name: str, virtual: str | None) -> dict[str, Any]:
    """The contents of kernel.json: ipykernel of this Python, run by `naru run`."""
    command = [sys.executable, "-m", "naru", "run", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    found: dict[str, Any] = {"argv": command, "display_name": display_name, "language": "python", "metadata": {"debugger": True}}
    if virtual:
        found["env"] = {"NARU_VIRTUAL": virtual}
    return found


def data_folder() -> Path:
    """The folder in which Jupyter looks for the user's data."""
    if given := os.environ.get("JUPYTER_DATA_DIR"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Jupyter"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "jupyter"


def install(name: str, display_name: str, virtual: str | None, prefix: str | None, as_json: bool) -> int:
    """Writes the kernel's folder. Returns 2 if ipykernel is missing or if the name or the folder is invalid."""
    if not name or not all(c.isalnum() or c in "-_." for c in name):
        return wrong("jupyter install", f"--name: wanted letters, digits, '-', '_' and '.', got '{name}'")
    if importlib.util.find_spec("ipykernel") is None:
        return wrong("jupyter install", f"needs ipykernel, which this Python does not have: {EXTRA}")
    folder = (Path(prefix) / "share" / "jupyter" if prefix else data_folder()) / "kernels" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / "kernel.json", "w", encoding="utf-8") as file:
            json.dump(specification(display_name, virtual), file, indent=1)
    except OSError as error:
        return wrong("jupyter install", f"can't write {folder}: {error.strerror}")
    print(json.dumps({"name": name, "folder": str(folder)}) if as_json else f"{display_name}: {folder} (jupyter kernelspec remove {name} takes it away)")
    return 0

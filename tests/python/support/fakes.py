"""The paths of the built libraries that stand in for vendors' drivers (tests/fakes)."""
from pathlib import Path

import naru
import pytest

# The extension is in python/naru of the repository, or in the build folder of another build.
TOP = Path(naru.__file__).resolve().parents[2]
FAKES = next((p for p in (TOP / "tests/fakes", TOP / "build/release/tests/fakes") if (p / "libcuda.so").exists()), None)
needs_fakes = pytest.mark.skipif(FAKES is None, reason="the libraries in place of drivers are not built (./run build all)")

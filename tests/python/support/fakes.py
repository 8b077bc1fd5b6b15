"""The paths of the built libraries that stand in for vendors' drivers (tests/fakes)."""
import os
import subprocess
import sys
from pathlib import Path

import naru
import pytest

HOME = Path(__file__).resolve().parents[3]
# The extension is in python/naru of the repository, or in the build folder of another build.
TOP = Path(naru.__file__).resolve().parents[2]
FAKES = next((p for p in (TOP / "tests/fakes", TOP / "build/release/tests/fakes") if (p / "libcuda.so").exists()), None)
needs_fakes = pytest.mark.skipif(FAKES is None, reason="the libraries in place of drivers are not built (./run build all)")


def cuda_environment(cache, gpus="0000:01:00.0 a 9.0 2048 H100;0000:02:00.0 b 7.5 2048 T4"):
    """The variables of a process whose cuda devices are those of the libraries here. cache: a folder for its kernels."""
    libraries = {name: str(FAKES / f"lib{file}.so") for name, file in (("CUDA", "cuda"), ("NVRTC", "nvrtc"), ("CUBLASLT", "cublasLt"), ("CUFFT", "cufft"), ("CUSOLVER", "cusolver"), ("CUDNN", "cudnn"), ("NCCL", "nccl"))}
    return {
        **os.environ,
        **{f"NARU_{name}_LIBRARY": path for name, path in libraries.items()},
        "NARU_CUDA_DEVICE_NODE": "/dev/null",
        "NARU_FAKE_GPUS": gpus,
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus.count(";") + 1))),
        "PYTHONPATH": str(Path(naru.__file__).resolve().parents[1]),
        "NARU_CACHE_DIR": str(cache),
        "NARU_VIRTUAL": "mps:1",
        "NARU_TEST_DEVICES": "cuda",
    }


def run(environment, *command):
    """The exit code of a Python program in the repository, and all that it says."""
    done = subprocess.run([sys.executable, *command], env=environment, cwd=HOME, capture_output=True, text=True, timeout=1200)
    return done.returncode, done.stdout + done.stderr

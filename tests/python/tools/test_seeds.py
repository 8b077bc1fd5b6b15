"""The programs of tutorials run unchanged under `naru run`: with cuda and mps, with one of them, and with neither."""
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "seeds"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
SETTINGS = {"cuda:3,mps:1": {"cuda", "mps"}, "cuda:3": {"cuda"}, "mps:1": {"mps"}, "": set()}

# Programs that use a device without checking that it is available.
NEEDS = {
    "moving_tensors": "cuda",
    "first_model_on_cuda": "cuda",
    "modules_move_in_place": "cuda",
    "three_errors": "cuda",
    "current_device": "cuda",
    "loader_with_pinned_memory": "cuda",
    "mps_named_outright": "mps",
}


# Each code block of the five tutorials (by tutorial, in order), the program that represents it, and the text that this program must contain.
BLOCKS = [
    ("1", "the best device as a string", "choosing_a_device", 'else "mps" if torch.backends.mps.is_available()'),
    ("1", "what there is, and the choice", "choosing_a_device", 'print(f"Using {device}")'),
    ("1", "tensors and a model on mps", "mps_named_outright", "y = torch.randn(32, 100, device=device)"),
    ("1", "a loader with pinned memory", "loader_with_pinned_memory", "num_workers=4, pin_memory=True"),
    ("2", "the device of a tensor", "devices_of_tensors", "x = torch.tensor([1.0, 2.0, 3.0])"),
    ("2", "what there is, and the choice of a torch.device", "choosing_a_device", "print(torch.cuda.get_device_name(0))"),
    ("2", "device objects", "devices_of_tensors", "y = torch.ones(3, 4, device='cuda:0')"),
    ("2", "to a device, with a dtype", "devices_of_tensors", "x.to(device=device, dtype=torch.float16)"),
    ("2", "cuda() and cpu()", "moving_tensors", "x_same = x_cpu.cpu()"),
    ("2", "operands on two devices", "three_errors", "result = x_cpu.to(x_gpu.device) + x_gpu"),
    ("2", "numpy() of a tensor on a device", "three_errors", "x_np = x_gpu.cpu().numpy()"),
    ("2", "numpy() of a tensor that requires grad", "three_errors", "x_np = x.detach().cpu().numpy()"),
    ("2", "the current device", "current_device", "with torch.cuda.device(2):"),
    ("2", "the portable pattern", "portable_training", "batch_y = batch_y.to(device)"),
    ("3", "is there a GPU", "choosing_a_device", "print(torch.cuda.device_count())"),
    ("3", "choosing by if and elif", "choosing_a_device", "elif torch.backends.mps.is_available():"),
    ("3", "to(device)", "choosing_a_device", "y = torch.zeros(3, 4, device=device)"),
    ("3", "cuda() and cpu()", "moving_tensors", "x_gpu1 = x.cuda(1)"),
    ("3", "figures of memory", "memory_figures", "torch.cuda.get_device_properties(0).total_memory"),
    ("3", "memory given back", "memory_figures", "large_tensor = torch.randn(10000, 10000, device='cuda')"),
    ("3", "a model on the GPU", "sequential_on_the_best_device", "nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))"),
    ("3", "several GPUs", "sequential_on_the_best_device", "model = nn.DataParallel(model)"),
    ("4", "the best device in one line", "numpy_and_mps", 'device = "cuda" if torch.cuda.is_available() else "mps" if torch'),
    ("4", "how many", "numpy_and_mps", "torch.mps.device_count()"),
    ("4", "a tensor on the cpu", "numpy_and_mps", 'tensor = torch.tensor([1, 2, 3], device="cpu")'),
    ("4", "moved to mps", "numpy_and_mps", "tensor_on_mps = tensor.to(device)"),
    ("4", "numpy() there", "numpy_and_mps", "tensor_on_mps.numpy()"),
    ("4", "numpy() on the cpu", "numpy_and_mps", "tensor_back_on_cpu = tensor_on_mps.cpu().numpy()"),
    ("5", "CUDA C", "vec_add", "__global__ void VecAdd(float *A, float *B, float *C)"),
    ("5", "a first model", "first_model_on_cuda", "print(output.to('cpu'))"),
    ("5", "cuda()", "moving_tensors", 'torch.tensor([1., 2., 3.]).cuda("cuda:0")'),
    ("5", "cpu()", "moving_tensors", "x_cpu = x_gpu.cpu()"),
    ("5", "to()", "moving_tensors", 'x_cpu = x_gpu.to("cpu")'),
    ("5", "all together", "modules_move_in_place", "result_gpu = model(x_gpu)"),
]


def environment_of(setting):
    environment = {k: v for k, v in os.environ.items() if k not in ("NARU_VIRTUAL", "NARU_CACHING", "PYTORCH_ENABLE_MPS_FALLBACK")}
    if setting:
        environment["NARU_VIRTUAL"] = setting
    if "cuda" not in setting:
        environment["CUDA_VISIBLE_DEVICES"] = ""  # hides the machine's own devices
    return environment


@functools.cache
def reason(kind, setting):
    command = [sys.executable, "-c", f"import naru; print(naru.why_unavailable({kind!r}))"]
    return subprocess.run(command, env=environment_of(setting), capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("setting", SETTINGS, ids=[s or "none" for s in SETTINGS])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tutorial_runs_where_its_device_is_and_says_why_where_it_is_not(program, setting):
    command = [sys.executable, "-m", "naru", "run", str(FOLDER / f"{program}.py")]
    done = subprocess.run(command, env=environment_of(setting), capture_output=True, text=True, timeout=120)
    kind = NEEDS.get(program)
    if kind is None or kind in SETTINGS[setting]:
        assert done.returncode == 0, done.stdout + done.stderr
        return
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("Traceback") == 1, done.stderr  # exactly one error, without chained exceptions
    last = done.stderr.strip().splitlines()[-1]
    assert "Error: " in last and f"{kind}" in last and len(reason(kind, setting)) > 20 and reason(kind, setting) in last, last


def test_every_program_is_in_the_list_of_those_that_ask_or_exists():
    assert set(NEEDS) <= set(PROGRAMS) and len(PROGRAMS) >= 14
    print(f"{len(PROGRAMS)} programs in {len(SETTINGS)} settings: {len(PROGRAMS) * len(SETTINGS)} runs")


def test_every_block_of_the_tutorials_has_a_program_that_runs_it():
    texts = {name: (FOLDER / f"{name}.py").read_text() for name in PROGRAMS}
    for block in BLOCKS:
        assert block[3] in texts[block[2]], block
    assert {block[2] for block in BLOCKS} == set(PROGRAMS) - {"mps_fallback", "products_on_every_device"}  # blocks of text, and of an exercise

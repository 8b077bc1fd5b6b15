"""What runs when a loader's objects are freed: no Python code, within which a KeyboardInterrupt would be lost, on the thread that drops them."""
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import naru as torch
import pytest
from naru.utils import data as D
from worker_cases import with_cuda

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:This process .* is multi-threaded")


class Rows(D.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((20_000,), float(i))  # large enough to be sent through shared memory


KINDS = {
    "rows": lambda: D.DataLoader(D.TensorDataset(torch.ones(64, 10)), batch_size=8, num_workers=2),
    "rows without workers": lambda: D.DataLoader(D.TensorDataset(torch.ones(64, 10)), batch_size=8),
    "processes": lambda: D.DataLoader(Rows(), batch_size=8, num_workers=2),
    "persistent": lambda: D.DataLoader(Rows(), batch_size=8, num_workers=2, persistent_workers=True),
    "threads": lambda: D.DataLoader(D.TensorDataset(torch.ones(64, 10)), batch_size=8, num_workers=2, sampler=list(range(64))),
}


def calls_of(act):
    """Which functions written in Python are called while `act` lets go of something."""
    found = []
    sys.setprofile(lambda frame, event, _: found.append(f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}") if event == "call" else None)
    try:
        act.clear()
    finally:
        sys.setprofile(None)
    return found


@with_cuda
@pytest.mark.parametrize("pin", [False, True], ids=["", "pinned"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_python_runs_where_a_pass_is_let_go_of(kind, pin):
    loader = KINDS[kind]()
    loader.pin_memory = pin
    held = [iter(loader)]
    batch = [next(held[0])]
    assert calls_of(batch) == []  # including data in shared memory
    del loader
    assert calls_of(held) == []


CTRL_C = """
    import signal, sys, threading
    import naru
    from naru.utils import data as D
    from naru.utils.data._utils import worker_pool

    class Rows(D.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, i):
            return i

    done = threading.Event()
    Pool = getattr(worker_pool, sys.argv[1])
    drop = Pool.drop

    def dropped(self):
        signal.raise_signal(signal.SIGINT)  # within the finalizer, whatever thread that is
        drop(self)
        done.set()

    Pool.drop = dropped
    data = Rows() if sys.argv[1] == "ProcessPool" else D.TensorDataset(naru.ones(64, 10))
    it = iter(D.DataLoader(data, batch_size=8, num_workers=2, sampler=list(range(64))))
    next(it)
    assert type(it._pool) is Pool
    try:
        del it
        done.wait()
        for _ in range(1000):
            pass
        print("lost")
    except KeyboardInterrupt:
        done.wait()
        print("told")
    Pool.drop = drop
"""


@pytest.mark.parametrize("pool", ["ProcessPool", "ThreadPool"])
def test_a_ctrl_c_within_a_loaders_finalizer_is_not_lost(pool):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(CTRL_C), pool], capture_output=True, text=True, env=env, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, "told\n"), run.stderr
    assert "Exception ignored" not in run.stderr


def test_a_program_ends_well_in_the_middle_of_passes():
    program = """
    import naru
    from naru.utils import data as D
    loaders = [D.DataLoader(D.TensorDataset(naru.ones(64, 10)), batch_size=8, num_workers=n) for n in (0, 2)]
    loaders += [D.DataLoader(D.TensorDataset(naru.ones(64, 10)), batch_size=8, num_workers=2, sampler=list(range(64)))]
    loaders += [D.DataLoader(list(range(64)), batch_size=8, num_workers=2)]
    passes = [iter(loader) for loader in loaders]
    print(len([next(p) for p in passes]))
    naru.kept = passes[1:3]
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=env, timeout=60, check=False)
        assert (run.returncode, run.stdout, run.stderr) == (0, "4\n", "")

"""The loader's worker processes at the end of a program, and misuse."""
import os
import signal
import subprocess
import sys
import textwrap

from naru.utils import data as D
import pytest
from worker_cases import gone, HOME, until

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def answer_to_ctrl_c():
    """Of a program in the background SIGINT is ignored, and so of the programs it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_script(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text("import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, "-m", "naru", "run", str(script)],
        env={**os.environ, "PYTHONPATH": HOME}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=answer_to_ctrl_c, start_new_session=True,
    )  # fmt: skip


ENDLESS = """
import os, threading, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 10 ** 9
    def __getitem__(self, i):
        {sample}
        return os.getpid()
def loop():
    data = DataLoader(Data(), batch_size=None, num_workers=2, multiprocessing_context="{context}", pin_memory={pin})
    it = iter(data)
    print(next(it), next(it), flush=True)
    print("ready", flush=True)
    {body}
if __name__ == "__main__":
    loop()
"""
LOADING = "for _ in it: pass"
WAITING = "it = list(it)"
TRAINING = "while True: sum(range(1000))"
STUCK = "if i > 1: threading.Event().wait()"


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("body, sample", [(LOADING, "pass"), (LOADING, STUCK), (TRAINING, "pass"), (TRAINING, STUCK)])
@pytest.mark.parametrize("everybody", [False, True])
def test_ctrl_c_ends_the_program_and_its_workers(tmp_path, context, pin, body, sample, everybody):
    program = run_script(tmp_path, ENDLESS.format(context=context, body=body, sample=sample, pin=pin))
    pids = [int(p) for p in program.stdout.readline().split()]
    assert program.stdout.readline() == "ready\n", program.stderr.read()
    # A terminal sends the signal to the whole process group, `kill` to one process.
    (os.killpg if everybody else os.kill)(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=120)
    assert "KeyboardInterrupt" in err and program.returncode in (130, -signal.SIGINT), err
    assert "worker" not in err.split("KeyboardInterrupt")[-1]
    until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_do_not_outlive_a_program_that_is_killed(tmp_path, context):
    program = run_script(tmp_path, ENDLESS.format(context=context, body=LOADING, sample=STUCK, pin=False))
    pids = [int(p) for p in program.stdout.readline().split()]
    assert program.stdout.readline() == "ready\n", program.stderr.read()
    program.kill()
    program.communicate(timeout=120)
    until(lambda: all(gone(pid) for pid in pids))


def test_a_program_ends_that_leaves_persistent_workers_behind(tmp_path):
    body = "global kept; kept = (it, data); data.more = data"
    text = ENDLESS.format(context="fork", body=body, sample="pass", pin=True).replace("pin_memory", "persistent_workers=True, pin_memory")
    program = run_script(tmp_path, text)
    pids = [int(p) for p in program.stdout.readline().split()]
    out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (0, "")
    until(lambda: all(gone(pid) for pid in pids))


def test_a_script_run_by_naru_run_has_torch_in_workers_started_anew(tmp_path):
    script = """
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __len__(self): return 2
        def __getitem__(self, i): return torch.__spec__.name
    if __name__ == "__main__":
        for context in ("spawn", "forkserver", "fork"):
            print(list(DataLoader(Data(), batch_size=None, num_workers=1, multiprocessing_context=context)))
    """
    out, err = run_script(tmp_path, script).communicate(timeout=120)
    assert (out, err) == ("['naru', 'naru']\n" * 3, "")


BAD_USE = [
    (lambda: D.DataLoader([1], num_workers=1, multiprocessing_context="thread"), ValueError, "should specify a valid start method in ["),
    (lambda: D.DataLoader([1], num_workers=1, multiprocessing_context=3), TypeError, "should be a valid context object or a string"),
    (lambda: D.DataLoader([1], multiprocessing_context="fork"), ValueError, "can only be used with multi-process loading (num_workers > 0)"),
    (lambda: D.DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor option could only be specified in multiprocessing"),
    (lambda: D.DataLoader([1], num_workers=1, prefetch_factor=-1), ValueError, "prefetch_factor option should be non-negative"),
    (lambda: D.DataLoader([1], timeout=-1), ValueError, "timeout option should be non-negative"),
    (lambda: D.DataLoader([1], persistent_workers=True), ValueError, "persistent_workers option needs num_workers > 0"),
    (lambda: setattr(D.DataLoader([1]), "batch_size", 2), ValueError, "batch_size attribute should not be set after DataLoader is initialized"),
    (lambda: iter(D.DataLoader([1], timeout=1)), AssertionError, "timeout"),
    (lambda: iter(D.DataLoader([1], num_workers=1, prefetch_factor=0)), AssertionError, "prefetch_factor must be greater than 0"),
]  # fmt: skip


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_use_of_workers_raises_pytorchs_error(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value.args[0])


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 4096 worker processes in total. Our suggested max number of worker"):
        D.DataLoader([1], num_workers=4096)


FINALIZER = """
import builtins, gc, sys, threading, naru as torch
from naru.utils import data as D

class Numbers:
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return torch.tensor(i)

def refuse(what):
    def f(*args, **kwargs):
        raise AssertionError(f"a finalizer must not {what}")
    return f

def dropped(loader):
    it = iter(loader)
    next(it)
    cycle = [it]
    cycle.append(cycle)
    del it, cycle

for options in ({"num_workers": 2}, {"num_workers": 2, "pin_memory": True}, {"num_workers": 2, "persistent_workers": True}):
    loader = D.DataLoader(Numbers(), batch_size=4, **options)
    gc.disable()
    dropped(loader)
    loader = None
    import multiprocessing.process
    kept = builtins.__import__, threading.Thread.join, multiprocessing.process.BaseProcess.join, threading.Event.wait
    unraisable = []
    sys.unraisablehook = lambda u: unraisable.append(u.exc_value)
    excepthook, sys.excepthook = sys.excepthook, lambda *e: unraisable.append(e[1])
    builtins.__import__ = refuse("import")
    threading.Thread.join = threading.Event.wait = refuse("wait")
    multiprocessing.process.BaseProcess.join = refuse("wait")
    gc.collect()
    builtins.__import__, threading.Thread.join, multiprocessing.process.BaseProcess.join, threading.Event.wait = kept
    sys.excepthook = excepthook
    assert not unraisable, unraisable
    gc.enable()
    for child in multiprocessing.active_children():
        child.join(30)
        assert child.exitcode == 0, child
print("ended")
"""


def test_a_finalizer_imports_nothing_and_waits_for_nobody():
    done = subprocess.run([sys.executable, "-c", FINALIZER], capture_output=True, text=True, timeout=120, env={**os.environ, "NARU_VIRTUAL": "cuda:1"})
    assert done.returncode == 0 and done.stdout == "ended\n", done.stdout + done.stderr

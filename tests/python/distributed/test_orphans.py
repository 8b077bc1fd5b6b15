"""Child processes end when their parent is killed."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

STARTS = """
import os, sys, threading, time
import naru.multiprocessing as mp

def work(rank, folder):
    with open(f"{folder}/{rank}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/{rank}.new", f"{folder}/{rank}")
    time.sleep(600)

if __name__ == "__main__":
    method, where, folder = sys.argv[1:]
    start = lambda: mp.start_processes(work, (folder,), 2, start_method=method)
    if where == "main":
        start()
    else:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
"""
WORKER = """
import os, time
open(f"{os.environ['FOLDER']}/{os.environ['RANK']}.new", "w").write(str(os.getpid()))
os.rename(f"{os.environ['FOLDER']}/{os.environ['RANK']}.new", f"{os.environ['FOLDER']}/{os.environ['RANK']}")
time.sleep(600)
"""
SHELL = "echo $$ > $FOLDER/$RANK.new; mv $FOLDER/$RANK.new $FOLDER/$RANK; exec sleep 600"


def has_ended(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(found, seconds=60):
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return value


KINDS = ["spawn main", "fork main", "forkserver main", "spawn thread", "fork thread", "torchrun python", "torchrun command"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_children_end_when_their_parent_is_killed(tmp_path, kind):
    how, _, where = kind.partition(" ")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FOLDER": str(tmp_path)}
    (tmp_path / "program.py").write_text(WORKER if how == "torchrun" else STARTS)
    command = [str(tmp_path / "program.py"), how, where, str(tmp_path)]
    if how == "torchrun":
        program = [str(tmp_path / "program.py")] if where == "python" else ["--no-python", "sh", "-c", SHELL]
        command = ["-m", "naru.distributed.run", "--nproc_per_node=2", *program]
    parent = subprocess.Popen([sys.executable, *command], env=env)
    children = []
    try:
        files = [tmp_path / str(rank) for rank in range(2)]
        until(lambda: all(file.exists() for file in files))
        children = [int(file.read_text()) for file in files]
        assert not any(map(has_ended, children))
        parent.kill()
        parent.wait()
        until(lambda: all(map(has_ended, children)))
    finally:
        parent.kill()
        for child in children:
            if not has_ended(child):
                os.kill(child, signal.SIGKILL)


def test_a_child_whose_parent_is_gone_already_ends(tmp_path):
    """The parent ends before the child has asked the system to be told."""
    program = """
import os, sys, time
from naru.multiprocessing import _parent
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.01)
    with open(sys.argv[1] + "/pid", "w") as file:
        file.write(str(os.getpid()) + ".")
    _parent.end_with_parent(parent)
    open(sys.argv[1] + "/went on", "w").close()
    time.sleep(600)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, check=True, timeout=60)
    file = tmp_path / "pid"
    until(lambda: file.exists() and file.read_text().endswith("."))
    until(lambda: has_ended(int(file.read_text()[:-1])))
    assert not (tmp_path / "went on").exists()

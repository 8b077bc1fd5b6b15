"""The end of a program: threads that are still running do no harm."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import sys, threading, time
import numpy
import naru as n

class Twice(n.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 + sum(range(300)) * 0

started = []

def hook(g):
    sum(range(300))
    return g

def work(device, what):
    x = n.ones(60, 60, device=device, requires_grad=True)
    if what == "hooks":
        x.register_hook(hook)
    started.append(device)
    while True:
        if what == "forward":
            (x @ x).sum()
        elif what == "item":
            (x @ x).sum().item()
        elif what == "backward":
            (x @ x).sum().backward()
        elif what == "hooks":
            Twice.apply(x).sum().backward()
        elif what == "arrays":
            n.from_numpy(numpy.ones(30)) + 1

devices = sys.argv[1].split(",")
for device in devices:
    for _ in range(2):
        threading.Thread(target=work, args=(device, sys.argv[2]), daemon=True).start()
while len(started) < 2 * len(devices):
    time.sleep(0.01)
time.sleep(0.1)
print("exit")
"""


@pytest.mark.parametrize("devices", ["cpu", "cpu,cuda:0,mps:0"])
@pytest.mark.parametrize("what", ["forward", "item", "backward", "hooks", "arrays"])
def test_daemon_threads_that_compute_at_exit_do_not_end_the_program_badly(what, devices):
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), devices, what], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "NARU_VIRTUAL": "cuda:1,mps:1"})  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "exit\n", "")


LATE = """
import ctypes, sys, threading, time
import naru as n

y = x = n.ones(200000, requires_grad=True, device=sys.argv[1])
for _ in range(60000):
    y = y * 1.0
total = y.sum()
threading.Thread(target=total.backward, daemon=True).start()
time.sleep(0.03)
# The process is still there for a while when the interpreter has gone.
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(200000), None)
print("exit")
"""


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_backward_that_outlives_the_interpreter_does_not_ask_it_for_lines(device):
    done = subprocess.run([sys.executable, "-c", LATE, device], capture_output=True, text=True, timeout=60, env={**os.environ, "NARU_VIRTUAL": "cuda:1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "exit\n", "")


def test_products_under_way_on_other_threads_end_before_the_libraries_that_compute_them():
    code = """
import sys, threading, time
import naru
def work(device):
    x = naru.ones(300, 300, device=device)
    while True:
        (x @ x).sum()
for device in ("cuda:0", "cpu"):
    threading.Thread(target=work, args=(device,), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
    for seconds in (0, 0.01, 0.02, 0.03, 0.05, 0.3):  # also during the first product: the statics that it creates are the first to be destroyed
        done = subprocess.run([sys.executable, "-c", code, str(seconds)], capture_output=True, text=True, timeout=60, env={**os.environ, "NARU_VIRTUAL": "cuda:1"})
        assert (done.returncode, done.stderr) == (0, "")

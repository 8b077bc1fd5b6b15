"""Ctrl-C ends waits for slow devices of every kind. It ends the wait, not the work."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import naru
from fakes import FAKES, needs_fakes
from opencl import need_xpu, processors_count


def run(program, **environment):
    """The program, which is sent SIGINT a moment after each line "waiting". Its exit status, other lines, and errors. It has a cache of memory:
    without one, what lets go of memory waits for the device.

    The moment is there so that the program is in the wait, as a rule; where it has not got there yet, it says the same. No wait ends by itself."""
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "NARU_CACHING": "1", **environment})  # fmt: skip
    guard = threading.Timer(120, child.kill)  # in case the program hangs
    guard.start()
    lines = []
    for line in child.stdout:
        if line == "waiting\n":
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
        else:
            lines.append(line)
    errors = child.stderr.read()
    guard.cancel()
    return child.wait(), "".join(lines), errors


START = """
    import os, signal, threading, time, naru
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def say(when):
        while not when():
            time.sleep(0.01)
        print("waiting", flush=True)

    # Whether `wait` was, by the signal: it comes now, or when a thread of its own has seen `when` become true.
    def interrupted(wait, when=None):
        try:
            if when is None:
                print("waiting", flush=True)
            else:
                threading.Thread(target=say, args=(when,), daemon=True).start()
            wait()
        except KeyboardInterrupt:
            return True
        return False
"""

WAITS = {
    "item": "(x + 1).sum().item()",
    "cpu": "(x + 1).cpu()",
    "synchronize": "x.add_(1), naru._C.synchronize(naru.device(device))",
    "print": "repr(x + 1)",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_the_wait_for_a_slow_virtual_device(wait):
    program = START + f"""
    device = "cuda:0"
    x = naru.ones(3, device=device)
    print(interrupted(lambda: ({WAITS[wait]})), flush=True)
    os._exit(0)
    """
    assert run(program, NARU_VIRTUAL="cuda:1(launch_delay=1000s)")[:2] == (0, "True\n")


@needs_fakes
@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_the_wait_for_a_cuda_device_that_never_gets_there(wait):
    program = START + f"""
    device = "cuda:0"
    x = naru.ones(3, device=device)
    {WAITS[wait]}
    os.environ["NARU_FAKE_ENDLESS"] = "1"
    # Again: the thread that waits for the main one is another then.
    print([interrupted(lambda: ({WAITS[wait]})) for _ in range(2)])
    del os.environ["NARU_FAKE_ENDLESS"]
    print(x.sum().item() >= 3, flush=True)
    os._exit(0)
    """
    code, said, errors = run(
        program, NARU_CUDA_LIBRARY=str(FAKES / "libcuda.so"), NARU_NVRTC_LIBRARY=str(FAKES / "libnvrtc.so"), NARU_CUDA_DEVICE_NODE="/dev/null",
        NARU_FAKE_GPUS="0000:01:00.0 a 9.0 2048 H100", CUDA_VISIBLE_DEVICES="0", NARU_VIRTUAL="")  # fmt: skip
    assert (code, said) == (0, "[True, True]\nTrue\n"), errors


@pytest.mark.parametrize("first", [True, False], ids=["at its first launch", "later"])
def test_ctrl_c_ends_the_wait_for_a_slow_opencl_device(first, tmp_path):
    with processors_count():
        need_xpu()
    program = START + """
    # Hours for a large n.
    k = naru.kernel('''kernel void k(float* o, int n) {
        float x = o[0];
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) x = x * 0.5f + 1;
        o[0] = x;
    }''', "k")
    o = naru.zeros(1, device="xpu")
    """
    once = "k(o, 1, grid=1), o.item()"
    # LLVM removes the files that it is writing when a signal comes, and PoCL's compilation fails of it: the kernel is compiled before.
    settings = {"NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_CACHE_DIR": str(tmp_path)}
    assert run(program + once, **settings)[0] == 0
    program += f"""
    if not {first}:
        {once}
    stream, over = naru.xpu.current_stream(), []
    stream.synchronize()
    is_at_work = lambda: not stream.query()
    # (While a kernel is launched for the first time its stream can't be asked from elsewhere.)
    print(interrupted(lambda: (k(o, 2147483647, grid=1), o.item(), over.append(1)), None if {first} else is_at_work), over, flush=True)
    print({first} or is_at_work(), flush=True)
    os._exit(0)
    """
    code, said, errors = run(program, **settings)
    assert (code, said) == (0, "True []\nTrue\n"), errors


def test_a_wait_of_another_thread_is_not_interrupted():
    program = START + """
    x = naru.ones(3, device="cuda:0") + 1
    got, done = [], threading.Event()
    threading.Thread(target=lambda: (got.append(x.sum().item()), done.set())).start()
    print(interrupted(threading.Event().wait), end=" ")
    done.wait()
    print(got, flush=True)
    """
    assert run(program, NARU_VIRTUAL="cuda:1(launch_delay=1s)")[:2] == (0, "True [6.0]\n")

"""Helpers for the tests of autograd."""
import threading

import naru as torch


def hooked(leaf):
    x = torch.ones(3, requires_grad=True)
    return x, (x if leaf else x * 1)


def function(result):
    class Made(torch.autograd.Function):
        forward = staticmethod(lambda ctx, *args: args[0] * 2)
        backward = staticmethod(lambda ctx, g: result())

    return Made


def run_beside(beside, work, stop):
    """Runs the functions of both lists, each in a thread of its own, until those of `work` are done; `stop` is then no longer empty."""
    threads = [[threading.Thread(target=f) for f in some] for some in (beside, work)]
    for t in sum(threads, []):
        t.start()
    for t in threads[1]:
        t.join()
    stop.append(1)
    for t in threads[0]:
        t.join()

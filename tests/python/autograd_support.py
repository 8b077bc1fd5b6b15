"""What the tests of autograd share."""
import naru as torch


def hooked(leaf):
    x = torch.ones(3, requires_grad=True)
    return x, (x if leaf else x * 1)


def function(result):
    class Made(torch.autograd.Function):
        forward = staticmethod(lambda ctx, *args: args[0] * 2)
        backward = staticmethod(lambda ctx, g: result())

    return Made

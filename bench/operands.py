"""Operands that are the same on every side, and what a result is compared by."""
import numpy as np


def drawn(shape, seed=0, scale=1.0):
    """float32 numbers around 0."""
    return (np.random.default_rng(seed).standard_normal(tuple(shape)) * scale).astype(np.float32)


def parameter(shape, seed):
    """What a network's parameter begins with: weights by their fan-in; biases and factors of norms by their position alone."""
    if len(shape) > 1:
        return drawn(shape, seed, float(np.prod(shape[1:])) ** -0.5)
    return drawn(shape, seed, 0.1) + np.float32(0.5)


def summary(array):
    """Some numbers of a result, which equal results have in common."""
    a = np.asarray(array, np.float64)
    return [float(np.abs(a).mean()), float(a.mean()), *(float(a.flat[i]) for i in (0, a.size // 3, a.size - 1))]


def difference(mine, theirs):
    """The greatest difference of two summaries, beside the size of what they hold."""
    size = max(float(np.abs(theirs).mean()), 1e-30)
    if len(mine) != len(theirs) or not np.isfinite(mine).all():
        return float("inf")
    return float(np.abs(np.subtract(mine, theirs)).max()) / size

"""Of which types indices, repeats and the sizes of pools may be: PyTorch 2.15's answers."""

import naru
import naru.nn.functional as F
import pytest

SHORT = [naru.uint8, naru.int8, naru.int16]
X = naru.tensor([1.0, 2.0, 3.0])
ONES = naru.ones(2)
LONG_ONLY = {
    "index_copy": lambda i: X.index_copy(0, i, ONES), "index_fill": lambda i: X.index_fill(0, i, 7.0), "take": lambda i: X.take(i), "put": lambda i: X.put(i, ONES),
}
INT_OR_LONG = {
    "gather": lambda i: X.gather(0, i), "scatter": lambda i: X.scatter(0, i, 5.0), "scatter_add": lambda i: X.scatter_add(0, i, ONES), "scatter_reduce": lambda i: X.scatter_reduce(0, i, ONES, "amax"),
    "index_select": lambda i: X.index_select(0, i), "index_add": lambda i: X.index_add(0, i, ONES), "index_reduce": lambda i: X.index_reduce(0, i, ONES, "mean"),
    "take_along_dim": lambda i: X.take_along_dim(i), "embedding": lambda i: F.embedding(i, naru.ones(3, 2)),
}
ANY = {"repeat_interleave": lambda i: naru.repeat_interleave(X[:2], i)}


@pytest.mark.parametrize("name", [*LONG_ONLY, *INT_OR_LONG, *ANY])
def test_short_integers_are_no_indices(name):
    call = {**LONG_ONLY, **INT_OR_LONG, **ANY}[name]
    want = call(naru.tensor([1, 0])).tolist()
    for dtype in [*SHORT, naru.int32]:
        if name in ANY or name in INT_OR_LONG and dtype is naru.int32:
            assert call(naru.tensor([1, 0], dtype=dtype)).tolist() == want
        else:
            with pytest.raises((RuntimeError, IndexError)):
                call(naru.tensor([1, 0], dtype=dtype))


@pytest.mark.parametrize("f", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool3d, F.adaptive_max_pool3d])
def test_an_adaptive_pool_has_as_many_sizes_as_dimensions(f):
    n = 2 if "2d" in f.__name__ else 3
    x = naru.arange(4.0**n).reshape([1] + [4] * n)
    assert f(x, 2).shape == f(x, (2,) * n).shape == (1,) + (2,) * n
    assert f(x, (None,) * (n - 1) + (2,)).shape == (1,) + (4,) * (n - 1) + (2,)
    for sizes in ((), (2,), (2,) * (n + 1), (None,)):
        with pytest.raises(RuntimeError, match=f"output_size must be {n}"):
            f(x, sizes)
    for sizes in (None, 2.0):
        with pytest.raises(TypeError, match="has no len"):
            f(x, sizes)


def test_a_number_finds_its_bucket():
    boundaries = naru.tensor([1, 3, 5])
    assert naru.bucketize(3, boundaries).item() == 1 and naru.bucketize(3, boundaries, right=True, out_int32=True).dtype is naru.int32


def test_the_edges_of_a_histogram_are_a_tensor_of_their_own():
    edges = naru.tensor([0.0, 1.0, 2.0])
    naru.histogram(naru.tensor([0.5]), edges)[1].fill_(7)
    assert edges.tolist() == [0, 1, 2]


def test_a_tensor_may_be_its_own_upper_limit():
    x = naru.tensor([1.0, 5.0])
    assert x.clamp_(naru.tensor([3.0, 3.0]), x).tolist() == [1, 5]

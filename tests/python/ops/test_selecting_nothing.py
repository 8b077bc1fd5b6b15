"""Selecting, sorting and counting for 0-d tensors, empty tensors and empty selections: no uninitialized memory is returned."""

import math

import naru
import naru.nn.functional as F
import pytest

INT = naru.int64
SHAPES = {
    "no dimensions": lambda d: naru.tensor(3).to(d), "no elements": lambda d: naru.zeros(0, dtype=d), "(2, 0)": lambda d: naru.zeros(2, 0, dtype=d),
    "(0, 2)": lambda d: naru.zeros(0, 2, dtype=d), "one": lambda d: naru.tensor([5]).to(d), "(2, 1)": lambda d: naru.tensor([[5], [4]]).to(d),
    "(2, 3, 0)": lambda d: naru.zeros(2, 3, 0, dtype=d), "four": lambda d: naru.tensor([3, 1, 2, 2]).to(d),
}


def none(x):
    return naru.zeros(0, dtype=INT)


SELECTORS = {
    **{f"topk {k} {largest}": (lambda x, k=k, largest=largest: naru.topk(x, k, largest=largest)) for k in (0, 1) for largest in (True, False)},
    "topk unsorted": lambda x: naru.topk(x, 0, 0, sorted=False), "kthvalue": lambda x: naru.kthvalue(x, 1), "kthvalue 0": lambda x: naru.kthvalue(x, 0),
    "sort": naru.sort, "sort along the first": lambda x: naru.sort(x, 0, descending=True), "argsort": naru.argsort, "msort": naru.msort,
    "mode": naru.mode, "mode along the first": lambda x: naru.mode(x, 0), "median": naru.median, "median along": lambda x: naru.median(x, 0),
    "nanmedian": naru.nanmedian, "nanmedian along": lambda x: naru.nanmedian(x, 0), "quantile": lambda x: naru.quantile(x, 0.5),
    "quantile along": lambda x: naru.quantile(x, naru.tensor([0.0, 1.0]), -1), "quantile of no places": lambda x: naru.quantile(x, naru.zeros(0)),
    "nanquantile": lambda x: naru.nanquantile(x, 0.5, 0), "max": naru.max, "max along": lambda x: naru.max(x, 0), "min along": lambda x: naru.min(x, -1, True),
    "amax": lambda x: naru.amax(x, 0), "amin": naru.amin, "aminmax": naru.aminmax, "aminmax along": lambda x: naru.aminmax(x, dim=0),
    "argmax": naru.argmax, "argmax along": lambda x: naru.argmax(x, 0), "argmin along": lambda x: naru.argmin(x, -1),
    "index_select": lambda x: naru.index_select(x, 0, naru.tensor([0])), "index_select of none": lambda x: naru.index_select(x, 0, none(x)),
    "gather": lambda x: naru.gather(x, 0, naru.zeros_like(x, dtype=INT)), "gather of none": lambda x: naru.gather(x, 0, none(x)),
    "take": lambda x: naru.take(x, naru.tensor([0])), "take of none": lambda x: naru.take(x, naru.zeros(2, 0, dtype=INT)),
    "take_along_dim": lambda x: naru.take_along_dim(x, naru.zeros_like(x, dtype=INT)), "masked_select": lambda x: naru.masked_select(x, naru.zeros_like(x, dtype=naru.bool)),
    "index by a mask": lambda x: x[naru.ones_like(x, dtype=naru.bool)], "index by none": lambda x: x[none(x)], "index by a number": lambda x: x[naru.tensor(0)],
    "histc": lambda x: naru.histc(x, 3), "histc of a range": lambda x: naru.histc(x, 3, 0, 9), "histc of equal limits": lambda x: naru.histc(x, 3, 2, 2),
    "histogram": lambda x: naru.histogram(x, 3), "bincount": naru.bincount, "bincount weighted": lambda x: naru.bincount(x, naru.ones_like(x, dtype=naru.float32)),
    "unique": lambda x: naru.unique(x, return_inverse=True, return_counts=True), "unique along": lambda x: naru.unique(x, dim=0, return_inverse=True, return_counts=True),
    "unique_consecutive": lambda x: naru.unique_consecutive(x, return_inverse=True, return_counts=True), "nonzero": naru.nonzero, "argwhere": naru.argwhere,
    "nonzero_static": lambda x: naru.nonzero_static(x, size=2), "searchsorted": lambda x: naru.searchsorted(naru.zeros(0, dtype=x.dtype), x), "isin": lambda x: naru.isin(x, naru.zeros(0, dtype=x.dtype)),
    "cummax": lambda x: naru.cummax(x, 0), "cummin": lambda x: naru.cummin(x, -1), "cumsum": lambda x: naru.cumsum(x, 0), "cumprod": lambda x: naru.cumprod(x, 0),
    "logcumsumexp": lambda x: naru.logcumsumexp(x, 0), "diff": naru.diff, "diff five times": lambda x: naru.diff(x, 5), "trapezoid": naru.trapezoid,
    "scatter": lambda x: naru.zeros(2, dtype=x.dtype).scatter(0, naru.zeros_like(x, dtype=INT), x),
    "scatter_reduce": lambda x: naru.zeros(2, dtype=x.dtype).scatter_reduce(0, naru.zeros_like(x, dtype=INT), x, "amax", include_self=False),
    "index_reduce": lambda x: naru.zeros(2, dtype=x.dtype).index_reduce(0, naru.zeros_like(x, dtype=INT), x, "mean"),
    "segment_reduce": lambda x: naru.segment_reduce(x, "max", lengths=naru.tensor([x.numel(), 0])), "repeat_interleave": lambda x: x.repeat_interleave(0),
    "sum": lambda x: naru.sum(x, 0), "prod": lambda x: naru.prod(x, 0), "mean": lambda x: naru.mean(x, 0), "std": lambda x: naru.std(x, 0), "var_mean": naru.var_mean,
    "norm": lambda x: naru.norm(x, 2, 0), "norm inf": lambda x: naru.linalg.vector_norm(x, math.inf, 0), "logsumexp": lambda x: naru.logsumexp(x, 0), "softmax": lambda x: naru.softmax(x, 0),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 1, return_indices=True), "avg_pool1d": lambda x: F.avg_pool1d(x[None], 1), "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x[None], 1),
    "adaptive_avg_pool1d to none": lambda x: F.adaptive_avg_pool1d(x[None], 0), "lp_pool1d": lambda x: F.lp_pool1d(x[None], 2.0, 1), "pad": lambda x: F.pad(x, (1, 1)),
    "matmul over none": lambda x: naru.ones(2, 0).to(x.dtype) @ naru.ones(0, 3).to(x.dtype), "linear of none": lambda x: F.linear(naru.ones(2, 0), naru.ones(3, 0), naru.ones(3)),
    "embedding_bag of none": lambda x: F.embedding_bag(none(x), naru.ones(2, 3), naru.tensor([0, 0]), mode="max"),
    "attention to none": lambda x: F.scaled_dot_product_attention(naru.zeros(1, 2, 3), naru.zeros(1, 0, 3), naru.zeros(1, 0, 3)),
    "ctc_loss over no time": lambda x: F.ctc_loss(naru.zeros(2, 1, 3), naru.zeros(1, 1, dtype=INT), naru.tensor([0]), naru.tensor([1]), reduction="none"),
    "layer_norm of none": lambda x: F.layer_norm(naru.zeros(2, 0), (0,)), "qr of none": lambda x: naru.linalg.qr(naru.ones(3, 0), "complete"), "svd of none": lambda x: naru.linalg.svd(naru.ones(0, 2)),
}


def text(result):
    if isinstance(result, (tuple, list)):
        return [text(r) for r in result]
    return (str(result.dtype), tuple(result.shape), repr(result.tolist()))


def leave_behind(number):
    """Freed memory of many sizes that holds a number, for the next allocation."""
    for dtype in (naru.int64, naru.float32, naru.uint8):
        held = [naru.full((size,), number, dtype=dtype) for size in (1, 2, 3, 4, 8, 16, 64, 128) for _ in range(4)]
        del held


@pytest.mark.parametrize("dtype", [naru.int64, naru.float32, naru.uint8, naru.bool, naru.float16])
@pytest.mark.parametrize("name", SELECTORS)
def test_nothing_comes_out_of_memory_that_nobody_has_written(name, dtype):
    for make in SHAPES.values():
        found = []
        for left in (77, 13):
            x = make(dtype)
            leave_behind(left)
            try:
                found.append(text(SELECTORS[name](x)))
            except (RuntimeError, IndexError, ValueError) as error:
                found.append(str(error))
        assert found[0] == found[1], make


def test_of_a_tensor_without_dimensions_topk_takes_its_element():
    for k in (0, 1):
        values, places = naru.topk(naru.tensor(3), k)
        assert (values.item(), places.item(), values.shape) == (3, 0, ())
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        naru.topk(naru.tensor(3), 2)


@pytest.mark.parametrize(("dtype", "want"), [(naru.uint8, 0), (naru.int8, 0), (naru.int16, 0), (naru.int32, -(2**31)), (naru.int64, -(2**63)), (naru.float32, math.nan)])
def test_the_median_of_no_elements_is_what_nan_converts_to(dtype, want):
    for f in (naru.median, naru.nanmedian):
        got = f(naru.zeros(0, dtype=dtype))
        assert got.dtype is dtype and (got.item() == want or want != want and got.isnan())


def test_bins_of_equal_limits_are_those_of_the_elements():
    assert naru.histc(naru.tensor([5.0, 5.0]), 4, 5, 5).tolist() == [0, 0, 2, 0]  # from 4 to 6
    assert naru.histc(naru.tensor([5.0]), 4, 2, 2).tolist() == [0, 0, 1, 0]
    assert naru.histc(naru.tensor([1.0, 2.0, 3.0]), 4, 2, 2).tolist() == [1, 0, 1, 1]  # from 1 to 3


def test_counts_of_nothing_are_integers():
    assert naru.bincount(none(0), naru.ones(0)).dtype is naru.int64
    assert F.adaptive_avg_pool1d(naru.ones(1, 2, 3, dtype=INT), 0).dtype is naru.int64


INF = math.inf


@pytest.mark.parametrize("f", [naru.quantile, naru.nanquantile])
@pytest.mark.parametrize(
    ("values", "place", "want"),
    [
        ([1.0, 2.0, INF], 0.5, 2.0), ([1.0, 2.0, INF], 0.25, 1.5), ([INF, INF, 0.0], 0.0, 0.0), ([-INF, 2.0, INF], 0.5, 2.0), ([1.0, INF], 0.0, 1.0),
        ([1.0, INF], 0.75, INF), ([-INF, 1.0], 0.25, -INF), ([INF, INF], 0.5, INF), ([-INF, -INF, 3.0], 0.25, -INF), ([3.0, INF], 1.0, INF),
    ],
)
def test_a_quantile_interpolates_only_between_what_differs(f, values, place, want):
    """a + share (b - a) of a = b, or of share 0, is a; and infinite towards an infinite end."""
    for dtype in (naru.float32, naru.float64):
        assert f(naru.tensor(values, dtype=dtype), place).item() == want


def test_a_quantile_between_both_infinities_is_nan_and_has_its_gradient():
    x = naru.tensor([-INF, INF], requires_grad=True)
    y = naru.quantile(x, 0.25)
    y.backward()
    assert y.isnan() and x.grad.tolist() == [0.75, 0.25]


def test_the_mode_beside_nan():
    nan = math.nan
    for values, want in (([nan, nan, 1.0], nan), ([1.0, nan], 1.0), ([nan, 1.0, 1.0], 1.0), ([2.0, 2.0, nan, nan, nan], 2.0), ([nan, nan], nan)):
        got = naru.mode(naru.tensor(values))[0].item()
        assert got == want or want != want and got != got, values


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_a_grid_at_nan_or_beyond_all_bounds_sees_an_element(mode, padding, align, device):
    x = naru.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], device=device)
    for place in (math.nan, -3e38):
        grid = naru.full((1, 1, 1, 2), place, device=device)
        assert F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=align).item() == 1.0, place


def test_bounds_and_divisors_without_dimensions_count_together():
    flags, one = naru.tensor([True]), naru.tensor(1, dtype=naru.int32)
    assert naru.clamp(flags, one, naru.tensor(5)).dtype is naru.int64 and naru.clamp(flags, one, one).dtype is naru.int32
    assert naru.gcd(naru.ones(2, dtype=naru.int8), naru.tensor(1)).dtype is naru.int8
    assert naru.lcm(naru.ones(2, dtype=naru.int8), naru.tensor(1)).dtype is naru.int8


def test_what_pytorch_refuses_is_refused():
    x = naru.ones(3)
    for index in (naru.tensor([1], dtype=naru.uint8), naru.tensor([1], dtype=naru.int16)):
        with pytest.raises(RuntimeError, match="Expected dtype int32 or int64 for index"):
            naru.index_select(x, 0, index)
        with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
            x.index_add(0, index, naru.ones(1))
    with pytest.raises(RuntimeError, match="Expected a long tensor for index, but got Int"):
        x.take(naru.tensor([1], dtype=naru.int32))
    for f in (naru.quantile, naru.nanquantile):
        with pytest.raises(RuntimeError, match="q tensor must be same dtype"):
            f(x, naru.tensor([0.5], dtype=naru.float64))


def test_what_pytorch_accepts_is_accepted():
    values, places = F.max_pool1d(naru.tensor([[1, 3, 2, 5]]), 2, return_indices=True)
    assert values.tolist() == [[3, 5]] and places.tolist() == [[1, 3]]
    with pytest.raises(NotImplementedError, match="max_pool1d_impl"):
        F.max_pool1d(naru.tensor([[1, 3, 2, 5]]), 2)
    assert naru.tensor([2.0 + 0j], dtype=naru.complex128).float_power_(2).tolist() == [4]
    with pytest.raises(RuntimeError, match="requires dtype ComplexDouble"):
        naru.tensor([2.0 + 0j]).float_power_(2)
    assert [f(2)._version for f in (naru.rand, naru.randn)] == [0, 0] and naru.randint(3, (2,))._version == 0


def test_a_list_may_hold_arrays_without_dimensions():
    np = pytest.importorskip("numpy")
    assert naru.tensor([1, np.array(5.5)]).tolist() == [1, 5.5] and naru.tensor([1, np.array(5.5)]).dtype is naru.float64
    assert naru.tensor([True, np.array(2)]).tolist() == [1, 2] and naru.tensor([1, np.array(2 + 1j)]).dtype is naru.complex128
    import warnings

    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert naru.tensor(fixed).tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="not writable"):
        naru.from_numpy(fixed)


def test_a_pickle_keeps_strides():
    import pickle

    for x in (
        naru.arange(6.0).reshape(2, 3).t(), naru.ones(3, 1).expand(3, 4), naru.rand(2, 3, 4, 5).to(memory_format=naru.channels_last),
        naru.arange(6).reshape(2, 3).t().expand(2, 3, 2), naru.nn.Parameter(naru.rand(2, 3).t()), naru.arange(8.0)[::2],
    ):  # fmt: skip
        y = pickle.loads(pickle.dumps(x))
        assert naru.equal(x, y) and type(x) is type(y)
        assert y.stride() == x.stride() or x.stride() == (2,)


@pytest.mark.parametrize("dtype", [naru.uint8, naru.int8, naru.int16, naru.int32, naru.int64, naru.bool])
def test_the_type_of_an_empty_index_is_not_asked(dtype):
    x, none = naru.arange(6.0).reshape(2, 3), naru.zeros(0, 3, dtype=dtype)
    assert naru.gather(x, 0, none).shape == (0, 3)
    assert naru.equal(x.scatter(0, none, 1.0), x) and naru.equal(x.scatter_add(0, none, x[:0]), x)


@pytest.mark.parametrize("dtype", [naru.uint8, naru.int8, naru.int16, naru.int32, naru.int64])
def test_bincount_takes_every_integer_with_weights(dtype):
    numbers = naru.tensor([0, 1, 1, 5], dtype=dtype)
    assert naru.bincount(numbers, naru.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 5, 0, 0, 0, 4]
    assert naru.bincount(numbers, minlength=7).tolist() == [1, 2, 0, 0, 0, 1, 0]

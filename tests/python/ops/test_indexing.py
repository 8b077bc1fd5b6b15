"""Random index expressions compared with NumPy, whose semantics differ in one rule (see `two_stages`)."""
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naru


@st.composite
def indices(draw, shape):
    """An index expression for an array of `shape`, as a list: numbers, slices, None, Ellipsis, masks, arrays of positions."""
    items, dim, broadcast = [], 0, draw(st.sampled_from([(1,), (3,), (2, 3), (2, 1), (0,)]))
    ellipsis = False
    while dim < len(shape) and (ellipsis or draw(st.integers(0, 4))):
        if not ellipsis and draw(st.integers(0, 5)) == 0:  # every dimension after it gets an explicit index
            items.append(Ellipsis)
            ellipsis = True
            dim += draw(st.integers(0, len(shape) - dim))
            continue
        n = shape[dim]
        kinds = ["slice", "slice", "none", "mask"] + ["int"] * (n > 0) + ["array", "array"] * (n > 0) + ["mask2"] * (dim + 1 < len(shape))
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            items.append(None)
            continue
        if kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            end = st.one_of(st.none(), st.integers(-n - 1, n + 1))
            items.append(slice(draw(end), draw(end), draw(st.sampled_from([None, 1, 2, 3]))))
        elif kind == "array":
            size = draw(st.sampled_from([broadcast, broadcast[-1:]]))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(size)), max_size=int(np.prod(size))))
            items.append(np.array(values, dtype=np.int64).reshape(size))
        else:
            size = shape[dim : dim + (2 if kind == "mask2" else 1)]
            values = draw(st.lists(st.booleans(), min_size=int(np.prod(size)), max_size=int(np.prod(size))))
            items.append(np.array(values, dtype=bool).reshape(size))
            dim += len(size) - 1
        dim += 1
    return items


def two_stages(items, rank):
    """The index in two: numbers, slices and None first, then arrays in the view they leave. NumPy would count numbers among the arrays; PyTorch
    does not. Without arrays the second part is None."""
    used = sum(i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else 0 if i is None or i is Ellipsis else 1 for i in items)
    first, second = [], []
    for item in items:
        if isinstance(item, np.ndarray):
            first += [slice(None)] * (item.ndim if item.dtype == bool else 1)
            second.append(item)
        elif item is Ellipsis:
            first.append(item)
            second += [slice(None)] * (rank - used)
        else:
            first.append(item)
            second += [] if isinstance(item, int) else [slice(None)]
    arrays = any(isinstance(i, np.ndarray) for i in second)
    return tuple(first), tuple(second) if arrays else None


def to_naru(items, device):
    return tuple(naru.from_numpy(i.copy()).to(device) if isinstance(i, np.ndarray) else i for i in items)


def index_both(array, items):
    """What NumPy takes out, or None where its arrays do not broadcast."""
    first, second = two_stages(items, array.ndim)
    try:
        return array[first] if second is None else array[first][second]
    except IndexError as e:
        assert "broadcast" in str(e) or "mismatch" in str(e), e
        return None


CASES = st.sampled_from([(4,), (3, 4), (2, 3, 4), (1, 4, 2, 3), (3, 0, 2)]).flatmap(
    lambda shape: st.tuples(st.just(shape), indices(shape), st.booleans())
)


def arrays(shape, transposed, dtype=np.float64):
    a = np.arange(np.prod(shape), dtype=dtype).reshape(shape[::-1] if transposed else shape)
    return a.T if transposed else a


@settings(max_examples=400, deadline=None)
@given(CASES)
def test_reading_gives_numpys_elements(case):
    shape, items, transposed = case
    for device in ("cpu", "cuda:0"):
        array = arrays(shape, transposed)
        tensor = naru.from_numpy(array.T).to(device).permute(*range(len(shape))[::-1]) if transposed else naru.from_numpy(array).to(device)
        expected = index_both(array, items)
        if expected is None:
            with pytest.raises(IndexError):
                tensor[to_naru(items, device)]
            continue
        found = tensor[to_naru(items, device)]
        assert tuple(found.shape) == expected.shape
        np.testing.assert_array_equal(found.cpu().numpy(), expected)


@settings(max_examples=400, deadline=None)
@given(CASES, st.sampled_from(["number", "whole", "last", "accumulated"]))
def test_writing_changes_numpys_elements(case, value_kind):
    shape, items, transposed = case
    array = arrays(shape, transposed).copy(order="K")
    places = index_both(arrays(shape, transposed, np.int64), items)
    assume(places is not None)
    if value_kind == "number" or places.ndim == 0:
        value = -1.0
    elif value_kind == "last":
        value = -1.0 - np.zeros(places.shape[-1])
    else:
        # Two values for one position: which of them is kept is unspecified.
        assume(value_kind == "accumulated" or len(np.unique(places)) == places.size)
        value = -1.0 - np.arange(places.size, dtype=np.float64).reshape(places.shape)
    tensor = naru.from_numpy(array.T.copy()).permute(*range(len(shape))[::-1]) if transposed else naru.from_numpy(array.copy())
    given_value = naru.from_numpy(value) if isinstance(value, np.ndarray) else value
    first, second = two_stages(items, array.ndim)
    if value_kind == "accumulated" and second is not None:
        view = array[first] if array[first].base is not None else array
        np.add.at(view, second, value)
        tensor[first].index_put_(to_naru_arrays(second, tensor[first]), naru.as_tensor(given_value, dtype=naru.float64), accumulate=True)
    else:
        target = array[first] if second is not None else array
        target[second if second is not None else first] = value
        tensor[to_naru(items, "cpu")] = given_value
    np.testing.assert_array_equal(tensor.numpy(), array)


def to_naru_arrays(second, view):
    """index_put_ takes tensors only: slices become positions of their own, broadcast as NumPy would place them."""
    full = np.arange(int(np.prod(view.shape))).reshape(tuple(view.shape))[second]
    return tuple(naru.from_numpy(np.ascontiguousarray(p)) for p in np.unravel_index(full, tuple(view.shape)))


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_the_gradient_of_reading_counts_how_often_each_element_was_taken(case):
    shape, items, transposed = case
    places = index_both(arrays(shape, transposed, np.int64), items)
    assume(places is not None)
    leaf = naru.from_numpy(arrays(shape, False).copy()).requires_grad_()
    source = leaf.reshape(shape[::-1]).permute(*range(len(shape))[::-1]) if transposed else leaf
    source[to_naru(items, "cpu")].sum().backward()
    counts = np.bincount(places.reshape(-1), minlength=int(np.prod(shape))) if np.prod(shape) else np.zeros(0)
    np.testing.assert_array_equal(leaf.grad.numpy().reshape(-1), counts)

"""Objects that mutate what is being read, strings that UTF-8 cannot encode, endless sequences: an immediate error, and the process continues."""

import subprocess
import sys

import numpy as np
import pytest

import naru as torch
import naru.nn.functional as F

LONE = "\ud800"


def clearing(method, result):
    """A list whose first element empties the list when it is asked for its value."""
    items = []

    class Evil:
        pass

    def clear(self):
        items.clear()
        return result

    setattr(Evil, method, clear)
    return items, Evil()


READS = {
    "reshape": (lambda L: torch.ones(1).reshape(L), "__index__", 1),
    "permute": (lambda L: torch.ones(5, 5).permute(L), "__index__", 1),
    "sum": (lambda L: torch.ones(5).sum(L), "__index__", 0),
    "zeros": (lambda L: torch.zeros(L), "__index__", 1),
    "expand": (lambda L: torch.ones(1).expand(L), "__index__", 1),
    "tensor": (lambda L: torch.tensor(L), "__index__", 1),
    "tensor of floats": (lambda L: torch.tensor(L), "__float__", 1.0),
    "tensor of a dtype": (lambda L: torch.tensor(L, dtype=torch.float32), "__float__", 1.0),
    "asarray": (lambda L: torch.asarray(L), "__index__", 1),
    "indexing": (lambda L: torch.ones(5)[L], "__index__", 1),
    "nested": (lambda L: torch.tensor([L, L]), "__index__", 1),
    "as_strided": (lambda L: torch.ones(5).as_strided(L, L), "__index__", 1),
    "flip": (lambda L: torch.ones(5).flip(L), "__index__", 0),
    "new_tensor": (lambda L: torch.ones(5).new_tensor(L), "__index__", 0),
    "repeat": (lambda L: torch.ones(5).repeat(L), "__index__", 0),
    "pad": (lambda L: F.pad(torch.ones(5), L), "__index__", 0),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("numeric", [False, True])
def test_an_element_may_empty_the_list_that_is_read(name, numeric):
    call, method, result = READS[name]
    for _ in range(20):
        items, evil = clearing(method, result)
        if numeric:  # an element that can be converted to a number
            evil = type("EvilFloat", (float,), {method: type(evil).__dict__[method]})(2.0)
        items[:] = [evil] + [10**6 + k for k in range(1000)]
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
            call(items)
            raise ValueError("a float's own value is read without its methods")  # the list was not emptied


def test_a_list_that_grows_while_it_is_read_is_read_as_it_was():
    items = []

    class Grows:
        def __index__(self):
            items.append(7)
            return 1

    items[:] = [Grows()] * 3
    assert torch.tensor(items).numel() >= 3
    items[:] = [Grows()] * 3
    assert torch.zeros(items).dim() == 3


SEQUENCES = ["tensor", "asarray", "as_tensor"]


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_list_that_contains_itself_has_too_many_dimensions(name):
    own = []
    own.append(own)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        getattr(torch, name)(own)
    twice = []
    twice += [twice, twice]
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        getattr(torch, name)(twice)


def test_lists_that_name_more_elements_than_there_can_be():
    nested = [1]
    for _ in range(60):
        nested = [nested, nested]
    # Looking at each of them would take years.
    with pytest.raises(RuntimeError, match="too large for any memory"):
        torch.tensor(nested)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor([[nested] * 8] * 8)
    nested = []
    for _ in range(60):
        nested = [nested, nested]
    with pytest.raises(RuntimeError, match="too large|overflow"):
        torch.tensor(nested)


def test_sequences_of_nothing_keep_their_shape():
    assert torch.tensor([[], []]).shape == (2, 0)
    shared = []
    assert torch.tensor([[shared] * 1000] * 1000).shape == (1000, 1000, 0)
    with pytest.raises(ValueError, match="expected sequence of length 0 at dim 2"):
        torch.tensor([[[], []], [[], [1]]])


SURROGATES = {
    "device": lambda: torch.device(LONE),
    "device=": lambda: torch.zeros(2, device=LONE),
    "to": lambda: torch.ones(2).to(LONE),
    "keyword": lambda: torch.add(torch.ones(2), torch.ones(2), **{LONE: 1}),
    "keyword of an overloaded function": lambda: torch.max(torch.ones(2), **{LONE: 1}),
    "keyword of Tensor": lambda: torch.Tensor(2, **{LONE: 1}),
    "new": lambda: torch.ones(2).new(**{LONE: 1}),
    "norm": lambda: torch.ones(2).norm(LONE),
    "einsum": lambda: torch.einsum(LONE, torch.ones(2)),
    "reduction": lambda: F.mse_loss(torch.ones(2), torch.ones(2), reduction=LONE),
    "autocast": lambda: torch.autocast(LONE),
    "kernel": lambda: torch.kernel(LONE, "k"),
    "getattr": lambda: getattr(torch.nn.Linear(2, 2), LONE),
    "stream": lambda: torch.cuda.current_stream(LONE),
    "meshgrid": lambda: torch.meshgrid(torch.ones(2), indexing=LONE),
    "div": lambda: torch.div(torch.ones(2), 2, rounding_mode=LONE),
    "gelu": lambda: F.gelu(torch.ones(2), approximate=LONE),
    "load": lambda: torch.load(LONE),
    "safetensors": lambda: torch.safetensors.save({LONE: torch.ones(2)}),
    "is_autocast_enabled": lambda: torch.is_autocast_enabled(LONE),
}


@pytest.mark.parametrize("name", SURROGATES)
def test_a_lone_surrogate_is_an_error_like_any_bad_text(name):
    with pytest.raises((UnicodeEncodeError, RuntimeError, TypeError, ValueError, AttributeError, OSError, NotImplementedError)) as error:
        SURROGATES[name]()
    ascii(str(error.value))
    assert "std::" not in str(error.value)


def test_a_texts_end_is_not_at_a_zero_byte():
    with pytest.raises(RuntimeError, match="(?i)device"):
        torch.device("cpu\0x")


def test_numbers_beyond_64_bits_are_named():
    with pytest.raises(OverflowError):
        torch.zeros(2, device=2**100)
    with pytest.raises((OverflowError, RuntimeError, TypeError)):
        torch.zeros(2**100)


WORDS = {
    "histc": lambda: torch.histc(torch.ones(3), 2**45),
    "bincount": lambda: torch.bincount(torch.tensor([2**45])),
    "repeat_interleave": lambda: torch.repeat_interleave(torch.ones(2), torch.tensor([2**45, 1])),
    "tolist": lambda: torch.ones(0, 1).expand(0, 1).t().expand(2**60, 0).tolist() if False else torch.eye(2**60, 0).tolist(),
    "sum": lambda: torch.sum(torch.ones(3), (0, 64)),
    "glu": lambda: F.glu(torch.ones(3, 4), 65),
    "index": lambda: torch.ones(3).flip([0] * 100),
}


@pytest.mark.parametrize("name", WORDS)
def test_no_message_of_the_standard_library_reaches_a_user(name):
    with pytest.raises(Exception) as error:
        WORDS[name]()
    text = str(error.value)
    assert text.strip()
    for words in ("std::", "vector::", "basic_string", "bitset", "bad_alloc", "max_size", "tuple index out of range", "list index out of range"):
        assert words not in text


def test_functions_that_take_lists_of_tensors_check_them():
    for call in (
        lambda: torch._C._save_safetensors("/tmp/x", [("a", 1)], []),
        lambda: torch._C._to_safetensors([1], []),
        lambda: torch._C._to_safetensors([(1, torch.ones(2))], []),
        lambda: torch.Generator().set_state(1),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            call()


def test_a_process_goes_on_after_all_of_it():
    code = "import naru as n\nfor s in ('\\ud800', 'cpu\\0'):\n  try: n.device(s)\n  except Exception: pass\nprint(n.ones(2).sum().item())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout == "2.0\n"


def test_arrays_among_lists_are_read_by_numpy():
    assert torch.tensor([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    with pytest.raises((TypeError, ValueError)):
        torch.tensor([np.ones(2), np.zeros(3)])

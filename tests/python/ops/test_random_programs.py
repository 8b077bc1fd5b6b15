"""Random programs, run on NumPy arrays and on tensors: views, in-place writes, index assignment and broadcasting have the same effect on both."""
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitwise import unfused
from random_programs import SHAPES, Both

statements = st.lists(
    st.tuples(
        st.sampled_from(["new", "view", "inplace", "assign", "mask", "positions", "reduce", "op_reduce", "cat", "copy"]),
        st.integers(0, 7), st.integers(0, 7), st.integers(0, 5), st.integers(-3, 3),
    ),
    min_size=1, max_size=14,
)

CHECKED = dict(deadline=None, derandomize=True, max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@settings(**CHECKED)
@given(program=statements)
def test_a_random_program_does_what_numpy_does(program, shape, device):
    both = Both(shape, device)
    with np.errstate(all="ignore"):
        for statement in program:
            both.run(*statement)
    both.check()


@settings(**CHECKED)
@given(program=statements)
def test_a_random_program_gives_the_same_bits_unfused(program):
    def elements():
        both = Both(SHAPES[1], "cpu")
        with np.errstate(all="ignore"):
            for statement in program:
                both.run(*statement)
        return [t.contiguous().numpy().tobytes() for t in both.tensors]

    fused = elements()
    with unfused():
        assert elements() == fused

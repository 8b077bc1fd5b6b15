"""Random programs of all kinds of operators (random_lines.py) give the same bits in every mode of execution."""
import random

import naru
import pytest
from bitwise import unfused
from random_lines import elements, inputs, program, run

SEEDS = range(200)
CAPTURING = "operation not permitted when stream is capturing"


@pytest.fixture(scope="module")
def programs():
    return {seed: program(seed) for seed in SEEDS}


pytestmark = [pytest.mark.filterwarnings("ignore:Using a target size"), pytest.mark.usefixtures("own_matmuls")]


def one_by_one(seed, lines):
    with unfused():
        naru.manual_seed(7)
        return elements(run(lines, inputs(seed), "cpu"))


def on_streams(seed, lines, device):
    r, streams, tensors = random.Random(seed), [naru.Stream(device) for _ in range(3)], inputs(seed, device)
    for text in lines:
        with r.choice(streams):
            run([text], tensors, device)
    return tensors


@pytest.mark.parametrize("name", ["cpu", "cuda:0"])
def test_a_program_gives_the_bits_of_its_operators_one_by_one(programs, name):
    for seed, lines in programs.items():
        naru.manual_seed(7)
        assert elements(run(lines, inputs(seed, name), name)) == one_by_one(seed, lines), (seed, lines)


def test_lines_on_several_streams_wait_for_one_another(programs):
    for seed, lines in programs.items():
        naru.manual_seed(7)
        assert elements(on_streams(seed, lines, "cuda:0")) == one_by_one(seed, lines), (seed, lines)


@pytest.mark.parametrize("name", ["cpu", "mps:0"])
def test_replays_with_other_inputs_give_the_bits_of_running_the_program_anew(programs, name):
    recorded = 0
    for seed, lines in programs.items():
        tensors = inputs(seed, name)
        first, g = dict(tensors), naru.Graph(device=name)
        naru.manual_seed(7)
        try:
            with naru.graph(g):
                run(lines, tensors, name)
        except RuntimeError as error:  # a program that reads values
            assert CAPTURING in str(error)
            continue
        recorded += 1
        anew = inputs(seed, name)
        seen = []
        for replayed in (True, False):
            naru.manual_seed(7)
            for again in range(3):
                start = first if replayed else anew
                for key, value in inputs(seed, name, again).items():
                    start[key].copy_(value)
                if replayed:
                    g.replay()
                seen.append(elements(tensors if replayed else run(lines, dict(anew), name)))
        assert seen[:3] == seen[3:], (seed, lines)
    assert recorded > len(programs) * 0.8

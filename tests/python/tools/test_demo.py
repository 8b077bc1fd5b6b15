"""The demo: it recognizes unseen digits, and training is reproducible."""
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import naru

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def demo():
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module("demo")
    finally:
        sys.path.remove(str(EXAMPLES))


def test_five_seeds_read_96_of_100_unseen_digits_on_average(demo):
    cpu = naru.device("cpu")
    accuracies = [demo.train(cpu, cpu, seed, 900).accuracy for seed in range(5)]
    assert sum(accuracies) / 5 >= 0.96, accuracies


def test_the_same_seed_gives_the_same_bits(demo):
    cpu = naru.device("cpu")
    first, second = demo.train(cpu, cpu, 3, 30), demo.train(cpu, cpu, 3, 30)
    assert demo.same_bits(first.losses, second.losses)
    assert not demo.same_bits(first.losses, demo.train(cpu, cpu, 4, 30).losses)


def test_two_devices_give_the_bits_of_one(demo):
    cpu = naru.device("cpu")
    one, two = demo.train(cpu, cpu, 0, 60), demo.train(naru.device("cuda:0"), naru.device("cuda:1"), 0, 60)
    assert demo.same_bits(one.losses, two.losses)
    for a, b in zip(one.model.parameters(), two.model.parameters()):
        assert demo.same_bits(a, b)


def test_the_picture_shows_the_losses_and_the_answers_and_clips_nothing(demo):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib, which draws the picture, is not installed")
    cpu = naru.device("cpu")
    result = demo.train(cpu, cpu, 0, 50)
    figure = demo.figure_of(result)
    try:
        figure.canvas.draw()
        curve, *digits = [axes for part in figure.subfigs for axes in part.axes]
        (line,) = curve.get_lines()
        assert line.get_ydata().tolist() == result.losses.tolist()
        answers, labels = result.answers.tolist(), result.labels.tolist()
        wrong = [f"{a}, not {b}" for a, b in zip(answers, labels) if a != b][:20]  # stated in words, not only by color
        titles = [axes.get_title() for axes in digits]
        assert len(titles) == 20 and titles[: len(wrong)] == wrong
        boxes = [t.get_window_extent() for axes in (curve, *digits) for t in (axes.title, axes.xaxis.label, axes.yaxis.label) if t.get_text()]
        for i, box in enumerate(boxes):
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
            assert not any(box.overlaps(other) for other in boxes[:i])
    finally:
        pyplot.close(figure)


def test_the_program_ends_with_its_line_and_leaves_a_picture(tmp_path):
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--steps", "50", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("held-out accuracy "), done.stdout
    assert " % on cpu, 50 steps, " in done.stdout.splitlines()[-1]
    assert (tmp_path / "digits.png").stat().st_size > 10_000

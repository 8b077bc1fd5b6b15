"""Trains a network of two layers on handwritten digits, on the best device found; shows how it goes and what came of it. Then trains the
same network spread over two virtual devices, and compares every number.

    ./run demo [--steps 900] [--seed 0] [--device cuda:1] [--out examples/output]
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import naru as torch
from naru import nn

from export_digits import SIZE, load_digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 64
LEARNING_RATE = 2e-3
# Steps between two looks at the loss: each look waits for the device.
REPORT = 25

Report = Callable[[int, float], None]


class Network(nn.Module):
    """784 to 256 to 10. Its two layers may live on different devices; the data goes along."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(SIZE * SIZE, 256)
        self.output = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.hidden(x.to(self.hidden.weight.device)))
        answer: torch.Tensor = self.output(h.to(self.output.weight.device))
        return answer


@dataclass
class Result:
    """What a training left behind, on the host."""

    model: Network
    losses: torch.Tensor
    accuracy: float
    seconds_per_step: float
    held_out: torch.Tensor  # pixels and labels of the digits it has not seen, and its answers
    labels: torch.Tensor
    answers: torch.Tensor


def synchronize(*devices: torch.device) -> None:
    for device in devices:
        if device.type != "cpu":
            torch.accelerator.synchronize(device)


def train(first: torch.device, second: torch.device, seed: int, steps: int, report: Report | None = None) -> Result:
    """Trains with the hidden layer on one device and the output layer on another (or the same) one."""
    torch.manual_seed(seed)
    images, labels = (torch.from_numpy(a) for a in load_digits())
    order = torch.randperm(len(images))
    held_out, kept = order[: len(order) // 5], order[len(order) // 5 :]
    model = Network()
    model.hidden.to(first)
    model.output.to(second)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    x, y = images[kept].to(first), labels[kept].to(second)

    losses: list[torch.Tensor] = []
    synchronize(first, second)
    start = time.perf_counter()
    while len(losses) < steps:
        shuffled = torch.randperm(len(kept))
        rows_first, rows_second = shuffled.to(first), shuffled.to(second)
        for at in range(0, len(kept) - BATCH + 1, BATCH):
            scores = model(x[rows_first[at : at + BATCH]])
            loss = nn.functional.cross_entropy(scores, y[rows_second[at : at + BATCH]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            if report and len(losses) % REPORT == 0:
                report(len(losses), loss.item())
            if len(losses) == steps:
                break
    synchronize(first, second)
    seconds = (time.perf_counter() - start) / max(steps, 1)

    with torch.no_grad():
        answers = model(images[held_out].to(first)).argmax(1).cpu()
    accuracy = (answers == labels[held_out]).float().mean().item()
    return Result(model, torch.stack(losses).cpu(), accuracy, seconds, images[held_out], labels[held_out], answers)


def choose_device(wanted: str | None) -> torch.device:
    """Prints the devices there are; returns the one to use and says why."""
    from naru._command.report import devices_table

    print(devices_table())
    if wanted:
        device, why = torch.device(wanted), "it was asked for"
    elif torch.accelerator.is_available():
        device, why = torch.device(str(torch.accelerator.current_accelerator()), 0), "it is the first device beside the cpu"
    else:
        device, why = torch.device("cpu"), "there is no other device that works"
    print(f"\ntraining on {device}: {why}")
    return device


@contextlib.contextmanager
def progress(steps: int) -> Iterator[Report]:
    """A bar on a terminal, by rich if it is there; a line now and then elsewhere."""
    try:
        if not sys.stdout.isatty():
            raise ImportError
        from rich import progress as bars
    except ImportError:

        def line(step: int, loss: float) -> None:
            if step % (REPORT * max(1, steps // REPORT // 9)) == 0:
                print(f"  step {step:5d}   loss {loss:.4f}")

        yield line
        return
    columns = (bars.TextColumn("training"), bars.BarColumn(), bars.MofNCompleteColumn(), bars.TextColumn("loss {task.fields[loss]:.4f}"))
    with bars.Progress(*columns) as bar:
        task = bar.add_task("training", total=steps, loss=float("nan"))
        yield lambda step, loss: bar.update(task, completed=step, loss=loss)


def figure_of(result: Result) -> Figure:
    """The loss curve above, digits and what they were taken for below; the mistaken ones first."""
    from matplotlib import pyplot as plt

    losses, answers, labels = result.losses.numpy(), result.answers.tolist(), result.labels.tolist()
    shown = sorted(range(len(answers)), key=lambda i: answers[i] == labels[i])[:20]
    figure = plt.figure(figsize=(9, 6), layout="constrained")
    curve, digits = figure.subfigures(2, 1, height_ratios=[3, 2])
    axes = curve.subplots()
    axes.plot(range(1, len(losses) + 1), losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross entropy", yscale="log", title=f"held-out accuracy {result.accuracy:.1%}")
    axes.grid(alpha=0.3)
    images = result.held_out.reshape(-1, SIZE, SIZE).numpy()
    for place, i in zip(digits.subplots(2, 10).flat, shown):
        right = answers[i] == labels[i]
        place.imshow(images[i], cmap="gray_r")
        place.set_title(str(answers[i]) if right else f"{answers[i]}, not {labels[i]}", fontsize=9, color="black" if right else "tab:red")
    for place in digits.axes:
        place.axis("off")
    return figure


def draw(result: Result, path: pathlib.Path) -> bool:
    """Writes the picture; says so and returns False where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        print("no picture: matplotlib is not installed here")
        return False
    figure = figure_of(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(a.detach().cpu().numpy().tobytes() == b.detach().cpu().numpy().tobytes())


def compare_with_virtual(seed: int, steps: int, on_cpu: Result | None) -> bool:
    """Trains over two virtual devices and on the cpu; whether every loss and every parameter is the same, bit for bit."""
    if on_cpu is None:
        cpu = torch.device("cpu")
        on_cpu = train(cpu, cpu, seed, steps)
    with torch.virtual("cuda", 2):
        spread = train(torch.device("cuda:0"), torch.device("cuda:1"), seed, steps)
        pairs = list(zip(on_cpu.model.parameters(), spread.model.parameters()))
        same = same_bits(on_cpu.losses, spread.losses) and all(same_bits(a, b) for a, b in pairs)
    count = sum(a.numel() for a, _ in pairs)
    verdict = "the same as on cpu, bit for bit" if same else "NOT the same as on cpu"
    print(
        f"two virtual devices (hidden layer on cuda:0, output layer on cuda:1): {steps} losses and {count:,} parameters are {verdict}; "
        f"{spread.seconds_per_step * 1e6:.0f} us a step"
    )
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description="Trains 784-256-10 on handwritten digits.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the split and the order (default: 0)")
    parser.add_argument("--steps", type=int, default=900, help=f"batches of {BATCH} digits (default: 900)")
    parser.add_argument("--device", help="default: the first device beside the cpu, else the cpu")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "output", help="folder for the picture")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    device = choose_device(options.device)
    with progress(options.steps) as report:
        result = train(device, device, options.seed, options.steps, report)
    print(f"loss {result.losses[0].item():.4f} at first, {result.losses[-1].item():.4f} at last")
    picture = options.out / "digits.png"
    if draw(result, picture):
        print(f"picture: {picture}")
    same = compare_with_virtual(options.seed, options.steps, result if device.type == "cpu" else None)
    print(
        f"held-out accuracy {result.accuracy * 100:.1f} % on {device}, {options.steps} steps, {result.seconds_per_step * 1e6:.0f} us a step"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

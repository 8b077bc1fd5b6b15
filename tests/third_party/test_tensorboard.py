"""Event files of torch.utils.tensorboard and of tensorboardX, read back by TensorBoard's own reader."""
import io

import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "images": 0, "tensors": 0})
    events.Reload()
    return events


def write(writer):
    for step in range(3):
        writer.add_scalar("loss/train", torch.tensor(1.0 / (step + 1)), step)
        writer.add_histogram("weights", torch.linspace(-1, 1, 101), step)
    writer.add_image("picture", torch.linspace(0, 1, 3 * 4 * 5).reshape(3, 4, 5), 7)
    writer.add_images("pictures", torch.zeros(4, 3, 2, 2), 7)
    writer.add_text("note", "as *text*", 1)
    writer.close()


def check(folder):
    events = read(folder)
    scalars = events.Scalars("loss/train")
    assert [s.step for s in scalars] == [0, 1, 2] and [s.value for s in scalars] == pytest.approx([1.0, 0.5, 1 / 3], abs=1e-7)
    histogram = events.Histograms("weights")[2].histogram_value
    assert (histogram.num, histogram.min, histogram.max) == (101, -1, 1) and sum(histogram.bucket) == 101
    (image,) = events.Images("picture")
    assert (image.step, image.width, image.height) == (7, 5, 4)
    assert Image.open(io.BytesIO(image.encoded_image_string)).size == (5, 4) and events.Images("pictures")
    (text,) = events.Tensors("note/text_summary")
    assert text.tensor_proto.string_val[0] == b"as *text*"


def test_tensorboards_reader_reads_what_torch_utils_tensorboard_wrote(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 4)
    write(writer)
    check(tmp_path)
    assert read(tmp_path / "both_a").Scalars("both")[0].value == 1.0


def test_tensorboardx_takes_tensors_and_its_files_are_read(tmp_path, device):
    import tensorboardX

    writer = tensorboardX.SummaryWriter(str(tmp_path))
    writer.add_embedding(torch.randn(5, 3, device=device), global_step=1)
    writer.add_pr_curve("curve", torch.arange(20) % 2, torch.linspace(0, 1, 20), 0)
    write(writer)
    check(tmp_path)


@pytest.mark.xfail(strict=True, raises=ModuleNotFoundError, reason="graphs are drawn from TorchScript's traces, which naru does not make")
def test_tensorboardx_draws_a_graph(tmp_path):
    import tensorboardX

    with tensorboardX.SummaryWriter(str(tmp_path)) as writer:
        writer.add_graph(torch.nn.Linear(2, 2), torch.ones(1, 2))

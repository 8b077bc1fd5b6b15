"""torch.utils.tensorboard: event files whose records read back; by TensorBoard's own reader too, where it is installed."""
import struct
import zlib
from pathlib import Path

import naru as torch
import pytest
from naru.utils.tensorboard import SummaryWriter
from naru.utils.tensorboard._records import _checksum


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """A message's fields: (number, value) each."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = struct.unpack("<d" if kind == 1 else "<f", data[at : at + size])[0], at + size
        found.append((key >> 3, value))
    return found


def events(folder):
    """(step, tag, fields of the value) of each event in a folder's only file."""
    (path,) = Path(folder).glob("events.out.tfevents.*")
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == _checksum(data[at : at + 8])
        body = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == _checksum(body)
        found.append(dict(fields(body)))
        at += 16 + size
    assert found[0][3] == b"brain.Event:2"
    values = [(e.get(2, 0), dict(fields(dict(fields(e[5]))[1]))) for e in found[1:]]
    return [(step, v[1].decode(), v) for step, v in values]


def test_numbers_of_all_kinds_with_their_steps(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_scalar("loss", torch.tensor([0.25], requires_grad=True), 2)
        writer.add_scalar("far", 3, 2**40, walltime=12.0)
        with pytest.raises(ValueError, match="wanted one number, got a tensor of shape"):
            writer.add_scalar("loss", torch.ones(2))
    assert [(step, tag, v[2]) for step, tag, v in events(tmp_path)] == [(1, "loss", 0.5), (2, "loss", 0.25), (2**40, "far", 3.0)]


def test_several_numbers_have_files_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/loss", {"train": 1.0, "test": 2.0}, 5)
    assert [events(tmp_path / f"run_loss_{name}")[0][2][2] for name in ("train", "test")] == [1.0, 2.0]


def test_a_histogram_counts_each_value_once(tmp_path):
    x = torch.randn(1000)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", x, 3)
        writer.add_histogram("n", x, 3, bins=10)
    for _, _, value in events(tmp_path):
        h = fields(value[5])
        low, high, count, total = (h[i][1] for i in range(4))
        counts = struct.unpack(f"<{len(h[6][1]) // 8}d", h[6][1])
        limits = struct.unpack(f"<{len(h[5][1]) // 8}d", h[5][1])
        assert count == 1000 == sum(counts) and len(limits) == len(counts) and limits[-1] >= high
        assert low == pytest.approx(x.min().item()) and total == pytest.approx(x.double().sum().item())


def test_images_are_pngs_of_their_pixels(tmp_path):
    image = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", image, 0, dataformats="HWC")
        writer.add_images("many", torch.rand(5, 1, 3, 2))
        with pytest.raises(ValueError, match="size of input tensor and input format are different"):
            writer.add_image("i", image[0])
    first, many = (dict(fields(v[4])) for _, _, v in events(tmp_path))
    assert (first[1], first[2], first[3]) == (2, 4, 3) and (many[1], many[2], many[3]) == (3, 10, 1)
    data = first[4]
    start = data.index(b"IDAT") + 4
    raw = zlib.decompress(data[start : start + struct.unpack(">I", data[start - 8 : start - 4])[0]])
    assert b"".join(raw[1 + 13 * r : 13 * (r + 1)] for r in range(2)) == bytes(range(24))


def test_texts_and_settings(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**bold**", 1)
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.9}, run_name="one")
        with pytest.raises(NotImplementedError, match="SummaryWriter.add_graph is in PyTorch 2.15 but not in naru yet; nearest: tensorboardX"):
            writer.add_graph(None)
    ((step, tag, value),) = events(tmp_path)
    assert (step, tag) == (1, "note/text_summary") and dict(fields(value[8]))[8] == b"**bold**"
    assert [tag for _, tag, _ in events(tmp_path / "one")] == ["hparams/text_summary", "accuracy"]


def test_tensorboards_own_reader_reads_them(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_histogram("w", torch.arange(10.0), 1)
    found = reader.EventAccumulator(str(tmp_path)).Reload()
    assert [(s.step, s.value) for s in found.Scalars("loss")] == [(1, 0.5)] and found.Histograms("w")[0].histogram_value.num == 10

"""torch.utils.tensorboard: event files can be read back, also by TensorBoard's own reader where it is installed."""
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
        with pytest.raises(NotImplementedError, match="SummaryWriter.add_video is in PyTorch 2.15 but not in naru yet; nearest: tensorboardX"):
            writer.add_video(None)
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


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 2)
        self.rest = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout())

    def forward(self, x, scale):
        return self.rest(self.first(x) * scale + self.first.bias), x


def raw_events(folder):
    (path,) = Path(folder).glob("events.out.tfevents.*")
    data, at = path.read_bytes(), 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield dict(fields(data[at + 12 : at + 12 + size]))
        at += 16 + size


def test_a_graph_has_a_node_a_call_below_the_module_that_makes_it_and_leaves_the_module_as_it_was(tmp_path):
    model = Net()
    model.rest.eval()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (torch.ones(4, 3), torch.tensor(2.0)))
    assert model.training and not model.rest.training and not model._forward_hooks and not model.first._forward_pre_hooks
    nodes = [fields(node) for number, node in fields(list(raw_events(tmp_path))[1][4]) if number == 1]
    inputs = {dict(node)[1].decode(): [value.decode() for number, value in node if number == 3] for node in nodes}
    assert inputs == {
        "input/x": [],
        "input/scale": [],
        "Net/Linear[first]/weight": [],
        "Net/Linear[first]/bias": [],
        "Net/Linear[first]/linear": ["input/x", "Net/Linear[first]/weight", "Net/Linear[first]/bias"],
        "Net/mul": ["Net/Linear[first]/linear", "input/scale"],
        "Net/add": ["Net/mul", "Net/Linear[first]/bias"],
        "Net/Sequential[rest]/ReLU[0]/relu": ["Net/add"],
        "Net/Sequential[rest]/Dropout[1]/dropout": ["Net/Sequential[rest]/ReLU[0]/relu"],
        "output/output.1": ["Net/Sequential[rest]/Dropout[1]/dropout"],
        "output/output.2": ["input/x"],
    }
    shapes = {dict(node)[1].decode(): [dict(fields(size))[1] for _, size in fields(shape_of(node))] for node in nodes}
    assert shapes["input/scale"] == [] and shapes["Net/mul"] == [4, 2] and shapes["Net/Linear[first]/bias"] == [2]


def shape_of(node):
    several = dict(fields(dict(fields(dict(node)[5]))[2]))[1]
    return dict(fields(several))[7]


def test_points_with_names_and_pictures_are_files_beside(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(torch.tensor([[0.5, 1.0], [2.0, 3.0]]), ["a", "b"], torch.zeros(2, 1, 3, 4), global_step=7)
        writer.add_embedding(torch.eye(2, dtype=torch.int64), [[1, 2], [3, 4]], tag="x/y", metadata_header=["m", "n"])
        with pytest.raises(AssertionError, match="#labels should equal with #data points"):
            writer.add_embedding(torch.eye(2), ["a"])
    read = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "tfevents" not in path.name}
    assert read.pop("00007/default/sprite.png")[16:24] == struct.pack(">II", 8, 6)
    settings = read.pop("projector_config.pbtxt").decode()
    assert read == {
        "00007/default/tensors.tsv": b"0.5\t1.0\n2.0\t3.0\n",
        "00007/default/metadata.tsv": b"a\nb\n",
        "00000/x%2Fy/tensors.tsv": b"1\t0\n0\t1\n",
        "00000/x%2Fy/metadata.tsv": b"m\tn\n1\t2\n3\t4\n",
    }
    assert settings.count("embeddings {") == 2 and 'sprite {\nimage_path: "00007/default/sprite.png"\nsingle_image_dim: 4' in settings


def test_precision_and_recall_by_thresholds_are_those_of_pytorchs_writer(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("pr", torch.arange(20) % 2, torch.linspace(0, 1, 20), 3, num_thresholds=5, weights=torch.arange(20.0).numpy())
    ((step, tag, value),) = events(tmp_path)
    numbers = [v for number, v in fields(value[8]) if number == 5]
    hits, misses = [100.0, 96.0, 75.0, 51.0, 19.0], [90.0, 84.0, 70.0, 34.0, 0.0]
    assert (step, tag) == (3, "pr") and numbers[:10] == hits + misses and numbers[10:20] == [90 - m for m in misses] + [100 - h for h in hits]
    assert numbers[20:] == [struct.unpack("<f", struct.pack("<f", v))[0] for v in [h / (h + m) for h, m in zip(hits, misses)] + [h / 100 for h in hits]]


def test_a_sound_is_a_wav_of_its_samples(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("s", torch.tensor([[-2.0, 0.0, 0.5, 1.0]]), 2, sample_rate=8000)
        with pytest.raises(ValueError, match="add_audio: wanted one row of samples, got a tensor of shape"):
            writer.add_audio("s", torch.zeros(2, 3))
    ((step, tag, value),) = events(tmp_path)
    sound = dict(fields(value[6]))
    assert (step, tag, sound[1], sound[2], sound[3], sound[5]) == (2, "s", 8000.0, 1, 4, b"audio/wav")
    assert sound[4][:4] == b"RIFF" and struct.unpack("<4h", sound[4][-8:]) == (-32767, 0, 16383, 32767)

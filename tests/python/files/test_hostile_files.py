"""Malicious files: loading executes nothing, and takes no more memory than the file's length allows."""

import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import pytest

import naru as torch

REPOSITORY = Path(__file__).resolve().parents[3]


def archive(text, records=(), compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        z.writestr("archive/data.pkl", text)
        z.writestr("archive/version", "3\n")
        z.writestr("archive/byteorder", "little")
        for name, data in dict(records).items():
            z.writestr("archive/" + name, data)
    file.seek(0)
    return file


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def number(i):
    raw = i.to_bytes((i.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def numbers(values):
    return b"(" + b"".join(number(v) for v in values) + b"t"


def tensor(shape, stride, offset=0, numel=4, key="0", storage="FloatStorage"):
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + f"ctorch\n{storage}\n".encode() + text(key) + text("cpu") + number(numel)
            + b"tQ" + number(offset) + numbers(shape) + numbers(stride) + b"\x89ccollections\nOrderedDict\n)RtR")  # fmt: skip


FOUR = {"data/0": struct.pack("<4f", 1, 2, 3, 4)}


def load(code, records=(), **options):
    return torch.load(archive(b"\x80\x02" + code + b".", records), **options)


def sets(state, name):
    """Instructions that set an attribute by either form of a state."""
    return [b"}" + text(name) + state + b"sb", b"N}" + text(name) + state + b"s\x86b"]


LASTING = {
    "a storage type": (b"ctorch\nFloatStorage\n", "name", text("IntStorage")),
    "Tensor": (b"ctorch\nTensor\n", "__add__", b"ccollections\nOrderedDict\n"),
    "Parameter": (b"ctorch.nn.parameter\nParameter\n", "__new__", b"N"),
    "the defaults of a function": (b"ctorch._utils\n_rebuild_parameter\n", "__defaults__", b"K\x01\x85"),
    "the keywords of a function": (b"ctorch._utils\n_rebuild_tensor_v2\n", "__kwdefaults__", b"}"),
    "Counter": (b"ccollections\nCounter\n", "update", b"N"),
    "device": (b"ctorch\ndevice\n", "type", text("x")),
    "Size": (b"ctorch\nSize\n", "numel", b"N"),
    "a dtype": (b"ctorch\nfloat32\n", "itemsize", b"N"),
    "a tensor of the file": (tensor([2], [1]), "shape", b"N"),
}


@pytest.mark.parametrize("what", LASTING)
@pytest.mark.parametrize("form", [0, 1])
def test_a_file_sets_attributes_of_nothing_but_objects_it_has_made(what, form):
    code, name, value = LASTING[what]
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(code + sets(value, name)[form], FOUR)
    assert (torch.ones(2) + 1).tolist() == [2, 2] and torch.ones(1).device.type == "cpu" and torch.ones(1).shape.numel() == 1
    assert Counter([1, 1]) == {1: 2} and torch.nn.Linear(2, 2).weight.shape == (2, 2)
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("code", [b"(NNu", b"(NNe", b"NNs", b"Na", b"(N\x90"])
@pytest.mark.parametrize("target", [b"ctorch\nTensor\n", b"ctorch\nFloatStorage\n", b"ccollections\nOrderedDict\n", tensor([2], [1])])
def test_items_go_to_lists_sets_and_dicts_only(code, target):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(target + code, FOUR)


def test_an_ordered_dict_of_the_file_has_its_state():
    back = load(b"ccollections\nOrderedDict\n)R}" + text("_metadata") + b"K\x05sb")
    assert type(back) is OrderedDict and back._metadata == 5 and not hasattr(OrderedDict, "_metadata")


class Plain:
    pass


class Slotted:
    __slots__ = ("x",)


def test_an_allowed_class_gets_the_state_of_its_objects_and_keeps_its_own():
    made, slotted = Plain(), Slotted()
    made.x = torch.ones(2)
    slotted.x = 5
    for obj in (made, slotted):
        file = io.BytesIO()
        torch.save(obj, file)
        file.seek(0)
        with torch.serialization.safe_globals([Plain, Slotted]):
            assert type(torch.load(file)) is type(obj)
    with torch.serialization.safe_globals([Plain]), pytest.raises(pickle.UnpicklingError, match="Can only build"):
        load(f"c{__name__}\nPlain\n".encode() + b"}" + text("x") + b"K\x01sb")
    assert not hasattr(Plain, "x")


@pytest.mark.parametrize("name", ["os\nsystem", "builtins\neval", "builtins\ngetattr", "torch\nTensor.__class__", "collections\nOrderedDict.__init__",
                                  "torch\nload", "naru\nTensor", "copyreg\n_reconstructor", "numpy\nempty"])  # fmt: skip
def test_a_file_names_nothing_but_plain_data(name):
    for code in (f"c{name}\n".encode(), text(name.split("\n")[0]) + text(name.split("\n")[1]) + b"\x93"):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL " + name.replace("\n", r"\.")):
            load(code)


GEOMETRY = {
    "more than the storage has": ([100], [1], 0), "a stride beyond all": ([5], [2**62], 0), "a negative offset": ([2], [1], -4),
    "an offset beyond all": ([2], [1], 2**62), "a negative stride": ([2], [-1], 2), "a negative size": ([-2], [1], 2),
    "sizes whose product wraps": ([2**32, 2**32], [1, 1], 0), "sizes whose product wraps to one": ([274177, 67280421310721], [0, 0], 0),
}  # fmt: skip


@pytest.mark.parametrize("what", GEOMETRY)
def test_a_tensor_stays_within_its_storage(what):
    shape, stride, offset = GEOMETRY[what]
    with pytest.raises(RuntimeError, match="a stored tensor"):
        load(tensor(shape, stride, offset), FOUR)


@pytest.mark.parametrize("numel", [-1, 5, 2**62])
def test_a_storage_has_the_bytes_that_the_pickle_says(numel):
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="should have|unknown type or size"):
        load(tensor([2], [1], numel=numel), FOUR)


def test_a_bool_that_is_neither_0_nor_1_is_true():
    back = load(tensor([4], [1], storage="BoolStorage"), {"data/0": bytes([0, 1, 2, 255])})
    assert back.tolist() == [False, True, True, True] and back.sum().item() == 3 and (~back).tolist() == [True, False, False, False]
    header = b'{"x":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}}'
    back = torch.safetensors.load(struct.pack("<Q", len(header)) + header + bytes([0, 1, 2, 255]))["x"]
    assert back.sum().item() == 3


SMALL = 200 << 20
BOMBS = {
    "a place in the memo far beyond the last": (b"Nr\xff\xff\xff\x3f", True),
    "a text longer than the file": (b"X\xff\xff\xff\x7f", False),
    "bytes longer than the file": (b"\x8e" + struct.pack("<Q", 2**62), False),
    "a bytearray longer than the file": (b"\x96" + struct.pack("<Q", 2**40), False),
    "a bytearray of a size": (b"cbuiltins\nbytearray\n" + number(2**40) + b"\x85R", False),
    "a tensor of a size": (b"ctorch\nTensor\n" + number(2**30) + b"\x85R", False),
    "an integer of a million digits": (b"cbuiltins\nint\n" + text("9" * 10**6) + b"\x85R", False),
    "tuples nested a million deep": (b")" + b"\x85" * 10**6, False),
    "a key nested a million deep": (b"})" + b"\x85" * 10**6 + b"Ns", False),
    "lists nested deep": (b"]" * 10**5 + b"a" * (10**5 - 1), False),
    "a tuple that has itself twice, and so on": (b")" + b"2\x86" * 100, False),
    "a list of such, as a key": (b"}" + b")" + b"2\x86" * 100 + b"Ns", False),
}

PROGRAM = """
import resource, sys, naru
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    naru.load(sys.argv[1])
    print("accepted")
except (RuntimeError, EOFError, naru.serialization.pickle.UnpicklingError) as error:
    print("refused")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def memory_for(path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    outcome, kilobytes = done.stdout.split()
    return outcome == "accepted", int(kilobytes) << 10


@pytest.mark.parametrize("what", BOMBS)
def test_a_small_file_takes_little_memory(what, tmp_path):
    code, accepted = BOMBS[what]
    path = tmp_path / "x.pt"
    path.write_bytes(archive(b"\x80\x02" + code + b".").getvalue())
    got, taken = memory_for(path)
    assert got == accepted and taken < SMALL


def test_compressed_records_are_bounded_by_the_files_length(tmp_path):
    for name, text_of in (("data.pkl", b"\x80\x02(" + b"N" * 2**29 + b"t."), ("data/0", bytes(2**29))):
        path = tmp_path / "x.pt"
        code = b"\x80\x02" + tensor([2**27], [1], numel=2**27) + b"."
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for record, data in {"data.pkl": code, "version": "3\n", "byteorder": "little", name: text_of}.items():
                z.writestr("archive/" + record, data)
        accepted, taken = memory_for(path)
        assert not accepted and taken < SMALL


def test_a_file_that_was_compressed_by_hand_is_read():
    assert torch.load(archive(b"\x80\x02" + tensor([4], [1]) + b".", FOUR, zipfile.ZIP_DEFLATED)).tolist() == [1, 2, 3, 4]


def test_records_that_overlap_are_refused():
    data = bytearray(archive(b"\x80\x02" + tensor([4], [1]) + b".", {"data/0": bytes(16), "data/1": bytes(1000)}).getvalue())
    at = data.index(b"PK\x01\x02")
    while data[at : at + 4] == b"PK\x01\x02":  # every record in the directory claims the length of the longest
        name, extra, comment = struct.unpack("<HHH", data[at + 28 : at + 34])
        data[at + 20 : at + 28] = struct.pack("<II", 1000, 1000)
        at += 46 + name + extra + comment
    with pytest.raises(RuntimeError, match="overlap|beyond"):
        torch.load(io.BytesIO(data))


def test_mutated_files_are_refused_or_read_and_nothing_else():
    done = subprocess.run([sys.executable, "-m", "tools.fuzz.files", "--inputs", "1500", "--seed", "1", "--seconds", "60"], cwd=REPOSITORY,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(torch.__file__).parents[1]), str(REPOSITORY)])},
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 found" in done.stdout

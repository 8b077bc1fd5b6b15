"""safetensors files: written files are valid, all valid files are read, and malicious ones are rejected."""

import json
import os
import random
import struct
import subprocess
import sys

import pytest

import naru as torch
from naru.safetensors import load, load_file, load_model, safe_open, save, save_file, save_model

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(dtype="F32", shape=(2,), offsets=(0, 8), data=bytes(8), **more):
    return file_of({"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}, **more}, data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4)])
def test_every_type_and_shape_comes_back(tmp_path, dtype, shape):
    t = torch.randint(0, 2, shape).to(dtype)
    save_file({"a": t, "b.c": torch.arange(3)}, tmp_path / "x.safetensors", {"note": "äö"})
    back = load_file(tmp_path / "x.safetensors")
    assert back["a"].dtype == dtype and back["a"].shape == t.shape and torch.equal(back["a"], t) and back["b.c"].tolist() == [0, 1, 2]
    again = load(save({"a": t}))
    assert torch.equal(again["a"], t)


def test_the_bytes_are_those_of_the_format():
    data = save({"b": torch.tensor([1.0, 2.0]), "a": torch.tensor([7], dtype=torch.uint8)}, {"k": "v"})
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    assert header == {
        "__metadata__": {"k": "v"},
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [8, 9]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    }
    assert data[8 + length :] == struct.pack("<2fB", 1.0, 2.0, 7)
    assert load(one(data=struct.pack("<2f", 5.0, 6.0)))["x"].tolist() == [5.0, 6.0]


def test_a_file_is_opened_lazily_and_writing_to_a_tensor_leaves_it_alone(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"x": torch.arange(12.0).reshape(3, 4), "y": torch.ones(2)}, path, {"k": "v"})
    before = path.read_bytes()
    with safe_open(path, framework="pt", device="cpu") as f:
        assert f.keys() == ["x", "y"] and f.metadata() == {"k": "v"}
        part = f.get_slice("x")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "F32" and part[1:, 0].tolist() == [4.0, 8.0]
        t = f.get_tensor("x")
        with pytest.raises(ValueError, match="does not contain tensor z"):
            f.get_tensor("z")
    t.mul_(2)
    assert t[2, 3].item() == 22 and path.read_bytes() == before


def test_tensors_are_loaded_onto_devices_and_saved_from_them(tmp_path):
    save_file({"x": torch.ones(3, device="cuda:1")}, tmp_path / "x")
    assert load_file(tmp_path / "x", device="cuda:0")["x"].device == torch.device("cuda:0")
    assert load_file(tmp_path / "x")["x"].device.type == "cpu"


def test_a_module_is_saved_with_its_shared_tensors_once(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    save_model(model, tmp_path / "m")
    assert "1.weight" not in load_file(tmp_path / "m")
    other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    assert load_model(other, tmp_path / "m") == ([], [])
    assert torch.equal(other[1].weight, model[0].weight)


def test_what_cannot_be_saved_is_an_error(tmp_path):
    t = torch.ones(3, 4)
    with pytest.raises(ValueError, match="non contiguous"):
        save({"x": t.t()})
    with pytest.raises(RuntimeError, match="share memory"):
        save({"x": t, "y": t.view(12)})
    with pytest.raises(ValueError, match="Expected a dict"):
        save([t])
    with pytest.raises(ValueError, match="expected torch.Tensor"):
        save({"x": 1})
    with pytest.raises(ValueError, match="reserved"):
        save({"__metadata__": t})
    with pytest.raises(RuntimeError, match="No such file"):
        save_file({"x": t}, tmp_path / "nowhere" / "x")
    with pytest.raises(RuntimeError, match="No such file|cannot find|not found"):
        load_file(tmp_path / "nothing")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "at least 8 bytes"),
        (b"1234567", "at least 8 bytes"),
        (file_of({}, length=10**9), "at most 100000000"),
        (file_of({}, length=500), "cut short"),
        (file_of(b"[]"), "begins with a brace"),
        (file_of(b'{"x": '), "no JSON"),
        (file_of(b'{"x\xff": 1}'), "no JSON"),
        (file_of(b'{"x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}, "x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}'), "'x' twice"),
        (file_of({"x": 3}), "wanted dtype, shape"),
        (one(dtype="F4"), "which naru does not have"),
        (one(shape=(3,)), "make 12 bytes"),
        (one(shape=(-2,)), "numbers from 0 on"),
        (one(shape=(2.5,)), "numbers from 0 on"),
        (one(shape=(2**62, 2**62)), "too large"),
        (one(offsets=(8, 0)), "make 8 bytes"),
        (one(offsets=(4, 12), data=bytes(12)), "neither overlap nor leave gaps"),
        (one(data=bytes(4)), "cut short"),
        (one(data=bytes(9)), "goes on behind"),
        (one(y={"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}), "neither overlap"),
        (one(__metadata__={"k": 1}), "wanted texts"),
        (one(__metadata__=[]), "object of texts"),
        (file_of(b"{" + b'"a":{' * 50 + b"}" * 51), "too deeply"),
    ],
)
def test_a_hostile_or_broken_file_is_an_error(tmp_path, data, text):
    with pytest.raises(ValueError, match=text):
        load(data)
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises((ValueError, RuntimeError)):
        load_file(path)


def test_no_change_of_a_file_s_bytes_is_a_crash(tmp_path):
    good = save({"x": torch.arange(6.0), "y": torch.ones(2, 2, dtype=torch.int64)}, {"k": "v"})
    rng = random.Random(5)
    accepted = refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            what = rng.random()
            at = rng.randrange(len(data)) if data else 0
            if what < 0.6 and data:
                data[at] = rng.randrange(256)
            elif what < 0.8:
                del data[at:]
            else:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        try:
            tensors = load(bytes(data))
            accepted += 1
            assert all(t.numel() * t.element_size() <= len(data) for t in tensors.values())
        except ValueError:
            refused += 1
    assert accepted > 50 and refused > 1000


def test_scripts_that_import_safetensors_torch_get_naru_s(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(
        "import torch\nfrom safetensors.torch import save_file, load_file\nfrom safetensors import safe_open\n"
        f"save_file({{'x': torch.ones(2)}}, {str(tmp_path / 'f')!r})\nprint(load_file({str(tmp_path / 'f')!r})['x'].tolist(), safe_open.__module__)\n"
    )
    done = subprocess.run([sys.executable, "-m", "naru", "run", str(script)], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "[1.0, 1.0] naru.safetensors", done.stderr

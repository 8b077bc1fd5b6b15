"""Files: what is saved is loaded; damaged and malicious files are rejected."""
import base64
import gzip
import io
import os
import pickle
import random
import zipfile
import zlib

import naru as torch
import numpy as np
import pytest
from naru import nn

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def through(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("name", DTYPES)
def test_each_dtype_comes_back(name):
    x = torch.tensor([0, 1, 1, 3]).to(getattr(torch, name))
    y = through(x)
    assert y.dtype == x.dtype and y.tolist() == x.tolist()


def test_plain_objects_come_back():
    obj = {
        "list": [1, 2.5, "x", None, True, (1, 2)],
        "set": {1, 2},
        "bytes": b"xyz",
        "size": torch.Size([2, 3]),
        "dtype": torch.float16,
        "device": torch.device("cuda:1"),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5),
    }
    back = through(obj)
    assert {k: v for k, v in back.items() if k not in ("empty", "scalar")} == {
        k: v for k, v in obj.items() if k not in ("empty", "scalar")
    }
    assert type(back["size"]) is torch.Size and back["empty"].shape == (0, 3) and back["scalar"].item() == 2.5


def test_strides_and_requires_grad_come_back():
    x = torch.arange(6.0).reshape(2, 3).t()
    y = through(x)
    assert y.stride() == x.stride() and y.tolist() == x.tolist()
    assert through(torch.ones(1, requires_grad=True)).requires_grad


def test_tensors_that_share_memory_still_share_it():
    base = torch.arange(6.0)
    back = through({"all": base, "part": base[2:4]})
    back["all"][2] = 99
    assert back["part"].tolist() == [99.0, 3.0]


def test_a_model_and_an_optimizer_come_back():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    back = through({"model": net.state_dict(), "optimizer": optimizer.state_dict()})
    twin = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    twin.load_state_dict(back["model"])
    np.testing.assert_array_equal(twin(torch.ones(2, 3)).detach().numpy(), net(torch.ones(2, 3)).detach().numpy())
    other = torch.optim.Adam(twin.parameters())
    other.load_state_dict(back["optimizer"])
    assert other.state[twin[0].weight]["step"].item() == 1


def test_a_whole_module_comes_back_only_when_trusted():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        through(net)
    back = through(net, weights_only=False)
    assert isinstance(back[0].weight, nn.Parameter)
    np.testing.assert_array_equal(back(torch.ones(1, 2)).detach().numpy(), net(torch.ones(1, 2)).detach().numpy())


def test_devices_come_back_or_are_mapped():
    x = torch.arange(3.0, device="cuda:1")
    assert str(through(x).device) == "cuda:1"
    assert through(x, map_location="cpu").device.type == "cpu"
    assert str(through(x, map_location={"cuda:1": "mps:0"}).device) == "mps:0"
    assert through(x, map_location=lambda storage, location: storage).device.type == "cpu"


def test_a_tensor_of_an_absent_device_is_loaded_on_the_cpu():
    file = io.BytesIO()
    torch.save(torch.arange(3.0, device="cuda:1"), file)
    data = zipfile.ZipFile(file)
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        for name in data.namelist():
            archive.writestr(name, data.read(name).replace(b"cuda:1", b"cuda:7"))
    changed.seek(0)
    x = torch.load(changed)
    assert x.device.type == "cpu" and x.tolist() == [0.0, 1.0, 2.0]


def test_files_by_path(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"x": torch.ones(2)}, path)
    assert torch.load(path)["x"].tolist() == [1.0, 1.0]
    assert "model/data.pkl" in zipfile.ZipFile(path).namelist()
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, os.path.join(tmp_path, "no", "x.pt"))


def test_a_file_in_pytorchs_own_hand_is_read():
    """The bytes that PyTorch 2.15 writes for {"w": torch.tensor([1.0, 2.0])}, put together here record by record."""
    text = (
        b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03"
        b"ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x02tq\x07QK\x00K\x02\x85q\x08K\x01\x85q\t"
        b"\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rs."
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", text)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", np.array([1, 2], np.float32).tobytes())
        archive.writestr("archive/version", "3\n")
    file.seek(0)
    assert torch.load(file)["w"].tolist() == [1.0, 2.0]


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


def test_a_file_that_would_run_something_is_refused():
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL (posix|nt).system"):
        through({"x": Evil()})


def test_a_class_can_be_allowed():
    with torch.serialization.safe_globals([Harmless]):
        assert through(Harmless(3)).value == 3
    with pytest.raises(pickle.UnpicklingError):
        through(Harmless(3))


class Harmless:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(
    "data, error, text",
    [(b"", EOFError, "is empty|Ran out of input"), (b"\x80\x02", EOFError, "Ran out of input"), (b"\x80\x02}", EOFError, "Ran out of input"),
     (b"\x80\x02junk", EOFError, "Ran out of input"),
     (b"garbage", pickle.UnpicklingError, "is not a file written by torch.save"), (b"hello", pickle.UnpicklingError, "is not a file written"),
     (b"\x89HDF\r\n\x1a\n", pickle.UnpicklingError, "is not a file written"), (bytes(600), pickle.UnpicklingError, "is not a file written"),
     (b"PK", pickle.UnpicklingError, "is not a file written"), (b'{"a": 1}', pickle.UnpicklingError, "is not a file written"),
     (b"PK\x03\x04 and then nothing", RuntimeError, "is cut off"), (b"\x80\x02K\x03.", RuntimeError, "Invalid magic number")],
)  # fmt: skip
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("way", ["buffer", "path", "gzip"])
def test_what_is_no_archive_is_refused_with_the_reason(data, error, text, weights_only, way, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if way == "gzip" else data)
    if data == b"\x80\x02junk" and not weights_only:
        error, text = pickle.UnpicklingError, "is not a file written"  # pickle's own reader finds the fault before the end
    with pytest.raises(error, match=text):
        torch.load({"buffer": io.BytesIO(data), "path": path}.get(way) or gzip.open(path), weights_only=weights_only)


def test_only_archives_are_mapped(tmp_path):
    for data in (b"", b"garbage", b"\x80\x02K\x03."):
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(RuntimeError, match="mmap can only be used with"):
            torch.load(tmp_path / "file", mmap=True)


def test_a_damaged_file_is_an_error_and_nothing_else():
    file = io.BytesIO()
    torch.save({"w": torch.arange(50.0), "v": [torch.ones(3), "text"]}, file)
    whole = file.getvalue()
    randomness = random.Random(0)
    damaged = [whole[:n] for n in range(0, len(whole), 61)]
    for _ in range(400):
        copy = bytearray(whole)
        for _ in range(randomness.randint(1, 4)):
            copy[randomness.randrange(len(copy))] = randomness.randrange(256)
        damaged.append(bytes(copy))
    refused = 0
    for data in damaged:
        try:
            torch.load(io.BytesIO(data))
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            refused += 1
    assert refused > 300  # a change in a byte that is not read does no harm


def test_a_tensor_that_reaches_beyond_its_storage_is_refused():
    file = io.BytesIO()
    torch.save(torch.arange(4.0), file)
    data = zipfile.ZipFile(file)
    for old, new in ((b"K\x04\x85", b"K\x7f\x85"), (b"K\x01\x85", b"K\x09\x85")):
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as archive:
            for name in data.namelist():
                content = data.read(name)
                if name.endswith("data.pkl"):
                    assert old in content
                    content = content.replace(old, new)
                archive.writestr(name, content)
        changed.seek(0)
        with pytest.raises(RuntimeError, match="reaches beyond its storage"):
            torch.load(changed)


def test_pickle_and_copy_of_tensors():
    x = torch.arange(3.0, requires_grad=True)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == [0.0, 1.0, 2.0] and y.requires_grad
    z = pickle.loads(pickle.dumps(torch.ones(2, dtype=torch.bfloat16, device="cuda:1")))
    assert z.dtype == torch.bfloat16 and str(z.device) == "cuda:1"


# Files of PyTorch 2.15: torch.save(x.conj()) and torch.save(x.conj().imag), legacy, for x = tensor([1+2j, 3+4j]); and what they hold.
NOT_RESOLVED = {
    "conjugated": ("c-n1`%}N6?5XX13TdUEES8pEcrO=kz_GCfnW$~+Ca*<`thBhT`c9LvSVPP+Y>NEHNzM799cyQX{%^@?8ng7iErXufD{d|nSPv)Pu$E}K7eFYdx@S5z%^Ss<>r@2<~LKrJ`20jW{11m~8r$j8WR3;ga6{DDRFS&@Vd=(ag62c~{VbadDaZrm03-Bj12Rl*7!u1TDO`#rzMS(lH(}vGlap9!0G&bU~kSdLx$gDQ;qC=6X$?EHYs7$5;{A~-p&`-G%&ts(%cfYMsAnXvO!|tHp@3ec}-mrZ(fMA2b^8&(%TqD$7<V9qOK>iZyZyYaGf;&9a(i@WsBhpLB9fjS~3G9_XH`rWfbJ$;52L}^qAo>G%|84V=7V-Y9I>#`=hhB|-0e&56tp", [1 - 2j, 3 - 4j]),  # fmt: skip
    "negated": ("c-n1G%Sr<=6rESCMk{XJxg0kGZK-Wnb|KvizUn3$31cR-k&yHznS#Q=Y=r7J_yPW!pCGvKw%r<%1NY?Id(Lg552AiQr$1-UUw5Zj6J3ADh&2Q$JqdzfX^l7BD7F&TNuwb|0qx+AlHM!9gf3;FAzD*{q<>io=H#nz5Z92Tw1uQw80(>xM>NJtY7cvPLX*u5qvz1hld3{b?v3S(j8$GLN0=2)l~g73LOWyGsz)$WO52-(s4V6J!d(lQDpUA}9Z4Xf$EX?iN5f&SJLnI_-HQ>#TW`LsAjy*(Omm-ydGv-!5Zdn?S5$&~+|ZF*TM8@6E6F{9{qq?d)IhfVTFl{a?K~XKpo5VgA^6WMEV9jZyVG1EOz`4sCVyt@W@-", [-2.0, -4.0]),  # fmt: skip
}


@pytest.mark.parametrize("name", NOT_RESOLVED)
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_stored_before_they_were_conjugated_or_negated(name, weights_only):
    text, expected = NOT_RESOLVED[name]
    assert torch.load(io.BytesIO(zlib.decompress(base64.b85decode(text))), weights_only=weights_only).tolist() == expected


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_in_both_formats(zipped, layout):
    made, file = torch.nested.nested_tensor([torch.ones(2), torch.full((3,), 2.0)], layout=layout), io.BytesIO()
    torch.save([made, torch.arange(3)], file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    back, beside = torch.load(file, weights_only=False)
    assert [row.tolist() for row in back.unbind()] == [[1, 1], [2, 2, 2]] and beside.tolist() == [0, 1, 2]

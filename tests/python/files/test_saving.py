"""Saving is atomic: a file is either the old one or the new one, complete, whatever happens while it is written."""

import base64
import io
import os
import stat
import subprocess
import sys
import textwrap
import time
import zipfile
import zlib

import pytest

import naru as torch
from naru._serialization.atomic_file import atomic_file
from naru.safetensors import load_file, save_file

OLD, NEW = {"w": torch.full((1000,), 1.0)}, {"w": torch.full((3000,), 2.0)}


def save_legacy(obj, path):
    torch.save(obj, path, _use_new_zipfile_serialization=False)


FORMATS = {"pt": (torch.save, torch.load), "legacy": (save_legacy, torch.load), "safetensors": (save_file, load_file)}


@pytest.fixture(params=FORMATS)
def form(request):
    return FORMATS[request.param]


def value_of(form, path):
    w = form[1](path)["w"]
    assert (w == w[0]).all()
    return w.numel(), w[0].item()


def python(program, *arguments):
    return [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]


SWEEP = """
import resource, sys, naru, os
from naru.safetensors import save_file, load_file
kind, path, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
save, load = {"pt": (naru.save, naru.load), "safetensors": (save_file, load_file),
              "legacy": (lambda obj, f: naru.save(obj, f, _use_new_zipfile_serialization=False), naru.load)}[kind]
new = {"w": naru.full((3000,), 2.0)}
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
failed = 0
for limit in [0, 1, 100, *range(500, last, 997), last - 1]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        save(new, path)
        raise SystemExit(f"it was written though files may have {limit} bytes")
    except (OSError, RuntimeError) as error:
        assert "File too large" in str(error), error
        failed += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    w = load(path)["w"]
    assert w.shape == (1000,) and (w == 1).all(), limit
    assert len(os.listdir(os.path.dirname(path))) == 1, os.listdir(os.path.dirname(path))
print(failed)
"""


@pytest.mark.parametrize("kind", FORMATS)
def test_a_disk_that_is_full_at_any_byte_leaves_the_old_file(tmp_path, kind):
    save, load = FORMATS[kind]
    path = tmp_path / "new"
    save(NEW, path)
    length = path.stat().st_size
    save(OLD, path)
    done = subprocess.run(python(SWEEP, kind, path, length), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and int(done.stdout) > 10, done.stdout + done.stderr


ENDLESS = """
import sys, naru
from naru.safetensors import save_file
save = naru.save if sys.argv[1] == "pt" else save_file
print("ready", flush=True)
while True:
    for n in (1_000, 300_000):
        save({"w": naru.full((n,), float(n))}, sys.argv[2])
"""


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
def test_a_program_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path, kind):
    save, load = FORMATS[kind]
    path = tmp_path / "x"
    for i in range(6):
        save({"w": torch.full((7,), 7.0)}, path)
        child = subprocess.Popen(python(ENDLESS, kind, path), stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.013 * i)
        child.kill()
        child.wait()
        child.stdout.close()
        n, value = value_of((save, load), path)
        assert n == value and n in (7, 1_000, 300_000)


def test_an_object_that_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    torch.save(OLD, path)
    for bad in ({"w": torch.ones(3), "f": lambda: 1}, {"g": (i for i in ())}):
        with pytest.raises(Exception, match="pickle"):
            torch.save(bad, path)
    assert value_of(FORMATS["pt"], path) == (1000, 1.0) and os.listdir(tmp_path) == ["x"]


def test_links_are_followed_and_the_mode_is_kept(tmp_path, form):
    path, link, chain = tmp_path / "x", tmp_path / "link", tmp_path / "chain"
    form[0](OLD, path)
    path.chmod(0o640)
    link.symlink_to("x")
    chain.symlink_to(link)
    for way in (path, link, chain):
        form[0](NEW, way)
        assert link.is_symlink() and chain.is_symlink() and not path.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert value_of(form, path) == (3000, 2.0)
        form[0](OLD, path)
    assert sorted(os.listdir(tmp_path)) == ["chain", "link", "x"]


def test_a_link_to_nothing_yet_is_filled_where_it_leads(tmp_path, form):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/x")
    form[0](OLD, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and value_of(form, tmp_path / "there" / "x") == (1000, 1.0)


def test_a_new_file_has_the_mode_that_the_mask_gives(tmp_path, form):
    before = os.umask(0o027)
    try:
        form[0](OLD, tmp_path / "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, form):
    path = tmp_path / "x"
    form[0](OLD, path)
    path.chmod(0o400)
    with pytest.raises((OSError, RuntimeError), match="Permission denied"):
        form[0](NEW, path)
    assert value_of(form, path) == (1000, 1.0)


def test_what_is_no_file_is_written_directly_or_refused(tmp_path):
    with pytest.raises(OSError, match="No space left"):
        torch.save(OLD, "/dev/full")
    with pytest.raises(IsADirectoryError):
        torch.save(OLD, tmp_path)
    with pytest.raises(ValueError, match="null"):
        torch.save(OLD, str(tmp_path / "a\0b"))
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    with atomic_file(tmp_path / "pipe") as file:
        file.write(b"through")
    assert reader.communicate()[0] == b"through" and stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_a_block_that_raises_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    with atomic_file(path, "w", encoding="utf-8") as file:
        file.write("äö")
    with pytest.raises(KeyError), atomic_file(path, "w") as file:
        file.write("lost")
        file.flush()
        raise KeyError
    assert path.read_text(encoding="utf-8") == "äö" and os.listdir(tmp_path) == ["x"]


def test_tensors_that_lie_in_a_file_can_be_saved_to_it(tmp_path):
    path = tmp_path / "x"
    save_file({"w": torch.arange(1000.0)}, path)
    mapped = load_file(path)
    save_file({"w": mapped["w"] + 1}, path)
    assert mapped["w"][5].item() == 5 and load_file(path)["w"][5].item() == 6


class Failing:
    def __init__(self, at):
        self.left = at

    def write(self, data):
        self.left -= 1
        if self.left < 0:
            raise OSError("boom")
        return len(data)

    def flush(self):
        pass


def test_an_error_of_a_users_file_object_reaches_the_user():
    large = [torch.zeros(70_000), torch.ones(70_000)]  # small pieces are buffered: four writes before the last one
    for at in range(5):
        with pytest.raises(OSError, match="boom"):
            torch.save(large, Failing(at))


def test_reports_and_pages_replace_a_file_whole(tmp_path):
    """Every writer of the package goes through one function: nothing else opens a file to write."""
    import naru

    package = os.path.dirname(naru.__file__)
    for folder, _, files in os.walk(package):
        for name in files:
            if name.endswith(".py") and name != "atomic_file.py":
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        for way in ("write_text(", "write_bytes(", '"wb")', '"w")', '"w", ', '"a")', "os.replace(", "os.rename("):
                            assert way not in line or "atomic_file(" in line or "ZipFile(" in line or line.lstrip().startswith((">>>", "...")), f"{name}:{number}: {line}"
    g = naru.Graph()
    with naru.graph(g):
        pass
    (tmp_path / "g").write_text("old")
    (tmp_path / "link").symlink_to("g")
    g.debug_dump(str(tmp_path / "link"))
    assert (tmp_path / "g").read_text().startswith("digraph") and (tmp_path / "link").is_symlink()


# --- PyTorch's format before 1.6

# An OrderedDict written by PyTorch 2.15 with _use_new_zipfile_serialization=False.
LEGACY = """
eNp9k0lv00AUx70lBUNL2Slr2cMWnM3EbAmlBCSz1Vx8QVbijGojY+fZ4wqQKuWSUvgMHDjyMfg63LgiceCNx6RKFBh5xp7n8e//f2/GQ+mzGvz+0vm1/Obby6XyUHr2Q8
ZxE4SSvSgIwiCOaORGgbNB4sSPQhBxgT2PbwKf0oA4JOz73RCkbVvFIH0/IE7ifyAJyJuglOwCBhMviikUTMmWceaHFIqmYiuMEYXrMGcqaYqaLsoExKWokqgv4j6JSX/V
d6kKwhULxJIt4hddkFwaxa5XdlLqB4nqxKSX+kHfoSRMotjZqKogl0r2HBPGld11Agr/RO0EUZe+4kEVCvYCrjFqRrOia816AwcNiplHd5CireJzCrvWTMEsjmC3KY5A/e
QxK3so7LVgPstg0MXUFjxU9BRvJnGfx0mLa6ZkSiPYz0gHOOkghUMWHM4yo3Dkf5ijOeYYMySb0hYsmaIpb8FxjjpB4aQFpzLUAE7/o0hot/uWUBKrcIar5aVZjdJeQMa1
WZ6y0NC0JpxFCxJaOMcsYCbnWSYXuPxFCpcsuLydTUofAcermRcfrk0IPcUtH8tcn5Sp1Zp1DW7kMuVc5iaT0bhMhULVglpG7kF9grwSRcGY3Ngh142KoWvVhg56Tr6Vk5
uMbHDybQp3LLibkT24N0nODk5FH9PvT9Obhg4tpItIbzM6gh+wYYXTH1JYteBRRg+hY8rZUwKPs0NEyTsKT9g/8Jr9dzOci7MEpVnVk2ftnDLrRBVIWRJ4EwUxf/re2onx
Jk3defvZ+nsvTsSHLN7GC/sQ+9f2H+jEE4g=
"""


def check_legacy(back):
    assert list(back) == ["a", "part", "t", "p", "i", "b", "h", "n", "s"]
    assert back["a"].tolist() == [0, 1, 2, 3, 4, 5] and back["part"].tolist() == [2, 3] and back["t"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["p"].dtype == torch.float64 and type(back["p"]) is torch.nn.Parameter and back["p"].requires_grad
    assert back["i"].tolist() == [1, 2] and back["b"].tolist() == [True, False] and back["h"].dtype == torch.bfloat16 and back["h"].item() == 1.5
    assert back["n"] == 3 and back["s"] == "text"
    back["a"][2] = 99
    assert back["part"][0].item() == 99 and back["t"][2, 0].item() == 99


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_in_pytorchs_format_before_1_6_is_read(weights_only):
    check_legacy(torch.load(io.BytesIO(zlib.decompress(base64.b64decode(LEGACY))), weights_only=weights_only))


def test_that_format_is_written_too_and_files_may_follow_one_another():
    first = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(LEGACY))))
    file = io.BytesIO()
    torch.save(first, file, _use_new_zipfile_serialization=False)
    torch.save([1, torch.ones(2)], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    check_legacy(torch.load(file))
    second = torch.load(file)
    assert second[0] == 1 and second[1].tolist() == [1, 1]


def test_every_prefix_of_such_a_file_is_an_error():
    data = zlib.decompress(base64.b64decode(LEGACY))
    for n in range(0, len(data), 7):  # the pickles have 1022 bytes, and the storages follow
        with pytest.raises(EOFError if n < 1022 else RuntimeError):
            torch.load(io.BytesIO(data[:n]))


class Bare:
    """A file object without seekable(), readline() and readinto()."""

    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.read, self.seek, self.tell = self._file.read, self._file.seek, self._file.tell


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_object_needs_no_more_than_read_seek_and_tell(legacy):
    file = io.BytesIO()
    torch.save(OLD, file, _use_new_zipfile_serialization=not legacy)
    assert torch.load(Bare(file.getvalue()))["w"].numel() == 1000
    with pytest.raises(AttributeError, match="seekable"):
        torch.load(sys)


def test_attributes_of_tensors_come_back():
    t = torch.ones(2)
    t.note = {"k": torch.zeros(1)}
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    assert torch.load(file).note["k"].tolist() == [0]


@pytest.mark.parametrize("protocol", range(2, 6))
def test_every_protocol_of_pickle_is_read_as_data(protocol):
    obj = {"t": torch.arange(3), "s": {1, 2}, "f": frozenset((1,)), "b": b"x" * 300, "a": bytearray(b"x"), "u": "ü" * 300, "i": [2**70, -5, 300, 70000], "c": 1j}
    file = io.BytesIO()
    torch.save(obj, file, pickle_protocol=protocol)
    file.seek(0)
    back = torch.load(file)
    assert back.pop("t").tolist() == obj.pop("t").tolist() and back == obj




@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_has_once_what_its_tensors_share_and_numbers_of_any_size(protocol):
    shared = torch.arange(300.0)
    tensors = [shared, shared[255:], shared[3:270:66], torch.empty(70_000, 0), torch.zeros(1, 2, 1, 2, requires_grad=True), torch.tensor(7)]
    file = io.BytesIO()
    torch.save(tensors, file, pickle_protocol=protocol)
    with zipfile.ZipFile(file) as archive:
        text = archive.read("archive/data.pkl")
    assert all(text.count(name) == 1 for name in (b"cpu", b"_rebuild_tensor_v2", b"FloatStorage", b"OrderedDict"))
    file.seek(0)
    back = torch.load(file)
    for old, new in zip(tensors, back, strict=True):
        assert torch.equal(old, new) and old.stride() == new.stride() and old.storage_offset() == new.storage_offset()
        assert old.requires_grad == new.requires_grad
    back[0][255] = -1
    assert back[1][0] == -1

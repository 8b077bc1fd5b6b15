"""Notebooks: tensors as HTML, the extension and the kernel. ./run test --notebooks (tests/notebooks) starts the kernel itself."""
import base64
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import naru
from naru.__main__ import main
from naru._notebook.html import tensor_html

HOME = str(Path(naru.__file__).parents[1])


def decoded(text):
    """The picture in a tensor's HTML: (height, width, channels) and its samples."""
    (data,) = re.findall(r"data:image/png;base64,([^\"]+)", text)
    raw = base64.b64decode(data)
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(raw):
        (length,) = struct.unpack(">I", raw[at : at + 4])
        kind, body = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + length]
        assert struct.unpack(">I", raw[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3, 6: 4}[colour]
    lines = zlib.decompress(chunks[b"IDAT"])
    stride = 1 + width * channels
    assert depth == 8 and len(lines) == height * stride and not any(lines[::stride])
    samples = b"".join(lines[at + 1 : at + stride] for at in range(0, len(lines), stride))
    return (height, width, channels), list(samples)


def test_a_tensor_is_text_unless_html_is_asked_for():
    assert not hasattr(naru.ones(2), "_repr_html_")
    naru.set_printoptions(html=True)
    try:
        assert naru.ones(2)._repr_html_() == tensor_html(naru.ones(2))
        naru.set_printoptions(precision=4)
        assert hasattr(naru.ones(2), "_repr_html_")
    finally:
        naru.set_printoptions(html=False)
    assert not hasattr(naru.ones(2), "_repr_html_")
    naru.set_printoptions(html=False)


def test_shape_dtype_and_device_stand_at_the_head_and_text_is_escaped(device):
    text = tensor_html(naru.zeros(3, device=device, requires_grad=True))
    assert "<code>Tensor · (3,) · torch.float32 · " + str(naru.zeros(1, device=device).device) + " · requires_grad</code>" in text and "<img" not in text
    assert "grad_fn=&lt;" in tensor_html(naru.zeros(3, requires_grad=True) * 2)
    assert "<code>Parameter · (8, 8)" in tensor_html(naru.nn.Parameter(naru.zeros(8, 8)))


def test_a_matrix_is_a_picture_from_its_least_to_its_greatest_value(device):
    x = naru.arange(20.0, device=device).reshape(4, 5)
    shape, samples = decoded(tensor_html(x))
    assert shape == (4, 5, 1) and samples == [round(255 * i / 19) for i in range(20)]
    x[0, 0], x[0, 1], x[0, 2] = float("nan"), float("inf"), float("-inf")
    _, samples = decoded(tensor_html(x))
    assert samples[:3] == [0, 255, 0] and samples[-1] == 255
    assert decoded(tensor_html(naru.full((4, 4), 3.0)))[1] == [0] * 16
    assert decoded(tensor_html(naru.eye(4, dtype=naru.bool)))[1] == [255 * (i % 5 == 0) for i in range(16)]


def test_images_keep_their_colours_channels_first_and_last():
    image = naru.arange(48, dtype=naru.uint8).reshape(4, 4, 3)
    for x in (image, image.permute(2, 0, 1), image.to(naru.float32) / 255):
        assert decoded(tensor_html(x)) == ((4, 4, 3), list(range(48)))


def test_a_large_tensor_is_thinned_out_and_what_is_no_picture_has_none():
    shape, samples = decoded(tensor_html(naru.arange(300.0 * 1000).reshape(300, 1000)))
    assert shape == (100, 125, 1) and samples[0] == 0
    for x in (naru.ones(2, 2), naru.ones(4, 4, 4, 4), naru.ones(0, 8), naru.ones(8, 8, dtype=naru.complex64), naru.eye(8).to_sparse(), naru.tensor(3.0)):
        assert "<img" not in tensor_html(x) and "<pre" in tensor_html(x)


def bars(text):
    """The heights of a histogram's bars, by the number of the bar."""
    return {round(float(x) / 6): float(height) for x, height in re.findall(r'<rect x="([\d.]+)" .*? height="([\d.]+)"/>', text)}


@pytest.mark.parametrize("dtype", [naru.float32, naru.float64, naru.bfloat16, naru.int64, naru.uint8], ids=str)
def test_values_have_a_histogram(device, dtype):
    x = naru.tensor([0] * 10 + [31] * 5 + [62] * 20, device=device).to(dtype)
    for shape in ((35,), (5, 7), (5, 1, 7, 1)):
        text = tensor_html(x.reshape(shape).requires_grad_() if dtype.is_floating_point else x.reshape(shape))
        assert bars(text) == {0: 24.0, 16: 12.0, 31: 48.0}
        assert "0 … 62, mean 39.86 ± 27.3" in text
    assert bars(tensor_html(x.reshape(5, 7).T)) == bars(tensor_html(x))


def test_a_histogram_counts_finite_values_at_equal_distances(device):
    x = naru.arange(1e6, device=device)
    x[0], x[16] = float("nan"), float("inf")
    text = tensor_html(x)
    assert len(bars(text)) == 32 and min(bars(text).values()) > 46 and "2 not finite of 62,500 of 1,000,000 values" in text
    assert "20 not finite" in tensor_html(naru.full((20,), float("nan"), device=device))
    assert bars(tensor_html(naru.full((20,), 3.0, device=device))).popitem()[1] == 48
    for y in (naru.ones(15), naru.ones(32, dtype=naru.bool), naru.ones(32, dtype=naru.complex64), naru.eye(8).to_sparse(), naru.ones(32, device="meta")):
        assert "<svg" not in tensor_html(y)


def test_the_kernel_runs_this_python_under_naru_run(tmp_path, monkeypatch, capsys):
    from naru._notebook import kernel

    monkeypatch.setattr(kernel.importlib.util, "find_spec", lambda name: object())
    assert main(["jupyter", "install", "--prefix", str(tmp_path), "--virtual", "cuda:4", "--json"]) == 0
    folder = Path(json.loads(capsys.readouterr().out)["folder"])
    found = json.loads((folder / "kernel.json").read_text())
    assert folder == tmp_path / "share" / "jupyter" / "kernels" / "naru" and found["env"] == {"NARU_VIRTUAL": "cuda:4"}
    assert found["argv"] == [sys.executable, "-m", "naru", "run", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    assert main(["jupyter", "install", "--name", "mine"]) == 0
    mine = json.loads((tmp_path / "data" / "kernels" / "mine" / "kernel.json").read_text())
    assert "env" not in mine and [found["display_name"], mine["display_name"]] == ["Python (naru)", "Python (naru, mine)"]
    monkeypatch.setattr(kernel.importlib.util, "find_spec", lambda name: None)
    capsys.readouterr()
    assert main(["jupyter", "install"]) == 2 and "pip install ipykernel" in capsys.readouterr().err


SHELL = """
import sys, naru
class Shell:
    magics = []
    def register_magic_function(self, function, magic_kind, magic_name): self.magics.append((magic_kind, magic_name))
shell = Shell()
naru.load_ipython_extension(shell)
import torch
print(torch is naru, shell.magics, hasattr(naru.ones(1), "_repr_html_"))
naru.as_torch()
"""


def test_the_extension_makes_torch_naru_and_shows_tensors_as_html(tmp_path):
    env = {**os.environ, "PYTHONPATH": HOME}
    done = subprocess.run([sys.executable, "-c", SHELL], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True [('cell', 'memory'), ('line', 'top')] True\n", "")
    (tmp_path / "torch.py").write_text("")
    done = subprocess.run([sys.executable, "-c", "import torch" + SHELL], env={**env, "PYTHONPATH": f"{tmp_path}:{HOME}"}, capture_output=True, text=True)
    assert done.stdout.startswith("False [('cell'") and "restart the kernel and load naru first" in done.stderr and "RuntimeError: torch is already loaded" in done.stderr

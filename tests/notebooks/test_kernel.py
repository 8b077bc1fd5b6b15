"""Notebooks in a real kernel: what tutorials teach, as notebooks, in the kernel of `naru jupyter install`; the extension in a plain one.

Run by ./run test --notebooks, in an environment of its own (tools/requirements-notebooks.txt).
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import jupyter_client.kernelspec
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools import doc_blocks  # noqa: E402

SEEDS = sorted((ROOT / "tests" / "python" / "seeds").glob("*.py"))
# Each language has the same code (tests/python/project/test_pages.py).
PAGES = [p for p in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if any(b.language == "python" for b in doc_blocks.blocks_of(p))]
VIRTUAL = "cuda:3,mps:1"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The kernels `naru` and `plain` (ipykernel as it is, with naru beside it), in a folder of their own."""
    data = tmp_path_factory.mktemp("jupyter")
    env = {**os.environ, "JUPYTER_DATA_DIR": str(data), "PYTHONPATH": str(ROOT / "python"), "NARU_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-m", "naru", "jupyter", "install", "--virtual", VIRTUAL], env=env, check=True, capture_output=True)
    plain = data / "kernels" / "plain"
    plain.mkdir()
    command = (data / "kernels" / "naru" / "kernel.json").read_text().replace('"-m",\n  "naru",\n  "run",\n  ', "")
    assert '"naru"' not in command.split('"display_name"')[0]
    (plain / "kernel.json").write_text(command)
    before = {name: os.environ.get(name) for name in ("JUPYTER_DATA_DIR", "PYTHONPATH", "NARU_CACHE_DIR")}
    os.environ.update({name: env[name] for name in before})
    yield jupyter_client.kernelspec.KernelSpecManager().find_kernel_specs()
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def run(cells, kernel, folder):
    """The cells as they are after the run; a cell tagged raises-exception may raise."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) if isinstance(c, str) else c for c in cells])
    NotebookClient(book, timeout=120, kernel_name=kernel, resources={"metadata": {"path": str(folder)}}).execute()
    return book.cells


def text_of(cell):
    """What a cell shows, as text: its prints, its value, its error's last line."""
    shown = []
    for output in cell.outputs:
        if output.output_type == "stream":
            shown.append(output.text)
        elif output.output_type == "execute_result":
            shown.append(output.data["text/plain"] + "\n")
        elif output.output_type == "error":
            shown.append(f"{output.ename}: {output.evalue}\n")
    return "".join(shown)


def test_the_kernel_is_found_and_its_torch_is_naru(kernels, tmp_path):
    assert {"naru", "plain"} <= set(kernels)
    code = "import sys, torch, naru\nprint(torch is naru, torch.cuda.device_count())\ntorch.ones(8, 8)"
    (cell,) = run([code], "naru", tmp_path)
    assert text_of(cell).startswith("True 3\ntensor([[1., ")
    assert "text/html" not in cell.outputs[-1].data, "a tensor is text unless html is asked for"
    with pytest.raises(CellExecutionError, match="ModuleNotFoundError|AttributeError"):
        run(["import torch; torch.no_such_thing"], "naru", tmp_path)


@pytest.mark.parametrize("program", SEEDS, ids=lambda p: p.stem)
def test_a_program_of_a_tutorial_runs_as_a_notebook(kernels, program, tmp_path):
    run([program.read_text()], "naru", tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_of_a_tutorial_is_a_notebook_and_shows_what_the_page_shows(kernels, page, tmp_path):
    cells, wanted = [], []
    for block in doc_blocks.blocks_of(page):
        if block.language != "python" or block.skipped is not None:
            continue
        if block.file:
            (tmp_path / block.file).write_text(block.text + "\n")
            continue
        cell = nbformat.v4.new_code_cell(block.text)
        if block.rest == "raises":
            cell.metadata["tags"] = ["raises-exception"]
        cells.append(cell)
        wanted.append(block.shows and block.shows.text)
    given = [b.text.strip() for b in doc_blocks.blocks_of(page) if b.language == "virtual"] or [doc_blocks.VIRTUAL]
    first = f"import naru; naru.virtual({given[0]!r}) if {given[0]!r} else None; None"
    # The files that lines are in have other names in a kernel.
    plain = re.compile(rf"/tmp/ipykernel_\d+/\d+\.py|\b{page.stem.replace('-', '_')}\.py")
    for cell, text in zip(run([first, *cells], "naru", tmp_path)[1:], wanted):
        assert text is None or doc_blocks.same(plain.sub("FILE", text), plain.sub("FILE", text_of(cell))), cell.source


def test_the_extension_makes_torch_naru_shows_tensors_the_memory_of_a_cell_and_the_devices(kernels, tmp_path):
    alias, value, picture, memory, top, off = run(
        [
            "%load_ext naru\nimport torch, naru\ntorch is naru",
            "torch.ones(3)",
            "torch.eye(16, device='cuda:0')",
            "%%memory cuda:0\nx = torch.ones(1 << 20, device='cuda:0'); torch.cuda.synchronize()",
            "y = torch.ones(1 << 20, device='cuda:0'); torch.cuda.synchronize()\n%top 0",
            "%unload_ext naru\ntorch.ones(3)",
        ],
        "plain", tmp_path)  # fmt: skip
    assert text_of(alias) == "True\n"
    assert value.outputs[0].data["text/plain"] == "tensor([1., 1., 1.])" and "(3,) · torch.float32 · cpu" in value.outputs[0].data["text/html"]
    assert "data:image/png;base64," in picture.outputs[0].data["text/html"] and "cuda:0" in picture.outputs[0].data["text/html"]
    assert "<iframe srcdoc=" in memory.outputs[-1].data["text/html"] and str(4 << 20) in memory.outputs[-1].data["text/html"]
    assert "<th>device</th>" in top.outputs[-1].data["text/html"] and "<td>cuda:0</td>" in top.outputs[-1].data["text/html"]
    assert "text/html" not in off.outputs[-1].data


def test_loaders_with_workers_and_processes_that_are_started_have_naru_as_torch(kernels, tmp_path):
    code = """
import subprocess, sys, torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.arange(8)), batch_size=4, num_workers=2)
print([b.tolist() for (b,) in loader])
"""
    started = "print(subprocess.run([sys.executable, '-c', 'import torch; print(torch.__spec__.name)'], capture_output=True, text=True).stdout)"
    loaded, told = run([code, started], "naru", tmp_path)
    assert text_of(loaded) == "[[0, 1, 2, 3], [4, 5, 6, 7]]\n" and text_of(told) == "naru\n\n"


def test_a_progress_bar_over_a_loader_is_shown(kernels, tmp_path):
    code = """
import torch
from tqdm.auto import tqdm
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(8)), batch_size=4)
print(sum(int(b.sum()) for (b,) in tqdm(loader)))
"""
    (cell,) = run([code], "naru", tmp_path)
    shown = text_of(cell)
    assert "28\n" in shown and re.search(r"2/2", shown + str(cell.outputs))

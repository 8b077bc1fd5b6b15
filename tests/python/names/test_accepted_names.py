"""torch.jit, torch.compiler, torch.hub, torch.utils.benchmark and others: the calls that public programs make work."""
import os
import sys
import warnings
from types import ModuleType

import naru as torch
import pytest
from naru import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)

    def forward(self, x):
        return self.line(x)


def test_scripted_and_traced_modules_are_themselves_with_one_warning():
    torch.jit._warn_once.cache_clear()
    model = Small()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert torch.jit.script(model) is model and torch.jit.trace(model, torch.ones(1, 2)) is model and torch.jit.script(abs) is abs
        assert torch.jit.freeze(model.eval()) is model
    assert [str(w.message)[:32] for w in found] == ["torch.jit: naru has no TorchScri"]
    assert torch.jit.ignore(abs) is abs and torch.jit.unused(abs) is abs and torch.jit.export(abs) is abs and not torch.jit.is_scripting()
    with pytest.raises(RuntimeError, match="Freezing is currently only implemented for modules in eval mode"):
        torch.jit.freeze(model.train())
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        torch.jit.trace(model, torch.ones(1, 3))


def test_a_module_that_jit_has_saved_is_loaded_with_what_lay_beside(tmp_path):
    model = torch.jit.script(Small())
    model.save(tmp_path / "a.pt")
    torch.jit.save(model, tmp_path / "b.pt", _extra_files={"note": "text"})
    extra = {"note": ""}
    for path in ("a.pt", "b.pt"):
        again = torch.jit.load(tmp_path / path, map_location="cpu", _extra_files=extra)
        assert torch.equal(again(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert extra == {"note": "text"} and "save" in vars(model)
    torch.save({"w": torch.ones(1)}, tmp_path / "c.pt")
    with pytest.raises(RuntimeError, match="no file of naru's torch.jit.save; torch.load reads checkpoints"):
        torch.jit.load(tmp_path / "c.pt")
    with pytest.raises(ValueError, match="The provided filename .* does not exist"):
        torch.jit.load(tmp_path / "d.pt")


class Runs:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


class Watched(torch.nn.Module):
    def __setstate__(self, state):
        super().__setstate__(state)
        os.mkdir(state["folder"])


def _watched(folder):
    made = Watched()
    made.folder = str(folder)
    return made


@pytest.mark.parametrize("kind", ["bare", "in a module", "beside a module", "a constructor", "a method of the program's", "the old format"])
def test_what_a_file_says_is_not_run_by_jit_load(tmp_path, kind):
    ran, path = tmp_path / "ran", tmp_path / "a.pt"
    model = torch.nn.Linear(2, 1)
    if kind == "in a module":
        model.extra = Runs(ran)
    if kind in ("bare", "the old format"):
        value = Runs(ran) if kind == "bare" else {"naru.jit": 1, "module": Runs(ran), "extra": {}}
        torch.save(value, path, _use_new_zipfile_serialization=kind == "bare")
    elif kind == "a constructor":
        module = type("Called", (), {"__reduce__": lambda self: (torch.nn.Linear, (3, 4))})()
        torch.save({"naru.jit": 1, "module": module, "extra": {}}, path)
    elif kind == "a method of the program's":
        torch.jit.save(_watched(ran), path)
    else:
        torch.jit.save(model, path, _extra_files={"x": Runs(ran)} if kind == "beside a module" else None)
    with pytest.raises(RuntimeError, match=r"torch\.jit\.load: (this is no file|the file holds more than data)"):
        torch.jit.load(path)
    assert not ran.exists()
    if kind in ("in a module", "beside a module"):
        torch.jit.load(path, weights_only=False)
        assert ran.exists()  # without that check the file's code runs


def test_jit_load_reads_modules_of_every_kind_as_data(tmp_path):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 3, padding=1), torch.nn.BatchNorm1d(8), torch.nn.Flatten(), torch.nn.ModuleList([Small()])[0])
    x = torch.randn(2, 4, 8)
    for module, given in ((layer.eval(), x), (torch.nn.LSTM(8, 4, batch_first=True), x), (model[:2], torch.randn(2, 3, 5)), (Small(), torch.ones(1, 2))):
        torch.jit.save(module, tmp_path / "a.pt")
        again, wanted = torch.jit.load(tmp_path / "a.pt")(given), module(given)
        again, wanted = (again[0], wanted[0]) if isinstance(wanted, tuple) else (again, wanted)
        assert torch.equal(again, wanted)


def test_switches_of_compilers_are_accepted():
    assert torch.compiler.disable(abs) is abs and torch._dynamo.disable()(abs) is abs and not torch.compiler.is_compiling()
    torch.compiler.reset()
    torch._dynamo.reset()
    torch._dynamo.config.suppress_errors = True
    assert torch._dynamo.config.suppress_errors and not torch._dynamo.config.anything
    import naru._dynamo.config
    import naru._inductor.config

    torch._inductor.config.triton.unique_kernel_names = torch._inductor.config.fx_graph_cache = True
    assert torch._inductor.config.triton.unique_kernel_names and not torch._inductor.config.triton.cudagraphs and not torch._inductor.config.max_autotune
    with torch.compiler.set_stance("force_eager"):
        pass
    with pytest.raises(AttributeError, match="torch.export is in PyTorch 2.15 but not in naru yet"):
        torch.export  # noqa: B018


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "hubconf.py").write_text("dependencies = ['math']\nfrom helper import VALUE\ndef _hidden(): pass\ndef entry(x=1):\n    'what it is'\n    return x + VALUE\nval = 3\n")
    return str(tmp_path)


def test_the_hub_has_a_progress_bar_with_the_package_tqdm_and_without(monkeypatch):
    bars = ModuleType("tqdm")
    bars.tqdm = object()
    monkeypatch.setitem(sys.modules, "tqdm", bars)
    assert torch.hub.tqdm is bars.tqdm
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with torch.hub.tqdm([1, 2], desc="epoch") as bar:
        bar.set_postfix({"loss": 1.0})
        bar.update(1)
        assert list(bar) == [1, 2]


def test_a_folder_with_a_hubconf_is_a_hub(repository):
    assert torch.hub.list(repository) == ["entry"] and torch.hub.help(repository, "entry") == "what it is"
    assert torch.hub.load(repository, "entry", 2, source="local") == 9
    for call, kind, text in (
        (lambda: torch.hub.load(repository, "nope", source="local"), RuntimeError, "Cannot find callable nope in hubconf"),
        (lambda: torch.hub.load(repository, "entry", source="foo"), ValueError, 'Unknown source: "foo". Allowed values: "github" | "local".'),
        (lambda: torch.hub.load("/nowhere", "entry", source="local"), FileNotFoundError, "hubconf.py"),
        (lambda: torch.hub.load(repository, 3, source="local"), ValueError, "model should be a string of function name"),
        (lambda: torch.hub.load("a/b", "entry"), NotImplementedError, "clone it, and call torch.hub with the folder and source='local'"),
    ):
        with pytest.raises(kind) as error:
            call()
        assert text in str(error.value)


def test_a_state_dict_of_an_address_is_the_file_that_was_fetched_before(tmp_path):
    from naru.utils import model_zoo

    torch.save({"w": torch.ones(2)}, tmp_path / "w-00.pth")
    for load in (torch.hub.load_state_dict_from_url, model_zoo.load_url):
        assert load("https://example.org/models/w-00.pth", model_dir=str(tmp_path))["w"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00", got "[0-9a-f]{64}"\\)'):
        torch.hub.load_state_dict_from_url("https://example.org/models/w-00.pth", model_dir=str(tmp_path), check_hash=True)
    with pytest.raises(FileNotFoundError, match="naru downloads nothing; fetch https://example.org/x.pth yourself, and put it at .*x.pth"):
        torch.hub.load_state_dict_from_url("https://example.org/x.pth", model_dir=str(tmp_path))
    with pytest.raises(RuntimeError, match="naru downloads nothing; fetch https://example.org/x.pth yourself"):
        torch.hub.download_url_to_file("https://example.org/x.pth", str(tmp_path / "x.pth"))


def test_statements_are_timed_and_compared():
    from naru.utils import benchmark

    timers = [benchmark.Timer("x + y", globals={"x": torch.ones(3), "y": torch.ones(3)}, label="sum", sub_label="small", description=d) for d in ("first", "second")]
    found = [t.timeit(10) for t in timers] + [timers[0].blocked_autorange(min_run_time=0.001)]
    assert all(m.median > 0 and len(m.times) >= 1 for m in found) and found[0].number_per_run == 10
    assert repr(found[0]).splitlines()[1:3] == ["sum: small", "first"]
    table = str(benchmark.Compare(found))
    assert "first" in table and "second" in table and "small" in table and "Times are in " in table
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([1])


def test_names_that_programs_import_from_where_pytorch_has_them_are_there():
    from naru.functional import F, einsum, norm, split
    from naru.nn.modules.dropout import _DropoutNd
    from naru.nn.modules.module import _addindent
    from naru.nn.modules.transformer import _get_clones

    assert F is torch.nn.functional and (einsum, norm, split) == (torch.einsum, torch.norm, torch.split)
    assert isinstance(nn.Dropout2d(), _DropoutNd) and _addindent("a\nb", 2) == "a\n  b" and len(_get_clones(nn.ReLU(), 3)) == 3

"""`naru run`: scripts that import torch run unchanged. Each test is a separate process."""
import os
import subprocess
import sys
import textwrap

import naru
import pytest

HOME = os.path.dirname(os.path.dirname(os.path.abspath(naru.__file__)))


def command(*arguments, cwd, **environment):
    env = {**os.environ, "PYTHONPATH": HOME, **environment}
    done = subprocess.run(
        [sys.executable, "-m", "naru", *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def script(tmp_path, text, *arguments, name="script.py"):
    (tmp_path / name).write_text(textwrap.dedent(text))
    return command("run", name, *arguments, cwd=tmp_path)


def test_torch_and_its_submodules_are_narus_own_module_objects(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        import naru
        import torch
        from torch import nn
        import torch.nn.functional as F
        import torch.optim as optim
        from torch.utils.data import DataLoader
        import torch.optim.lr_scheduler
        import naru.optim.lr_scheduler as schedules
        assert torch is naru and nn is naru.nn and F is naru.nn.functional
        assert torch.optim.lr_scheduler is schedules
        assert torch.__spec__.name == "naru" and torch.nn.__spec__.name == "naru.nn"
        print(torch.__version__)
        """,
    )
    assert (code, err) == (0, "") and out.startswith("2.15.0+naru")


def test_a_small_training_program_runs(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
            def forward(self, x):
                return self.fc(x)

        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 64).reshape(-1, 1)
        y = x ** 2
        net = Net()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
        loss_fn = nn.MSELoss()
        for step in range(300):
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
        print("good" if loss.item() < 1e-3 else loss.item())
        """,
    )
    assert (code, out, err) == (0, "good\n", "")


def test_the_script_is_main_with_its_own_arguments_and_folder(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    code, out, err = script(
        tmp_path,
        """
        import sys, os
        import helper
        if __name__ == "__main__":
            print(sys.argv, helper.value, os.path.basename(__file__), sys.modules["__main__"].helper is helper)
        """,
        "--lr",
        "0.1",
    )
    assert (code, err) == (0, "")
    assert out == "['script.py', '--lr', '0.1'] 2.0 script.py True\n"


def test_a_traceback_shows_the_scripts_lines_and_not_the_runner(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        import torch
        def train():
            raise ValueError("boom")
        train()
        """,
    )
    assert code == 1
    # Newer interpreters mark the part of the line that failed.
    lines = [line for line in err.splitlines(keepends=True) if line.strip(" ~^\n")]
    assert "".join(lines) == (
        'Traceback (most recent call last):\n  File "script.py", line 5, in <module>\n    train()\n'
        '  File "script.py", line 4, in train\n    raise ValueError("boom")\nValueError: boom\n'
    )


def test_a_syntax_error_is_shown_as_the_interpreter_shows_it(tmp_path):
    code, out, err = script(tmp_path, "x = (\n")
    assert code == 1
    assert err == "  File \"script.py\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n"


def test_exit_codes_pass_through(tmp_path):
    assert script(tmp_path, "import sys\nsys.exit(7)\n")[0] == 7
    assert command("run", "none.py", cwd=tmp_path)[0] == 2


def test_a_submodule_that_is_not_there_is_an_import_error(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        try:
            import torch.no_such_thing
        except ModuleNotFoundError as error:
            print(error)
        """,
    )
    assert (code, err) == (0, "") and out.startswith("No module named 'torch.no_such_thing'")


def test_an_installed_torch_is_never_loaded(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('the other torch')\n")
    (tmp_path / "torch" / "extra.py").write_text("raise SystemExit('the other torch')\n")
    code, out, err = script(
        tmp_path,
        """
        import torch
        try:
            import torch.extra
        except ImportError:
            print(torch.__spec__.name)
        """,
    )
    assert (code, out, err) == (0, "naru\n", "")


def test_a_module_runs_with_m(tmp_path):
    (tmp_path / "tool.py").write_text("import sys, torch\nprint(__name__, sys.argv[1:], torch.__spec__.name)\n")
    assert command("run", "-m", "tool", "x", cwd=tmp_path) == (0, "__main__ ['x'] naru\n", "")


def test_devices_and_doctor_name_every_kind(tmp_path):
    code, out, err = command("devices", cwd=tmp_path, NARU_VIRTUAL="cuda:2")
    assert code == 0 and "cpu" in out and "cuda:0" in out and "cuda:1" in out
    code, out, err = command("doctor", cwd=tmp_path, NARU_VIRTUAL="cuda:2")
    assert code == 0
    for kind in ("cpu", "cuda", "rocm", "xpu", "mps"):
        assert any(line.startswith(kind) for line in out.splitlines())


def test_an_unknown_command_is_refused(tmp_path):
    code, out, err = command("fly", cwd=tmp_path)
    assert code == 2 and "there is no command 'fly'" in err


def test_importing_naru_does_not_import_numpy_or_the_heavy_parts(tmp_path):
    code = "import sys, naru; print([m for m in ('numpy', 'naru.nn', 'naru.optim', 'inspect', 'zipfile') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_packages_find_an_installed_torch_of_the_version_whose_semantics_naru_has(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        import importlib.metadata, importlib.util, os, pickle
        assert importlib.util.find_spec("torch") is not None
        assert importlib.metadata.version("torch").startswith("2.15.0")
        assert "torch" in importlib.metadata.packages_distributions()
        assert importlib.metadata.version("torchvision") == importlib.metadata.version("Torchvision") == __import__("torchvision").__version__
        import torch
        from torch import nn
        assert os.path.isfile(torch.__file__)
        kinds = [torch.Tensor, torch.Size, torch.device, nn.Linear, nn.Parameter, torch.optim.Adam]
        print([kind.__module__ for kind in kinds])
        import torch._dynamo.eval_frame
        assert torch._dynamo is __import__("naru")._dynamo and torch._dynamo.eval_frame.OptimizedModule
        x = pickle.loads(pickle.dumps([torch.Size([1, 2]), torch.device("cpu"), torch.float32, nn.Linear(2, 3)]))
        assert x[:3] == [(1, 2), torch.device("cpu"), torch.float32] and b"torch.nn.modules.linear" in pickle.dumps(x)
        """,
    )
    assert (code, err) == (0, "")
    assert out == "['torch', 'torch', 'torch', 'torch.nn.modules.linear', 'torch.nn.parameter', 'torch.optim.adam']\n"


def test_interpreters_that_a_script_starts_have_the_alias_and_their_own_sitecustomize(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'ran'\n")
    (tmp_path / "script.py").write_text(
        "import os, subprocess, sys\n"
        "code = 'import os, sys; early = \"naru\" in sys.modules; import torch; print(torch.__spec__.name, early, os.environ[\"OWN\"])'\n"
        "del os.environ['OWN']\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert command("run", "script.py", cwd=tmp_path, PYTHONPATH=os.pathsep.join([HOME, str(tmp_path / "own")])) == (0, "naru False ran\n", "")


def test_processes_that_multiprocessing_spawns_have_all_of_the_alias_and_take_data_sets_over_arrays(tmp_path):
    out = script(
        tmp_path,
        "import numpy, torch, torchvision.datasets\n"
        "import torch.multiprocessing as mp\n"
        "def work(data): print(torch.__spec__.name, torchvision.__name__, len(torchvision.datasets.FakeData(3)), data.tolist())\n"
        "if __name__ == '__main__':\n"
        "    process = mp.get_context('spawn').Process(target=work, args=(torch.from_numpy(numpy.arange(3)),))\n"
        "    process.start(), process.join(), print(process.exitcode)\n",
    )
    assert out == (0, "naru naru.vision 3 [0, 1, 2]\n0\n", "")


def test_a_package_that_is_denied_finds_no_torch_and_others_do(tmp_path):
    probe = textwrap.dedent(
        """
        import importlib, importlib.metadata, importlib.util
        found = [importlib.util.find_spec("torch") is not None]
        for ask in (lambda: __import__("torch"), lambda: importlib.import_module("torch.nn"), lambda: importlib.metadata.version("torch")):
            try:
                ask()
                found.append(True)
            except ImportError as error:
                found.append(False)
        """
    )
    for name in ("shy", "bold"):
        (tmp_path / "site-packages" / name).mkdir(parents=True)
        (tmp_path / "site-packages" / name / "__init__.py").write_text(probe)
    (tmp_path / "beside.py").write_text(probe)
    (tmp_path / "script.py").write_text(
        "import sys\nsys.path.append('site-packages')\nimport torch, shy, bold, beside\n"
        "print(*[sorted(set(m.found)) for m in (shy, bold, beside)])\n"
    )
    for variable in ({"NARU_TORCH_ALIAS_DENY": "shy"}, {"NARU_TORCH_ALIAS_ALLOW": "bold"}):
        assert command("run", "script.py", cwd=tmp_path, **variable) == (0, "[False] [True] [True]\n", "")


def test_names_that_packages_import_and_need_not_call_say_so_when_they_are_called(tmp_path):
    code, out, err = script(
        tmp_path,
        """
        from torch.distributed import ReduceOp, init_process_group, is_available
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.checkpoint.state_dict import get_model_state_dict
        import torch.distributed.rpc, torch.distributed.pipelining
        assert not torch.distributed.rpc.is_available()
        from torch.nn.parallel import DistributedDataParallel as DDP
        import torch.distributed as dist, torch.fx.passes.split_utils
        assert is_available() and not isinstance(torch.nn.Linear(1, 1), (DDP, FSDP)) and callable(init_device_mesh) and callable(get_model_state_dict)
        for call in (torch.distributed.rpc.init_rpc, lambda: torch.distributed.pipelining.PipelineStage(), lambda: torch.fx.passes.split_utils.split_by_tags(1)):
            try:
                call()
            except NotImplementedError as error:
                print(str(error).split(";")[0])
        try:
            dist.get_rank()
        except ValueError as error:
            print(error)
        """,
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "torch.distributed.rpc.init_rpc is in PyTorch 2.15 but not in naru yet",
        "torch.distributed.pipelining.PipelineStage is in PyTorch 2.15 but not in naru yet",
        "torch.fx.passes.split_utils.split_by_tags is in PyTorch 2.15 but not in naru yet",
        "Default process group has not been initialized, please make sure to call init_process_group.",
    ]


@pytest.mark.parametrize(
    "other, less, greater",
    [("1.8", False, True), ("2.15.0", False, True), ("2.16", True, False), ((2, 0), False, True), ("3.0.0a0", True, False)],
)
def test_versions_compare(other, less, greater):
    version = naru.__version__
    assert (version < other, version > other) == (less, greater)
    assert (version <= other, version >= other) == (less, greater) and version != other
    assert version == "2.15.0+naru0.1.0" and isinstance(version, str) and version.split(".")[0] == "2"


def test_the_device_idioms_of_beginners_pages_run(tmp_path):
    (tmp_path / "idioms.py").write_text(
        textwrap.dedent(
            """
            import gc
            import torch
            import torch.nn as nn
            from torch.utils.data import DataLoader, TensorDataset

            device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
            print(f"Using {device}", torch.cuda.device_count(), torch.mps.device_count())
            print(torch.device("cuda"), repr(torch.device("cuda:1")), torch.cuda.get_device_name(0) != "")
            x = torch.tensor([1., 2., 3.]).cuda("cuda:0")
            print(x.device, x.cpu().device, x.cuda(1).device, x.to(device=device, dtype=torch.float16).dtype)
            print(x.cpu().cpu().numpy(), x.to("cuda:0") is x)
            with torch.cuda.device(1):
                print(torch.zeros(3, device="cuda").device)
            model = nn.Linear(100, 10).to(device)
            print(model(torch.randn(32, 100, device=device)).shape, next(model.parameters()).is_cuda)
            try:
                model(torch.randn(32, 100))
            except RuntimeError as error:
                print(str(error).split("!")[0])
            try:
                x.numpy()
            except TypeError as error:
                print(str(error).split(".")[0])
            loader = DataLoader(TensorDataset(torch.randn(8, 100), torch.arange(8)), batch_size=4, num_workers=2, pin_memory=True)
            for a, b in loader:
                a = a.to(device, non_blocking=True)
                b = b.to(device, non_blocking=True)
                print(a.device, b.tolist())
            before = torch.cuda.memory_allocated(0)
            large = torch.randn(1000, 1000, device="cuda")
            print(torch.cuda.memory_allocated(0) - before >= 4_000_000, torch.cuda.memory_reserved(0) > 0)
            del large
            gc.collect()
            torch.cuda.empty_cache()
            print(torch.cuda.memory_allocated(0) == before, torch.cuda.get_device_properties(0).total_memory > 0)
            """
        )
    )
    code, out, err = command("run", "idioms.py", cwd=tmp_path, NARU_VIRTUAL="cuda:2,mps:1")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "Using cuda 2 1",
        "cuda device(type='cuda', index=1) True",
        "cuda:0 cpu cuda:1 torch.float16",
        "[1. 2. 3.] True",
        "cuda:1",
        "torch.Size([32, 10]) True",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu",
        "can't convert cuda:0 device type tensor to numpy",
        "cuda:0 [0, 1, 2, 3]",
        "cuda:0 [4, 5, 6, 7]",
        "True True",
        "True True",
    ]

"""Processes: probing initializes nothing; a forked child may use devices if its parent has not, else the error names the line that did."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import naru

PACKAGE = str(Path(naru.__file__).parents[1])


def run(code, tmp_path, **environment):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    env = {**os.environ, "PYTHONPATH": PACKAGE, **environment}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_probing_starts_no_thread_and_opens_no_device(tmp_path):
    out = run(
        """
        import os
        import naru as torch
        before = len(os.listdir("/proc/self/task"))
        torch.cuda.is_available(), torch.cuda.device_count(), torch.mps.is_available(), torch.accelerator.current_accelerator()
        torch.cuda.get_device_properties(0), torch.cuda.get_device_name(0), torch.device("cuda:1")
        naru_devices = torch._C.devices() if hasattr(torch._C, "devices") else None
        probed = len(os.listdir("/proc/self/task"))
        print(probed - before, torch.ones(2, device="cuda").sum().item())
        """,
        tmp_path,
        NARU_VIRTUAL="cuda:2,mps:1",
    )
    assert out.split() == ["0", "2.0"]


def test_a_child_may_use_a_device_that_its_parent_has_only_looked_at(tmp_path):
    out = run(
        """
        import os
        import naru as torch
        assert torch.cuda.is_available() and torch.cuda.device_count() == 2
        if (child := os.fork()) == 0:
            print(torch.ones(3, device="cuda:1").sum().item(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(torch.ones(4, device="cuda:1").sum().item())
        """,
        tmp_path,
        NARU_VIRTUAL="cuda:2",
    )
    assert out.split() == ["3.0", "4.0"]


def test_else_the_error_names_the_line_that_used_it_first(tmp_path):
    out = run(
        """
        import os
        import naru as torch
        x = torch.ones(3)
        y = x.to("cuda:1")          # line 5
        if (child := os.fork()) == 0:
            try:
                print((y + 1).tolist(), flush=True)
            except RuntimeError as error:
                print(error, flush=True)
            print((x + 1).tolist(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        """,
        tmp_path,
        NARU_VIRTUAL="cuda:2",
    )
    assert "Cannot re-initialize CUDA in forked subprocess: device 'cuda:1' was first used by process" in out
    assert "script.py:5, before it forked" in out and "spawn" in out and "[2.0, 2.0, 2.0]" in out


def test_what_was_saved_on_a_device_is_loaded_on_a_machine_without(tmp_path):
    file = tmp_path / "x.pt"
    run(f"import naru as torch; torch.save({{'w': torch.arange(3., device='cuda:7'), 'b': torch.ones(2)}}, {str(file)!r})", tmp_path, NARU_VIRTUAL="cuda:8")
    out = run(f"import naru as torch; d = torch.load({str(file)!r}); print(d['w'].device, d['w'].tolist(), d['b'].device)", tmp_path, NARU_VIRTUAL="")
    assert "cpu [0.0, 1.0, 2.0] cpu" in out
    out = run(f"import naru as torch; print(torch.load({str(file)!r})['w'].device)", tmp_path, NARU_VIRTUAL="cuda:8")
    assert out.split()[-1] == "cuda:7"


def test_any_operator_may_be_the_first_of_a_process(tmp_path):
    # With memory from a list or an array, nothing has initialized a device before.
    out = run(
        """
        import os
        import numpy as np
        import naru as torch
        from naru.nn import functional as F
        made = (lambda: torch.tensor([[1.0, 2.0]]), lambda: torch.from_numpy(np.ones((1, 2), np.float32)), lambda: torch.asarray([[1.0, 2.0]]))
        first = {
            "sum": lambda x: x.sum(), "mean": lambda x: x.mean(0), "max": lambda x: x.max(), "argmax": lambda x: x.argmax(), "add": lambda x: x + 1,
            "where": lambda x: torch.where(x > 1, x, 0), "matmul": lambda x: x.t() @ x, "mv": lambda x: x @ x[0], "linear": lambda x: F.linear(x, x),
            "softmax": lambda x: x.softmax(1), "sort": lambda x: x.sort(), "index": lambda x: x[:, [1, 0]], "write": lambda x: x.__setitem__(0, 3),
            "item": lambda x: x[0, 1].item(), "fill_": lambda x: x.fill_(2), "add_": lambda x: x.add_(1), "to": lambda x: x.to(torch.int8),
            "cat": lambda x: torch.cat([x, x]), "clone": lambda x: x.t().clone(), "cumsum": lambda x: x.cumsum(1), "norm": lambda x: x.norm(),
            "backward": lambda x: x.requires_grad_().sum().backward(), "loss": lambda x: F.mse_loss(x, x), "print": str, "any": lambda x: x.any(),
        }
        for make in made:
            for name, call in first.items():
                if (child := os.fork()) == 0:
                    call(make())
                    os._exit(0)
                if status := os.waitpid(child, 0)[1]:
                    print(name, status)
        """,
        tmp_path,
    )
    assert out == ""

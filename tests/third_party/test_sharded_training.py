"""accelerate and Lightning shard a model over two processes: FSDP1 and FSDP2 train, save and go on, on virtual devices."""
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("THIRD_PARTY_RECORD") == "1", reason="it starts naru's torchrun, and records nothing")

ACCELERATE = """
import sys, torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

version, folder = int(sys.argv[1]), sys.argv[2]
options = {"fsdp_version": version, "state_dict_type": "SHARDED_STATE_DICT", "cpu_ram_efficient_loading": False}
if version == 1:
    options |= {"auto_wrap_policy": "size_based_wrap", "reshard_after_forward": "FULL_SHARD", "use_orig_params": True}
else:
    options |= {"auto_wrap_policy": "no_wrap", "reshard_after_forward": True}
accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(**options))
set_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.05), DataLoader(data, batch_size=4))
losses = []
for _ in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
assert sum(losses[-4:]) < sum(losses[:4])
before = {k: v.clone() for k, v in accelerator.get_state_dict(model).items()}
accelerator.save_state(folder)
with torch.no_grad():
    for p in model.parameters():
        p.mul_(0)
accelerator.load_state(folder)
after = accelerator.get_state_dict(model)
if accelerator.is_main_process:
    assert list(before) == ["0.weight", "0.bias", "2.weight", "2.bias"] and all(torch.equal(before[k], after[k]) for k in before)
    print(type(next(model.parameters())).__name__, sum(float(v.sum()) for v in before.values()))
"""

LIGHTNING = """
import sys, torch
import lightning as L
from lightning.pytorch.strategies import FSDPStrategy, ModelParallelStrategy
from torch.utils.data import DataLoader, TensorDataset

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def configure_model(self):
        if sys.argv[1] == "2":
            from torch.distributed.fsdp import fully_shard
            fully_shard(self.net, mesh=self.device_mesh["data_parallel"])

    def training_step(self, batch, i):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.05)

torch.manual_seed(1)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))

def fit(epochs, path=None):
    strategy = FSDPStrategy(state_dict_type="sharded") if sys.argv[1] == "1" else ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1)
    quiet = dict(logger=False, enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False)
    trainer = L.Trainer(accelerator="cuda", devices=2, strategy=strategy, max_epochs=epochs, **quiet)
    model = Net()
    trainer.fit(model, DataLoader(data, batch_size=4), ckpt_path=path)
    return trainer, sum(p.full_tensor().sum().item() for p in model.parameters())

trainer, _ = fit(2)
trainer.save_checkpoint(sys.argv[2])
_, resumed = fit(3, sys.argv[2])
_, at_once = fit(3)
assert abs(resumed - at_once) < 1e-4, (resumed, at_once)
print("the same")
"""


def run(tmp_path, program, version):
    file = tmp_path / "program.py"
    file.write_text(program)
    command = [sys.executable, "-m", "naru", "torchrun", "--standalone", "--nproc_per_node=2", str(file), str(version), str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "NARU_VIRTUAL": "cuda:2", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout


def test_accelerate_trains_the_same_with_both(tmp_path):
    first, second = (run(tmp_path / str(v), ACCELERATE, v) for v in (1, 2) if not (tmp_path / str(v)).mkdir())
    assert first.splitlines()[-1] == second.splitlines()[-1] and first.startswith("DTensor")


@pytest.mark.parametrize("version", [1, 2])
def test_lightning_goes_on_from_its_checkpoint(tmp_path, version):
    assert "the same" in run(tmp_path, LIGHTNING, version)

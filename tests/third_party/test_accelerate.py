"""accelerate: one process, with mixed precision, accumulation and states that are saved."""
import pytest
import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import set_seed
from facts import recorded
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    """accelerate keeps its state for the whole process."""
    for state in (AcceleratorState, PartialState, GradientState):
        state._reset_state()
    yield


def parts():
    set_seed(0)
    model = torch.nn.Linear(4, 2)
    data = TensorDataset(torch.randn(20, 4), torch.randint(0, 2, (20,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, DataLoader(data, batch_size=5, shuffle=True), torch.optim.lr_scheduler.StepLR(optimizer, 2)


@recorded
def test_a_prepared_loop_gives_pytorchs_losses(tmp_path, device):
    accelerator = Accelerator(cpu=device == "cpu", gradient_accumulation_steps=2)
    model, optimizer, loader, schedule = accelerator.prepare(*parts())
    assert accelerator.device.type == device and accelerator.num_processes == 1
    losses = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    before = accelerator.unwrap_model(model).weight.detach().clone()
    accelerator.save_state(tmp_path)
    with torch.no_grad():
        model.weight.zero_()
    accelerator.load_state(tmp_path)
    assert torch.equal(model.weight, before)
    return losses


def test_mixed_precision_computes_in_bfloat16(device):
    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="bf16")
    model, optimizer, loader, _ = accelerator.prepare(*parts())
    for x, y in loader:
        with accelerator.autocast():
            hidden = torch.nn.functional.linear(x, model.weight)
        accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
        optimizer.step()
    assert hidden.dtype == torch.bfloat16 and model.weight.dtype == torch.float32


def test_models_without_memory_are_made():
    with init_empty_weights():
        model = torch.nn.Linear(1000, 1000)
    assert model.weight.device.type == "meta"

"""peft: adapters on a small network, trained and merged."""
import pytest
import torch
from facts import recorded
from peft import IA3Config, LoHaConfig, LoKrConfig, LoraConfig, VeraConfig, get_peft_model

pytestmark = pytest.mark.filterwarnings("ignore")
CONFIGS = {
    "lora": LoraConfig(r=2, lora_alpha=4, target_modules=["0", "2"]),
    "dora": LoraConfig(r=2, use_dora=True, target_modules=["0", "2"]),
    "ia3": IA3Config(target_modules=["0", "2"], feedforward_modules=["2"]),
    "loha": LoHaConfig(r=2, target_modules=["0"]),
    "lokr": LoKrConfig(r=2, target_modules=["0", "2"]),
    "vera": VeraConfig(r=2, target_modules=["0"]),
}


@recorded
@pytest.mark.parametrize("name", CONFIGS)
def test_adapters_train_with_pytorchs_losses_and_merge(device, name):
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    x, y = torch.randn(5, 6), torch.tensor([0, 1, 2, 1, 0])
    model = get_peft_model(base, CONFIGS[name]).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    adapted = model(x).detach()
    merged = model.merge_and_unload()
    assert torch.allclose(merged(x), adapted, atol=1e-5)
    return {"losses": losses, "out": adapted}

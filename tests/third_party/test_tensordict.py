"""tensordict: dicts of tensors, classes of them, and modules that read and write them."""
import pytest
import torch
from facts import recorded
from tensordict import TensorDict, tensorclass
from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential, TensorDictModule, TensorDictSequential

pytestmark = pytest.mark.filterwarnings("ignore")


@recorded
def test_operations_give_pytorchs_values(device):
    made = TensorDict({"a": torch.arange(12.0).reshape(3, 4), "in": {"b": torch.ones(3, 2)}}, batch_size=[3]).to(device)
    stacked = torch.stack([made, made * 2], 0)
    joined = torch.cat([made, made + 1], 0)
    part = made[1:].reshape(2, 1).squeeze(-1)
    made["in", "c"] = made["a"].sum(-1)
    assert sorted(made.keys(True, True), key=str) == [("in", "b"), ("in", "c"), "a"] and made.device.type == device and stacked.batch_size == (2, 3)
    assert made.select("a").flatten_keys(".").keys() == {"a"} and made.apply(lambda x: x * 0).sum()["a"] == 0
    return {"stacked": stacked["a"], "joined": joined["in", "b"], "part": part["a"], "c": made["in", "c"], "split": [d["a"] for d in made.split(2)], "unbound": made.unbind(0)[2]["a"]}


@tensorclass
class Sample:
    x: torch.Tensor
    y: torch.Tensor
    name: str = "sample"


@recorded
def test_a_class_of_tensors_is_indexed_as_one():
    samples = Sample(x=torch.arange(6.0).reshape(3, 2), y=torch.arange(3), batch_size=[3])
    both = torch.cat([samples, samples[:1]])
    return {"x": both.x, "y": both.y[1:], "name": samples.name, "shape": list(both.shape)}


@recorded
def test_modules_train_with_pytorchs_losses(device):
    torch.manual_seed(0)
    net = TensorDictSequential(
        TensorDictModule(torch.nn.Linear(4, 8), in_keys=["x"], out_keys=["hidden"]),
        TensorDictModule(lambda h: h.tanh(), in_keys=["hidden"], out_keys=["hidden"]),
        TensorDictModule(torch.nn.Linear(8, 1), in_keys=["hidden"], out_keys=["y"]),
    )
    data = TensorDict({"x": torch.randn(6, 4), "wanted": torch.ones(6, 1)}, batch_size=[6]).to(device)
    net = net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (net(data)["y"] - data["wanted"]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@recorded
def test_a_policy_draws_pytorchs_actions():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 4)
    policy = ProbabilisticTensorDictSequential(
        TensorDictModule(lambda x: net(x).split(2, -1), in_keys=["x"], out_keys=["loc", "log_scale"]),
        TensorDictModule(torch.exp, in_keys=["log_scale"], out_keys=["scale"]),
        ProbabilisticTensorDictModule(["loc", "scale"], ["action"], distribution_class=torch.distributions.Normal, default_interaction_type="random", return_log_prob=True),
    )
    found = policy(TensorDict({"x": torch.ones(2, 3)}, batch_size=[2]))
    return {"action": found["action"], "log": found["action_log_prob"]}


@recorded
def test_parameters_are_called_as_a_dict_and_in_bulk():
    torch.manual_seed(0)
    nets = [torch.nn.Linear(2, 1) for _ in range(3)]
    held = TensorDict.from_modules(*nets, as_module=False)
    net, x = torch.nn.Linear(2, 1), torch.ones(4, 2)

    def call(parameters):
        with parameters.to_module(net):
            return net(x)

    return {"one": call(held[1]), "all": torch.vmap(call)(held)}


def test_files_are_mapped(tmp_path):
    made = TensorDict({"a": torch.arange(4.0)}, batch_size=[4])
    made.memmap(tmp_path)
    assert torch.equal(TensorDict.load_memmap(tmp_path)["a"], made["a"])

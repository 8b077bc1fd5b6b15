"""torchvision.models.feature_extraction: torchvision's names of nodes, and modules that return what is computed on the way."""
import copy
import pickle

import pytest

import naru as torch
from naru.vision import models, ops
from naru.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names

BLOCK = "conv1 bn1 relu conv2 bn2 add relu_1".split()
DOWN = "conv1 bn1 relu conv2 bn2 downsample.0 downsample.1 add relu_1".split()
RESNET18 = ["x", "conv1", "bn1", "relu", "maxpool"] + [
    f"layer{i}.{j}.{name}" for i in range(1, 5) for j in range(2) for name in (DOWN if i > 1 and j == 0 else BLOCK)
] + ["avgpool", "flatten", "fc"]  # fmt: skip


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    return models.resnet18(num_classes=3).eval()


def test_nodes_have_torchvisions_names(resnet):
    train, evaluated = get_graph_node_names(resnet)
    assert train == evaluated == RESNET18 and not resnet.training


# The numbers of nodes, and the last names, of torchvision 0.29 over PyTorch 2.15.
@pytest.mark.parametrize(("name", "count", "last"), [
    ("mobilenet_v2", 84, ["features.18", "adaptive_avg_pool2d", "flatten", "classifier.0", "classifier.1"]),
    ("densenet121", 432, ["features.denseblock4.cat", "features.norm5", "relu", "adaptive_avg_pool2d", "flatten", "classifier"]),
    ("resnet50", 176, ["layer4.2.conv3", "layer4.2.bn3", "layer4.2.add", "layer4.2.relu_2", "avgpool", "flatten", "fc"]),
])  # fmt: skip
def test_networks_have_torchvisions_nodes(name, count, last):
    names = get_graph_node_names(models.get_model(name))[1]
    assert len(names) == count == len(set(names)) and names[-len(last) :] == last


def test_an_extractor_returns_what_the_model_computes(resnet):
    x = torch.linspace(-1, 1, 3 * 32 * 32).sin().reshape(1, 3, 32, 32)
    found = create_feature_extractor(resnet, {"layer1": "first", "layer3.1.conv2": "inner", "fc": "out"})(x)
    assert list(found) == ["first", "inner", "out"] and torch.equal(found["out"], resnet(x))
    assert torch.equal(found["first"], resnet.layer1(resnet.maxpool(resnet.relu(resnet.bn1(resnet.conv1(x)))))) and found["inner"].shape == (1, 256, 2, 2)


def test_what_is_not_needed_is_left_out(resnet):
    names = [name for name, _ in create_feature_extractor(resnet, ["layer2"]).named_parameters()]
    assert any(name.startswith("layer2") for name in names) and not any(name.startswith(("layer3", "fc")) for name in names)


def test_train_and_eval_choose_the_graph():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.second(self.first(x)) if self.training else self.first(x) + 1

    with pytest.warns(UserWarning, match="are not those of train mode"):
        assert get_graph_node_names(Net()) == (["x", "first", "second"], ["x", "first", "add"])
    net = Net()
    model = create_feature_extractor(net, train_return_nodes={"second": "a"}, eval_return_nodes={"add": "b"})
    x = torch.ones(1, 2)
    assert model.training and torch.equal(model(x)["a"], net(x)) and torch.equal(model.eval()(x)["b"], net.eval()(x))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(other(x)) == ["b"] and list(other.train()(x)) == ["a"] and list(other.eval()(x)) == ["b"]


def test_layers_and_functions_of_ops_are_not_entered():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.depth = ops.StochasticDepth(0.5, "row")

        def forward(self, x, boxes):
            return self.depth(ops.roi_align(x, boxes, 2)) + 1

    assert get_graph_node_names(Net())[0] == ["x", "boxes", "roi_align", "depth", "add"]


def test_settings_of_the_tracer_are_followed(resnet):
    names = get_graph_node_names(resnet, tracer_kwargs={"leaf_modules": [type(resnet.layer1[0])]})[1]
    assert names[5:8] == ["layer1.0", "layer1.1", "layer2.0"]


def test_nodes_that_are_not_there_are_refused(resnet):
    with pytest.raises(ValueError, match="node: 'layer9' is not present in model. Hint: use `get_graph_node_names`"):
        create_feature_extractor(resnet, ["layer9"])
    with pytest.raises(ValueError, match="Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together"):
        create_feature_extractor(resnet, train_return_nodes=["fc"])
    with pytest.raises(ValueError, match="'x' is an input of the model"):
        create_feature_extractor(resnet, ["x"])

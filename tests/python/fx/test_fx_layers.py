"""Layers of torch.nn in traced modules give the same outputs, as one node each and, where their course is fixed, entered by the tracer."""
import inspect

import pytest

import naru as torch
from naru import fx, nn


def values(*sizes):
    return torch.linspace(-2, 2, int(torch.tensor(sizes).prod())).sin().reshape(sizes)


V = values
CLASSES = torch.tensor([1, 2])
SEQUENCE = (V(5, 2, 4),)
# The class -> its arguments and the inputs.
LAYERS = {
    "Linear": ((4, 3), V(2, 4)), "Identity": ((), V(2, 4)), "Flatten": ((), V(2, 3, 4)), "Unflatten": ((1, (2, 2)), V(2, 4)), "Bilinear": ((4, 4, 3), V(2, 4), V(2, 4)),
    "Conv1d": ((3, 2, 3), V(2, 3, 8)), "Conv2d": ((3, 2, 3), V(2, 3, 8, 8)), "Conv3d": ((3, 2, 2), V(2, 3, 4, 4, 4)),
    "ConvTranspose1d": ((3, 2, 3), V(2, 3, 8)), "ConvTranspose2d": ((3, 2, 3), V(2, 3, 8, 8)), "ConvTranspose3d": ((3, 2, 2), V(1, 3, 3, 3, 3)),
    "BatchNorm1d": ((3,), V(2, 3, 8)), "BatchNorm2d": ((3,), V(2, 3, 4, 4)), "BatchNorm3d": ((3,), V(2, 3, 2, 2, 2)), "InstanceNorm1d": ((3,), V(2, 3, 8)),
    "InstanceNorm2d": ((3,), V(2, 3, 4, 4)), "InstanceNorm3d": ((3,), V(2, 3, 2, 2, 2)), "GroupNorm": ((3, 6), V(2, 6, 4)), "LayerNorm": ((4,), V(2, 4)),
    "RMSNorm": ((4,), V(2, 4)), "LocalResponseNorm": ((2,), V(2, 4, 5, 5)), "CrossMapLRN2d": ((2,), V(2, 4, 5, 5)), "Threshold": ((0.1, 20), V(2, 4)), "Softmax2d": ((), V(2, 3, 4, 4)),
    **{name: ((), V(2, 4)) for name in """ReLU ReLU6 ELU SELU CELU GELU Sigmoid Tanh Hardtanh Hardsigmoid Hardswish LeakyReLU LogSigmoid Softplus Softshrink Softsign
       Tanhshrink Hardshrink Mish SiLU PReLU RReLU GLU Dropout AlphaDropout""".split()},
    **{name: ((1,), V(2, 4)) for name in ("Softmax", "LogSoftmax", "Softmin")},
    "Dropout1d": ((), V(2, 3, 4)), "Dropout2d": ((), V(2, 3, 4, 4)), "Dropout3d": ((), V(2, 3, 2, 2, 2)), "FeatureAlphaDropout": ((), V(2, 3, 4)),
    **{f"{kind}Pool{n}d": ((2,), V(2, 3, *[8] * n)) for kind in ("Max", "Avg", "AdaptiveAvg", "AdaptiveMax") for n in (1, 2, 3)},
    "LPPool1d": ((2, 2), V(2, 3, 8).abs()), "LPPool2d": ((2, 2), V(2, 3, 8, 8).abs()), "LPPool3d": ((2, 2), V(1, 2, 4, 4, 4).abs()),
    **{f"{kind}Pad{n}d": ((1,), V(2, 3, *[4] * n)) for kind in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": ((1, 2.0), V(2, 3, *[4] * n)) for n in (1, 2, 3)},
    "Upsample": ((None, 2), V(2, 3, 4, 4)), "UpsamplingNearest2d": ((None, 2), V(2, 3, 4, 4)), "UpsamplingBilinear2d": ((None, 2), V(2, 3, 4, 4)),
    "PixelShuffle": ((2,), V(2, 4, 3, 3)), "PixelUnshuffle": ((2,), V(2, 1, 4, 4)), "ChannelShuffle": ((2,), V(2, 4, 3, 3)), "Fold": (((4, 4), 2, 1, 0, 2), V(1, 12, 4)),
    "Unfold": ((2,), V(1, 2, 4, 4)), "Embedding": ((5, 3), torch.tensor([[1, 2], [3, 4]])), "EmbeddingBag": ((5, 3), torch.tensor([[1, 2], [3, 4]])),
    **{name: ((4, 3), *SEQUENCE) for name in ("RNN", "LSTM", "GRU")}, **{name: ((4, 3), V(2, 4)) for name in ("RNNCell", "LSTMCell", "GRUCell")},
    "MultiheadAttention": ((4, 2), *SEQUENCE * 3), "TransformerEncoderLayer": ((4, 2, 8, 0.0), *SEQUENCE), "TransformerDecoderLayer": ((4, 2, 8, 0.0), *SEQUENCE * 2),
    "Transformer": ((4, 2, 1, 1, 8, 0.0), V(5, 2, 4), V(3, 2, 4)), "CosineSimilarity": ((), V(2, 4), V(2, 4) * 2), "PairwiseDistance": ((), V(2, 4), V(2, 4) * 2),
    **{name: ((), V(2, 4), V(2, 4) * 0.3) for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "PoissonNLLLoss", "BCEWithLogitsLoss")},
    "KLDivLoss": ((), V(2, 4), V(2, 4).sigmoid()), "BCELoss": ((), V(2, 4).sigmoid(), V(2, 4).sigmoid()), "CrossEntropyLoss": ((), V(2, 4), CLASSES),
    "NLLLoss": ((), V(2, 4), CLASSES), "MultiMarginLoss": ((), V(2, 4), CLASSES), "MultiLabelMarginLoss": ((), V(2, 4), torch.tensor([[1, -1, 0, 0], [0, 1, -1, 0]])),
    "MultiLabelSoftMarginLoss": ((), V(2, 4), torch.ones(2, 4)), "HingeEmbeddingLoss": ((), V(2, 4), torch.ones(2, 4)),
    "CosineEmbeddingLoss": ((), V(2, 4), V(2, 4) * 2, torch.ones(2)), "MarginRankingLoss": ((), V(2), V(2) * 2, torch.ones(2)),
    "TripletMarginLoss": ((), V(2, 4), V(2, 4) * 2, V(2, 4) * 3), "TripletMarginWithDistanceLoss": ((), V(2, 4), V(2, 4) * 2, V(2, 4) * 3),
    "GaussianNLLLoss": ((), V(2, 4), V(2, 4) * 2, torch.ones(2, 4)), "CTCLoss": ((), V(6, 1, 4).log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2])),
}  # fmt: skip
# Containers and bases, older names, and layers that need more than arguments and inputs to be made and called.
OTHERS = frozenset(
    "Module Sequential ModuleList ModuleDict ParameterList ParameterDict Container DataParallel RNNBase RNNCellBase NLLLoss2d SyncBatchNorm TransformerEncoder TransformerDecoder "
    "AdaptiveLogSoftmaxWithLoss FractionalMaxPool2d FractionalMaxPool3d LinearCrossEntropyLoss MaxUnpool1d MaxUnpool2d MaxUnpool3d".split()
)
# The course of their forward depends on the input: PyTorch's tracer refuses to enter them, too; Unflatten's looks at its size here.
REFUSED = frozenset(
    "BatchNorm1d BatchNorm2d BatchNorm3d CrossMapLRN2d InstanceNorm1d InstanceNorm2d InstanceNorm3d CircularPad1d CircularPad2d CircularPad3d ConvTranspose1d ConvTranspose2d "
    "ConvTranspose3d GRU GRUCell LSTM LSTMCell MultiheadAttention RNN RNNCell Softmax2d Transformer TransformerDecoderLayer TransformerEncoderLayer Unflatten".split()
)


class Everywhere(fx.Tracer):
    def is_leaf_module(self, m, qualified_name):
        return False


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return type(a) is type(b) and (all(map(same, a, b)) if isinstance(a, (tuple, list)) else a == b)


def made(name):
    torch.manual_seed(0)
    return getattr(nn, name)(*LAYERS[name][0]).eval()


def around(layer, count):
    """A module that calls the layer with so many inputs."""
    names = ["a", "b", "c", "d"][:count]
    space = {}
    exec(f"def forward(self, {', '.join(names)}): return self.layer({', '.join(names)})", space)
    module = type("Around", (nn.Module,), {"forward": space["forward"]})()
    module.layer = layer
    return module


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_one_node_and_gives_the_same(name):
    layer, inputs = made(name), LAYERS[name][1:]
    traced = fx.symbolic_trace(around(layer, len(inputs)))
    assert [node.target for node in traced.graph.nodes if node.op == "call_module"] == ["layer"]
    assert same(traced(*inputs), layer(*inputs))


@pytest.mark.parametrize("name", sorted(LAYERS.keys() - REFUSED))
def test_a_layer_that_is_entered_gives_the_same(name):
    layer, inputs = made(name), LAYERS[name][1:]
    graph = Everywhere().trace(layer)
    assert graph.find_nodes(op="call_module") == [] and same(fx.GraphModule(layer, graph)(*inputs), layer(*inputs))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_layer_whose_course_depends_on_its_input_is_refused(name):
    with pytest.raises(fx.proxy.TraceError, match=r"is not known while tracing, at File \".*\.py\", line \d+, in \w+\. To fix it"):
        Everywhere().trace(made(name))


def test_every_layer_is_in_the_list():
    classes = {name: value for name, value in vars(nn).items() if inspect.isclass(value) and issubclass(value, nn.Module) and not name.startswith("Lazy")}
    assert {name for name, value in classes.items() if not hasattr(value, "__naru_lacks__")} - LAYERS.keys() - OTHERS == set()

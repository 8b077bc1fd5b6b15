"""torch.onnx.export: what onnxruntime computes of the file is what the module gave."""
import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

# The unit of float32's rounding, for sums of a few hundred products in another order.
TOLERANCE = 2.0**-24 * 256


def run(program, *inputs):
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x.cpu().numpy() for i, x in zip(session.get_inputs(), inputs)})


def check(model, *inputs, others=(), **options):
    model = model.eval() if isinstance(model, nn.Module) else model
    program = torch.onnx.export(model, inputs, **options)
    for given in (inputs, *others):
        wanted = model(*given)
        wanted = [w for w in torch.utils._pytree.tree_leaves(wanted) if isinstance(w, torch.Tensor)]
        for mine, theirs in zip(wanted, run(program, *given), strict=True):
            mine = mine.detach().cpu().numpy()
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
            scale = np.abs(mine[np.isfinite(mine)]).max(initial=1e-30) if mine.dtype.kind == "f" else 1
            assert np.allclose(mine, theirs, rtol=0, atol=TOLERANCE * scale, equal_nan=True)
    return program


def batch(*shape, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape)


LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (5, 4)), "linear of three dimensions": (lambda: nn.Linear(4, 3, bias=False), (2, 5, 4)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1), (2, 3, 9)), "conv2d": (lambda: nn.Conv2d(4, 6, 3, padding=1, groups=2, dilation=2), (2, 4, 8, 8)),
    "conv2d same": (lambda: nn.Conv2d(3, 4, (3, 4), padding="same"), (1, 3, 6, 7)), "conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "conv without a batch": (lambda: nn.Conv2d(3, 4, 3), (3, 6, 6)), "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1), (1, 4, 5, 5)),
    "batch_norm": (lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)), "layer_norm": (lambda: nn.LayerNorm((3, 4)), (2, 3, 4)), "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "instance_norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)), "rms_norm": (lambda: nn.RMSNorm(4), (2, 4)),
    "max_pool": (lambda: nn.MaxPool2d(3, 2, 1), (1, 2, 7, 7)), "avg_pool": (lambda: nn.AvgPool2d(2, ceil_mode=False), (1, 2, 6, 6)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 5, 6)), "adaptive to three": (lambda: nn.AdaptiveMaxPool2d(3), (1, 2, 6, 9)),
    "upsample nearest": (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 4)), "upsample": (lambda: nn.Upsample(size=(7, 5), mode="bilinear", align_corners=True), (1, 2, 3, 4)),
    "pad": (lambda: nn.ReflectionPad2d((1, 2, 1, 0)), (1, 2, 4, 5)), "pixel_shuffle": (lambda: nn.PixelShuffle(2), (1, 8, 3, 3)),
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)), "lstm batch first": (lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3)),
    "gru": (lambda: nn.GRU(3, 4, num_layers=2, batch_first=True), (2, 5, 3)), "rnn": (lambda: nn.RNN(3, 4, nonlinearity="relu", bias=False), (5, 2, 3)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"), (2, 5, 8)),
}  # fmt: skip
ACTIVATIONS = [
    "CELU", "ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softplus", "Softsign", "Tanh",
]  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("opset", [14, 18, 20])
def test_layers(name, opset):
    make, shape = LAYERS[name]
    torch.manual_seed(1)
    check(make(), batch(*shape), opset_version=opset)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    check(getattr(nn, name)(), 3 * batch(4, 5))
    check(lambda x: (F.gelu(x, approximate="tanh"), F.softmax(x, 1), F.log_softmax(x, 0)), batch(3, 4))


def test_attention_with_masks():
    q, k = batch(2, 4, 5, 8), batch(2, 4, 6, 8, seed=1)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k), q, k)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), q, k)
    check(lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m, scale=0.3), q, k, torch.arange(30).reshape(5, 6) % 3 > 0)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), q, batch(2, 2, 6, 8))
    attention = nn.MultiheadAttention(8, 2)
    check(attention, batch(5, 2, 8), batch(6, 2, 8), batch(6, 2, 8))


FUNCTIONS = {
    "arithmetic": lambda x: (x * 2 + 1, 1 - x, 2 / (x.abs() + 1), x**2, -x, x.add(x, alpha=3), x + torch.arange(4)),
    "shapes": lambda x: (x.view(4, 3), x.flatten(), x.unsqueeze(1), x.t(), x.permute(1, 0), x.reshape(2, -1), x[None].expand(2, 3, 4), x.repeat(2, 1)),
    "parts": lambda x: (x[1], x[:, 1:3], x[..., -1], x[1:, ::2], x[:, None], *x.split(2, 1), *x.chunk(2, 1), *x.unbind(0), x[torch.tensor([2, 0])], x.narrow(1, 1, 2)),
    "joins": lambda x: (torch.cat([x, x], 1), torch.stack([x, x * 2], 1)),
    "reductions": lambda x: (x.sum(), x.mean(1), x.amax(0, keepdim=True), x.max(1), x.argmax(1), x.argmin(), x.topk(2), x.cumsum(1), x.logsumexp(1)),
    "choices": lambda x: (torch.where(x > 0, x, 0.0), x.masked_fill(x < 0, 1.0), x.clamp(min=-0.5), x.clamp(-0.5, 0.5), torch.maximum(x, x.flip(0) if False else -x)),
    "comparisons": lambda x: (x > 0, x <= 0.5, x != 0, (x > 0) & (x < 1), x == x),
    "types": lambda x: (x.long(), x.to(torch.float64), (x > 0).float()),
    "products": lambda x: (x @ x.t(), torch.einsum("ij,kj->ik", x, x), torch.addmm(torch.ones(3), x, x.t(), beta=2.0), torch.tril(x)),
    "in place": lambda x: (x + 0).relu_().mul_(2).add_(1), "in place by operators": lambda x: added(x * 2, x),
}  # fmt: skip


def added(x, y):
    x += y
    x *= 2
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], batch(3, 4))


def test_sizes_that_vary():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 3))
    program = check(net, batch(2, 1, 6, 6), others=[(batch(5, 1, 6, 6),)], input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    assert [d.dim_param or d.dim_value for d in program.model_proto.graph.input[0].type.tensor_type.shape.dim] == ["n", 1, 6, 6]

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.attention = nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, ids):
            x = self.embed(ids)
            b, t, c = x.shape
            x = x.view(b, t, 2, c // 2).transpose(1, 2)
            return self.attention(F.scaled_dot_product_attention(x, x, x, is_causal=True).transpose(1, 2).reshape(b, t, c))

    ids = torch.arange(10).reshape(2, 5)
    check(Heads(), ids, others=[(torch.arange(9).reshape(3, 3),)], dynamic_shapes={"ids": {0: "b", 1: "t"}})
    with pytest.raises(torch.onnx.OnnxExporterError, match="calls other functions for other sizes"):
        check(lambda x: x + 1 if len(x) < 3 else x * 2, batch(2, 3), dynamic_axes={"x": [0]})


def test_a_network_of_vision_and_a_language_model(tmp_path):
    import timm
    from test_transformers import IDS, gpt2

    torch.manual_seed(0)
    check(timm.create_model("resnet18", num_classes=5), batch(2, 3, 64, 64), dynamic_axes={"x": {0: "n"}})
    model = gpt2().eval()
    check(lambda ids: model(ids, use_cache=False).logits, torch.tensor(IDS))


def test_a_file_is_written_with_the_modules_names(tmp_path):
    import onnx

    model = nn.Linear(3, 2).train()
    torch.onnx.export(model, batch(1, 3), str(tmp_path / "m.onnx"), input_names=["in"], output_names=["out"], export_params=True, do_constant_folding=True, verbose=False)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {"weight", "bias"} <= {t.name for t in graph.initializer} and graph.input[0].name == "in" and graph.output[0].name == "out" and model.training


def test_what_cannot_be_exported_is_said():
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="sort has no ONNX here yet"):
        torch.onnx.export(lambda x: x.sort(), (batch(3),))
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="nearest: torch.where"):
        torch.onnx.export(lambda x: (x + 0).__setitem__(0, x[1]), (batch(3),))
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="dropout; export in evaluation mode"):
        torch.onnx.export(nn.Dropout().train(), (batch(3),), training=torch.onnx.TrainingMode.TRAINING)
    for hidden in (lambda x: x * x.sum().item(), lambda x: x.T @ x, lambda x: torch.where(~(x > 0), x, 0.0)):
        with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="is computed from the inputs by what a trace does not see"):
            torch.onnx.export(hidden, (batch(3, 3),))
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="calls other functions for other values"):
        torch.onnx.export(lambda x: x + 1 if x.sum() > 0 else x * 2, (-0.1 * torch.ones(3),))
    with pytest.raises(ValueError, match="opset_version: wanted 14 to"):
        torch.onnx.export(nn.ReLU(), (batch(3),), opset_version=9)
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="writes into memory that other tensors look at"):
        torch.onnx.export(lambda x: (x[0].zero_(), x + 0 * x[0].mul_(2)), (batch(3, 2),))

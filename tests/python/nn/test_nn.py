"""Layers and losses compared with NumPy, gradients with finite differences, reprs and errors with PyTorch."""
import copy
import inspect
import math

import naru as torch
import numpy as np
import pytest
from naru import nn
from naru.nn import functional as F
from reference_table import REPRS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)) * 2
Y = RNG.normal(size=(4, 6))
# The kinks and tails of the activations.
X[0, :4] = [0.0, 30.0, -30.0, 1.0]


def tensor(array, grad=False):
    return torch.tensor(np.asarray(array).tolist(), dtype=torch.float64, requires_grad=grad)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "softplus": lambda x: np.where(x > 20, x, np.logaddexp(0, x)),
    "logsigmoid": lambda x: -np.logaddexp(0, -x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "tanhshrink": lambda x: x - np.tanh(x),
    "glu": lambda x: x[:, :3] * sigmoid(x[:, 3:]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_has_the_value_of_its_formula(name):
    np.testing.assert_allclose(getattr(F, name)(tensor(X)).numpy(), ACTIVATIONS[name](X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_of_an_activation_agrees_with_finite_differences(name):
    away_from_kinks = tensor(np.array([[0.3, -0.7, 1.9, -2.1, 4.5, -0.2]]), grad=True)
    assert torch.autograd.gradcheck(getattr(F, name), [away_from_kinks])


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "silu", "hardtanh", "mish", "selu", "celu", "relu6", "hardswish"])
def test_an_activation_in_place_writes_into_its_argument(name):
    x = tensor(X)
    assert getattr(F, name)(x, inplace=True) is x
    np.testing.assert_allclose(x.numpy(), ACTIVATIONS[name](X), rtol=1e-12, atol=1e-14)


def test_gelu_by_tanh():
    want = 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(F.gelu(tensor(X), approximate="tanh").numpy(), want, rtol=1e-11, atol=1e-13)
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(tensor(X), approximate="erf")


def softmax(x, axis=1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_softmax_and_log_softmax():
    np.testing.assert_allclose(F.softmax(tensor(X), 1).numpy(), softmax(X), rtol=1e-12)
    np.testing.assert_allclose(F.log_softmax(tensor(Y), 0).numpy(), np.log(softmax(Y, 0)), rtol=1e-12)
    assert F.softmax(torch.ones(2, 2), 1, dtype=torch.float64).dtype == torch.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        F.softmax(tensor(X))


P = softmax(Y)
LOSSES = {
    "mse_loss": lambda: (X - Y) ** 2,
    "l1_loss": lambda: np.abs(X - Y),
    "smooth_l1_loss": lambda: np.where(np.abs(X - Y) < 1, 0.5 * (X - Y) ** 2, np.abs(X - Y) - 0.5),
    "huber_loss": lambda: np.where(np.abs(X - Y) < 1, 0.5 * (X - Y) ** 2, np.abs(X - Y) - 0.5),
    "binary_cross_entropy_with_logits": lambda: np.logaddexp(0, X) - X * Y,
    "soft_margin_loss": lambda: np.logaddexp(0, -Y * X),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_the_value_of_its_formula(name, reduction):
    want = LOSSES[name]()
    want = want if reduction == "none" else want.mean() if reduction == "mean" else want.sum()
    got = getattr(F, name)(tensor(X), tensor(Y), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_of_a_loss_agrees_with_finite_differences(name):
    target = tensor(Y[:2])
    assert torch.autograd.gradcheck(lambda x: getattr(F, name)(x, target), [tensor(Y[2:] * 0.7, grad=True)])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("ignore", [-100, 2])
def test_cross_entropy_of_classes(reduction, weighted, smoothing, ignore):
    target = np.array([1, 2, 5, 0], np.int64)
    weight = np.arange(1, 7) / 3.0 if weighted else np.ones(6)
    logs = np.log(softmax(Y))
    used = target != ignore
    hard = -logs[np.arange(4), target] * weight[target]
    soft = -(logs * weight).sum(1)
    losses = ((1 - smoothing) * hard + smoothing / 6 * soft) * used
    want = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / (weight[target] * used).sum()}[reduction]
    got = F.cross_entropy(
        tensor(Y),
        torch.tensor(target),
        weight=tensor(weight) if weighted else None,
        reduction=reduction,
        label_smoothing=smoothing,
        ignore_index=ignore,
    )
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_cross_entropy_of_probabilities_and_of_pixels():
    got = F.cross_entropy(tensor(X), tensor(P))
    np.testing.assert_allclose(got.item(), -(np.log(softmax(X)) * P).sum(1).mean(), rtol=1e-12)
    pixels = RNG.normal(size=(2, 5, 3))
    classes = RNG.integers(0, 5, size=(2, 3))
    logs = np.log(softmax(pixels, 1))
    want = -np.take_along_axis(logs, classes[:, None], 1).mean()
    np.testing.assert_allclose(F.cross_entropy(tensor(pixels), torch.tensor(classes)).item(), want, rtol=1e-12)


def test_cross_entropy_of_a_class_that_is_not_there_is_an_index_error():
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        F.cross_entropy(torch.zeros(2, 4), torch.tensor([1, 7]))


def test_nll_loss_and_its_batch_check():
    logs = np.log(P)
    got = F.nll_loss(tensor(logs), torch.tensor([0, 1, 2, 3]))
    np.testing.assert_allclose(got.item(), -logs[np.arange(4), np.arange(4)].mean(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"Expected input batch_size \(4\) to match target batch_size \(2\)"):
        F.nll_loss(tensor(logs), torch.tensor([0, 1]))


def test_binary_cross_entropy_also_at_its_ends():
    p = np.array([0.2, 0.7, 0.0, 1.0, 0.0, 1.0])
    y = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    x = tensor(p, grad=True)
    losses = F.binary_cross_entropy(x, tensor(y), reduction="none")
    want = [-math.log(0.8), -math.log(0.7), 0, 0, 100, 100]
    np.testing.assert_allclose(losses.detach().numpy(), want, rtol=1e-12)
    losses.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 0.8, -1 / 0.7, 0, 0, -1e12, 1e12], rtol=1e-12)


def test_losses_check_shapes_and_ranges_with_pytorchs_texts():
    with pytest.raises(ValueError, match="Please ensure they have the same size"):
        F.binary_cross_entropy(torch.rand(3), torch.rand(2))
    with pytest.raises(ValueError, match=r"Target size \(torch.Size\(\[2\]\)\) must be the same as input size"):
        F.binary_cross_entropy_with_logits(torch.rand(3), torch.rand(2))
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.rand(3) + 1, torch.rand(3))
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(torch.zeros(2, 1), torch.zeros(2))
    with pytest.raises(ValueError, match="median is not a valid value for reduction"):
        F.mse_loss(torch.zeros(2), torch.zeros(2), reduction="median")
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        F.mse_loss(torch.zeros(2), 3)


def test_kl_div_batchmean():
    got = F.kl_div(tensor(np.log(P)), tensor(softmax(X)), reduction="batchmean")
    q = softmax(X)
    np.testing.assert_allclose(got.item(), (q * (np.log(q) - np.log(P))).sum() / 4, rtol=1e-10)


def test_linear_is_x_times_the_weight_transposed_plus_bias(device):
    layer = nn.Linear(6, 3, dtype=torch.float64)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    got = layer.to(device)(tensor(X).to(device))
    np.testing.assert_allclose(got.detach().cpu().numpy(), X @ weight.T + bias, rtol=1e-12, atol=1e-14)


def test_linear_starts_uniform_within_one_over_the_root_of_its_inputs():
    layer = nn.Linear(100, 2000)
    for values in (layer.weight, layer.bias):
        numbers = values.detach().numpy()
        assert abs(numbers).max() <= 0.1
        assert abs(numbers.mean()) < 0.004
        assert abs(numbers.std() - 0.1 / math.sqrt(3)) < 0.004


def test_bilinear():
    layer = nn.Bilinear(3, 5, 2, dtype=torch.float64)
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 5))
    want = np.einsum("ni,kij,nj->nk", a, layer.weight.detach().numpy(), b) + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(tensor(a), tensor(b)).detach().numpy(), want, rtol=1e-12, atol=1e-13)


def test_embedding_looks_rows_up_and_gives_padding_no_gradient():
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0, 0]
    out = layer(torch.tensor([[0, 1], [4, 0]]))
    assert out.shape == (2, 2, 3)
    np.testing.assert_array_equal(out[1, 0].detach().numpy(), layer.weight[4].detach().numpy())
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [2, 0, 0, 0, 1])
    with pytest.raises(IndexError, match="index out of range in self"):
        layer(torch.tensor([5]))


def test_embedding_from_pretrained_is_frozen():
    table = torch.arange(6.0).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(torch.tensor(2)).tolist() == [4.0, 5.0]


def test_layer_norm(device):
    layer = nn.LayerNorm(6, dtype=torch.float64).to(device)
    want = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(tensor(X).to(device)).detach().cpu().numpy(), want, rtol=1e-10, atol=1e-12)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[6\], expected input with shape \[\*, 6\]"):
        layer(torch.zeros(2, 5, dtype=torch.float64).to(device))


def test_dropout_zeroes_and_scales_only_while_training():
    layer = nn.Dropout(0.25)
    out = layer(torch.ones(10000)).numpy()
    assert set(np.unique(out)) == {0.0, np.float32(1 / 0.75)}
    assert abs((out == 0).mean() - 0.25) < 0.02
    assert layer.eval()(torch.ones(4)).tolist() == [1.0] * 4
    for bad in (-0.1, 1.5):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got"):
            nn.Dropout(bad)


def test_dropout2d_drops_whole_channels():
    out = F.dropout2d(torch.ones(8, 16, 3, 3), 0.5).numpy().reshape(128, 9)
    assert all(len(set(row)) == 1 for row in out)
    assert set(np.unique(out)) == {0.0, 2.0}


def test_flatten_and_unflatten():
    x = torch.zeros(2, 6, 4)
    assert nn.Flatten()(x).shape == (2, 24)
    assert nn.Unflatten(1, (2, -1))(x).shape == (2, 2, 3, 4)
    with pytest.raises(RuntimeError, match="don't multiply up to the size of dim 1"):
        nn.Unflatten(1, (4, 2))(x)


def test_one_hot():
    assert F.one_hot(torch.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        F.one_hot(torch.tensor([3]), 3)


def test_pad_with_a_constant():
    x = np.arange(6.0).reshape(2, 3)
    got = F.pad(tensor(x), (1, 2, 0, 1), value=7)
    np.testing.assert_array_equal(got.numpy(), np.pad(x, ((0, 1), (1, 2)), constant_values=7))
    np.testing.assert_array_equal(F.pad(tensor(x), (-1, 0)).numpy(), x[:, 1:])


def test_attention_is_softmax_of_scores_times_values():
    q, k, v = (RNG.normal(size=(2, 3, 5, 4)) for _ in range(3))
    scores = q @ k.swapaxes(-1, -2) / 2
    want = softmax(scores, -1) @ v
    np.testing.assert_allclose(F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v)).numpy(), want, rtol=1e-10)
    masked = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    got = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), is_causal=True)
    np.testing.assert_allclose(got.numpy(), softmax(masked, -1) @ v, rtol=1e-10)


@pytest.mark.parametrize("expression, text", REPRS)
def test_a_module_prints_as_pytorch_prints_it(expression, text):
    assert repr(eval(expression)) == text


def test_init_functions_fill_as_their_names_say():
    w = torch.empty(50, 80)
    assert nn.init.ones_(w).sum().item() == 4000
    assert nn.init.zeros_(w).sum().item() == 0
    assert nn.init.constant_(w, 0.5).mean().item() == 0.5
    assert (nn.init.eye_(torch.empty(3, 4)).numpy() == np.eye(3, 4)).all()
    bound = math.sqrt(6 / 130)
    assert 0.9 * bound < abs(nn.init.xavier_uniform_(w).numpy()).max() <= bound
    assert abs(nn.init.xavier_normal_(w).numpy().std() - math.sqrt(2 / 130)) < 0.005
    assert abs(nn.init.kaiming_normal_(w, nonlinearity="relu").numpy().std() - math.sqrt(2 / 80)) < 0.005
    assert abs(nn.init.normal_(w, 3.0, 0.1).mean().item() - 3) < 0.01
    cut = nn.init.trunc_normal_(torch.empty(5000), a=-1, b=1).numpy()
    assert abs(cut).max() <= 1 and abs(cut.std() - 0.5396) < 0.02
    q = nn.init.orthogonal_(torch.empty(5, 8, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(5), atol=1e-12)
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        nn.init.xavier_uniform_(torch.empty(3))
    assert not nn.init.ones_(torch.ones(2, requires_grad=True)).grad_fn


def test_clipping_of_gradients():
    p, q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    p.grad, q.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    assert nn.utils.clip_grad_norm_([p, q], 1.0).item() == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(q.grad.numpy(), [0.8], rtol=1e-6)
    nn.utils.clip_grad_value_([p], 0.25)
    np.testing.assert_allclose(p.grad.numpy(), [0.25, 0.0])
    p.grad = torch.tensor([float("nan"), 0.0])
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_to_vector_and_back():
    layer = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (8,)
    nn.utils.vector_to_parameters(torch.arange(8.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and layer.bias.tolist() == [6, 7]


def test_pad_sequence():
    rows = [torch.ones(3, 2), torch.ones(1, 2)]
    assert nn.utils.rnn.pad_sequence(rows).shape == (3, 2, 2)
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=5.0)
    assert padded[1, :, 0].tolist() == [1.0, 5.0, 5.0]


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("dim", [(0, 1), [1, 2], (-1,), (), None])
def test_normalize_takes_several_dimensions(p, dim):
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    axes = tuple(range(3)) if dim is None or len(dim) == 0 else tuple(dim)
    a = np.array(x.tolist())
    want = a / np.maximum((np.abs(a) ** p).sum(axis=axes, keepdims=True) ** (1 / p), 1e-12)
    np.testing.assert_allclose(torch.nn.functional.normalize(x, p, dim).tolist(), want, rtol=1e-13)
    assert torch.autograd.gradcheck(lambda t: torch.nn.functional.normalize(t, p, dim), (x,))


def test_sequential_takes_modules_or_one_ordered_dict():
    from collections import OrderedDict

    for wrong in ({"a": torch.nn.ReLU()}, [torch.nn.ReLU()], 3):
        with pytest.raises(TypeError, match="is not a Module subclass"):
            torch.nn.Sequential(wrong)
    named = torch.nn.Sequential(OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh()))
    assert list(dict(named.named_children())) == ["a", "b"] and list(dict(named[1:].named_children())) == ["b"]


def test_modules_are_called_and_searched_as_python_methods_would():
    class Kept(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.none = torch.nn.Linear(2, 2), None
            self.register_parameter("missing_weight", None)

        def __getattr__(self, name):
            return "other" if name == "other" else super().__getattr__(name)

        def forward(self, x, *, twice=False):
            return self.inner(x) * (2 if twice else 1)

    m, x = Kept(), torch.ones(1, 2)
    assert m.other == "other" and m.missing_weight is None and m.inner.weight is m.inner._parameters["weight"]
    assert torch.equal(m(x, twice=True), 2 * m(x)) and torch.equal(torch.nn.Module.__call__(m, x=x), m(x))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        m()
    with pytest.raises(AttributeError, match="'Kept' object has no attribute 'wheel'"):
        m.wheel
    assert str(inspect.signature(m)) == "(*args, **kwargs)" and Kept.__new__(Kept).__dict__ == {}
    with pytest.raises(AttributeError):
        Kept.__new__(Kept).inner
    m.forward = lambda x: "an instance's own"
    assert m(x) == "an instance's own"
    seen = []
    with torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: seen.append(type(module).__name__)):
        Kept()(x, twice=True)
    assert seen == ["Linear", "Kept"] and copy.deepcopy(m).inner.weight.shape == (2, 2)

"""e3nn: equivariant layers, whose programs are graphs of torch.fx that it writes itself."""
import copy
import pickle

import e3nn
import pytest
import torch
from e3nn import nn as enn
from e3nn import o3
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
IRREPS = o3.Irreps("2x0e + 1x1o + 1x2e")


@pytest.fixture(autouse=True)
def in_python():
    """The graphs run as they are, and not as TorchScript."""
    before = e3nn.get_optimization_defaults()
    e3nn.set_optimization_defaults(jit_script_fx=False)
    yield
    e3nn.set_optimization_defaults(**before)


def values(*sizes, device="cpu"):
    return torch.linspace(-2, 2, int(torch.tensor(sizes).prod()), device=device).cos().reshape(sizes)


LAYERS = {
    "linear": (lambda: o3.Linear(IRREPS, "3x0e + 2x1o"), (IRREPS.dim,)),
    "linear_with_bias": (lambda: o3.Linear(IRREPS, "3x0e + 2x1o", biases=True), (IRREPS.dim,)),
    "tensor_product": (lambda: o3.FullyConnectedTensorProduct(IRREPS, "1x0e + 1x1o", "2x0e + 1x1o + 1x2e"), (IRREPS.dim, 4)),
    "full_tensor_product": (lambda: o3.FullTensorProduct("1x0e + 1x1o", "1x1o"), (4, 3)),
    "elementwise": (lambda: o3.ElementwiseTensorProduct("2x0e + 1x1o", "1x0e + 2x1o"), (5, 7)),
    "square": (lambda: o3.TensorSquare("1x0e + 1x1o"), (4,)),
    "norm": (lambda: o3.Norm(IRREPS), (IRREPS.dim,)),
    "gate": (lambda: enn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o"), (6,)),
    "batch_norm": (lambda: enn.BatchNorm(IRREPS), (IRREPS.dim,)),
    "fully_connected": (lambda: enn.FullyConnectedNet([3, 4, 2], torch.tanh), (3,)),
    "extract": (lambda: enn.Extract(IRREPS, ["2x0e", "1x2e"], [(0,), (2,)]), (IRREPS.dim,)),
}


@recorded
@pytest.mark.parametrize("name", LAYERS)
def test_layers_have_pytorchs_values_and_gradients(device, name):
    make, sizes = LAYERS[name]
    torch.manual_seed(0)
    layer = make().to(device)
    inputs = [values(4, size, device=device).requires_grad_() for size in sizes]
    out = layer(*inputs)
    total = sum(part.sin().sum() for part in (out if isinstance(out, tuple) else (out,)))
    total.backward()
    return {"out": out, "inputs": [x.grad for x in inputs], "parameters": [p.grad for p in layer.parameters() if p.grad is not None]}


@recorded
def test_spherical_harmonics_and_rotations_have_pytorchs_values():
    x, angles = values(5, 3), [torch.tensor(a) for a in (0.1, 0.2, 0.3)]
    basis = o3.ReducedTensorProducts("ij=ji", i="1x1o").change_of_basis
    harmonics = o3.spherical_harmonics([0, 1, 2, 3], x, normalize=True)
    return {"harmonics": harmonics, "rotation": IRREPS.D_from_angles(*angles), "basis": basis.square().sum((1, 2)), "wigner": o3.wigner_3j(1, 2, 3)}


def test_a_network_turns_with_its_input():
    torch.manual_seed(0)
    product = o3.FullyConnectedTensorProduct("2x1o", "1x1o", "2x0e + 1x1e + 1x2e")
    layers = torch.nn.ModuleList([product, o3.Linear(product.irreps_out, "1x0e + 1x2e")])
    turn, x, y = o3.rand_matrix(), values(3, 6), values(3, 3)

    def run(x, y):
        return layers[1](layers[0](x, y))

    turned = run(x @ product.irreps_in1.D_from_matrix(turn).T, y @ turn.T)
    torch.testing.assert_close(turned, run(x, y) @ layers[1].irreps_out.D_from_matrix(turn).T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["linear", "tensor_product"])
def test_layers_are_copied_and_pickled_with_their_programs(name):
    make, sizes = LAYERS[name]
    layer, inputs = make(), [values(4, size) for size in sizes]
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(*inputs), layer(*inputs))


def test_a_network_learns():
    torch.manual_seed(0)
    inner = "4x0e + 4x1o"
    model = torch.nn.Sequential(o3.Linear("1x0e + 1x1o", inner), enn.NormActivation(inner, torch.sigmoid), o3.Linear(inner, "1x0e"))
    x, optimizer, losses = values(16, 4), torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(x)[:, 0] - 2 * x[:, 0]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]

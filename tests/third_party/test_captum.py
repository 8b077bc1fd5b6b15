"""captum: attributions of a network's answers to its inputs, layers and neurons."""
import pytest
import torch
from captum.attr import (
    DeepLift, FeatureAblation, GradientShap, GuidedBackprop, InputXGradient, IntegratedGradients, KernelShap, LayerConductance, LayerGradCam,
    NeuronGradient, NoiseTunnel, Occlusion, Saliency, ShapleyValueSampling,
)  # fmt: skip
from captum.metrics import infidelity, sensitivity_max
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")


def network(device):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    ).to(device).eval()  # fmt: skip


def picture(device):
    return torch.linspace(-2, 3, 72).sin().reshape(2, 1, 6, 6).to(device)


METHODS = {
    "saliency": lambda net, x: Saliency(net).attribute(x, target=1),
    "integrated": lambda net, x: IntegratedGradients(net).attribute(x, target=1, n_steps=8, return_convergence_delta=True),
    "times": lambda net, x: InputXGradient(net).attribute(x, target=0),
    "deeplift": lambda net, x: DeepLift(net).attribute(x, target=2),
    "guided": lambda net, x: GuidedBackprop(net).attribute(x, target=1),
    "gradcam": lambda net, x: LayerGradCam(net, net[0]).attribute(x, target=1),
    "conductance": lambda net, x: LayerConductance(net, net[3]).attribute(x, target=1, n_steps=4),
    "neuron": lambda net, x: NeuronGradient(net, net[3]).attribute(x, (2,)),
    "occlusion": lambda net, x: Occlusion(net).attribute(x, sliding_window_shapes=(1, 3, 3), strides=(1, 3, 3), target=1),
    "ablation": lambda net, x: FeatureAblation(net).attribute(x, target=1),
}


@recorded
@pytest.mark.parametrize("name", METHODS)
def test_attributions_are_pytorchs(device, name):
    return METHODS[name](network(device), picture(device))


@recorded
@pytest.mark.parametrize("name", ["shap", "kernel", "tunnel", "sampling"])
def test_attributions_by_chance_are_pytorchs(name):
    net, x = network("cpu"), picture("cpu")
    torch.manual_seed(1)
    import numpy

    numpy.random.seed(1)
    mask = torch.arange(4).repeat_interleave(9).reshape(1, 1, 6, 6)
    if name == "shap":
        return GradientShap(net).attribute(x, baselines=torch.zeros(2, 1, 6, 6), n_samples=3, target=1)
    if name == "kernel":
        return KernelShap(net).attribute(x[:1], target=1, n_samples=20, feature_mask=mask)
    if name == "tunnel":
        return NoiseTunnel(Saliency(net)).attribute(x, nt_type="smoothgrad", nt_samples=3, target=1)
    return ShapleyValueSampling(net).attribute(x[:1], target=1, n_samples=3, feature_mask=mask)


@recorded
def test_metrics_of_attributions_are_pytorchs():
    net, x = network("cpu"), picture("cpu")
    saliency = Saliency(net)
    found = saliency.attribute(x, target=1)
    torch.manual_seed(2)
    change = lambda inputs: (0.1 * torch.ones_like(inputs), inputs - 0.1)  # noqa: E731
    return {"infidelity": infidelity(net, change, x, found, target=1, n_perturb_samples=2), "sensitivity": sensitivity_max(saliency.attribute, x, target=1, perturb_radius=0.5, n_perturb_samples=2)}

"""timm: models without weights, features, transforms, optimizers and losses."""
import pytest
import timm
import torch
from facts import recorded
from timm.optim import create_optimizer_v2

pytestmark = pytest.mark.filterwarnings("ignore")


def loss_and_gradients(name, device, **options):
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5, **options).to(device)
    x = torch.linspace(-2, 2, 2 * 3 * 64 * 64, device=device).sin().reshape(2, 3, 64, 64)
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 2], device=device))
    loss.backward()
    return {"loss": loss.item(), "gradients": [p.grad.norm().item() for p in model.parameters() if p.grad is not None]}


@recorded
@pytest.mark.parametrize("name, options", [("vit_tiny_patch16_224", {"img_size": 64}), ("convnext_atto", {})], ids=["vit", "convnext"])
def test_models_without_batch_norm_have_pytorchs_loss_and_gradients(device, name, options):
    return loss_and_gradients(name, device, **options)


@recorded
@pytest.mark.parametrize("name", ["resnet18", "mobilenetv3_small_050"])
def test_models_with_batch_norm_have_pytorchs_logits(device, name):
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5).to(device).eval()
    return model(torch.linspace(-2, 2, 3 * 64 * 64, device=device).sin().reshape(1, 3, 64, 64))


def test_resnet18_trains(device):
    torch.manual_seed(0)
    model = timm.create_model("resnet18", num_classes=3).to(device)
    x, y = torch.randn(6, 3, 32, 32, device=device), torch.arange(6, device=device) % 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_features_are_those_of_each_stage():
    model = timm.create_model("resnet18", features_only=True)
    assert [tuple(f.shape[1:]) for f in model(torch.zeros(1, 3, 64, 64))] == [(64, 32, 32), (64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]


@recorded
@pytest.mark.parametrize("name", ["resnet18", "mobilenetv3_small_050"])
def test_features_of_traced_models_are_pytorchs(device, name):
    torch.manual_seed(0)
    model = timm.create_model(name, features_only=True, feature_cls="fx", out_indices=(1, 2)).to(device).eval()
    x = torch.linspace(-2, 2, 3 * 64 * 64, device=device).sin().reshape(1, 3, 64, 64)
    return {str(i): [feature.mean((2, 3)), list(feature.shape)] for i, feature in enumerate(model(x))}


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "convnext_atto", "efficientnet_b0"])
def test_nodes_of_traced_models_give_what_the_model_computes(name):
    from timm.models import create_feature_extractor, get_graph_node_names

    torch.manual_seed(0)
    model = timm.create_model(name, **({"img_size": 64} if "224" in name else {})).eval()
    x, last = torch.linspace(-2, 2, 3 * 64 * 64).sin().reshape(1, 3, 64, 64), get_graph_node_names(model)[1][-1]
    assert torch.equal(create_feature_extractor(model, {last: "out"})(x)["out"], model(x))


TRACED = [
    "resnet18", "vit_tiny_patch16_224", "mixer_s16_224", "mobilenetv3_small_050", "densenet121", "swin_tiny_patch4_window7_224", "convnext_atto",
    "regnetx_002", "coat_lite_tiny", "xcit_nano_12_p16_224",
]  # fmt: skip


@recorded
@pytest.mark.parametrize("name", TRACED)
def test_traced_models_have_pytorchs_nodes_and_code(name):
    from hashlib import sha256

    from timm.models import create_feature_extractor, get_graph_node_names

    model = timm.create_model(name).eval()
    nodes = get_graph_node_names(model)[1]
    return [len(nodes), nodes[:8], nodes[-8:], sha256(create_feature_extractor(model, nodes[-1:]).code.encode()).hexdigest()]


def test_a_models_transform_makes_its_input_of_a_picture():
    from PIL import Image

    config = timm.data.resolve_model_data_config(timm.create_model("resnet18"))
    transform = timm.data.create_transform(**config, is_training=False)
    x = transform(Image.new("RGB", (300, 280), (255, 0, 128)))
    assert tuple(x.shape) == (3, 224, 224) and abs(x[0].max().item() - (1 - 0.485) / 0.229) < 1e-5


OPTIMIZERS = [
    "adabelief", "adafactor", "adamp", "adan", "adopt", "kron", "lamb", "laprop", "lars", "lion", "lookahead_adam", "madgrad", "mars", "muon", "nadamw",
    "novograd", "radam", "rmsproptf", "sgdw",
]  # fmt: skip


@recorded
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_pytorchs_steps(device, name):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).to(device)
    optimizer = create_optimizer_v2(model, name, lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4, device=device)).square().sum().backward()
        optimizer.step()
    return model.weight

"""naru.vision.models: torchvision's parameter names and counts; weights are loaded only from local files."""
import math
import pickle

import pytest

import naru as torch
from naru.vision import models


@pytest.mark.parametrize(
    ("name", "count", "keys"),
    [
        ("resnet18", 11_689_512, ["conv1.weight", "bn1.running_var", "layer1.0.bn2.bias", "layer2.0.downsample.0.weight", "fc.bias"]),
        ("resnet50", 25_557_032, ["layer1.0.downsample.1.weight", "layer3.5.conv3.weight", "layer4.2.bn3.num_batches_tracked", "fc.weight"]),
        ("densenet121", 7_978_856, ["features.norm0.bias", "features.denseblock4.denselayer16.conv2.weight", "features.transition3.norm.running_var", "features.norm5.weight", "classifier.bias"]),
        ("squeezenet1_0", 1_248_424, ["features.0.weight", "features.3.squeeze.bias", "features.12.expand3x3.weight", "classifier.1.weight"]),
        ("squeezenet1_1", 1_235_496, ["features.0.weight", "features.12.expand1x1.weight", "classifier.1.bias"]),
        ("mobilenet_v2", 3_504_872, ["features.0.0.weight", "features.1.conv.1.weight", "features.17.conv.3.running_mean", "classifier.1.bias"]),
    ],
)
def test_a_network_has_torchvisions_parameters(name, count, keys):
    model = models.get_model(name)
    assert sum(p.numel() for p in model.parameters()) == count
    state = model.state_dict()
    assert [key for key in keys if key not in state] == []


@pytest.mark.parametrize(("name", "count"), [("vgg11", 132_863_336), ("vgg13", 133_047_848), ("vgg16", 138_357_544), ("vgg19_bn", 143_678_248)])
def test_vggs_have_torchvisions_number_of_parameters(name, count, monkeypatch):
    """Its linear layers hold half a gigabyte: their shapes are enough."""
    sizes = []

    class Linear(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            sizes.append(inputs * outputs + outputs)

    monkeypatch.setattr(models.vgg, "Linear", Linear)
    monkeypatch.setattr(models.vgg.VGG, "_initialize", lambda self: None)
    model = models.get_model(name)
    assert sum(p.numel() for p in model.parameters()) + sum(sizes) == count
    assert "features.0.weight" in model.state_dict()
    assert list(dict(model.named_children())) == ["features", "avgpool", "classifier"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.resnet18(num_classes=5),
        lambda: models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], 5, groups=2, replace_stride_with_dilation=[False, True, True]),
        lambda: models.mobilenet_v2(width_mult=0.25, num_classes=5),
        lambda: models.squeezenet1_1(num_classes=5),
        lambda: models.DenseNet(4, (2, 2), 8, num_classes=5, drop_rate=0.1),
        lambda: models.DenseNet(4, (2, 2), 8, num_classes=5, memory_efficient=True),
    ],
)
def test_a_network_trains_a_step(make):
    torch.manual_seed(0)
    model = make()
    out = model(torch.rand(2, 3, 32, 32))
    assert out.shape == (2, 5)
    torch.nn.functional.cross_entropy(out, torch.tensor([0, 4])).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()] == []


def test_a_residual_block_is_what_its_paper_says():
    block = models.resnet.BasicBlock(4, 4).eval()
    x = torch.randn(1, 4, 6, 6)
    inner = block.bn2(block.conv2(torch.relu(block.bn1(block.conv1(x)))))
    assert torch.equal(block(x), torch.relu(inner + x))


def test_networks_begin_as_torchvisions_do():
    torch.manual_seed(0)
    model = models.resnet18(zero_init_residual=True)
    weight = model.layer4[1].conv1.weight
    assert weight.std().item() == pytest.approx(math.sqrt(2 / (512 * 9)), rel=0.01)
    assert not model.layer1[0].bn2.weight.any()
    assert models.mobilenet_v2(width_mult=0.25).classifier[1].weight.std().item() == pytest.approx(0.01, rel=0.01)


def test_weights_come_from_a_file_and_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for asked in (models.ResNet18_Weights.DEFAULT, "DEFAULT", "IMAGENET1K_V1", "ResNet18_Weights.IMAGENET1K_V1"):
        with pytest.raises(RuntimeError, match=r"naru downloads nothing: put the file resnet18-f37072fd.pth into .*hub.checkpoints"):
            models.resnet18(weights=asked)
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"), pytest.raises(RuntimeError, match="downloads nothing"):
        models.resnet18(pretrained=True)
    with pytest.raises(ValueError, match="has no weights 'V9'"):
        models.resnet18(weights="V9")
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    saved = models.resnet18()
    torch.save(saved.state_dict(), folder / "resnet18-f37072fd.pth")
    loaded = models.resnet18(weights="DEFAULT")
    assert all(torch.equal(a, b) for a, b in zip(saved.state_dict().values(), loaded.state_dict().values()))
    with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 10"):
        models.resnet18(weights="DEFAULT", num_classes=10)


def test_weights_say_what_images_they_want():
    preset = models.get_weight("ResNet50_Weights.IMAGENET1K_V2").transforms()
    out = preset(torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8))
    assert out.shape == (3, 224, 224)
    assert out.dtype == torch.float32
    assert pickle.loads(pickle.dumps(models.ResNet50_Weights.DEFAULT)) is models.ResNet50_Weights.IMAGENET1K_V2


def test_models_are_found_by_name():
    assert "vgg16_bn" in models.list_models()
    assert models.list_models(models.vgg, include="*_bn", exclude="vgg1[13]*") == ["vgg16_bn", "vgg19_bn"]
    with pytest.raises(ValueError, match="Unknown model resnet17"):
        models.get_model("resnet17")


def test_layers_in_between_are_returned():
    from naru.vision.models._utils import IntermediateLayerGetter

    model = models.resnet18(num_classes=2)
    out = IntermediateLayerGetter(model, {"layer1": "low", "layer3": "high"})(torch.rand(2, 3, 32, 32))
    assert {name: tuple(x.shape) for name, x in out.items()} == {"low": (2, 64, 8, 8), "high": (2, 256, 2, 2)}


def test_a_densenet_takes_the_old_names_of_its_files():
    torch.manual_seed(0)
    model, other = (models.DenseNet(4, (2, 2), 8, num_classes=5) for _ in range(2))
    old = {name.replace(".norm1.", ".norm.1.").replace(".conv2.", ".conv.2."): value for name, value in model.state_dict().items()}
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    other.load_state_dict(old)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), other.state_dict().values()))


def test_what_a_densenet_recomputes_is_the_same():
    torch.manual_seed(0)
    model = models.DenseNet(4, (2, 2), 8, num_classes=5)
    again = models.DenseNet(4, (2, 2), 8, num_classes=5, memory_efficient=True)
    again.load_state_dict(model.state_dict())
    x = torch.rand(2, 3, 32, 32)
    for net in (model, again):
        net(x).square().sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), again.parameters()))

"""fastai: learners of pictures, tables and texts, with its loaders, schedules and callbacks."""
import numpy
import pandas
import pytest
import torch
from facts import recorded
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, set_seed
from fastai.callback.all import MixedPrecision, SaveModelCallback, ShowGraphCallback  # noqa: F401
from fastai.callback.hook import layer_info
from fastai.callback.schedule import fit_flat_cos, fit_one_cycle  # noqa: F401
from fastai.losses import CrossEntropyLossFlat, FocalLossFlat, LabelSmoothingCrossEntropy
from fastai.optimizer import Adam, Lamb, Lookahead, QHAdam, RAdam, RMSProp, SGD, ranger
from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner
from fastai.vision.all import ImageBlock, XResNet, create_unet_model, resnet18  # noqa: F401
from PIL import Image

pytestmark = pytest.mark.filterwarnings("ignore")


def learner(opt_func=Adam, device="cpu", loss=None, dtype=torch.float32, **options):
    x = torch.linspace(-2, 2, 60, dtype=dtype).sin().reshape(20, 3)
    pairs = [(x[i], (x[i].sum() > 0).long()) for i in range(20)]
    parts = DataLoader(pairs[:14], bs=5, shuffle=False, num_workers=0), DataLoader(pairs[14:], bs=6, num_workers=0)
    loaders = DataLoaders(*parts, device=torch.device(device))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)).to(dtype)
    made = Learner(loaders, net.to(device), loss or CrossEntropyLossFlat(), opt_func, lr=0.05, metrics=accuracy, **options)
    made.remove_cbs([callback for callback in made.cbs if type(callback).__name__ == "ProgressCallback"])
    return made


def history(made):
    return [[float(number) for number in row if number is not None] for row in made.recorder.values]


OPTIMIZERS = {
    "adam": Adam, "sgd": lambda *a, **k: SGD(*a, mom=0.9, **k), "rmsprop": RMSProp, "radam": RAdam, "lamb": Lamb, "qhadam": QHAdam, "ranger": ranger,
    "lookahead": lambda *a, **k: Lookahead(SGD(*a, **k)),
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_learners_learn(device, name, tmp_path):
    # In float64 no optimizer makes more of the roundings of a gradient near zero; the recorder wants a loss in float32.
    made = learner(OPTIMIZERS[name], device, lambda x, y: torch.nn.functional.cross_entropy(x, y).float(), torch.float64, path=tmp_path)
    with made.no_logging():
        made.fit(2)
        made.fit_one_cycle(2, 0.02)
    return {"history": history(made), "weight": made.model[0].weight, "rates": made.recorder.lrs[-3:]}


@recorded
@pytest.mark.parametrize("loss", ["smooth", "focal"])
def test_losses_freezing_and_predictions(device, loss, tmp_path):
    kind = {"smooth": LabelSmoothingCrossEntropy, "focal": FocalLossFlat}[loss]
    made = learner(Adam, device, kind(), splitter=lambda net: [list(net[0].parameters()), list(net[1:].parameters())], path=tmp_path)
    with made.no_logging(), made.no_bar():
        made.freeze_to(1)
        made.fit_flat_cos(1, 0.02)
        made.unfreeze()
        made.fit(1, lr=slice(0.001, 0.02), wd=0.1)
        found, wanted = made.get_preds()
        again = made.validate()
    made.save("it")
    other = learner(Adam, device, made.loss_func, path=tmp_path)
    other.load("it")
    assert torch.equal(other.model[0].weight, made.model[0].weight)
    return {"predictions": found, "wanted": wanted, "history": history(made), "validated": list(map(float, again))}


@recorded
def test_tables_are_learned(tmp_path):
    row = numpy.arange(40)
    age = numpy.where(row % 7 == 0, numpy.nan, numpy.cos(row))
    table = pandas.DataFrame({"kind": numpy.array(["a", "b", "c", "d"])[row % 4], "size": numpy.sin(row), "age": age, "y": (row % 4 > 1).astype(int)})
    set_seed(3)
    loaders = TabularDataLoaders.from_df(
        table, tmp_path, procs=[Categorify, FillMissing, Normalize], cat_names=["kind"], cont_names=["size", "age"], y_names="y", y_block=None,
        valid_idx=list(range(30, 40)), bs=8, num_workers=0,
    )
    torch.manual_seed(0)
    made = tabular_learner(loaders, layers=[12, 6], metrics=None, loss_func=torch.nn.functional.mse_loss, n_out=1, lr=0.02)
    with made.no_logging(), made.no_bar():
        made.fit(3)
    return {"history": history(made), "weight": made.model.layers[0][0].weight.norm()}


@recorded
def test_pictures_are_learned(device, tmp_path):
    from fastai.vision.all import ImageDataLoaders, Resize, vision_learner

    for i in range(16):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        points = (numpy.sin(numpy.arange(48 * 48 * 3) * (0.1 + i % 2)) * 100 + 128 + i).astype(numpy.uint8).reshape(48, 48, 3)
        Image.fromarray(points).save(tmp_path / "ab"[i % 2] / f"{i:02d}.png")
    set_seed(1)
    options = {"bs": 6, "num_workers": 0, "device": torch.device(device), "shuffle": False}
    loaders = ImageDataLoaders.from_folder(tmp_path, valid_pct=0.25, seed=2, item_tfms=Resize(48), **options)
    torch.manual_seed(0)
    made = vision_learner(loaders, resnet18, pretrained=False, metrics=accuracy, ps=0.0, opt_func=SGD)
    with made.no_logging(), made.no_bar():
        made.unfreeze()
        made.fit(1, 0.01)
        found, wanted = made.get_preds()
    kind, place, chances = made.predict(tmp_path / "a" / "00.png")
    return {"history": history(made), "predictions": found, "wanted": wanted, "kind": kind, "place": place, "chances": chances}

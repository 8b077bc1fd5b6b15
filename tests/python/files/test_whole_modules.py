"""Whole modules in files: naru writes classes and functions under PyTorch's names, and finds those in PyTorch's files."""

import io
import pickle
import pickletools
import zipfile
from pathlib import Path

import naru as torch
import pytest
from naru import nn

# PyTorch 2.15's classes, by module.
PLACES = [line.split(": ") for line in (Path(__file__).parents[1] / "support" / "class_places.txt").read_text().splitlines()]
PACKAGES = {"nn": nn, "optim": torch.optim, "distributions": torch.distributions}
NOT_YET = {"Container"}


def pickle_in(obj):
    """The pickle in the file that `save` makes of obj."""
    file = io.BytesIO()
    torch.save(obj, file)
    with zipfile.ZipFile(file) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))


def globals_of(data):
    return {argument.replace(" ", ".") for operation, argument, _ in pickletools.genops(data) if operation.name == "GLOBAL"}


def again(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def read(data):
    """The object of a pickle that PyTorch wrote."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_a_file_names_a_class_where_pytorch_has_it_and_it_is_found_there():
    for place, names in PLACES:
        package = PACKAGES[place.split(".")[1]]
        wanted = sorted(set(names.split()) - NOT_YET)
        known = [getattr(package, name, None) or getattr(torch.optim.lr_scheduler, name) for name in wanted]
        assert globals_of(pickle_in(known)) == {f"{place}.{name}" for name in wanted}
        text = "\x80\x02(" + "".join(f"c{place}\n{name}\n" for name in wanted) + "l."
        assert read(text.encode("latin-1")) == known


@pytest.mark.parametrize(
    "function, named",
    [
        (nn.functional.gelu, "torch.nn.functional.gelu"),
        (nn.functional.max_pool2d, "torch.nn.functional.max_pool2d"),
        (nn.utils.rnn.pad_sequence, "torch.nn.utils.rnn.pad_sequence"),
        (torch.tanh, "torch.tanh"),
        (torch.einsum, "torch.einsum"),
    ],
)
def test_a_file_names_a_function_where_pytorch_has_it(function, named):
    assert globals_of(pickle_in(function)) == {named}
    assert again(function) is function


def test_what_pytorch_names_by_its_core_is_found():
    assert read(b"\x80\x02ctorch._C._nn\ngelu\n.") is nn.functional.gelu
    assert read(b"\x80\x02ctorch._C._nn\nlog_sigmoid\n.") is nn.functional.logsigmoid
    method = b"\x80\x02c__builtin__\ngetattr\nctorch._C\n%s\nX\x04\x00\x00\x00tanh\x86R."
    assert read(method % b"_VariableFunctionsClass") is torch.tanh
    assert read(method % b"TensorBase")(torch.zeros(1)).item() == 0


def test_a_name_that_is_nowhere_is_an_error():
    with pytest.raises((AttributeError, pickle.UnpicklingError), match="NoSuchLayer"):
        read(b"\x80\x02ctorch.nn.modules.linear\nNoSuchLayer\n.")


@pytest.mark.parametrize("layer", [nn.LSTM(2, 3, 2, proj_size=1), nn.GRU(2, 3, bidirectional=True), nn.RNN(2, 3, bias=False)], ids=repr)
def test_a_recurrent_layer_has_its_flat_weights_in_a_file_and_not_twice_when_read(layer):
    state = layer.__getstate__()
    assert [id(w) for w in state["_flat_weights"]] == [id(getattr(layer, name)) for name in layer._flat_weights_names]
    same = again(layer)
    assert "_flat_weights" not in vars(same)
    x = torch.ones(4, 1, 2)
    assert torch.equal(same(x)[0], layer(x)[0])
    same.double()
    assert {w.dtype for w in same._flat_weights} == {torch.float64}


def test_layers_with_functions_as_activations_come_back():
    for activation in ("gelu", nn.functional.relu, torch.tanh):
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=activation)
        x = torch.ones(3, 1, 4)
        assert torch.equal(again(layer)(x), layer(x))


def test_a_method_in_a_file_keeps_its_object():
    layer = nn.Linear(2, 3)
    forward = again(layer.forward)
    assert forward.__self__ is not layer and torch.equal(forward.__self__.weight, layer.weight)


def test_a_function_within_a_function_cannot_be_named():
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle_in(_local())


def _local():
    def inner():
        return None

    inner.__module__ = "naru.nn.functional"
    return inner


def test_relu6_is_a_hardtanh_of_its_limits():
    layer = nn.ReLU6()
    assert isinstance(layer, nn.Hardtanh) and (layer.min_val, layer.max_val) == (0.0, 6.0) and repr(layer) == "ReLU6()"


@pytest.mark.parametrize("n", [1, 4])
def test_dropout1d_takes_channels_with_one_dimension_only(n):
    with pytest.raises(RuntimeError, match=f"dropout1d: Expected 2D or 3D input, but received a {n}D input"):
        nn.Dropout1d().eval()(torch.ones([1] * n))


def test_lazy_modules_come_back_lazy():
    for layer, shape in ((nn.LazyLinear(3), (2, 4)), (nn.LazyBatchNorm1d(), (2, 4)), (nn.LazyConv2d(2, 1), (1, 4, 2, 2))):
        kind = type(layer)
        same = again(layer)
        assert type(same) is kind and same.has_uninitialized_params()
        same(torch.ones(shape))
        assert type(same) is kind.cls_to_become and not same._load_state_dict_pre_hooks and not hasattr(same, "_load_hook")


def test_hooks_of_a_modules_state_come_back_with_their_module():
    layer = nn.utils.spectral_norm(nn.Linear(4, 3))
    same = again(layer)
    assert same.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    same.load_state_dict(layer.state_dict())
    nn.utils.remove_spectral_norm(same)
    assert not same._state_dict_hooks and not same._load_state_dict_pre_hooks

    layer = nn.Linear(2, 2)
    layer.register_load_state_dict_pre_hook(_note)
    layer.register_state_dict_post_hook(_mark)
    same = again(layer)
    assert same.state_dict()["mark"] == 1
    del same.noted[:]
    same.load_state_dict(layer.state_dict(), strict=False)
    assert same.noted == [id(same)]


def _note(module, *rest):
    module.__dict__.setdefault("noted", []).append(id(module))


def _mark(module, state, prefix, metadata):
    _note(module)
    state[prefix + "mark"] = 1


def test_the_handle_of_a_hook_comes_back_with_the_hook():
    layer = nn.Linear(2, 2)
    layer.handle = layer.register_forward_hook(_note)
    same = again(layer)
    same.handle.remove()
    assert not same._forward_hooks and layer._forward_hooks
    assert torch.nn.ReLU().register_forward_hook(_note).id > same.handle.id

"""nn.Parameter of a tensor of another class: it keeps the class, and is a parameter all the same; and the bases of padding layers."""
import copy

import pytest

import naru as torch
from naru.nn.modules import padding
from naru.nn.parameter import Parameter, _ParameterMeta


class Marked(torch.Tensor):
    """A tensor of a class of its own."""


def test_a_parameter_keeps_the_class_of_its_data():
    data = torch.ones(3).as_subclass(Marked)
    parameter = Parameter(data)
    assert type(parameter) is Marked and isinstance(parameter, Parameter) and parameter.requires_grad and parameter.is_leaf
    assert not isinstance(data, Parameter) and not isinstance(parameter * 2, Parameter)
    assert parameter.data_ptr() == data.data_ptr()
    assert type(Parameter(parameter, requires_grad=False)) is Marked
    assert not Parameter(data, requires_grad=False).requires_grad


def test_modules_have_such_parameters():
    layer = torch.nn.Linear(3, 2)
    layer.scale = Parameter(torch.ones(2).as_subclass(Marked))
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias", "scale"]
    again = copy.deepcopy(layer).double()
    assert type(again.scale) is Marked and isinstance(again.scale, Parameter) and again.scale.dtype is torch.float64
    (again(torch.ones(1, 3).double()) * again.scale).sum().backward()
    torch.optim.SGD(again.parameters(), 0.1).step()
    assert not torch.equal(again.scale.detach().as_subclass(torch.Tensor), torch.ones(2).double())


def test_classes_derived_from_parameter_stay():
    class Own(Parameter):
        pass

    assert type(Own(torch.ones(2))) is Own and isinstance(Own(torch.ones(2)), Parameter)
    assert type(Parameter(torch.ones(2))) is Parameter and not isinstance(Parameter(torch.ones(2)), Own)
    assert type(Parameter) is _ParameterMeta and issubclass(_ParameterMeta, torch._C._TensorMeta)


@pytest.mark.parametrize("kind", ["Constant", "Reflection", "Replication", "Circular", "Zero"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_layers_have_pytorchs_bases(kind, dims):
    args = (1, 2.0) if kind == "Constant" else (1,)
    layer = getattr(torch.nn, f"{kind}Pad{dims}d")(*args)
    assert isinstance(layer, getattr(padding, f"_{'Constant' if kind == 'Zero' else kind}PadNd"))
    assert isinstance(layer, getattr(torch.nn, f"ConstantPad{dims}d")) == (kind in ("Constant", "Zero"))

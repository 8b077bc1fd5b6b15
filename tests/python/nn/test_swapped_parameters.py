"""torch.utils.swap_tensors, and module conversion with the settings in torch.__future__."""

import pytest

import naru as torch


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_two_objects_exchange_what_they_are():
    plain, parameter = torch.zeros(2), torch.nn.Parameter(torch.ones(3))
    parameter.tag = "mine"
    torch.utils.swap_tensors(plain, parameter)
    assert type(plain) is torch.nn.Parameter and plain.tag == "mine" and plain.tolist() == [1, 1, 1]
    assert type(parameter) is torch.Tensor and not parameter.requires_grad and parameter.tolist() == [0, 0]


def test_a_tensor_that_others_refer_to_is_not_swapped():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    product = x * x
    with pytest.raises(RuntimeError, match="use_count of t1"):
        torch.utils.swap_tensors(x, y)
    assert product.grad_fn is not None and x.requires_grad and not y.requires_grad


@pytest.mark.usefixtures("swapping")
def test_conversion_keeps_the_objects_of_parameters_and_gradients():
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(2)).backward()
    weight, grad = layer.weight, layer.weight.grad
    layer.double()
    assert layer.weight is weight and weight.dtype == torch.float64
    assert weight.grad is grad and grad.tolist() == [[1, 1]] and grad.dtype == torch.float64


@pytest.mark.usefixtures("swapping")
def test_backward_through_what_was_swapped_is_an_error():
    layer = torch.nn.Linear(2, 1)
    out = layer(torch.ones(2))
    layer.double()
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        out.backward()


@pytest.mark.usefixtures("swapping")
def test_loading_asks_the_parameter_what_to_put_in_its_place():
    layer, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    weight = layer.weight
    layer.load_state_dict(other.state_dict())
    assert layer.weight is weight and weight.equal(other.weight) and weight.requires_grad


def test_conversion_makes_new_parameters_where_it_is_told_to():
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer = torch.nn.Linear(2, 1)
        weight = layer.weight
        layer.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not weight and weight.dtype == torch.float32 and layer.weight.dtype == torch.float64


def test_linear_lists_the_bias_before_its_input():
    layer, x = torch.nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    first, second, _ = (node for node, _ in layer(x).grad_fn.next_functions)
    assert first.variable is layer.bias and second.variable is x


def test_inputs_without_gradient_stay_so_under_backward_hooks():
    seen = []

    class Sum(torch.nn.Module):
        def forward(self, a, b):
            seen.append((a.requires_grad, b.requires_grad))
            return a + b

    module = Sum()
    module.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    module(torch.ones(1, requires_grad=True), torch.ones(1))
    assert seen == [(True, False)]
    layer = torch.nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: grad_output)
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        layer(torch.ones(1)).backward()


def test_a_rate_given_as_a_tensor_is_not_shared_with_the_schedule():
    top = torch.tensor(0.5)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=top, cycle_momentum=False)
    top.zero_()
    assert schedule.max_lrs == [0.5]


def test_modules_refuse_what_they_could_not_keep():
    module = torch.nn.Linear(1, 1)
    module.taken = 5
    with pytest.raises(KeyError):
        module.taken = torch.nn.Buffer(torch.ones(1))
    with pytest.raises(TypeError):
        module.to(torch.device("cpu"), True)
    module.register_full_backward_pre_hook(lambda module, grad_output: ())
    with pytest.raises(RuntimeError, match="got 0, but expected 1"):
        module(torch.ones(1)).backward()


def test_a_buffer_goes_to_a_register_buffer_of_the_class():
    class Old(torch.nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value, False)

    module = Old()
    module.mean = torch.nn.Buffer(torch.ones(1))
    assert list(module.buffers()) == [module.mean] and not module.state_dict()

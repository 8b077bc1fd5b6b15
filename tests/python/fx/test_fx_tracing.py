"""Tracing: what a proxy records, what is a node of its own, and what is refused, with the line."""
import inspect
import math
import operator
import threading

import pytest

import naru as torch
import naru.nn.functional as F
from naru import fx, nn
from naru.fx._symbolic_trace import is_fx_tracing
from naru.nn.functional import hardtanh, layer_norm, normalize

fx.wrap("len")


@fx.wrap
def decided(x, least=0):
    """Its course depends on its argument."""
    return x + 1 if x.sum() > least else x - 1


def called(graph):
    return [(node.op, str(getattr(node.target, "__name__", node.target))) for node in graph.nodes if node.op not in ("placeholder", "output")]


def test_operators_are_recorded_in_both_orders():
    def program(x, y):
        numbers = [x + y, 2 - x, x * y, 1 / x, x // 2, x % y, x**2, 2**x, x @ y, -x, +x, abs(x), x[0], x[..., 1:]]
        return numbers + [x << 1, x >> 1, x & y, x | y, x ^ y, ~x, x == y, x != y, x < y, x > 1, x <= y, x >= y]

    traced = fx.symbolic_trace(program)
    x, y = torch.tensor([[3, 4], [5, 6]]), torch.tensor([[1, 2], [7, 8]])
    assert [r.tolist() for r in traced(x, y)] == [r.tolist() for r in program(x, y)]
    assert {node.op for node in traced.graph.nodes} == {"placeholder", "call_function", "output"}


def test_methods_attributes_and_functions_are_nodes():
    traced = fx.symbolic_trace(lambda x: torch.add(F.relu(x).sum(dim=1), x.shape[0]))
    assert [kind for kind, _ in called(traced.graph)] == ["call_function", "call_method", "call_function", "call_function", "call_function"]
    assert [name for _, name in called(traced.graph)] == ["relu", "sum", "getattr", "getitem", "add"]
    assert traced(torch.tensor([[-1.0, 2.0]])).tolist() == [3.0]


def test_an_attribute_that_is_called_is_a_method_and_else_comes_where_it_is_used():
    graph = fx.symbolic_trace(lambda x: (x.size, x.T, x.view(-1))[1:]).graph
    assert called(graph) == [("call_method", "view"), ("call_function", "getattr")]


def test_a_tensor_on_the_left_is_a_constant_of_the_module():
    traced = fx.symbolic_trace(lambda x: torch.tensor([1.0, 2.0]) * x + torch.ones(2))
    assert [n.target for n in traced.graph.nodes if n.op == "get_attr"] == ["_tensor_constant0", "_tensor_constant1"]
    assert traced(torch.tensor([3.0, 4.0])).tolist() == [4.0, 9.0] and sorted(traced.state_dict()) == ["_tensor_constant0", "_tensor_constant1"]


def test_functions_that_a_program_imported_by_name_are_nodes_of_their_own():
    class Net(nn.Module):
        def forward(self, x):
            return normalize(hardtanh(layer_norm(x, [2])), dim=-1)

    traced = fx.symbolic_trace(Net())
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [layer_norm, hardtanh, normalize]
    x = torch.tensor([[1.0, 3.0]])
    assert torch.equal(traced(x), Net()(x)) and Net.forward.__globals__["hardtanh"] is hardtanh is F.hardtanh


def test_functions_in_python_are_recorded_though_no_tracer_changed_them():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    for made in (torch.broadcast_tensors(x, x), torch.meshgrid(x, x), F.nll_loss(x, x), F.group_norm(x, 2), torch._assert(x, "text")):
        assert isinstance(made, fx.Proxy)


def test_functions_of_the_program_are_entered_unless_they_are_wrapped():
    def twice(x):
        return x * 2

    graph = fx.symbolic_trace(lambda x: decided(twice(x), least=len(x))).graph
    assert called(graph) == [("call_function", "mul"), ("call_function", "len"), ("call_function", "decided")]
    traced = fx.GraphModule({}, graph)
    assert traced(torch.ones(3)).tolist() == [3.0] * 3 and traced(-torch.ones(3)).tolist() == [-3.0] * 3 and decided(torch.ones(1)).item() == 2.0
    assert 'torch.fx._symbolic_trace.wrap("len")' in traced.code and traced.code.count("wrap(") == 2


def test_functions_of_math_are_recorded():
    traced = fx.symbolic_trace(lambda x: x * math.sqrt(x.size(0)))
    assert called(traced.graph)[1] == ("call_function", "sqrt") and traced(torch.ones(4)).tolist() == [2.0] * 4


def test_leaves_are_chosen_by_the_tracer():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x) + 1

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            assert self.path_of_module(m) == module_qualified_name
            return isinstance(m, Inner)

    model = nn.Sequential(Inner(), nn.Sequential(nn.ReLU(), Inner()))
    assert [n.target for n in Leaves().trace(model).nodes if n.op == "call_module"] == ["0", "1.1"]
    entered = fx.symbolic_trace(model)
    assert [n.target for n in entered.graph.nodes if n.op == "call_module"] == ["0.linear", "1.0", "1.1.linear"]
    node = entered.graph.find_nodes(op="call_module", target="1.1.linear")[0]
    assert [place for place, _ in node.meta["nn_module_stack"].values()] == ["1", "1.1", "1.1.linear"]
    x = torch.tensor([[1.0, -1.0]])
    assert torch.equal(entered(x), model(x))


def test_a_shared_module_has_one_name_and_a_module_that_is_an_argument_is_taken_from_the_root():
    layer = nn.Linear(2, 2)
    traced = fx.symbolic_trace(nn.Sequential(layer, layer))
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["0", "0"] and len(list(traced.parameters())) == 2
    with pytest.raises(NameError, match="module is not installed as a submodule"):
        fx.symbolic_trace(lambda x: layer(x))


def test_parameters_are_nodes_and_so_are_buffers_if_the_tracer_wants_it():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("scale", torch.full((2,), 3.0))

        def forward(self, x):
            return x * self.weight * self.scale

    class Buffers(fx.Tracer):
        proxy_buffer_attributes = True

    for tracer in (fx.Tracer(), Buffers()):
        graph = tracer.trace(net := Net())
        assert [n.target for n in graph.nodes if n.op == "get_attr"] == ["weight", "scale"]
        traced = fx.GraphModule(net, graph)
        assert traced(torch.ones(2)).tolist() == [3.0, 3.0] and list(traced.state_dict()) == ["weight", "scale"]


def test_gradients_go_through_a_traced_module_to_the_same_parameters():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    traced = fx.symbolic_trace(model)
    traced(torch.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is not None and next(traced.parameters()) is model[0].weight


def test_unpacking_takes_as_many_items_as_there_are_names():
    def program(x):
        a, b = x.chunk(2)
        (c, d), e = x.split(1)[:2], x[0]
        return a + b + c + d + e

    x = torch.tensor([1.0, 2.0])
    assert torch.equal(fx.symbolic_trace(program)(x), program(x))


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def loop(x):
    total = 0
    for row in x:
        total += row
    return total


def length(x):
    return [x[i] for i in range(x.__len__())]


@pytest.mark.parametrize("program, line, error, words", [
    (branch, 1, fx.proxy.TraceError, "cannot be used as inputs to control flow: the value of gt .* concrete_args, use torch.where, .* torch.fx.wrap"),
    (loop, 2, fx.proxy.TraceError, "Proxy object cannot be iterated.*the length of x .* run over a range of known length"),
    (length, 1, RuntimeError, r"'len' is not supported .* torch.fx.wrap\('len'\) at module scope; for a tensor use x.size\(0\)"),
])  # fmt: skip
def test_control_flow_is_refused_with_the_line_and_the_fix(program, line, error, words):
    number = inspect.getsourcelines(program)[1] + line
    with pytest.raises(error, match=words) as raised:
        fx.symbolic_trace(program)
    assert f'File "{__file__}", line {number}, in {program.__name__}' in str(raised.value)


def test_values_that_a_graph_can_not_hold_are_refused():
    with pytest.raises(NotImplementedError, match="argument of type: <class 'object'>"):
        fx.symbolic_trace(lambda x: torch.add(x, object()))
    with pytest.raises(RuntimeError, match="Keys for dictionaries used as an argument cannot contain a Node"):
        fx.symbolic_trace(lambda x: {x: 1})
    with pytest.raises(TypeError, match="cannot be interpreted as an integer|int"):
        fx.symbolic_trace(lambda x: range(x))


def test_proxies_of_two_traces_do_not_mix():
    one, two = (fx.Proxy(fx.Graph().placeholder("x"), fx.Tracer()) for _ in range(2))
    one.tracer.graph, two.tracer.graph = one.node.graph, two.node.graph
    with pytest.raises(RuntimeError, match="Found multiple different tracers"):
        torch.add(one, two)


def test_concrete_arguments_are_part_of_the_program():
    def program(x, double: bool, shift=0):
        return x * 2 + shift if double else x

    traced = fx.symbolic_trace(program, concrete_args={"double": True})
    assert traced(torch.ones(1), True, 3).item() == 5.0
    with pytest.raises(AssertionError, match="double has been specialized to have value True but got another value"):
        traced(torch.ones(1), False, 3)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(program)


def test_concrete_arguments_with_inputs_in_them_are_refused():
    with pytest.raises(NotImplementedError, match="concrete_args: wanted a value or fx.PH for x, got a dict with fx.PH in it"):
        fx.symbolic_trace(lambda x, y: x["a"] + y, concrete_args={"x": {"a": fx.PH}})
    assert fx.symbolic_trace(lambda x, y: x + y, concrete_args={"x": fx.PH, "y": 2})(1, 2) == 3


def test_what_a_trace_changes_it_puts_back_also_after_an_error():
    before = nn.Module.__call__, nn.Module.__getattr__, F.relu, torch.einsum
    for program in (lambda x: F.relu(x), branch):
        try:
            fx.symbolic_trace(program)
        except fx.proxy.TraceError:
            pass
        assert (nn.Module.__call__, nn.Module.__getattr__, F.relu, torch.einsum) == before and not is_fx_tracing()


def test_a_program_can_ask_whether_it_is_traced():
    seen = []
    fx.symbolic_trace(lambda x: (seen.append(is_fx_tracing()), x)[1])
    assert seen == [True] and not is_fx_tracing()


def test_other_threads_compute_while_one_traces():
    results, traced = [], threading.Event()

    def work():
        while not traced.is_set():
            results.append(F.relu(nn.Linear(2, 2)(torch.ones(1, 2))).shape)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    finally:
        traced.set()
        thread.join()
    assert all(shape == (1, 2) for shape in results)


def test_wrap_is_called_at_the_top_of_a_module():
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module; it was called in test_wrap"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type for global function!.*got <class 'int'>"):
        fx.wrap(3)


def test_nodes_say_where_they_were_recorded_if_the_tracer_wants_it():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: x + 1)
    assert [__file__ in (n.stack_trace or "") for n in graph.nodes if n.op == "call_function"] == [True]
    assert graph.find_nodes(op="call_function", target=operator.add)[0].stack_trace.startswith('File "')

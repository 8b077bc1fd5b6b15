"""Graphs, nodes and modules made of them: changing, checking, copying, storing, running."""
import copy
import gc
import io
import pickle
import traceback
import weakref

import pytest

import naru as torch
from naru import fx, nn
from naru.fx.passes.shape_prop import ShapeProp, TensorMetadata


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.shift = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        return (self.linear(x) + self.shift).relu()


def line():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    z = graph.call_function(torch.neg, (y,))
    return graph, x, y, z, graph.output(z)


def names(graph):
    return [node.name for node in graph.nodes]


def test_a_node_knows_its_neighbours_inputs_and_users():
    graph, x, y, z, out = line()
    assert (y.prev, y.next, list(x.users), z.all_input_nodes, len(graph.nodes)) == (x, z, [y], [y], 4)
    assert x < z < out and list(reversed(graph.nodes)) == [out, z, y, x] and graph.output_node() is out and repr(y) == "relu"


def test_uses_follow_each_change_of_arguments():
    graph, x, y, z, out = line()
    assert y.replace_all_uses_with(x) == [z] and (y.users, list(x.users)) == ({}, [y, z])
    z.args = (y,)
    z.kwargs = {"out": x}
    assert list(y.users) == [z] and z.all_input_nodes == [y, x]
    z.replace_input_with(x, y)
    assert list(x.users) == [y] and z.kwargs == {"out": y}
    z.update_arg(0, x), z.update_kwarg("out", None), z.insert_arg(1, 3)
    assert (z.args, z.kwargs, y.users) == ((x, 3), {"out": None}, {})
    assert x.replace_all_uses_with(y, lambda user: user is z) == [z] and list(x.users) == [y]


def test_arguments_can_not_be_changed_in_place():
    graph, x, *_ = line()
    node = graph.call_function(torch.cat, ([x, x],), {"dim": 0})
    with pytest.raises(TypeError, match=r"'immutable_list' object does not support mutation.* node.args = "):
        node.args[0].append(x)
    with pytest.raises(TypeError, match="immutable_dict"):
        node.kwargs["dim"] = 1
    assert node.args[0] == [x, x] and hash(node.args[0]) and pickle.loads(pickle.dumps(node.kwargs)) == {"dim": 0}


def test_nodes_come_where_they_are_told_to():
    graph, x, y, z, _ = line()
    with graph.inserting_before(y):
        graph.call_function(torch.exp, (x,))
    with graph.inserting_after(y):
        graph.call_function(torch.log, (y,))
    with graph.inserting_after():
        pass
    assert names(graph) == ["x", "exp", "relu", "log", "neg", "output"]
    y.append(z)
    x.prepend(graph.call_function(torch.ones, (1,)))
    assert names(graph) == ["ones", "x", "exp", "relu", "neg", "log", "output"]
    with pytest.raises(AssertionError, match="not in graph"):
        graph.inserting_before(fx.Graph().placeholder("x"))


def test_only_a_node_without_users_is_erased_and_the_loop_goes_on():
    graph, x, y, z, out = line()
    with pytest.raises(RuntimeError, match="Tried to erase Node relu but it still had 1 users in the graph"):
        graph.erase_node(y)
    for node in graph.nodes:
        if node.op == "call_function":
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    assert names(graph) == ["x", "output"] and out.args == (x,) and list(x.users) == [out]


def test_lint_names_what_is_wrong():
    graph, x, y, z, _ = line()
    y.args = (z,)
    with pytest.raises(RuntimeError, match="Argument 'neg' of Node 'relu' was used before it has been defined"):
        graph.lint()
    other = fx.Graph()
    with pytest.raises(AssertionError, match="belongs to another Graph"):
        other.call_function(torch.relu, (x,))
    module = fx.symbolic_trace(Net())
    del module.linear
    with pytest.raises(RuntimeError, match="references nonexistent attribute linear"):
        module.graph.lint()


def test_nodes_of_no_known_kind_are_refused():
    with pytest.raises(AssertionError, match="op 'bad' is not in _legal_ops"):
        fx.Graph().create_node("bad", "x")
    with pytest.raises(ValueError, match="a target of call_function is expected to be a callable"):
        fx.Graph().create_node("call_function", "relu")


def test_dead_code_goes_and_side_effects_stay():
    @fx.has_side_effect
    def tell(x):
        return None

    graph, x, y, z, _ = line()
    with graph.inserting_before(z):
        kept = [graph.call_function(tell, (x,)), graph.call_function(torch.rand, (2,)), graph.call_function(torch._assert, (x, "text"))]
        dead = graph.call_function(torch.exp, (graph.call_function(torch.log, (x,)),))
    assert graph.eliminate_dead_code() and dead not in graph.nodes and all(node in graph.nodes for node in kept) and not graph.eliminate_dead_code()


def test_each_kind_of_node_runs():
    graph, root = fx.Graph(), Net()
    x = graph.placeholder("x", torch.Tensor, default_value=None)
    shift = graph.get_attr("shift")
    module = graph.call_module("linear", (x,))
    method = graph.call_method("add", (module, shift), {"alpha": 2})
    graph.output({"all": (graph.call_function(torch.stack, ([method, module],), {"dim": 1}), slice(None, 2)), "none": None})
    made = fx.GraphModule(root, graph)
    result, x = made(torch.ones(1, 2)), torch.ones(1, 2)
    assert torch.equal(result["all"][0], torch.stack([root.linear(x) + 2 * root.shift, root.linear(x)], dim=1)) and result["all"][1] == slice(None, 2)
    assert torch.equal(fx.Interpreter(made).run(x)["all"][0], result["all"][0])


def test_a_root_lacks_what_is_asked_for():
    graph = fx.Graph()
    graph.output(graph.get_attr("no.weight"))
    with pytest.raises(RuntimeError, match="Node no_weight referenced target no.weight but that target was not provided in ``root``"):
        fx.GraphModule({}, graph)
    with pytest.raises(AttributeError, match="no"):
        fx.GraphModule(nn.Linear(1, 1), graph)
    with pytest.raises(RuntimeError, match="Wanted a Module or a dict"):
        fx.GraphModule(3, graph)
    assert fx.GraphModule({"no.weight": torch.ones(1)}, graph)().item() == 1.0


def test_a_module_of_a_graph_is_a_module():
    model = Net()
    traced = fx.symbolic_trace(model)
    assert isinstance(traced, nn.Module) and isinstance(traced, fx.GraphModule) and type(traced).__name__ == "Net"
    assert sorted(traced.state_dict()) == ["linear.bias", "linear.weight", "shift"]
    assert traced.training and not traced.eval().training and not traced.linear.training
    traced.load_state_dict({name: torch.zeros_like(value) for name, value in traced.state_dict().items()})
    assert traced(torch.ones(1, 2)).tolist() == [[0.0, 0.0]] and model.shift.tolist() == [0.0, 0.0]
    assert traced.to(torch.float64).shift.dtype == torch.float64
    assert "def forward(self, x):" in str(traced) and "print_readable" in repr(traced)


def test_every_module_of_a_graph_has_its_own_program():
    one, two = fx.symbolic_trace(lambda x: x + 1), fx.symbolic_trace(lambda x: x * 5)
    assert (one(1), two(1), type(one) is type(two)) == (2, 5, False)
    place = weakref.ref(one)
    del one
    gc.collect()
    assert place() is None


def test_the_program_changes_when_it_is_compiled_again():
    traced = fx.symbolic_trace(lambda x: x + 1)
    traced.graph.find_nodes(op="call_function")[0].target = torch.sub
    assert traced(torch.ones(1)).item() == 2.0
    traced.recompile()
    assert traced(torch.ones(1)).item() == 0.0
    traced.graph = fx.symbolic_trace(lambda x: x * 7).graph
    assert traced(torch.ones(1)).item() == 7.0 and traced.graph.owning_module is traced


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "copy", "pickle"])
def test_copies_give_the_same_and_change_alone(again):
    traced = fx.symbolic_trace(Net())
    traced.meta["note"] = 3
    other, x = again(traced), torch.ones(1, 2)
    assert torch.equal(other(x), traced(x)) and str(other.graph) == str(traced.graph) and other.code == traced.code and type(other).__name__ == "Net"
    assert other.graph is not traced.graph and other.graph.owning_module is other and other.meta == {"note": 3} and type(other) is not type(traced)
    assert [n.graph is other.graph for n in other.graph.nodes] == [True] * len(other.graph.nodes)
    other.graph.find_nodes(op="call_method", target="relu")[0].target = "neg"
    other.recompile()
    assert torch.equal(other(x), -(traced.linear(x) + traced.shift))


def test_a_module_is_saved_and_loaded():
    file = io.BytesIO()
    torch.save(traced := fx.symbolic_trace(Net()), file)
    file.seek(0)
    x = torch.ones(1, 2)
    assert torch.equal(torch.load(file, weights_only=False)(x), traced(x))


def test_a_long_graph_is_pickled_and_copied():
    def program(x):
        for _ in range(3000):
            x = x + 1
        return x

    traced = fx.symbolic_trace(program)
    assert [m(0) for m in (traced, pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced))] == [3000] * 3


def test_a_copied_graph_keeps_notes_and_types():
    graph, x, y, *_ = line()
    y.meta["note"], y.type = [1], torch.Tensor
    other = copy.deepcopy(graph)
    assert str(other) == str(graph) and [n.meta.get("note") for n in other.nodes][1] == [1] and "relu : torch.Tensor" in str(other)


def test_submodules_are_added_and_removed():
    traced = fx.symbolic_trace(Net())
    assert traced.add_submodule("a.b.c", nn.ReLU()) and isinstance(traced.get_submodule("a.b.c"), nn.ReLU)
    assert not traced.add_submodule("shift.x", nn.ReLU()) and not traced.delete_submodule("a.z") and traced.delete_submodule("a.b.c")
    traced.add_submodule("unused.inner", nn.Linear(1, 1))
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "linear"]
    traced.graph.call_module("linear", (next(iter(traced.graph.nodes)),))
    with pytest.raises(AttributeError, match="nothing"):
        traced.graph.call_module("nothing")


def test_a_traceback_shows_the_line_of_the_program():
    with pytest.raises(RuntimeError) as raised:
        fx.symbolic_trace(lambda x: torch.mm(x, x))(torch.ones(2, 3))
    assert "    mm = torch.mm(x, x);  x = None" in "".join(traceback.format_exception(raised.type, raised.value, raised.tb))


def test_an_interpreter_forgets_what_is_used_up_and_names_the_node_of_an_error():
    held = []

    class Watch(fx.Interpreter):
        def run_node(self, n):
            held.append(len(self.env))
            return super().run_node(n)

    traced = fx.symbolic_trace(lambda x: x.exp().log().neg().abs())
    Watch(traced).run(torch.ones(1))
    assert max(held) == 1
    kept = fx.Interpreter(traced, garbage_collect_values=False)
    kept.run(torch.ones(1))
    assert len(kept.env) == len(traced.graph.nodes)
    with pytest.raises(RuntimeError, match=r"While executing %mm : \[num_users=1\] = call_function\[target=torch.mm\]"):
        fx.Interpreter(fx.symbolic_trace(lambda x: torch.mm(x, x))).run(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        fx.Interpreter(traced).run()


def test_values_that_are_known_are_not_computed():
    traced = fx.symbolic_trace(lambda x: x.exp() + 1)
    x, exp = list(traced.graph.nodes)[:2]
    assert fx.Interpreter(traced).run(initial_env={x: None, exp: torch.ones(1)}).item() == 2.0


def test_shapes_are_noted():
    traced = fx.symbolic_trace(lambda x: x.permute(0, 2, 3, 1).chunk(2, -1)[0].sum())
    ShapeProp(traced).propagate(torch.ones(1, 4, 2, 2, requires_grad=True))
    meta = {n.name: n.meta["tensor_meta"] for n in traced.graph.nodes}
    assert meta["x"] == TensorMetadata(torch.Size([1, 4, 2, 2]), torch.float32, True, (16, 4, 2, 1), torch.contiguous_format, False, {})
    assert meta["permute"].stride == (16, 2, 1, 4) and [m.shape for m in meta["chunk"]] == [(1, 2, 2, 2)] * 2 and meta["sum_1"].shape == ()


def test_a_replacement_keeps_out_of_what_filters_refuse():
    from naru.fx.subgraph_rewriter import replace_pattern_with_filters

    def program(x):
        return torch.relu(x + 1) + torch.relu(x + 2)

    traced = fx.symbolic_trace(program)
    small = [lambda match, graph, pattern: next(v for k, v in match.nodes_map.items() if k.name == "add").args[1] == 1]
    found = replace_pattern_with_filters(traced, lambda x, y: torch.relu(x + y), lambda x, y: x - y, small)
    assert [[n.name for n in f.replacements] for f in found] == [["sub"]] and traced(torch.zeros(1)).item() == 1.0
    assert fx.replace_pattern(traced, lambda x: torch.exp(x), lambda x: x) == []
    literal = replace_pattern_with_filters(traced, lambda x: torch.relu(x + 7), lambda x: x, ignore_literals=True)
    assert len(literal) == 1 and traced(torch.zeros(1)).item() == -1.0


def test_a_replacement_needs_the_patterns_inputs():
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(AssertionError, match="the replacement has 2 inputs, but the pattern 1"):
        fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x, y: x)


def test_writing_a_package_is_refused():
    with pytest.raises(NotImplementedError, match="to_folder: naru does not write packages; use torch.save"):
        fx.symbolic_trace(Net()).to_folder("somewhere")


def test_what_is_not_there_says_so():
    from naru.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(NotImplementedError, match=r"torch\.fx\.experimental\.proxy_tensor\.make_fx is in PyTorch 2\.15 but not in naru yet"):
        make_fx(lambda x: x)
    for module in ("passes.split_utils", "operator_schemas"):
        with pytest.raises((NotImplementedError, ImportError, AttributeError), match="not in naru yet"):
            __import__(f"naru.fx.{module}", fromlist=["x"]).normalize_function(torch.relu)


def test_tables_and_readable_text_are_printed(capsys):
    traced = fx.symbolic_trace(Net())
    traced.graph.print_tabular()
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["opcode", "name", "target", "args", "kwargs"] and rows[2].split()[:3] == ["placeholder", "x", "x"]
    assert len(rows) == 2 + len(traced.graph.nodes)
    text = traced.print_readable()
    assert capsys.readouterr().out.strip() == text.strip() and text.startswith("class Net(torch.nn.Module):\n    def forward(self, x):\n")

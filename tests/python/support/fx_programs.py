"""Programs that use torch.fx: `python tests/python/support/fx_programs.py`, run with PyTorch's interpreter, writes fx_facts.json.

Each gives texts (graphs, code, names) and numbers; naru's must be those of PyTorch 2.15 (tests/python/fx/test_fx_programs.py).
"""
import copy
import json
import operator
import pickle
import sys
from pathlib import Path

FACTS = Path(__file__).with_name("fx_facts.json")


# Functions of torch.nn.functional by the number of arguments that they need; and calls whose arguments are recorded as they are written, or are not.
NEEDED = {
    1: """alpha_dropout celu dropout dropout1d dropout2d dropout3d elu feature_alpha_dropout glu gumbel_softmax hardsigmoid hardswish hardtanh instance_norm
       interpolate leaky_relu log_softmax mish normalize relu relu6 rrelu selu silu softmax softmin""",
    2: """adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d affine_grid binary_cross_entropy
       binary_cross_entropy_with_logits cross_entropy embedding embedding_bag fractional_max_pool2d fractional_max_pool3d grid_sample group_norm
       hinge_embedding_loss huber_loss kl_div layer_norm local_response_norm max_pool1d max_pool2d max_pool3d mse_loss multi_margin_loss
       multilabel_margin_loss multilabel_soft_margin_loss nll_loss pad rms_norm smooth_l1_loss soft_margin_loss unfold""",
    3: "batch_norm cosine_embedding_loss fold gaussian_nll_loss margin_ranking_loss max_unpool1d max_unpool2d max_unpool3d triplet_margin_loss",
    4: "ctc_loss",
}
CALLS = """F.linear(x, y)|F.conv2d(x, y, None, 1, padding=1)|F.gelu(x)|F.gelu(x, approximate="tanh")|F.softplus(x, 2)|F.scaled_dot_product_attention(x, y, x, is_causal=True)
F.avg_pool2d(x, 2)|F.avg_pool1d(x, 2)|F.logsigmoid(x)|F.softshrink(x)|F.pixel_shuffle(x, 2)|F.prelu(x, y)|F.cosine_similarity(x, y, dim=0)|F.one_hot(x, 3)|F.bilinear(x, y, x)
F.dropout(x, 0.5, training=False)|F.max_pool2d(x, 2, 2)|F.max_pool2d(kernel_size=2, input=x)|F.batch_norm(x, None, None, training=True)|F.softmax(x, -1)|F.relu(x, True)
torch.split(x, 2)|torch.split(x, [1, 2], dim=1)|torch.einsum("ij,jk->ik", x, y)|torch.einsum("ij->i", x)|torch.norm(x)|torch.norm(x, 2, dim=1)|torch.cdist(x, y)|torch.cdist(x, y, p=1.0)
torch.unique(x)|torch.unique(x, return_inverse=True)|torch.unique_consecutive(x)|torch.tensordot(x, y, dims=1)|torch.meshgrid(x, y)|torch.meshgrid(x, y, indexing="ij")
torch.broadcast_tensors(x, y)|torch.atleast_2d(x)|torch.block_diag(x, y)|torch.cartesian_prod(x, y)|torch.stack([x, y], 1)|torch.where(x, y, x)|torch.flatten(x, 1)|torch.clamp(x, min=0)
torch.linalg.norm(x)|torch.linalg.inv(x)|torch.fft.rfft(x, norm="ortho")|torch.sigmoid(x)|torch.chunk(x, 2)|torch.matmul(x, y)|torch.zeros_like(x)|torch._assert(x, "text")""".replace("\n", "|").split("|")


def filled(torch, module):
    """The module with parameters that are the same everywhere."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(p.numel(), dtype=torch.float32).reshape(p.shape) % 5 - 2 + i) / 4)
    return module


def of(gm, *inputs):
    """The texts of a GraphModule, and its result."""
    nodes = [[n.op, n.name, [u.name for u in n.users], [i.name for i in n.all_input_nodes]] for n in gm.graph.nodes]
    return {"graph": str(gm.graph), "code": gm.code, "nodes": nodes, "result": plain(gm(*inputs)) if inputs else None, "name": type(gm).__name__}


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.detach().tolist() if hasattr(value, "detach") else value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def models(torch, nn, F):
    class Clamped(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.zeros(3, 4))
            self.linear = nn.Linear(4, 5)

        def forward(self, x):
            return self.linear(x + self.param).clamp(min=0.0, max=1.0)

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)

        def forward(self, x):
            return self.bn(self.conv(x))

    class Convs(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.conv2 = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.Conv2d(1, 1, 1)
            self.nested = nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 1, 1))
            self.wrapped = Wrapped()

        def forward(self, x):
            return self.wrapped(self.nested(self.conv2(self.bn1(self.conv1(x)))))

    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.w = nn.Conv2d(3, 4, 3), nn.Parameter(torch.zeros(4))
            self.seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def forward(self, x: torch.Tensor, y=3, *, z=None):
            x = F.max_pool2d(F.dropout(torch.relu(self.conv(x)), 0.5, self.training), 2)
            x = self.seq(F.adaptive_avg_pool2d(x, 1).flatten(1)) + self.w
            a, b = x.chunk(2, 1)
            n = x.shape[0]
            x = x[:, 1:]
            x += 1
            parts = (x * n, operator.neg(x), x.T, x.dtype, torch.tensor([1.0, 2.0]) * a.sum(), 2 - x, x**2, x @ x.T, x == 1, x < 2, -x, x // 2, x % 3, abs(x))
            return {"a": torch.cat([a, b], dim=1).max(), "b": parts, "c": F.softmax(F.layer_norm(x, [3]), -1), "d": F.interpolate(x[None], scale_factor=2)}

    return Clamped, Convs, Many


def fused(torch, nn, model):
    """Batch norms put into the convolutions before them."""
    gm = torch.fx.symbolic_trace(copy.deepcopy(model).eval())
    modules = dict(gm.named_modules())
    for node in gm.graph.nodes:
        before = node.args[0] if node.op == "call_module" else None
        if node.op != "call_module" or before.op != "call_module" or len(before.users) > 1:
            continue
        if isinstance(modules[node.target], nn.BatchNorm2d) and isinstance(modules[before.target], nn.Conv2d):
            place, _, name = before.target.rpartition(".")
            setattr(modules[place], name, torch.nn.utils.fusion.fuse_conv_bn_eval(modules[before.target], modules[node.target]))
            node.replace_all_uses_with(before)
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()
    gm.delete_all_unused_submodules()
    return gm


def passes(torch, nn, F):
    fx = torch.fx
    Clamped, Convs, _ = models(torch, nn, F)
    x = torch.arange(12.0).reshape(3, 4) / 4

    def replaced_operator():
        graph = fx.Tracer().trace(model := filled(torch, Clamped()))
        for node in graph.nodes:
            if node.op == "call_function" and node.target == operator.add:
                node.target = torch.mul
        graph.lint()
        return of(fx.GraphModule(model, graph), x)

    def inserted_nodes():
        gm = fx.symbolic_trace(lambda x, y: torch.relu(torch.add(x, y)))
        for node in gm.graph.find_nodes(op="call_function", target=torch.add):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.maximum, node.args, node.kwargs)
                node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
        gm.recompile()
        return of(gm, x, x - 1)

    def decomposed():
        old, new, env = fx.symbolic_trace(lambda x: F.relu(x) + 1).graph, fx.Graph(), {}
        tracer = fx.proxy.GraphAppendingTracer(new)
        for node in old.nodes:
            if node.op == "call_function" and node.target is F.relu:
                value = fx.Proxy(env[node.args[0].name], tracer)
                env[node.name] = ((value > 0) * value).node
            else:
                env[node.name] = new.node_copy(node, lambda n: env[n.name])
        return of(fx.GraphModule({}, new), x - 1)

    def fused_convolutions():
        model = filled(torch, Convs()).eval()
        gm = fused(torch, nn, model)
        return [of(gm, x.reshape(1, 1, 3, 4)), [name for name, _ in gm.named_modules()], plain(model(x.reshape(1, 1, 3, 4)))]

    def inverted():
        inverse = {torch.acos: torch.cos, torch.exp: torch.log, torch.cos: torch.acos, torch.log: torch.exp}
        graph, env = fx.Graph(), {}
        for node in reversed(fx.symbolic_trace(lambda x: torch.cos(torch.exp(x))).graph.nodes):
            if node.op == "call_function":
                env[node.args[0].name] = graph.call_function(inverse[node.target], (env[node.name],))
            elif node.op == "output":
                env[node.args[0].name] = graph.placeholder(node.name)
            else:
                graph.output(env[node.name])
        return of(fx.GraphModule({}, graph), torch.tensor([0.25]))

    return {f.__name__: f for f in (replaced_operator, inserted_nodes, decomposed, fused_convolutions, inverted)}


def interpreted(torch, nn, F):
    fx = torch.fx
    Clamped, Convs, _ = models(torch, nn, F)
    x = torch.arange(12.0).reshape(3, 4) / 4

    class Recorder(fx.Interpreter):
        seen = []

        def run_node(self, n):
            self.seen.append([n.op, n.name])
            return super().run_node(n)

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return torch.neg(*args, **kwargs) if target == torch.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return args[0].sigmoid(*args[1:]) if target == "neg" else super().call_method(target, args, kwargs)

    def steps():
        result = Recorder(fx.symbolic_trace(filled(torch, Clamped()))).run(x)
        return [plain(result), Recorder.seen]

    def transformed():
        return of(Swap(fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())).transform(), x)

    def shapes():
        from importlib import import_module

        gm = fx.symbolic_trace(filled(torch, Convs()).eval())
        import_module(f"{torch.__name__}.fx.passes.shape_prop").ShapeProp(gm).propagate(x.reshape(1, 1, 3, 4))
        return [[n.name, *(str(part) for part in n.meta["tensor_meta"][:5])] for n in gm.graph.nodes]

    def error_of_a_node():
        try:
            fx.Interpreter(fx.symbolic_trace(lambda x: torch.mm(x, x))).run(x)
        except RuntimeError as error:
            return str(error).split("\n")[2]

    return {f.__name__: f for f in (steps, transformed, shapes, error_of_a_node)}


def rewritten(torch, nn, F):
    fx = torch.fx
    x = torch.arange(4.0)

    def twice(x, w1, w2):
        first = torch.cat([torch.neg(w1), w2]).sum()
        second = torch.cat([torch.neg(w1), w2]).sum()
        return x + torch.max(first) + torch.max(second)

    def replaced_twice():
        gm = fx.symbolic_trace(twice)
        found = fx.replace_pattern(gm, lambda a, b: torch.cat([torch.neg(a), b]).sum(), lambda a, b: torch.stack([a, b]))
        return [of(gm, x, x, x), [[m.anchor.name, [[a.name, b.name] for a, b in m.nodes_map.items()]] for m in found]]

    def used_elsewhere():
        def program(x, y):
            b = torch.mul(torch.add(x, y), 2)
            return b + torch.sub(b, 3)

        gm = fx.symbolic_trace(program)
        inside = fx.replace_pattern(gm, lambda x: torch.sub(torch.mul(x, 2), 3), lambda x: x)
        outside = fx.replace_pattern(gm, lambda x, y: torch.mul(torch.add(x, y), 2), lambda x, y: x - y)
        return [len(inside), len(outside), of(gm, x, x)]

    def two_results():
        gm = fx.symbolic_trace(lambda x, y: torch.mul(x + y, 2) + torch.sub(x + y, 3))
        return [len(fx.replace_pattern(gm, lambda a, b: (torch.mul(a, 2), torch.sub(b, 3)), lambda a, b: (a * 4, b - 1))), of(gm, x, x)]

    def modules():
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.act = nn.Linear(4, 4), nn.ReLU()

            def forward(self, x):
                return self.act(self.lin(x)) + 1

        class Other(nn.Module):
            def __init__(self):
                super().__init__()
                self.new = filled(torch, nn.Linear(4, 2))

            def forward(self, x):
                return self.new(x)

        class Pattern(Net):
            def forward(self, x):
                return self.act(self.lin(x))

        gm = fx.symbolic_trace(filled(torch, Net()))
        found = fx.replace_pattern(gm, Pattern(), Other())
        return [len(found), of(gm, x), sorted(gm.state_dict())]

    return {f.__name__: f for f in (replaced_twice, used_elsewhere, two_results, modules)}


def traced(torch, nn, F):
    fx = torch.fx
    Clamped, Convs, Many = models(torch, nn, F)
    x = torch.arange(12.0).reshape(3, 4) / 4

    class All(fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return isinstance(m, nn.Linear)

    def first():
        return of(fx.symbolic_trace(filled(torch, Clamped())), x)

    def many():
        gm = fx.symbolic_trace(filled(torch, Many()).eval())
        return of(gm, torch.arange(192.0).reshape(1, 3, 8, 8) % 7 / 8)

    def retraced():
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.last = fx.symbolic_trace(filled(torch, Clamped())), filled(torch, nn.Linear(5, 1))

            def forward(self, x):
                return self.last(self.inner(x))

        gm = fx.symbolic_trace(Outer())
        return [of(gm, x), [name for name, _ in gm.named_parameters()], of(fx.symbolic_trace(gm), x)]

    def functions():
        lines = [f"F.{name}({', '.join('xyzw'[:count])})" for count, text in NEEDED.items() for name in text.split()] + CALLS
        found = []
        for line in lines:
            graph = fx.symbolic_trace(eval(f"lambda x, y, z, w: {line}", {"torch": torch, "F": F})).graph
            found.append([line, [str(node.format_node()) for node in graph.nodes][4:]])
        return found

    def stars():
        def program(x, *args, scale=2, **named):
            return {"first": x * scale + args[0], "second": [named["z"], x]}

        gm = fx.symbolic_trace(program)
        return of(gm)

    def concrete():
        def program(x, flag, n: int = 3, other=None):
            return (x * n if flag else x) if other is None else other

        gm = fx.symbolic_trace(program, concrete_args={"flag": True, "n": 5})
        try:
            gm(x, False, 5)
        except AssertionError as error:
            return [of(gm), plain(gm(x, True, 5, x)), str(error)]

    def copied():
        gm = fx.symbolic_trace(filled(torch, Clamped()))
        other = copy.deepcopy(gm)
        with torch.no_grad():
            gm.param.add_(100.0)
        again = pickle.loads(pickle.dumps(other))
        return [of(other, x)["code"], plain(other(x)), plain(again(x)), sorted(again.state_dict()), str(again.graph)]

    def named():
        graph = fx.Graph()
        a = graph.placeholder("input")
        made = [graph.call_function(torch.add, (a, 1)), graph.call_function(torch.add, (a, 2), name="mine"), graph.call_method("max", (a,)), graph.call_function(max, (a, 3))]
        made += [graph.call_function(torch.add, (a, 1), name="add_1"), graph.call_function(torch.add, (a, 1)), graph.get_attr("layerOne.0.weight"), graph.call_function(F.linear, (a, a))]
        graph.output(tuple(made))
        return [str(graph), graph.python_code("self").src, [n.name for n in reversed(graph.nodes)], [made[0].next.name, made[0].prev.name]]

    def cleaned():
        gm = fx.symbolic_trace(lambda x: (x + 1, torch.rand(2), x.add_(1), torch._assert(x.sum() > 0, "text"), torch.relu(x))[0])
        changed = gm.graph.eliminate_dead_code()
        gm.recompile()
        return [changed, of(gm)]

    return {f.__name__: f for f in (first, many, retraced, functions, stars, concrete, copied, named, cleaned)}


def facts(torch, nn, F):
    """What each program gives, by its name."""
    groups = (traced, passes, interpreted, rewritten)
    return {name: program for group in groups for name, program in group(torch, nn, F).items()}


if __name__ == "__main__":
    import torch
    import torch.fx
    import torch.nn.utils.fusion

    FACTS.write_text(json.dumps({name: program() for name, program in facts(torch, torch.nn, torch.nn.functional).items()}, indent=0) + "\n")
    print(f"{FACTS}: PyTorch {torch.__version__}", file=sys.stderr)

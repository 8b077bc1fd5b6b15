"""Graphs: work that is captured once and replayed gives the same bits as direct execution, on every device."""
import naru as torch
import pytest
from naru import nn
from naru.testing.operator_cases import CASES, as_tuple, bits

CAPTURING = "operation not permitted when stream is capturing"


def same(a, b):
    return torch.equal(a.cpu(), b.cpu())


def test_a_replay_reads_what_the_tensors_hold_by_then(device):
    x = torch.zeros(3, 4, device=device)
    g = torch.Graph(device=device)
    with torch.graph(g):
        y = (x @ x.t()).softmax(-1) + x.sum(1)
        best = x.argmax(1)
    for _ in range(3):
        new = torch.randn(3, 4, device=device)
        x.copy_(new)
        g.replay()
        assert same(y, (new @ new.t()).softmax(-1) + new.sum(1))
        assert same(best, new.argmax(1))


@pytest.mark.parametrize("name", ["cpu", "mps:0"])
def test_every_operator_is_replayed_with_its_bits(name):
    """On the cpu, whose instructions are made ready for replays, and on a virtual device, which is given them one by one."""
    refused = []
    for case in CASES:
        operands = [torch.tensor(a) for a in case.operands(1)]
        operands = [(t.float() if t.is_floating_point() else t).to(name) for t in operands]
        wanted = [bits(t) for t in as_tuple(case.run(*[t.clone() for t in operands]))]
        inputs = [torch.zeros_like(t) for t in operands]
        g = torch.Graph(device=name)
        try:
            with torch.graph(g):
                results = case.run(*inputs)
        except RuntimeError as error:
            assert CAPTURING in str(error)
            refused.append(case.name)
            continue
        for _ in range(2):
            for x, given in zip(inputs, operands):
                x.copy_(given)
            g.replay()
        assert [bits(t) for t in as_tuple(results)] == wanted, case.name
    # The number of elements or of iterations depends on the values; or a singular matrix would be an error.
    named = {"index mask", "complex index mask", "unique_consecutive", "gcd", "lcm", "combinations", "embedding_bag max", "multilabel_margin_loss"}
    named |= {"gaussian_nll_loss"}  # reads the variances
    named |= {c.name for c in CASES if c.name.startswith("sparse")}  # reads the indices
    if name == "cpu":
        named |= {"binary_cross_entropy", "grouped_mm"}  # reads probabilities and offsets if that needs no wait
    else:  # these create their indices, offsets and lengths from lists, which are copied to the device
        named |= {"complex embedding", "complex index", "complex gather", "ctc_loss", "ctc_loss behind each other", "embedding_bag sum"}
    assert refused == [c.name for c in CASES if c.name in named or c.extra.get("reads")]


def test_nothing_is_done_in_a_capture(device):
    x = torch.ones(2, device=device)
    with torch.graph(g := torch.Graph(device=device)):
        x += 1
    assert x.tolist() == [1, 1]
    g.replay()
    g.replay()
    assert x.tolist() == [3, 3]
    assert str(torch.device(device).type) in repr(g) and g.device.type == torch.device(device).type


def mlp(device, dropout=0.0):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 3)).to(device)


def batches(device, count=6):
    torch.manual_seed(2)
    return [(torch.randn(5, 2).to(device), torch.randint(0, 3, (5,)).to(device)) for _ in range(count)]


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, capturable=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, amsgrad=True, capturable=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, capturable=True),
}


def eager(device, make):
    model = mlp(device, 0.3)
    optimizer = make(model.parameters())
    data, losses = batches(device), []
    torch.manual_seed(3)
    for x, y in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return model, losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_loop_of_replayed_steps_ends_in_the_same_bits(device, name):
    wanted, wanted_losses = eager(device, OPTIMIZERS[name])
    model = mlp(device, 0.3)
    optimizer = OPTIMIZERS[name](model.parameters())
    data = batches(device)
    x, y = data[0][0].clone(), data[0][1].clone()
    torch.manual_seed(3)
    g, losses = torch.Graph(device=device), []

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for i, (inputs, targets) in enumerate(data):
        x.copy_(inputs)
        y.copy_(targets)
        if i == 0:
            loss = step()
        else:
            if i == 1:
                with torch.graph(g):
                    loss = step()
            g.replay()
        losses.append(loss.detach().clone())
    for a, b in zip(losses, wanted_losses):
        assert same(a, b)
    for a, b in zip(model.parameters(), wanted.parameters()):
        assert same(a, b)


def test_graphed_modules_train_to_the_same_bits(device):
    make = OPTIMIZERS["sgd"]
    wanted, wanted_losses = eager(device, make)
    model, data = mlp(device, 0.3), batches(device)
    optimizer = make(model.parameters())
    fast = torch.make_graphed_callables(model, (data[0][0].clone(),))
    assert fast is model
    torch.manual_seed(3)
    for (x, y), expected in zip(data, wanted_losses):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(fast(x), y)
        loss.backward()
        optimizer.step()
        assert same(loss, expected)
    for a, b in zip(model.parameters(), wanted.parameters()):
        assert same(a, b)
    model.eval()
    assert same(model(data[0][0]), wanted.eval()(data[0][0]))


def test_gradients_of_graphed_callables_add_up(device):
    def f(a, b):
        return {"sum": (a * b).sum(), "parts": [a.exp(), b.detach()]}

    sample = (torch.ones(3, device=device, requires_grad=True), torch.ones(3, device=device))
    fast = torch.make_graphed_callables(f, sample)
    a = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    other = a.detach().clone().requires_grad_()
    for k in range(3):
        b = torch.full((3,), float(k), device=device)
        for function, leaf in ((fast, a), (f, other)):
            out = function(leaf, b)
            (out["sum"] * 2 + out["parts"][0].sum()).backward()
        assert same(fast(a, b)["parts"][1], b)
    assert same(a.grad, other.grad)


def test_several_graphed_callables_run_one_behind_another(device):
    first, second = nn.Linear(2, 4).to(device), nn.Linear(4, 1).to(device)
    x = torch.randn(3, 2, device=device)
    wanted = second(first(x)).detach()
    hidden = torch.randn(3, 4, device=device, requires_grad=True)
    a, b = torch.make_graphed_callables((first, second), ((x.clone(),), (hidden,)))
    out = b(a(x))
    assert same(out, wanted)
    out.sum().backward()
    assert first.weight.grad is not None and second.weight.grad is not None


def test_outputs_that_a_later_replay_overwrote_are_not_used_for_gradients(device):
    fast = torch.make_graphed_callables(lambda t: t * 2, (torch.ones(3, device=device, requires_grad=True),))
    x = torch.ones(3, device=device, requires_grad=True)
    loss = (fast(x) ** 2).sum()
    fast(x.detach() * 3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("look", [lambda t: t.sum().item(), lambda t: t.cpu(), lambda t: t.tolist(), str, lambda t: t.numpy(force=True), bool],
                         ids=["item", "cpu", "tolist", "print", "numpy", "bool"])  # fmt: skip
def test_the_host_cannot_look_at_values_in_a_capture(device, look):
    if look.__name__ == "<lambda>" and torch.device(device).type == "cpu" and look(torch.ones(1)) is not None and isinstance(look(torch.ones(1)), torch.Tensor):
        return  # .cpu() of a cpu tensor returns the tensor itself
    x = torch.ones(1, device=device)
    g = torch.Graph(device=device)
    with pytest.raises(RuntimeError, match=CAPTURING + r".*test_graphs\.py:\d+"):
        with torch.graph(g):
            look(x + 1)
    assert (x + 1).item() == 2
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()


def test_a_capture_in_which_something_failed_holds_nothing(device):
    x = torch.ones(1, device=device)
    g = torch.Graph(device=device)
    g.capture_begin()
    y = x + 1
    with pytest.raises(RuntimeError, match=CAPTURING):
        y.item()
    with pytest.raises(RuntimeError, match="operation failed due to a previous error during capture"):
        g.capture_end()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    with torch.graph(g):
        y = x + 1
    g.replay()
    assert y.item() == 2
    with pytest.raises(RuntimeError, match="holds captured work already"):
        g.capture_begin()
    g.reset()
    with g:
        y = x + 5
    g.replay()
    assert y.item() == 6


def test_captures_are_not_nested(device):
    a, b = torch.Graph(device=device), torch.Graph(device=device)
    with torch.graph(a):
        with pytest.raises(RuntimeError, match="captures are not nested"):
            b.capture_begin()
    with pytest.raises(ValueError, match="mine"):
        with torch.graph(b):
            raise ValueError("mine")
    assert not torch._C._capturing()


def test_steps_that_are_counted_on_the_host_are_refused(device):
    p = nn.Parameter(torch.ones(2, device=device))
    p.grad = torch.ones(2, device=device)
    for optimizer, message in (
        (torch.optim.Adam([p]), "Attempting CUDA graph capture of step\\(\\) for an instance of Adam but"),
        (torch.optim.Adagrad([p]), "counts its steps on the host"),
        (torch.optim.NAdam([p], capturable=True), "counts its steps on the host"),
    ):
        with pytest.raises(RuntimeError, match=message):
            with torch.graph(torch.Graph(device=device)):
                optimizer.step()
    assert p.tolist() == [1, 1]


def test_adam_that_counts_on_the_device_takes_the_steps_of_the_one_that_does_not(device):
    a, b = nn.Parameter(torch.randn(50, device=device)), None
    b = nn.Parameter(a.detach().clone())
    rate = torch.tensor(0.01, device=device)
    first, second = torch.optim.AdamW([a], lr=0.01), torch.optim.AdamW([b], lr=rate, capturable=True)
    for i in range(5):
        a.grad = torch.randn(50, device=device)
        b.grad = a.grad.clone()
        first.step()
        second.step()
        if i == 2:
            second.load_state_dict(second.state_dict())
    assert torch.allclose(a, b, rtol=1e-5, atol=1e-7)
    assert second.state[b]["step"].item() == 5 and second.state[b]["step"].device == a.device


def test_each_replay_draws_new_numbers(device):
    g = torch.Graph(device=device)
    with torch.graph(g):
        x = torch.rand(4, device=device)
        order = torch.randn(4, device=device)
    seen = []
    torch.manual_seed(5)
    for _ in range(2):
        g.replay()
        seen.append((x.tolist(), order.tolist()))
    torch.manual_seed(5)
    assert seen == [(torch.rand(4, device=device).tolist(), torch.randn(4, device=device).tolist()) for _ in range(2)]
    with pytest.raises(RuntimeError, match="generator other than the default"):
        with torch.graph(torch.Graph(device=device)):
            torch.rand(4, device=device, generator=torch.Generator(device=device))


def test_numbers_that_nobody_reads_count_as_they_do_outside_of_a_graph(device):
    def step():
        x, unread = torch.rand(100, 100, device=device) * 2, torch.rand(100, 100, device=device)
        del unread
        return x

    seen = []
    torch.manual_seed(5)
    with torch.graph(g := torch.Graph(device=device)):
        x = step()
    for run in (lambda: (g.replay(), x)[1], step):
        if run is step:
            torch.manual_seed(5)
        seen.append([run().sum().item() for _ in range(2)] + torch.rand(3).tolist())
    assert seen[0] == seen[1]


def test_reset_gives_the_memory_back():
    before = torch.cuda.memory_allocated()
    g = torch.cuda.CUDAGraph()
    x = torch.ones(1000, device="cuda")
    with torch.cuda.graph(g):
        x.cumsum(0).cumsum(0)
    assert torch.cuda.memory_allocated() >= before + 3 * 4000
    g.reset()
    del x
    assert torch.cuda.memory_allocated() == before


def test_the_names_of_pytorch():
    assert torch.cuda.CUDAGraph is torch.Graph is torch.accelerator.Graph is torch.cuda.graphs.Graph
    assert not torch.cuda.is_current_stream_capturing()
    s = torch.cuda.Stream()
    g = torch.cuda.CUDAGraph(keep_graph=True)
    x = torch.ones(2, device="cuda")
    with torch.cuda.graph(g, pool=torch.cuda.graph_pool_handle(), stream=s, capture_error_mode="thread_local"):
        assert torch.cuda.is_current_stream_capturing() and s.is_capturing()
        assert torch.cuda.current_stream() == s
        y = x * 3
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    g.instantiate()
    g.replay()
    assert y.tolist() == [3, 3] and len(g.pool()) == 2
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        torch.cuda.graph(torch.cuda.CUDAGraph(capture_error_mode="brave"))
    with pytest.raises(RuntimeError, match=CAPTURING):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.cuda.synchronize()


def test_replays_on_opencl_give_the_bits_of_doing_it_at_once():
    from opencl import need_xpu, processors_count

    with processors_count():
        need_xpu()
        test_a_replay_reads_what_the_tensors_hold_by_then("xpu:0")
        test_a_training_loop_of_replayed_steps_ends_in_the_same_bits("xpu:0", "adam")
        test_graphed_modules_train_to_the_same_bits("xpu:0")


def test_an_event_cannot_take_the_time_of_work_that_is_not_done(device):
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing .an event would take the time"):
        with torch.graph(torch.Graph(device=device)):
            torch.Event(device, enable_timing=True).record()


def test_a_program_written_for_streams_is_recorded_whole():
    side = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    with torch.cuda.graph(g := torch.cuda.CUDAGraph()):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        z = y + 1
    x.fill_(3)
    g.replay()
    assert z[0].item() == 7


def test_what_was_recorded_can_be_written_down(tmp_path):
    x = torch.ones(2, 2, device="cuda")
    with torch.cuda.graph(g := torch.cuda.CUDAGraph()):
        y = torch.exp(x) + 1
        y @ y
    g.enable_debug_mode()
    g.debug_dump(str(tmp_path / "g.dot"))
    text = (tmp_path / "g.dot").read_text()
    assert "exp, add" in text and "matmul" in text and "n0 -> n1" in text


def test_values_that_the_host_makes_in_a_capture_on_cpu_are_constants():
    x = torch.ones(2)
    with torch.graph(g := torch.Graph(device="cpu")):
        total = torch.tensor([10.0, 20.0])
        total += x * torch.tensor(2.0)
    for _ in range(2):
        g.replay()
        assert total.tolist() == [12, 22]

"""What every kind of device must support besides operators: copies, streams, events, errors, DataParallel, and a training run with the cpu's bits.

The first device of each kind is used (all of them for DataParallel), so that this runs on any machine with any device.
"""
import pytest

import naru
from conftest import DEVICES
from naru import nn
from naru.testing.operator_cases import CASES, bits, result_bits

OTHERS = [d for d in DEVICES if d != "cpu"]
pytestmark = pytest.mark.skipif(not OTHERS, reason="there is no device but the cpu")


@pytest.fixture(params=OTHERS)
def there(request):
    return request.param


@pytest.fixture
def deterministic():
    naru.use_deterministic_algorithms(True)
    yield
    naru.use_deterministic_algorithms(False)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_an_operator_and_its_gradient_give_the_bits_of_cpu(case, there, deterministic):
    assert result_bits(case, there) == result_bits(case)


def test_copies_from_pageable_and_pinned_memory_arrive_whole_in_any_order(there):
    host = naru.arange(300000.0)
    pinned = host.pin_memory() if not there.startswith("mps") else host
    for source in (host, pinned):
        on = source.to(there, non_blocking=True)
        doubled = on * 2
        back = naru.empty(300000)
        back.copy_(doubled, non_blocking=True)
        assert naru.equal(back, host * 2)
    source = pinned.clone()
    on = source.to(there, non_blocking=True)
    source.fill_(-1.0)
    assert naru.equal(on.cpu(), host), "the copy read memory that was written after it"


def test_streams_need_no_waiting_by_hand(there):
    streams = [naru.Stream(device=there) for _ in range(3)]
    x = naru.zeros(50000, device=there)
    for i in range(30):
        with streams[i % 3]:
            x += 1
            y = x * 2
        if i % 7 == 0:
            assert y[0].item() == 2 * (i + 1)
    assert naru.equal(x.cpu(), naru.full((50000,), 30.0))


def test_events_are_reached_in_order_and_have_times(there):
    start, end = naru.Event(device=there, enable_timing=True), naru.Event(device=there, enable_timing=True)
    x = naru.ones(100000, device=there)
    start.record()
    for _ in range(10):
        x = x.sin()
    end.record()
    end.synchronize()
    assert start.query() and end.query() and start.elapsed_time(end) >= 0


def test_a_bad_position_is_an_error_and_the_device_goes_on(there):
    x = naru.arange(5.0, device=there)
    with pytest.raises(IndexError, match="9.*5"):
        x[naru.tensor([1, 9], device=there)].cpu()
    for i in range(100):
        assert (x + i).cpu().tolist() == [i + k for k in range(5)]


def test_views_without_elements_may_begin_where_there_is_no_memory(there):
    for x in (naru.ones(0, 3, device=there)[:, 1:], naru.ones(4, 2, device=there)[4:]):
        assert x.sum().item() == 0 and x.var(0).isnan().all() and x.softmax(0).shape == x.argsort(1).shape == (0, 2)
        assert (x.t() @ x).tolist() == [[0, 0], [0, 0]] and naru.nn.functional.mse_loss(x, x).isnan()


def test_memory_that_no_device_has_is_an_error_and_the_device_goes_on(there):
    with pytest.raises(naru.OutOfMemoryError, match=there):
        naru.zeros(1 << 45, device=there)
    assert naru.ones(3, device=there).sum().item() == 3


def test_memory_goes_back_to_where_it_was(there):
    naru._C.synchronize(there)
    before = naru._C.memory_allocated(there)
    for _ in range(50):
        x = naru.randn(1 << 16, device=there)
        y = (x @ x.reshape(256, 256).reshape(-1)) + x.sum()
    del x, y
    naru._C.synchronize(there)
    assert naru._C.memory_allocated(there) == before


def test_products_stay_within_bounds_of_float64(there):
    for dtype, bound in ((naru.float32, 1e-5), (naru.float16, 1e-2), (naru.bfloat16, 5e-2)):
        a, b = naru.randn(256, 512).to(dtype), naru.randn(512, 128).to(dtype)
        wanted = a.double() @ b.double()
        got = (a.to(there) @ b.to(there)).cpu().double()
        assert float((got - wanted).abs().max()) <= bound * float(wanted.abs().max())


def test_data_parallel_over_all_devices_gives_the_gradients_of_one(there):
    kind = there.partition(":")[0]
    ids = list(range(naru._C.device_count(kind)))
    naru.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2)).to(there)
    x = naru.randn(13, 5, device=there)
    parallel = nn.DataParallel(model, device_ids=[naru.device(kind, i) for i in ids])
    gradients = []
    for forward in (model, parallel):
        model.zero_grad()
        (forward(x) ** 2).sum().backward()
        gradients.append([p.grad.cpu().clone() for p in model.parameters()])
    for one, many in zip(*gradients):
        naru.testing.assert_close(many, one)


def train(device):
    naru.manual_seed(3)
    x, t = naru.randn(256, 20), naru.randint(0, 5, (256,))
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 5)).to(device)
    x, t = x.to(device), t.to(device)
    losses = []
    for optimizer in (naru.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), naru.optim.Adam(model.parameters(), lr=0.01)):
        for _ in range(8):
            at = naru.randperm(256, device=device)[:64]
            loss = nn.functional.cross_entropy(model(x[at]), t[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(bits(loss))
    return losses, [bits(p) for p in model.parameters()]


def test_a_training_run_ends_in_the_bits_of_cpu(there, deterministic):
    assert train(there) == train("cpu")

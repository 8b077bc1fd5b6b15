"""Operators that a device does not support: an error, a warning or a counter, depending on the policy, and the cpu's bits."""

import warnings

import pytest

import naru as torch

UNSUPPORTED = ["sort", "exp", "matmul", "sum", "gather", "index_put_", "cumsum", "argmax", "embedding"]

CALLS = {
    "sort": lambda x: x.sort(0).values,
    "exp": lambda x: ((x + 1).exp() * 2)[1:],
    "matmul": lambda x: x @ x.t(),
    "sum": lambda x: x.sum(1),
    "gather": lambda x: x.gather(0, torch.zeros(1, 6, dtype=torch.int64, device=x.device)),
    "index_put_": lambda x: torch.index_put(x, (torch.tensor([1, 2], device=x.device),), torch.zeros((), device=x.device)),
    "cumsum": lambda x: x.t().cumsum(1),
    "argmax": lambda x: x.argmax(1),
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("PYTORCH_ENABLE_MPS_FALLBACK", raising=False)
    monkeypatch.delenv("NARU_FALLBACK", raising=False)
    torch.fallback.reset()
    yield
    torch.fallback.reset()


@pytest.mark.parametrize("op", CALLS)
@pytest.mark.parametrize("kind", ["mps", "cuda"])
def test_the_cpu_does_what_the_device_does_not_support_with_the_same_bits(kind, op):
    x = torch.randn(5, 6)
    expected = CALLS[op](x)
    with torch.virtual(kind, without=UNSUPPORTED), torch.fallback.policy("count"):
        got = CALLS[op](x.to(kind))
        assert got.device.type == kind
        assert torch.equal(got.cpu(), expected)
        uses = {use.op: use for use in torch.fallback.report()}
    assert uses[op].calls == 1 and uses[op].kind == kind and uses[op].bytes > 0 and uses[op].milliseconds > 0


@pytest.mark.parametrize("op", CALLS)
def test_without_a_policy_the_call_is_an_error_that_says_how_to_go_on(op):
    with torch.virtual("mps", without=UNSUPPORTED):
        x = torch.randn(5, 6).to("mps")
        with pytest.raises(NotImplementedError, match=f"The operator 'aten::{op}' is not currently implemented for the MPS device.*PYTORCH_ENABLE_MPS_FALLBACK=1"):
            CALLS[op](x)
        assert torch.equal((x + x).cpu(), x.cpu() * 2)
    with torch.virtual("cuda", without=UNSUPPORTED):
        with pytest.raises(NotImplementedError, match="for the CUDA device.*NARU_FALLBACK=warn"):
            CALLS[op](torch.randn(5, 6).to("cuda"))


def test_the_variable_of_pytorch_is_read_at_the_call_and_warns_once_an_operator(monkeypatch):
    with torch.virtual("mps", without=["sort", "exp"]):
        x = torch.tensor([2.0, 1.0], device="mps")
        with pytest.raises(NotImplementedError):
            x.sort()
        monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
        assert torch.fallback.get_policy("mps") == "warn" and torch.fallback.get_policy("cuda") == "error"
        with pytest.warns(UserWarning, match="'aten::sort' is not currently supported on the MPS backend and will fall back to run on the CPU"):
            assert x.sort().values.tolist() == [1.0, 2.0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x.sort()
        with pytest.warns(UserWarning, match="aten::exp"):
            x.exp()


def test_naru_s_own_variable_holds_for_every_kind(monkeypatch):
    monkeypatch.setenv("NARU_FALLBACK", "count")
    with torch.virtual("cuda", without=["sort"]):
        assert torch.tensor([2, 1], device="cuda").sort().values.tolist() == [1, 2]
    monkeypatch.setenv("NARU_FALLBACK", "sometimes")
    with torch.virtual("cuda", without=["sort"]), pytest.raises(RuntimeError, match="wanted error, warn or count, got 'sometimes'"):
        torch.tensor([2, 1], device="cuda").sort()
    with pytest.raises(ValueError, match="fallback policy"):
        torch.fallback.set_policy("sometimes")


def test_gradients_pass_through_operators_that_are_unsupported():
    x = torch.randn(4, 4)
    expected = x.clone().requires_grad_()
    (expected.exp() @ expected).sum().backward()
    with torch.virtual("cuda", without=["exp", "matmul", "sum"]), torch.fallback.policy("count"):
        y = x.to("cuda").requires_grad_()
        (y.exp() @ y).sum().backward()
        assert torch.equal(y.grad.cpu(), expected.grad)


@pytest.mark.parametrize("ability, dtype", [("fp64", torch.float64), ("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_types_that_a_device_does_not_support_are_refused_where_they_would_be_made(ability, dtype):
    name = str(dtype).split(".")[1]
    with torch.virtual("mps", without=ability):
        for make in (lambda: torch.ones(2, dtype=dtype, device="mps"), lambda: torch.ones(2, dtype=dtype).to("mps"),
                     lambda: torch.ones(2, device="mps").to(dtype)):
            with pytest.raises(TypeError, match=f"Cannot convert a MPS Tensor to {name} dtype as the MPS framework doesn't support {name}"):
                make()
        assert torch.ones(2, device="mps").sum().item() == 2
    with torch.virtual("cuda", without=ability):
        with pytest.raises(TypeError, match=f"device 'cuda:0' has no {name}"):
            torch.ones(2, dtype=dtype, device="cuda")

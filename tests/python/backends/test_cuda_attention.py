"""Attention on cuda by cuDNN, with a small stand-in library (tests/fakes) that accepts only graphs that cuDNN documents, and computes them
operation by operation in float64. No GPU is used."""
import re

import pytest

from test_cuda import environment, pytestmark, run  # noqa: F401

ATTENDING = """
import math
import naru as torch
F = torch.nn.functional
torch.manual_seed(0)
BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of the greatest number: four roundings

def is_fused(out):
    return out.grad_fn.name() == "ScaledDotProductCudnnAttentionBackward0"

def attend(q, k, v, *, times=3, **how):  # as often as it takes for a plan to be worth its while
    for _ in range(times):
        out = F.scaled_dot_product_attention(q, k, v, **how)
    return out

def laid(sizes, layout, dtype):
    b, h, t, d = sizes
    if layout == "rows":
        x = torch.randn(b, h, t, d)
    elif layout == "heads last":
        x = torch.randn(b, t, h, d).transpose(1, 2)
    elif layout == "packed":
        x = torch.randn(b, t, 3, h, d)[:, :, 1].transpose(1, 2)
    elif layout == "shifted":
        x = torch.randn(b, h, t, d + 1)[..., 1:]
    elif layout == "turned":
        x = torch.randn(b, h, d, t).transpose(2, 3)
    base = x if x._base is None else x._base
    there = base.to(dtype).to("cuda").as_strided(x.shape, x.stride(), x.storage_offset())
    return there.detach().requires_grad_()

def difference(a, b):
    b = b.detach().double()
    return (a.detach().cpu().double() - b).abs().max().item() / max(1.0, b.abs().max().item())

def compare(sizes, keys, values, dtype, layout="rows", mask=None, **how):
    q, k, v = (laid(s, layout, dtype) for s in (sizes, keys, values))
    out = attend(q, k, v, attn_mask=None if mask is None else mask.to("cuda"), **how)
    weights = torch.randn(*out.shape).to(dtype)
    (out * weights.to("cuda")).sum().backward()
    here = [x.detach().cpu().double().requires_grad_() for x in (q, k, v)]
    wanted = F.scaled_dot_product_attention(*here, attn_mask=mask.double() if mask is not None and mask.dtype.is_floating_point else mask, **how)
    (wanted * weights.double()).sum().backward()
    errors = [difference(a, b) for a, b in ((out, wanted), *((x.grad, y.grad) for x, y in zip((q, k, v), here)))]
    return out, q, max(errors)
"""

FORMS = ATTENDING + """
torch.use_deterministic_algorithms(False)
count = 0
for dtype in (torch.float16, torch.bfloat16):
    for layout in ("rows", "heads last", "packed", "shifted", "turned"):
        for sizes, keys, values, how in (
            ((2, 3, 24, 16), (2, 3, 24, 16), (2, 3, 24, 16), {}),
            ((2, 3, 24, 16), (2, 3, 24, 16), (2, 3, 24, 16), {"is_causal": True}),
            ((1, 2, 19, 8), (1, 2, 37, 8), (1, 2, 37, 24), {"is_causal": True, "scale": 0.7}),
            ((1, 2, 37, 8), (1, 2, 19, 8), (1, 2, 19, 8), {"is_causal": True}),
            ((2, 6, 16, 8), (2, 2, 20, 8), (2, 2, 20, 16), {"enable_gqa": True}),
            ((2, 4, 16, 8), (2, 1, 20, 8), (2, 1, 20, 8), {"is_causal": True}),
        ):
            out, q, error = compare(sizes, keys, values, dtype, layout, **how)
            assert is_fused(out), (layout, sizes)
            assert error < BOUNDS[dtype], (dtype, layout, sizes, how, error)
            if layout == "heads last":
                assert out.transpose(1, 2).is_contiguous() and q.grad.transpose(1, 2).is_contiguous()
            count += 1
q, k, v = (torch.randn(4, 18, 16, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
out = attend(q, k, v)
assert is_fused(out) and difference(out, F.scaled_dot_product_attention(*(x.detach().cpu().double() for x in (q, k, v)))) < 4e-3 and out.shape == (4, 18, 16)
q, k, v = (x[0].detach() for x in (q, k, v))
out = attend(q, k, v)
assert difference(out, F.scaled_dot_product_attention(*(x.cpu().double() for x in (q, k, v)))) < 4e-3 and out.shape == (18, 16)
print(count, torch.fallback.report())
"""


def test_the_library_attends_in_every_layout_type_and_group_of_heads(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", FORMS) == (0, "60 []\n")
    # Of each of 36 forms the third of three calls, and backward. The two layouts that are copied are "rows" by the time the library sees them.
    assert len(re.findall(r" cudnnBackendExecute$", log.read_text(), re.MULTILINE)) == 36 * 2 + 24 * 4 + 2


MASKS = ATTENDING + """
sizes = (2, 3, 20, 16)
seen = torch.rand(20, 20) < 0.6
seen[:, 0] = True
blind = seen.clone()
blind[3] = False
hidden = torch.zeros(2, 1, 20, 20).masked_fill(~blind, -math.inf)
for dtype in (torch.float16, torch.bfloat16):
    for mask in (seen, blind, seen[None, None, :1], torch.randn(20, 20).to(dtype), torch.randn(2, 1, 1, 20), torch.randn(1, 3, 20, 20).to(dtype), hidden, hidden.to(dtype)):
        out, q, error = compare(sizes, sizes, sizes, dtype, "heads last", mask)
        assert is_fused(out) and error < BOUNDS[dtype], (dtype, mask.shape, mask.dtype, error)
        if mask is blind or mask.shape == hidden.shape:
            assert out[:, :, 3].abs().max().item() == 0 and q.grad[:, :, 3].abs().max().item() == 0
wants = torch.randn(20, 20, device="cuda", dtype=torch.float16).requires_grad_()
q = torch.randn(*sizes, device="cuda", dtype=torch.float16)
assert not is_fused(attend(q, q, q, attn_mask=wants))
print("done")
"""


def test_masks_are_added_and_rows_that_see_nothing_are_zero(environment):
    assert run(environment, "-c", MASKS) == (0, "done\n")


REFUSED = ATTENDING + """
import sys
device = sys.argv[1]
q, k, v = (torch.randn(2, 3, 24, 16).to(torch.float16).to(device).requires_grad_() for _ in range(3))
told = []
for _ in range(4):
    try:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        value = out.detach().cpu()
        told.append(is_fused(out))
    except RuntimeError as e:
        told.append(str(e))
wanted = F.scaled_dot_product_attention(*(x.detach().cpu().double() for x in (q, k, v)), is_causal=True)
print(*told, sep="\\n")
print(difference(value, wanted) < 4e-3, torch.fallback.report())
"""


@pytest.mark.parametrize("variable, value, device, told", [
    ("NARU_FAKE_ATTENTION_REFUSES", "nothing", "cuda", [False, False, True, True]),
    ("NARU_FAKE_ATTENTION_REFUSES", "heuristics", "cuda", [False, False, True, True]),
    ("NARU_FAKE_ATTENTION_REFUSES", "all", "cuda", [False] * 4),
    ("NARU_FAKE_ATTENTION_REFUSES", "plan", "cuda", [False] * 4),
    ("NARU_FAKE_ATTENTION_REFUSES", "nothing", "cuda:1", [False] * 4),  # of compute capability 7.5
    ("NARU_CUDNN_LIBRARY", "/nowhere", "cuda", [False] * 4),
    ("NARU_FAKE_ERROR", "cudnnCreate=1001", "cuda", [False] * 4),
    ("NARU_FAKE_ERROR", "cudnnBackendFinalize=4000@9", "cuda", [False] * 4),
    ("NARU_FAKE_ERROR", "cudnnBackendSetAttribute=2010", "cuda", [False] * 4),
    ("NARU_FAKE_ATTENTION_REFUSES", "run", "cuda",
     [False, False, "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED, when calling `cudnnBackendExecute` on cuda:0 for attention. "
                    "`torch.nn.attention.sdpa_kernel(SDPBackend.MATH)` takes naru's own products", False]),
])  # fmt: skip
def test_what_the_library_refuses_is_made_of_products(environment, variable, value, device, told):
    code, said = run({**environment, variable: value}, "-c", REFUSED, device)
    assert (code, said.splitlines()) == (0, [*map(str, told), "True []"])


CHOSEN = ATTENDING + """
from naru.nn.attention import SDPBackend, sdpa_kernel
q, k, v = (torch.randn(2, 3, 24, 16, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
assert is_fused(attend(q, k, v))
with sdpa_kernel(SDPBackend.MATH):
    assert not is_fused(attend(q, k, v))
for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
    with sdpa_kernel([SDPBackend.MATH, backend]):
        assert is_fused(attend(q, k, v, times=1))
with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
    assert not is_fused(attend(q, k, v))
with torch.backends.cuda.sdp_kernel(enable_math=False):
    assert is_fused(attend(q, k, v, times=1)) and not torch.backends.cuda.math_sdp_enabled()
torch.use_deterministic_algorithms(True)
exact = attend(q, k, v)
assert not is_fused(exact)
assert exact.cpu().isfinite().all()
torch.use_deterministic_algorithms(False)
assert not is_fused(attend(q, k, v, dropout_p=0.5))
assert not is_fused(attend(q.float(), k.float(), v.float()))
assert not is_fused(attend(q[:, :, :8], k, v)), "of few queries, each length of which may be met once"
assert not is_fused(attend(q[..., :12], k[..., :12], v))
with torch.autocast("cuda", dtype=torch.float16):
    assert is_fused(attend(q.float(), k.float(), v.float()))
# What was to be differentiated by the library, and may not any more.
out = attend(q, k, v, times=1)
torch.use_deterministic_algorithms(True)
out.sum().backward()
torch.use_deterministic_algorithms(False)
here = [x.detach().cpu().double().requires_grad_() for x in (q, k, v)]
F.scaled_dot_product_attention(*here).sum().backward()
print(max(difference(x.grad, y.grad) for x, y in zip((q, k, v), here)) < 4e-3)
"""


def test_the_kernel_is_chosen_as_pytorch_has_it(environment):
    assert run(environment, "-c", CHOSEN) == (0, "True\n")


LARGE = ATTENDING + """
many, fewer, narrow = (torch.randn(*sizes, device="cuda", dtype=torch.float16, requires_grad=True) for sizes in ((2, 1, 1024, 8), (1, 1, 2048, 8), (1, 1, 1024, 8)))
print(is_fused(attend(fewer, fewer, fewer, times=1)), is_fused(attend(many, many, many, times=1)), is_fused(attend(narrow, narrow, narrow, times=1)))
attend(fewer, fewer, fewer, times=1).sum().backward()
"""


def test_of_many_scores_a_plan_is_made_at_once(environment, tmp_path):
    log = tmp_path / "calls"
    idle = {**environment, "NARU_FAKE_ATTENTION_IDLE": "1", "NARU_FAKE_LOG": str(log)}
    assert run(idle, "-c", LARGE) == (0, "True False False\n")
    assert log.read_text().count(" cudnnBackendExecute\n") == 3


TWICE = ATTENDING + """
def curvature(q, k, v, how):
    out = F.scaled_dot_product_attention(q, k, v, **how)
    first = torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=True)
    return torch.autograd.grad(sum(g.float().square().sum() if g.dtype != torch.float64 else g.square().sum() for g in first), (q, k, v))

for keys, how in (((1, 2, 18, 8), {"is_causal": True}), ((1, 1, 18, 8), {"enable_gqa": True}), ((1, 2, 18, 8), {"attn_mask": torch.rand(20, 18) < 0.7})):
    q, k, v = (torch.randn(*sizes).to(torch.float16).to("cuda").requires_grad_() for sizes in ((1, 2, 20, 8), keys, keys))
    there = {name: x.to("cuda") if isinstance(x, torch.Tensor) else x for name, x in how.items()}
    assert is_fused(attend(q, k, v, **there))
    got = curvature(q, k, v, there)
    wanted = curvature(*(x.detach().cpu().double().requires_grad_() for x in (q, k, v)), how)
    for a, b in zip(got, wanted):
        assert difference(a, b) < 2e-2, (keys, difference(a, b))
print("done")
"""


def test_gradients_of_gradients_are_made_of_products(environment):
    assert run(environment, "-c", TWICE) == (0, "done\n")


RECORDED = ATTENDING + """
q, k, v = (torch.randn(2, 3, 24, 16, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
out = attend(q, k, v, is_causal=True)
wanted = torch.autograd.grad(out.square().sum(), (q, k, v))
g = torch.Graph()
with torch.graph(g):
    again = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    got = torch.autograd.grad(again.square().sum(), (q, k, v))
for _ in range(2):
    g.replay()
print(torch.equal(again, out), *(torch.equal(a, b) for a, b in zip(got, wanted)))
"""


def test_a_graph_replays_it(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", RECORDED) == (0, "True True True True\n")


BLOCKS = ATTENDING + """
import os, re
q = torch.randn(1, 1, 4096, 8, device="cuda", requires_grad=True)
torch.cuda.synchronize()
os.environ["NARU_FAKE_LOG"] = os.environ["COUNT"]
out = F.scaled_dot_product_attention(q, q, q)
out.sum().backward()
torch.cuda.synchronize()
del os.environ["NARU_FAKE_LOG"]
here = q.detach().cpu().double().requires_grad_()
wanted = F.scaled_dot_product_attention(here, here, here)
wanted.sum().backward()
print(difference(out, wanted) < 1e-5, difference(q.grad, here.grad) < 1e-4)
"""


def test_products_by_a_library_are_few_and_large(environment, tmp_path):
    count = tmp_path / "count"
    code, said = run({**environment, "COUNT": str(count)}, "-c", BLOCKS)
    assert (code, said) == (0, "True True\n")
    assert len(re.findall(r" cublasLtMatmul$", count.read_text(), re.MULTILINE)) == 2 + 5

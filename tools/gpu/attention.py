"""python attention.py [SECONDS]: compares naru's scaled_dot_product_attention on cuda with PyTorch's, forward and gradients.

Prints one line per case: whether cuDNN or naru's products computed it, the greatest errors against PyTorch's float32 reference, and both times in
milliseconds. The exit status is 1 if an error exceeds what the dtype's rounding explains."""

import sys
import time

import torch  # imported first, so that the process uses PyTorch's cuDNN

import naru

END = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 30)
THEIRS, OURS = torch.nn.functional.scaled_dot_product_attention, naru.nn.functional.scaled_dot_product_attention
SDPA = naru.nn.attention
wrong = []


def across(t):
    """Copies to memory owned by naru: shared memory would cause a wait at each operator."""
    return naru.from_dlpack(t.detach().contiguous()).clone()


def milliseconds(f, wait, count=10):
    f(), f()
    wait()
    best = 1e9
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            f()
        wait()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e3


def mask_of(kind, b, t, s, dtype):
    """The same mask for PyTorch and naru, or None."""
    if kind == "bool":
        mask = torch.rand(t, s, device="cuda") < 0.7
        mask[5] = False  # a row that masks out everything
        return mask, across(mask.to(torch.uint8)).to(naru.bool)
    if kind == "float":
        mask = torch.randn(b, 1, t, s, device="cuda", dtype=dtype)
    elif kind == "padding":
        mask = torch.zeros(b, 1, 1, s, device="cuda", dtype=dtype).masked_fill(torch.arange(s, device="cuda") > s - 9, -torch.inf)
    else:
        return None, None
    return mask, across(mask)


def case(name, b, h, key_heads, t, s, d, causal, dtype=torch.bfloat16, heads_last=False, mask=None, times=1, timed=True):
    if time.monotonic() > END:
        print(f"{name:34} not run: the time was over", flush=True)
        return
    torch.manual_seed(0)
    q, k, v = (torch.randn(b, x, y, d, device="cuda", dtype=dtype) for x, y in ((h, t), (key_heads, s), (key_heads, s)))
    w = torch.randn(b, h, t, d, device="cuda", dtype=dtype)
    how = {"is_causal": causal, "enable_gqa": h != key_heads}
    their_mask, our_mask = mask_of(mask, b, t, s, dtype)
    leaves = [(across(x.transpose(1, 2)).transpose(1, 2) if heads_last else across(x)).detach().requires_grad_() for x in (q, k, v)]
    weight = across(w)
    start = time.perf_counter()
    for _ in range(times):
        out = OURS(*leaves, attn_mask=our_mask, **how)
    by_library = "Cudnn" in out.grad_fn.name()
    gradients = naru.autograd.grad(out, leaves, weight)
    naru.cuda.synchronize()
    first = time.perf_counter() - start
    exact = [x.float().requires_grad_() for x in (q, k, v)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        k32, v32 = (x.repeat_interleave(h // key_heads, 1) for x in exact[1:])
        wide = their_mask if their_mask is None or their_mask.dtype == torch.bool else their_mask.float()
        wanted = THEIRS(exact[0], k32, v32, attn_mask=wide, is_causal=causal).nan_to_num()
        wanted = [wanted, *torch.autograd.grad(wanted, exact, w.float())]
    found = [torch.from_dlpack(x.detach().clone().contiguous()).float() for x in (out, *gradients)]
    errors = [(x - y).abs().max().item() for x, y in zip(found, wanted, strict=True)]
    sizes = [max(1.0, x.abs().max().item()) for x in wanted]
    bound = 0.04 if dtype == torch.bfloat16 else 0.01  # a few roundings of scores, weights and results
    right = all(e <= bound * size for e, size in zip(errors, sizes, strict=True))
    line = f"{name:34} {'library' if by_library else 'products'} {'right' if right else 'WRONG'}, errors {' '.join(f'{e:.4f}' for e in errors)} of {max(sizes):.1f}"
    if not right:
        wrong.append(name)
    if timed:
        theirs = [x.detach().requires_grad_() for x in (q, k, v)]
        with torch.no_grad():
            forward = [milliseconds(lambda: THEIRS(*theirs, attn_mask=their_mask, **how), torch.cuda.synchronize)]
        with naru.no_grad():
            forward.insert(0, milliseconds(lambda: OURS(*leaves, attn_mask=our_mask, **how), naru.cuda.synchronize))
        both = [milliseconds(lambda: naru.autograd.grad(OURS(*leaves, attn_mask=our_mask, **how), leaves, weight), naru.cuda.synchronize),
                milliseconds(lambda: torch.autograd.grad(THEIRS(*theirs, attn_mask=their_mask, **how), theirs, w), torch.cuda.synchronize)]  # fmt: skip
        line += f"; forward {forward[0]:.3f} ms (PyTorch {forward[1]:.3f}), with backward {both[0]:.3f} ({both[1]:.3f})"
    print(f"{line}; first {first:.2f} s", flush=True)


case("8x12x1024x64 causal", 8, 12, 12, 1024, 1024, 64, True)
case("mask of padding", 4, 8, 8, 512, 512, 64, False, mask="padding", timed=False)
case("mask bool, a blind row", 4, 8, 8, 512, 512, 64, False, mask="bool")
case("mask float", 4, 8, 8, 512, 512, 64, False, mask="float", timed=False)
case("8x12x1024x64 causal, heads last", 8, 12, 12, 1024, 1024, 64, True, heads_last=True)
case("8x12x1024x64", 8, 12, 12, 1024, 1024, 64, False)
case("4x16x2048x128 causal f16", 4, 16, 16, 2048, 2048, 128, True, torch.float16)
case("grouped 2x32/8x1024x128 causal", 2, 32, 8, 1024, 1024, 128, True)
with SDPA.sdpa_kernel(SDPA.SDPBackend.MATH):
    case("8x12x1024x64 causal by products", 8, 12, 12, 1024, 1024, 64, True)
case("small 2x4x128x64, third time", 2, 4, 4, 128, 128, 64, True, times=3)
case("cross 4x8 1000 to 777 x64", 4, 8, 8, 1000, 777, 64, False, timed=False)
case("cross causal 512 to 1024", 4, 8, 8, 512, 1024, 64, True, timed=False)
case("cross causal 1024 to 512", 4, 8, 8, 1024, 512, 64, True, timed=False)
case("width 72", 4, 8, 8, 512, 512, 72, True, timed=False)
case("width 256", 4, 8, 8, 512, 512, 256, True, timed=False)
case("width 20 (products)", 4, 8, 8, 512, 512, 20, True, timed=False)
sys.exit(bool(wrong))

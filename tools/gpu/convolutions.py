"""Measures the speed of convolutions on a GPU and compares their results with naru's own kernel. The time shows whether cuDNN was used. Prints
table rows."""

import time

import naru as t

F, D = t.nn.functional, "cuda"


def one(name, shape, weight_shape, dtype, last=False, **options):
    x, w = t.randn(*shape, device=D).to(dtype), (t.randn(*weight_shape, device=D) / weight_shape[1]).to(dtype)
    if last:
        x, w = x.contiguous(memory_format=t.channels_last), w.contiguous(memory_format=t.channels_last)
    x.requires_grad_(), w.requires_grad_()

    def step():
        y = F.conv2d(x, w, **options)
        return (y, *t.autograd.grad(y, (x, w), t.ones_like(y)))

    first, second = step(), step()
    same = all(t.equal(a, b) for a, b in zip(first, second, strict=True))
    t.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(5):
        step()
    t.cuda.synchronize()
    ms = (time.perf_counter() - start) / 5 * 1e3
    t.use_deterministic_algorithms(True)
    own = F.conv2d(x[:1], w, **options)
    t.use_deterministic_algorithms(False)
    error = float((own.float() - first[0][:1].float()).abs().max() / own.float().abs().max())
    flops = 3 * 2 * first[0].numel() * weight_shape[1] * weight_shape[2] * weight_shape[3]
    print(f"{name:34} {ms:8.2f} ms {flops / ms / 1e9:8.1f} TFLOP/s  beside own kernel {error:.1e}  same bits twice {same}", flush=True)


for kind, dtype in (("f32", t.float32), ("bf16", t.bfloat16), ("f16", t.float16)):
    for last in (False, True):
        one(f"3x3 64x256x28x28 {kind} {'nhwc' if last else 'nchw'}", (64, 256, 28, 28), (256, 256, 3, 3), dtype, last, padding=1)
one("7x7/2 stem bf16", (32, 3, 224, 224), (64, 3, 7, 7), t.bfloat16, True, stride=2, padding=3)
one("depthwise f32", (32, 128, 56, 56), (128, 1, 3, 3), t.float32, padding=1, groups=128)
one("dilated f32", (8, 64, 56, 56), (64, 64, 3, 3), t.float32, padding=2, dilation=2)

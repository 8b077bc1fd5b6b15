"""PyTorch modules whose public names are also those of a package around them, where naru has them: `torch.optim.adamw.AdamW` is
`torch.optim.AdamW`. If naru lacks a name in such a module, or the whole module, it is taken from there."""

from __future__ import annotations

# PyTorch's module -> the module (both without `torch.`) that has the same objects under the same names.
SAME = {
    "accelerator.graphs": "accelerator",
    "accelerator.memory": "accelerator",
    "autograd.profiler_util": "autograd.profiler",
    "cpu.amp.autocast_mode": "cpu.amp",
    "cpu.amp.grad_scaler": "cpu.amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.streams": "cuda",
    "distributed.distributed_c10d": "distributed",
    "functional": "",
    "mps.event": "mps",
    "mps.streams": "mps",
    "nn.modules.batchnorm": "nn",
    "nn.modules.conv": "nn",
    "nn.modules.linear": "nn",
    "nn.modules.linear_cross_entropy_options": "nn",
    "nn.modules.loss": "nn",
    "optim.adamw": "optim",
    "optim.nadam": "optim",
    "signal.windows.windows": "signal.windows",
    "utils.benchmark.utils": "utils.benchmark",
    "utils.benchmark.utils.common": "utils.benchmark",
    "utils.benchmark.utils.compare": "utils.benchmark",
    "utils.benchmark.utils.timer": "utils.benchmark",
    "xpu.graphs": "xpu",
    "xpu.memory": "xpu",
    "xpu.random": "xpu",
    "xpu.streams": "xpu",
}

"""What comes nearest to names of PyTorch's that naru lacks. The longest name that fits counts; facts, so that the sentence reads
"torch.X is in PyTorch 2.15 but not in naru yet; nearest: ..."."""

from __future__ import annotations

NEAREST = {
    "fx": "naru.Graph, which records a part of a program",
    "export": "naru.Graph within a process, torch.save of a state_dict between processes",
    "quantization": "torch.float16 and torch.bfloat16",
    "ao": "torch.float16 and torch.bfloat16",
    "distributed": "torch.nn.DataParallel, which uses all devices of one process",
    "nn.parallel.DistributedDataParallel": "torch.nn.DataParallel",
    "cuda.nvtx": "naru.memory_history",
}


def nearest_to(qualified: str) -> str | None:
    """What to use in place of a name (without `torch.`), or None."""
    while qualified:
        if qualified in NEAREST:
            return NEAREST[qualified]
        qualified = qualified.rpartition(".")[0]
    return None

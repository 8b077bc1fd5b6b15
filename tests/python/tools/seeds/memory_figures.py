"""Allocated, reserved and total memory; what `del`, `gc.collect()` and `empty_cache()` release."""
import gc

import torch

torch.cuda.empty_cache()  # does nothing where there is no GPU
if torch.cuda.is_available():
    start = torch.cuda.memory_allocated(0)
    allocated = torch.cuda.memory_allocated(0)
    print(f"할당됨: {allocated / 1024**2:.1f} MB")
    reserved = torch.cuda.memory_reserved(0)
    print(f"예약됨: {reserved / 1024**2:.1f} MB")
    total = torch.cuda.get_device_properties(0).total_memory
    print(f"총 메모리: {total / 1024**3:.1f} GB")
    assert 0 <= allocated <= reserved <= total and total > 0

    large_tensor = torch.randn(10000, 1000, device='cuda')
    assert torch.cuda.memory_allocated() - start >= 10000 * 1000 * 4
    assert torch.cuda.memory_reserved(0) >= torch.cuda.memory_allocated(0)
    del large_tensor
    gc.collect()
    assert torch.cuda.memory_allocated() == start
    assert torch.cuda.memory_reserved(0) - reserved >= 10000 * 1000 * 4  # cached for the next tensor
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(0) <= reserved

    # A tensor in a reference cycle is freed when the collector has run.
    cycle = [torch.zeros(1000, 1000, device='cuda')]
    cycle.append(cycle)
    del cycle
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated(0) == start
else:
    assert torch.cuda.memory_allocated(0) == torch.cuda.memory_reserved(0) == 0
    try:
        large_tensor = torch.randn(10000, 10000, device='cuda')
    except RuntimeError as error:
        assert torch.cuda.why_unavailable() in str(error), error
    else:
        raise AssertionError("a tensor was made on a device that is not there")

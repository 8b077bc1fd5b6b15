"""Module.share_memory: either another process sees what is written, or it is said that none would."""
import os

import naru as torch
from naru import nn


def test_a_forked_process_reads_what_is_written_behind_the_fork_or_sharing_is_refused():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2) if hasattr(nn, "BatchNorm1d") else nn.Identity())
    try:
        assert model.share_memory() is model
    except NotImplementedError as error:
        assert "can't be shared with other processes yet" in str(error)
        return
    assert all(p.is_shared() for p in model.parameters()) and all(b.is_shared() for b in model.buffers())
    child = os.fork()
    if child == 0:
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(7)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert all(p.eq(7).all() for p in model.parameters())

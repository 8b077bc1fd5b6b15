"""Module.share_memory: another process sees writes, or the call fails with an explanation."""
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


def test_memory_that_an_array_has_too_is_left_to_the_array_which_stays_as_it_was():
    import gc

    import numpy as np

    theirs = np.ones(300)
    taken = torch.from_numpy(theirs)
    view = taken[1:]
    assert taken.share_memory_() is taken and taken.is_shared() and view.is_shared()
    theirs[1], taken[2] = 5.0, 7.0
    assert taken[:3].tolist() == [1.0, 1.0, 7.0] and view[:2].tolist() == [1.0, 7.0] and theirs[:3].tolist() == [1.0, 5.0, 1.0]
    given = torch.arange(300)
    array = given.numpy()
    given.share_memory_()
    given += 1
    del given
    gc.collect()
    noise = torch.full((300,), -1)
    assert array.tolist() == list(range(300)) and noise.sum() == -300

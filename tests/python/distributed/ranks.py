"""Starts ranks for tests: forked processes that meet in a file."""
import faulthandler
import os
import threading
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
from naru.distributed.device_mesh import init_device_mesh
from naru.distributed.fsdp import fully_shard

MOST_SECONDS = 200  # a rank that takes longer hangs; pytest's own limit is longer, so that the rank tells where it is


def _tell_where_it_hangs():
    faulthandler.dump_traceback()
    os._exit(1)


def _begin(rank, body, size, path, rest):
    # Not faulthandler.dump_traceback_later: its thread, which pytest starts, is waited for forever in a forked child.
    limit = threading.Timer(MOST_SECONDS, _tell_where_it_hangs)
    limit.daemon = True
    limit.start()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    body(rank, size, *rest)
    dist.destroy_process_group()


def on_ranks(tmp_path, size, body, *rest):
    """Calls body(rank, size, *rest) in `size` processes; raises what one of them raises."""
    mp.start_processes(_begin, args=(body, size, str(tmp_path / "store"), rest), nprocs=size, start_method="fork")


def fully_shard_on_cpu(module, **options):
    """fully_shard over all ranks on the cpu, also where there is a (virtual) cuda device."""
    return fully_shard(module, **{"mesh": init_device_mesh("cpu", (dist.get_world_size(),)), **options})

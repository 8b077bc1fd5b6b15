"""Two hosts, as two network namespaces of this machine joined by a virtual cable: what goes over it, and what is said when it is cut."""
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed_support import needs_mpi

PROGRAM = """
import os, sys
from datetime import timedelta
import naru as torch, naru.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
assert dist.group.WORLD._engine.transport() == "MPI"
for n in (3, 1000, 500_000):
    x = torch.arange(float(n)) + rank
    dist.all_reduce(x)
    assert x.equal(torch.arange(float(n)) * size + size * (size - 1) / 2)
found = [None] * size
dist.all_gather_object(found, rank)
assert found == list(range(size))
if rank == 0:
    dist.send(torch.arange(3_000_000), size - 1)
elif rank == size - 1:
    x = torch.zeros(3_000_000, dtype=torch.int64)
    dist.recv(x, 0)
    assert x.equal(torch.arange(3_000_000))
print("joined", flush=True)
if "until the end" in sys.argv:
    try:
        while True:
            dist.all_reduce(torch.ones(20_000))
    except dist.DistBackendError as error:
        print(error, flush=True)
        os._exit(0)
dist.destroy_process_group()
"""
NUMBERS = itertools.count()


def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, text=True, timeout=60, check=False)


class Hosts:
    """Two namespaces, with addresses 10.99.0.1 and 10.99.0.2."""

    def __init__(self):
        label = f"naru{os.getpid()}x{next(NUMBERS)}"
        self.names = [f"{label}a", f"{label}b"]
        self.ranks = []

    def begin(self):
        if not Path("/proc/self/ns/net").exists() or os.geteuid() != 0:
            return "network namespaces need root"
        first, second = self.names
        orders = [("netns", "add", first), ("netns", "add", second)]
        orders += [("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)]
        for i, name in enumerate(self.names):
            orders += [("-n", name, "addr", "add", f"10.99.0.{i + 1}/24", "dev", "cable"), ("-n", name, "link", "set", "cable", "up"), ("-n", name, "link", "set", "lo", "up")]
        for order in orders:
            try:
                done = ip(*order)
            except FileNotFoundError:
                return "there is no program `ip` (iproute2)"
            if done.returncode:
                return f"ip {' '.join(order)}: {done.stderr.strip()}"
        for name in self.names:  # it takes the kernel up to a second
            while ip("netns", "exec", name, "cat", "/sys/class/net/cable/operstate").stdout != "up\n":
                time.sleep(0.05)
        return ""

    def delay(self):
        """Delays what both send by a millisecond; why that can't be done, or ""."""
        for name in self.names:
            done = subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "cable", "root", "netem", "delay", "1ms"], capture_output=True, text=True, timeout=60, check=False)
            if done.returncode:
                return f"tc netem: {done.stderr.strip()}"
        return ""

    def start(self, program, each, *args):
        """`each` ranks on each host. What MPI would use between processes of one kernel is forbidden: they are to be on different hosts."""
        told = {**os.environ, "MASTER_ADDR": "10.99.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": str(2 * each), "FI_PROVIDER": "tcp", "NARU_HEARTBEAT_SECONDS": "2"}
        told["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        for rank in range(2 * each):
            command = ["ip", "netns", "exec", self.names[rank // each], sys.executable, str(program), *args]
            self.ranks.append(subprocess.Popen(command, env={**told, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.ranks

    def carried(self):
        """Bytes that the cable has carried to the second host."""
        text = ip("netns", "exec", self.names[1], "cat", "/sys/class/net/cable/statistics/rx_bytes").stdout
        return int(text)

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.communicate(timeout=60)
        for name in self.names:
            ip("netns", "del", name)


@pytest.fixture
def hosts():
    made = Hosts()
    why = made.begin()
    if why:
        made.end()
        pytest.skip(f"no network namespaces here: {why}")
    yield made
    made.end()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def joined(ranks):
    for rank in ranks:
        line = rank.stdout.readline()
        assert line == "joined\n", rank.communicate(timeout=60)


@needs_mpi
@pytest.mark.parametrize("delayed", [False, True], ids=["at once", "delayed"])
def test_hosts_exchange_by_mpi(hosts, program, delayed):
    if delayed and (why := hosts.delay()):
        pytest.skip(f"no delay on this kernel: {why}")
    before = hosts.carried()
    for rank in hosts.start(program, 2):
        out, err = rank.communicate(timeout=120)
        assert (rank.returncode, out) == (0, "joined\n"), err
    assert hosts.carried() - before > 24_000_000  # the message of 3 million numbers alone


@needs_mpi
@pytest.mark.parametrize("victim", [0, 3])
def test_a_rank_that_is_killed_is_named_on_the_other_host(hosts, program, victim):
    ranks = hosts.start(program, 2, "until the end")
    joined(ranks)
    time.sleep(0.1)
    ranks[victim].send_signal(signal.SIGKILL)
    for number, rank in enumerate(ranks):
        out, err = rank.communicate(timeout=60)
        assert number == victim or f"rank {victim} is gone" in out, (out, err)


@needs_mpi
def test_a_cut_cable_is_told_on_both_hosts(hosts, program):
    ranks = hosts.start(program, 2, "until the end")
    joined(ranks)
    assert ip("-n", hosts.names[0], "link", "set", "cable", "down").returncode == 0
    for rank in ranks:
        out, err = rank.communicate(timeout=60)
        assert "is gone: nothing has come from it for 2 s; it was stopped, or its host or the network is down" in out, (out, err)


def test_without_mpi_hosts_say_what_to_install(hosts, tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import naru.distributed as dist\ntry:\n    dist.init_process_group('gloo')\nexcept dist.DistBackendError as error:\n    print(error)\n")
    os.environ["NARU_MPI"] = "/nowhere/libmpi_abi.so.1"
    try:
        ranks = hosts.start(path, 1)
    finally:
        del os.environ["NARU_MPI"]
    for rank in ranks:
        out, err = rank.communicate(timeout=60)
        assert out.startswith("the ranks are on several hosts, so MPI has to join them: rank 0 can't use MPI: ") and "pip install 'mpich" in out, (out, err)


@needs_mpi
def test_torchrun_on_both_hosts_starts_anew_together(hosts, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import os, sys, torch, torch.distributed as dist\ndist.init_process_group()\nx = torch.tensor([dist.get_rank()])\ndist.all_reduce(x)\n"
        "sys.stdout.write(f'{x.item()} of {dist.get_world_size()} by {dist.group.WORLD._engine.transport()}\\n')\nsys.stdout.flush()\ndist.barrier()\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and dist.get_rank() == 3: sys.exit(1)\ndist.barrier()\ndist.destroy_process_group()\n"
    )
    for name in hosts.names:
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "naru", "torchrun", "--nnodes=2", "--nproc_per_node=2", "--max_restarts=1", "--rdzv_backend=c10d", "--rdzv_endpoint=10.99.0.1:29400", str(path)]
        told = {**os.environ, "FI_PROVIDER": "tcp", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        hosts.ranks.append(subprocess.Popen(command, env=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    told = [host.communicate(timeout=120) for host in hosts.ranks]
    assert [host.returncode for host in hosts.ranks] == [0, 0], told
    assert "".join(out for out, _ in told).splitlines() == ["6 of 4 by MPI"] * 8, told

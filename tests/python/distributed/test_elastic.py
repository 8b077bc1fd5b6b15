"""torchrun with --rdzv_backend=c10d: hosts (here: several of its processes on one) start together, again and again, with as many as are there."""
import os
import select
import signal
import socket
import subprocess
import sys

import pytest
from naru.distributed import run
from naru.distributed._meeting import Options, RendezvousError

PROGRAM = """
import os, sys, time
import torch, torch.distributed as dist
folder, attempt = sys.argv[1], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
assert (int(os.environ["GROUP_RANK"]), int(os.environ["GROUP_WORLD_SIZE"])) == (rank, size)
if rank == 0:
    sys.stdout.write(f"attempt {attempt} with {size}\\n")
    sys.stdout.flush()
if "fails" in sys.argv and rank == 1 and attempt == 0:
    sys.exit(3)
if "fails" in sys.argv and attempt == 0:
    time.sleep(100)  # it computes, and does not see that another one has failed
stop = torch.zeros(1)
while not stop.item():
    stop.fill_(os.path.exists(f"{folder}/stop"))
    dist.all_reduce(stop)
    time.sleep(0.01)
dist.destroy_process_group()
"""


class Hosts:
    def __init__(self, folder):
        self.folder, self.started = folder, []
        (folder / "program.py").write_text(PROGRAM)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.endpoint = f"127.0.0.1:{s.getsockname()[1]}"

    def start(self, nodes, *arguments, conf="last_call_timeout=0.5,keep_alive_interval=0.2,keep_alive_max_attempt=25,join_timeout=60", restarts=1):
        options = [f"--nnodes={nodes}", "--rdzv_backend=c10d", f"--rdzv_endpoint={self.endpoint}", "--rdzv_id=a", f"--rdzv_conf={conf}", f"--max_restarts={restarts}"]
        command = [sys.executable, "-m", "naru", "torchrun", *options, str(self.folder / "program.py"), str(self.folder), *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.started[-1]

    def stop(self):
        (self.folder / "stop").touch()

    def end(self):
        for host in self.started:
            host.kill()
            host.communicate(timeout=60)


@pytest.fixture
def hosts(tmp_path):
    made = Hosts(tmp_path)
    yield made
    made.end()


def test_all_hosts_start_anew_where_a_process_of_one_fails(hosts):
    both = [hosts.start(2, "fails"), hosts.start(2, "fails")]
    hosts.stop()
    told = [host.communicate(timeout=100) for host in both]
    assert [host.returncode for host in both] == [0, 0], told
    assert sorted("".join(out for out, _ in told).splitlines()) == ["attempt 0 with 2", "attempt 1 with 2"]
    assert sorted("processes failed; starting all anew (1 of 1)" in err for _, err in told) == [False, True]
    assert sorted("the hosts have changed, or one starts anew" in err for _, err in told) == [False, True]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_hosts_come_and_go(hosts, how):
    first = hosts.start("1:3")
    assert first.stdout.readline() == "attempt 0 with 1\n"
    second = hosts.start("1:3")
    # Rank 0 is on either: the one that asked for the round is in it first.
    assert second.stdout.readline() == "attempt 1 with 2\n", second.communicate(timeout=60)
    second.send_signal(how)
    assert first.stdout.readline() == "attempt 2 with 1\n"
    hosts.stop()
    _, err = first.communicate(timeout=60)
    assert first.returncode == 0 and "the hosts have changed" in err
    assert second.wait(60) == (-signal.SIGKILL if how == signal.SIGKILL else 128 + signal.SIGTERM)


def test_a_host_without_restarts_ends_the_job_on_all(hosts):
    both = [hosts.start(2, "fails", restarts=0), hosts.start(2, "fails", restarts=0)]
    told = [host.communicate(timeout=100) for host in both]
    assert [host.returncode for host in both] == [1, 1]
    errors = sorted(err.strip().splitlines()[-1] for _, err in told)
    assert "torchrun: the job has ended on another host: 1 of its processes failed, and no restart is left" in errors, errors


def test_too_few_hosts_are_told(hosts):
    alone = hosts.start("2:3", conf="join_timeout=0.5")
    _, err = alone.communicate(timeout=60)
    assert (alone.returncode, err) == (1, "torchrun: 1 hosts have come in 0.5 s, and --nnodes=2:3 are wanted\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--nnodes=1:2"], "--nnodes=1:2: a number of hosts that may change needs --rdzv_backend=c10d and --rdzv_endpoint=HOST:PORT"),
        (["--nnodes=2:1"], "--nnodes must be a number of hosts from 1 on, or MIN:MAX, got 2:1"),
        (["--nnodes=0"], "got 0"),
        (["--nnodes=x"], "got x"),
    ],
)
def test_numbers_of_hosts_that_cannot_be(options, says, capsys):
    assert run.main([*options, "--no-python", "true"]) == 2
    assert says in capsys.readouterr().err


def test_what_rdzv_conf_says():
    assert Options.parse("join_timeout=5, last_call_timeout=0.5,timeout=3") == Options(join_timeout=5, last_call_timeout=0.5)
    for text, says in (("join=5", "wanted name=value"), ("join_timeout=x", "join_timeout must be a number, got 'x'")):
        with pytest.raises(ValueError, match=says):
            Options.parse(text)


def test_a_store_that_is_gone_is_told(hosts):
    """That of the first host, which is killed: the second can't go on."""
    conf = "read_timeout=4,keep_alive_interval=0.2,keep_alive_max_attempt=100"
    first = hosts.start("2", conf=conf)
    second = hosts.start("2", conf=conf)
    first_has_it = {first.stdout: first, second.stdout: second}
    ready, _, _ = select.select(list(first_has_it), [], [], 60)
    assert ready[0].readline() == "attempt 0 with 2\n"
    servers = [host for host in (first, second) if listens(host.pid, int(hosts.endpoint.rpartition(":")[2]))]
    assert len(servers) == 1
    servers[0].kill()
    other = second if servers[0] is first else first
    _, err = other.communicate(timeout=60)
    assert other.returncode == 1 and "torchrun: the store where hosts meet is gone" in err and issubclass(RendezvousError, RuntimeError), err


def listens(process, port):
    """Whether a process has a socket that listens at the port."""
    sockets = {os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd") if os.path.islink(f"/proc/{process}/fd/{fd}")}
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return any(f"socket:[{row[9]}]" in sockets for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port)

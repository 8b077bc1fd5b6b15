"""`torchrun`: starts a program in several processes, with the environment variables they need to find each other.

    naru torchrun --nproc_per_node=4 train.py
    naru run -m torch.distributed.run --standalone --nproc_per_node=4 train.py
    naru torchrun --nnodes=2 --node_rank=0 --master_addr=HOST --master_port=29500 --nproc_per_node=4 train.py      (on each host, with its node_rank)

When one process fails, the others are ended, and all are restarted at most --max_restarts times. With --rdzv_backend=c10d hosts need no number, all of
them restart together, and with --nnodes=MIN:MAX they may come and go between restarts (python/naru/distributed/_meeting.py).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import timedelta
from typing import Any

from .. import _missing
from ..multiprocessing._parent import before_exec
from ._meeting import Meeting, Options, RendezvousError, own_address
from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_GRACE = 15  # seconds between SIGTERM and SIGKILL


def get_args_parser() -> argparse.ArgumentParser:
    """The options of torchrun.

    >>> get_args_parser().parse_args(["--nproc-per-node=2", "train.py", "--epochs", "3"]).training_script_args
    ['--epochs', '3']
    """
    parser = argparse.ArgumentParser(prog="torchrun", description="Starts a program in several processes.", allow_abbrev=False)

    def add(name: str, **options: Any) -> None:
        # Kubeflow and others give each host its options as variables.
        told = os.environ.get(f"PET_{name.upper()}")
        if told is not None:
            options["default"] = told.lower() in ("1", "true") if options.get("action") else options.get("type", str)(told)
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", **options) if "_" in name else parser.add_argument(f"--{name}", **options)

    add("nnodes", default="1", help="hosts: N, or MIN:MAX with --rdzv_backend=c10d")
    add("nproc_per_node", default="1", help="processes of each host: a number, auto, cpu or gpu")
    add("node_rank", type=int, default=int(os.environ.get("GROUP_RANK", 0)), help="the number of this host")
    add("master_addr", default="127.0.0.1", help="the first host")
    add("master_port", type=int, default=29500, help="a port there; 0: any that is free, on one host")
    add("standalone", action="store_true", help="one host, and a port that is free")
    add("max_restarts", type=int, default=0, help="how often to start anew after a failure")
    add("rdzv_backend", default="static", help="static or c10d")
    add("rdzv_endpoint", default="", help="HOST[:PORT] of the first host")
    add("rdzv_id", default="none", help="the name of this run")
    add("rdzv_conf", default="", help="c10d: join_timeout=600,last_call_timeout=30,keep_alive_interval=5,keep_alive_max_attempt=3,read_timeout=20")
    add("monitor_interval", type=float, default=0.1, help="seconds between looks at the processes")
    add("start_method", default="spawn", help="accepted")
    add("role", default="default", help="a name for the processes")
    add("log_dir", default=None, help="where output goes that is redirected")
    parser.add_argument("-r", "--redirects", default="0", help="1: stdout, 2: stderr, 3: both go to files of --log_dir")
    parser.add_argument("-t", "--tee", default="0", help="accepted")
    add("local_addr", default=None, help="c10d: by which other hosts reach this one")
    add("local_ranks_filter", default="", help="accepted")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as of python -m")
    add("no_python", action="store_true", help="the program is a command, not Python")
    add("run_path", action="store_true", help="accepted")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The options in a command line `args`; None: this process's.

    >>> parse_args(["--standalone", "train.py"]).standalone
    True
    """
    return get_args_parser().parse_args(args)


def _processes(text: str) -> int:
    if text in ("auto", "gpu", "cpu"):
        from .. import _C

        devices = _C.device_count("cuda") if text != "cpu" else 0
        if text == "gpu" and not devices:
            raise ValueError("--nproc_per_node=gpu: there are no cuda devices")
        return devices or os.cpu_count() or 1
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"--nproc_per_node must be a number, auto, cpu or gpu, got {text}")
    return int(text)


def _hosts(text: str) -> tuple[int, int]:
    """The least and the largest number of hosts of N or MIN:MAX.

    >>> _hosts("2"), _hosts("1:4")
    ((2, 2), (1, 4))
    """
    found = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= least <= most:
        raise ValueError(f"--nnodes must be a number of hosts from 1 on, or MIN:MAX, got {text}")
    return least, most


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def _is_own(host: str) -> bool:
    """Whether a name or address is this host's: only its own can be bound.

    >>> _is_own("127.0.0.1"), _is_own("192.0.2.1")
    (True, False)
    """
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as s:
            s.bind(address)
            return True
    return False


def _host_and_port(endpoint: str) -> tuple[str, int | None]:
    """The parts of HOST, HOST:PORT, [IPv6 address] or [IPv6 address]:PORT.

    >>> _host_and_port("[::1]:29500"), _host_and_port("node-0:1234"), _host_and_port("fe80::1")
    (('::1', 29500), ('node-0', 1234), ('fe80::1', None))
    """
    found = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:]*)(?::(\d+))?", endpoint)
    if found is None:
        if endpoint.count(":") > 1:
            return endpoint, None
        raise ValueError(f"--rdzv_endpoint: wanted HOST or HOST:PORT, with an IPv6 address in brackets, got '{endpoint}'")
    port = found[2] or found[4]
    return found[1] or found[3], int(port) if port else None


class _Plan:
    """The number of this host, and the environment for all processes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.count = _processes(str(args.nproc_per_node))
        least, self.nodes = _hosts(str(args.nnodes))
        self.node = args.node_rank
        self.first, self.world = self.node * self.count, self.nodes * self.count
        self.address, self.port = args.master_addr, args.master_port
        self.meeting: Meeting | None = None
        self.attempt = 0
        self.run_id = args.rdzv_id if args.rdzv_id != "none" else str(uuid.uuid4())
        self.token = secrets.token_hex(32)
        if args.standalone or (self.nodes == 1 and (args.rdzv_backend == "c10d" or self.port == 0)):
            self.address, self.port, self.nodes, self.node = "127.0.0.1", _free_port(), 1, 0
            self.first, self.world = 0, self.count
        elif args.rdzv_endpoint:
            host, port = _host_and_port(args.rdzv_endpoint)
            self.address, self.port = host or self.address, self.port if port is None else port
            if args.rdzv_backend != "static":
                self._meet(least)
        if self.meeting is None and least != self.nodes and not args.standalone:
            raise ValueError(f"--nnodes={args.nnodes}: a number of hosts that may change needs --rdzv_backend=c10d and --rdzv_endpoint=HOST:PORT")

    def _meet(self, least: int) -> None:
        """Hosts meet in a store at the endpoint, served by the host that owns the address."""
        from . import DistNetworkError, PrefixStore, TCPStore

        options = Options.parse(self.args.rdzv_conf)
        patience = timedelta(seconds=options.join_timeout)
        here = _is_own(self.address)
        try:
            store = TCPStore(self.address, self.port, is_master=here, timeout=patience, wait_for_workers=False)
        except DistNetworkError:
            if not here:
                raise
            here, store = False, TCPStore(self.address, self.port, is_master=False, timeout=patience)  # another torchrun on this host has it
        store.set_timeout(timedelta(seconds=options.read_timeout))
        # The host of the store is reached by the name that all have been given; its own view of that name may be a loopback.
        address = self.args.local_addr or ("127.0.0.1" if self.address == "localhost" else self.address if here else own_address(self.address, self.port))
        self.run_id = self.args.rdzv_id
        prefixed = PrefixStore(f"torchrun/{self.run_id}", store)
        self.meeting = Meeting(prefixed, here, least, self.nodes, self.count, address, _free_port, options)

    def begin(self) -> None:
        """Before each attempt: meets the other hosts, where these may change."""
        if self.meeting is not None:
            met = self.meeting.join()
            self.node, self.nodes, self.first, self.world, self.address, self.port = met.node, met.nodes, met.first, met.world, met.address, met.port
            self.attempt = met.number - 1

    def environment(self, local: int, restarts: int, error_file: str) -> dict[str, str]:
        first, world = self.first, self.world
        told = {
            "LOCAL_RANK": local, "RANK": first + local, "GROUP_RANK": self.node, "ROLE_RANK": first + local, "ROLE_NAME": self.args.role,
            "LOCAL_WORLD_SIZE": self.count, "WORLD_SIZE": world, "GROUP_WORLD_SIZE": self.nodes, "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": self.address, "MASTER_PORT": self.port, "TORCHELASTIC_RESTART_COUNT": restarts,
            "TORCHELASTIC_MAX_RESTARTS": self.args.max_restarts, "TORCHELASTIC_RUN_ID": self.run_id, "TORCHELASTIC_ERROR_FILE": error_file,
        }  # fmt: skip
        made = {**os.environ, **{key: str(value) for key, value in told.items()}}
        if self.nodes == 1:  # with several hosts, the user sets the same one on each
            made.setdefault("NARU_STORE_TOKEN", self.token)
        if self.count > 1 and not {"OMP_NUM_THREADS", "NARU_NUM_THREADS"} & os.environ.keys():
            made["OMP_NUM_THREADS"] = "1"  # as in torchrun: the processes share the machine
        return made

    def command(self, local: int) -> list[str]:
        args = self.args
        own = [*([f"--local-rank={local}"] if getattr(args, "local_rank_argument", False) else []), *args.training_script_args]
        if args.no_python:
            return [args.training_script, *own]
        # `import torch` in the program means naru, even if torchrun itself runs outside of `naru run`.
        return [sys.executable, "-u", "-m", "naru", "run", *(["-m"] if args.module else []), args.training_script, *own]


class _Workers:
    def __init__(self, plan: _Plan, folder: str, restarts: int) -> None:
        self._plan = plan
        self._error_files = [os.path.join(folder, f"error-{restarts}-{i}.json") for i in range(plan.count)]
        self.processes: list[subprocess.Popen] = []
        for i in range(plan.count):
            out, err = self._outputs(i)
            environment = plan.environment(i, restarts, self._error_files[i])
            self.processes.append(subprocess.Popen(plan.command(i), env=environment, stdout=out, stderr=err, preexec_fn=before_exec()))

    def _outputs(self, local: int) -> tuple[Any, Any]:
        kind = {part.partition(":")[0]: part.partition(":")[2] for part in str(self._plan.args.redirects).split(",")}
        bits = int(kind.get(str(local)) or (next(iter(kind)) if "" in kind.values() else 0) or 0)
        if not bits:
            return None, None
        folder = os.path.join(self._plan.args.log_dir or tempfile.mkdtemp(prefix="torchrun-"), str(local))
        os.makedirs(folder, exist_ok=True)
        files = [os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666) for name in ("stdout.log", "stderr.log")]
        return (files[0] if bits & 1 else None), (files[1] if bits & 2 else None)

    def wait(self, interval: float) -> dict[int, ProcessFailure] | None:
        """Waits until all have ended successfully, or one has failed: then ends the others and returns the failures. None: other hosts want to restart."""
        meeting = self._plan.meeting
        while True:
            codes = [p.poll() for p in self.processes]
            if any(codes):
                break
            if None not in codes:
                return {}
            if meeting is not None and meeting.is_over():
                self.end()
                return None
            time.sleep(interval)
        time.sleep(min(interval, 0.2))  # other processes that fail for the same reason fail now
        failed = {i: p.returncode for i, p in enumerate(self.processes) if p.poll()}
        self.end()
        first = self._plan.first
        return {first + i: ProcessFailure(i, self.processes[i].pid, code, self._error_files[i]) for i, code in failed.items()}

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        for p in self.processes:
            if p.poll() is None:
                p.send_signal(how)
        end = time.monotonic() + _GRACE
        for p in self.processes:
            try:
                p.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


class _Signal(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


def _raise_signal(number: int, frame: Any) -> None:
    raise _Signal(number)


def run(args: argparse.Namespace) -> None:
    """Starts what `args` (of parse_args) describe, and returns when all processes have ended successfully; ChildFailedError if one fails.

    >>> run(parse_args(["--no-python", "true"]))
    """
    plan = _Plan(args)
    before = {number: signal.signal(number, _raise_signal) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    workers: _Workers | None = None
    meeting = plan.meeting
    try:
        with tempfile.TemporaryDirectory(prefix="torchrun-") as folder:
            restarts = 0
            while True:
                plan.begin()
                workers = _Workers(plan, folder, restarts if meeting is None else plan.attempt)
                failures = workers.wait(args.monitor_interval)
                if failures is None or (failures and meeting is not None and meeting.moved_on()):
                    print("torchrun: the hosts have changed, or one starts anew; so does this one", file=sys.stderr)
                elif not failures:
                    if meeting is not None:
                        meeting.finish()
                    return
                elif restarts < args.max_restarts:
                    restarts += 1
                    print(f"torchrun: {len(failures)} processes failed; starting all anew ({restarts} of {args.max_restarts})", file=sys.stderr)
                else:
                    if meeting is not None:
                        meeting.close(f"{len(failures)} of its processes failed, and no restart is left")
                    raise ChildFailedError(args.training_script, failures)
    except _Signal as told:
        if meeting is not None:
            meeting.leave()
        if workers is not None:
            workers.end(signal.Signals(told.number))
        raise SystemExit(128 + told.number) from None
    except RendezvousError:
        if workers is not None:
            workers.end()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(args: list[str] | None = None) -> int:
    """torchrun with the command line `args` (None: this process's); returns the exit status.

    >>> main(["--nproc_per_node=2", "--no-python", "true"])
    0
    """
    from . import DistNetworkError

    try:
        run(parse_args(args))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    except (RendezvousError, DistNetworkError) as error:
        print(f"torchrun: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"torchrun: {error}", file=sys.stderr)
        return 2
    return 0


__getattr__ = _missing.module_getattr(__name__)

if __name__ == "__main__":
    sys.exit(main())

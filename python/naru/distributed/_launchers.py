"""Who a process is, where something else than torchrun has started it: mpirun and srun say it in variables of their own."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import select
import time
import zlib
from typing import TYPE_CHECKING, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

# Ports that are derived from a job's name: below those that systems give to connections (from 32768 on).
_FIRST_PORT, _PORTS = 20000, 10000


class _Launcher(NamedTuple):
    """The variables of a launcher; size and the local ones may be missing."""

    name: str
    rank: str
    size: str | None
    local_rank: str | None = None
    local_size: str | None = None


_OPEN_MPI = _Launcher("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
_MPIEXEC = _Launcher("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")  # of MPICH and its kin
_PMIX = _Launcher("a launcher that speaks PMIx", "PMIX_RANK", None)
# Slurm's variables come last: within its jobs, mpirun's processes inherit those of the daemon or script that has started them.
_SLURM = _Launcher("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")


class Place(NamedTuple):
    """The rank and number of processes, and the launcher that tells them (None: RANK and WORLD_SIZE do)."""

    rank: int
    size: int
    launcher: _Launcher | None


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ[name]
    if not text.isdecimal():
        raise ValueError(f"env:// rendezvous: the environment variable {name} must be a number, got '{text}'")
    return int(text)


def _missing(name: str, why: str = "torchrun sets it, mpirun and srun set their own, and so can the program") -> ValueError:
    return ValueError(f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set; {why}")


def _agree(environ: Mapping[str, str], one: str, value: int, other: str) -> None:
    if other in environ and _number(environ, other) != value:
        raise ValueError(f"env:// rendezvous: {one} is {value} and {other} is {environ[other]}, so who has started this process is not clear; unset those that are left over")


def _launcher(environ: Mapping[str, str]) -> _Launcher | None:
    """The launcher of this process, by its variables; ValueError if they are half there or contradict each other."""
    for known in (_OPEN_MPI, _MPIEXEC, _SLURM):
        assert known.size is not None
        if (known.rank in environ) == (known.size in environ) or (known is _SLURM and known.rank not in environ):
            continue  # SLURM_NTASKS alone is in each shell of a job
        there, absent = (known.rank, known.size) if known.rank in environ else (known.size, known.rank)
        raise ValueError(f"env:// rendezvous: {there} is set and {absent} is not, and {known.name} sets both: start the program by it, or set RANK and WORLD_SIZE")
    found = next((known for known in (_OPEN_MPI, _MPIEXEC) if known.rank in environ), None)
    if found is _OPEN_MPI:
        for one, other in ((_OPEN_MPI.rank, _MPIEXEC.rank), (_OPEN_MPI.size, _MPIEXEC.size), (_OPEN_MPI.rank, _PMIX.rank)):
            _agree(environ, str(one), _number(environ, str(one)), str(other))
    if found is None and _SLURM.rank in environ and (_PMIX.rank not in environ or environ[_PMIX.rank] == environ[_SLURM.rank]):
        return _SLURM
    return found or (_PMIX if _PMIX.rank in environ else None)


def place(rank: int, size: int, environ: Mapping[str, str] = os.environ) -> Place:
    """This process's place in the environment; `rank` and `size` in place of what it says, unless these are -1.

    >>> place(-1, -1, {"PMI_RANK": "1", "PMI_SIZE": "4"})[:2]
    (1, 4)
    """
    told = {"RANK": rank, "WORLD_SIZE": size}
    for name, value in told.items():
        if value < 0 and name in environ:
            told[name] = _number(environ, name)
    if min(told.values()) >= 0 and "MASTER_ADDR" in environ and "MASTER_PORT" in environ:
        return Place(told["RANK"], told["WORLD_SIZE"], None)
    launcher = _launcher(environ)
    if launcher is None:
        for name, value in told.items():
            if value < 0:
                raise _missing(name)
        return Place(told["RANK"], told["WORLD_SIZE"], None)
    for name, variable in (("RANK", launcher.rank), ("WORLD_SIZE", launcher.size)):
        if variable is None:
            if told[name] < 0:
                raise _missing(name, f"{launcher.name} has started this process, and its variables do not say how many there are")
        elif told[name] < 0:
            told[name] = _number(environ, variable)
        else:
            _agree(environ, name, told[name], variable)
    if told["RANK"] >= told["WORLD_SIZE"]:
        raise ValueError(f"env:// rendezvous: rank {told['RANK']} of {told['WORLD_SIZE']} processes, by the variables of {launcher.name}; ranks begin at 0")
    return Place(told["RANK"], told["WORLD_SIZE"], launcher)


def local_rank(environ: Mapping[str, str] = os.environ) -> int | None:
    """The rank among the processes of this host, as LOCAL_RANK or the launcher says it; None if nothing does."""
    if "LOCAL_RANK" in environ:
        return _number(environ, "LOCAL_RANK")
    launcher = None if "RANK" in environ else _launcher(environ)
    name = launcher.local_rank if launcher else None
    return _number(environ, name) if name and name in environ else None


def first_host(nodes: str) -> str:
    """The first host of a list of Slurm's.

    >>> first_host("rack[2-3]node[07,09],login"), first_host("a,b")
    ('rack2node07', 'a')
    """
    item = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if not item:
        raise ValueError(f"a list of hosts as Slurm writes them is wanted, such as node[01-04], got '{nodes}'")
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", item[0])


def _hosts(at: Place, environ: Mapping[str, str]) -> tuple[str | None, bool]:
    """The host of rank 0, if it is known, and whether it is the only one."""
    local = at.launcher.local_size if at.launcher else None
    alone = at.size == 1 or bool(local and environ.get(local) == str(at.size))
    if alone:
        return "127.0.0.1", True
    nodes = next((environ[name] for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST") if name in environ), "")
    if not nodes or at.launcher is _MPIEXEC:
        return None, False
    alone = re.fullmatch(r"[^,\[]+|[^,\[]*\[\w+\]", nodes) is not None
    return ("127.0.0.1" if alone else first_host(nodes)), alone


def address(at: Place, turn: int, environ: Mapping[str, str] = os.environ) -> tuple[str, int] | None:
    """Where the store of rank 0 listens: by MASTER_ADDR and MASTER_PORT, or as the launcher's variables say. None: the processes must ask the launcher (`Pmi`).

    A port that is derived from the job's name is the same for all of its processes, and probably free; another for each `turn`, because the store of the
    last one may still be there.
    """
    host, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT")
    if at.launcher is None or (host and port):
        if not host or not port:
            raise _missing("MASTER_PORT" if host else "MASTER_ADDR", "torchrun sets it, and so can the program")
        return host, int(port)
    if at.launcher is _MPIEXEC and "PMI_FD" in environ and not host and not port:
        return None
    if not host:
        host, _ = _hosts(at, environ)
    if not host:
        raise _missing("MASTER_ADDR", f"{at.launcher.name} does not say on which host rank 0 is: export it, e.g. mpirun -x MASTER_ADDR=first.host ...")
    if not port:
        job = environ.get("PMIX_NAMESPACE") or ".".join(environ[name] for name in ("SLURM_JOB_ID", "SLURM_STEP_ID") if name in environ)
        if not job:
            raise _missing("MASTER_PORT", f"{at.launcher.name} gives the processes nothing in common to derive it from: export it")
        return host, _FIRST_PORT + zlib.crc32(f"{job} {turn}".encode()) % _PORTS
    return host, int(port)


def _mpi_is_in_use() -> bool:
    """Whether the program uses MPI itself (mpi4py ...), which then finalizes its connection to mpiexec later than Python's own exit."""
    import ctypes

    if Pmi.mpi_is_narus:
        return False
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if re.search(r"/libmpi[^/]*\.so", line)}
    flag = ctypes.c_int(0)
    for path in paths:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY).MPI_Initialized(ctypes.byref(flag))
            if flag.value:
                return True
    return False


class Pmi:
    """Asks mpiexec, by the text protocol PMI-1 on the socket that it has left open: a process tells a text to all others.

    MPI itself may use the socket afterwards, or have done so.
    """

    mpi_is_narus = False  # naru has started MPI, over a connection of its own
    _finalizes = 0  # the process that tells mpiexec when it ends: others are killed where one ends without

    def __init__(self, timeout: timedelta) -> None:
        self._socket = int(os.environ["PMI_FD"])
        self._end = time.monotonic() + timeout.total_seconds()
        self._heard = b""
        self._ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
        if Pmi._finalizes != os.getpid():
            Pmi._finalizes = os.getpid()
            atexit.register(self._finalize, os.getpid())
        self._space = self._ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"]

    def _ask(self, question: str, answer: str) -> dict[str, str]:
        try:
            os.write(self._socket, f"{question}\n".encode())
            while b"\n" not in self._heard:
                left = self._end - time.monotonic()
                if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                    raise _C._DistNetworkError("mpiexec does not answer in time: a process has not come to init_process_group, or does not ask by PMI")
                got = os.read(self._socket, 4096)
                if not got:
                    raise _C._DistNetworkError("mpiexec has closed its connection")
                self._heard += got
        except OSError as error:
            raise _C._DistNetworkError(f"mpiexec can't be asked by PMI_FD={self._socket}: {error}; set MASTER_ADDR and MASTER_PORT") from None
        line, _, self._heard = self._heard.partition(b"\n")
        words = dict(word.partition("=")[::2] for word in line.decode().split(" "))
        if words.get("cmd") != answer or words.get("rc", "0") != "0":
            raise _C._DistNetworkError(f"mpiexec answers '{line.decode()}' to '{question}'; set MASTER_ADDR and MASTER_PORT")
        return words

    def _finalize(self, process: int) -> None:
        if process == os.getpid() and not _mpi_is_in_use():
            self._end = time.monotonic() + 10
            with contextlib.suppress(_C._DistNetworkError):
                self._ask("cmd=finalize", "finalize_ack")

    def share(self, text: str | None, turn: int) -> str:
        """What the one process that has a `text` says. All must call this, with the same `turn`."""
        key = f"naru-{turn}"
        if text is not None:
            self._ask(f"cmd=put kvsname={self._space} key={key} value={text}", "put_result")
        self._ask("cmd=barrier_in", "barrier_out")
        return self._ask(f"cmd=get kvsname={self._space} key={key}", "get_result")["value"]


def host_for_others(at: Place, environ: Mapping[str, str] = os.environ) -> str:
    """The name by which the other processes of mpiexec reach this one."""
    import socket

    host, alone = _hosts(at, environ)
    return host if host and alone else environ.get("PMI_HOSTNAME") or socket.gethostname()

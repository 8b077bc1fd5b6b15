"""torchrun's rendezvous "c10d": how the hosts of a job find each other at the start and at each restart.

The hosts share one text in a store: the number of the round, and who takes part. A round is open until the greatest number of hosts has joined, or until
the least number has and no other joins for a while; then their processes run. A host that wants another round (a process has failed, a host has come or is
lost) opens it, and the others join it when they see that. Each host joins each round again, so a host that is lost is not in the next one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._stores import Store

_POLL = 0.1  # seconds between two looks at the store while a round is open
_LOOK = 0.5  # and while processes run
_EXIT = 300.0  # how long a host that is done waits for others


class RendezvousError(RuntimeError):
    """Hosts that do not come together: too few in time, a job that others have ended, or a store that is gone."""


class Round(NamedTuple):
    """The hosts that run processes together."""

    number: int
    node: int  # of this host among them
    nodes: int
    first: int  # rank of this host's first process
    world: int
    address: str  # where the first process is to listen
    port: int


class Options(NamedTuple):
    """What --rdzv_conf may say; seconds, but for the last one."""

    join_timeout: float = 600.0
    last_call_timeout: float = 30.0
    keep_alive_interval: float = 5.0
    read_timeout: float = 20.0  # of the store
    keep_alive_max_attempt: float = 3.0

    @staticmethod
    def parse(text: str) -> Options:
        """Of a text such as "join_timeout=60,last_call_timeout=1"; others of PyTorch's names are accepted.

        >>> Options.parse("last_call_timeout=1").last_call_timeout
        1.0
        """
        told: dict[str, float] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, _, value = part.partition("=")
            if name in Options._fields:
                try:
                    told[name] = float(value)
                except ValueError:
                    raise ValueError(f"--rdzv_conf: {name} must be a number, got '{value}'") from None
            elif name not in ("timeout", "close_timeout", "is_host", "store_type", "heartbeat_timeout", "use_libuv"):
                raise ValueError(f"--rdzv_conf: wanted name=value,..., with names among {', '.join(Options._fields)}, got '{part}'")
        return Options(**told)


def own_address(host: str, port: int) -> str:
    """The address by which this host reaches another one; so that one can reach it by it."""
    with socket.create_connection((host, port), timeout=60) as line:
        return line.getsockname()[0]


class Meeting:
    """This host's part in the rounds of a job.

    Args:
        store: where hosts meet; serves_store: this host has it.
        least, most: how many hosts a round has.
        processes: of this host.
        address: by which other hosts reach it; port: a function that finds a free one.
    """

    def __init__(self, store: Store, serves_store: bool, least: int, most: int, processes: int, address: str, port: Callable[[], int], options: Options) -> None:
        self._store, self._serves_store, self._least, self._most = store, serves_store, least, most
        self._options, self._port = options, port
        self._me: dict[str, Any] = {"id": uuid.uuid4().hex, "processes": processes, "address": address}
        self._round = 0
        self._looked = 0.0
        self._beats: dict[str, tuple[int, float]] = {}  # of others: the last, and when it came
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    # --- the shared text

    def _read(self) -> tuple[str, dict[str, Any]]:
        try:
            text = self._store.compare_set("state", "", "").decode()
        except _C._DistError as error:
            raise RendezvousError(f"the store where hosts meet is gone: {error}") from None
        state = json.loads(text) if text else {"round": 0, "complete": True, "nodes": [], "closed": ""}
        if state["closed"]:
            raise RendezvousError(f"the job has ended on another host: {state['closed']}")
        return text, state

    def _write(self, before: str, state: dict[str, Any]) -> bool:
        """False if another host has written meanwhile."""
        text = json.dumps(state)
        try:
            return self._store.compare_set("state", before, text).decode() == text
        except _C._DistError as error:
            raise RendezvousError(f"the store where hosts meet is gone: {error}") from None

    # --- who lives

    def _beat(self) -> None:
        with contextlib.suppress(_C._DistError):
            while not self._stopped.wait(self._options.keep_alive_interval):
                self._store.add(f"beat/{self._me['id']}", 1)

    def _lost(self, nodes: list[dict[str, Any]]) -> list[str]:
        """Those of `nodes` from which no beat has come for too long, by this host's clock alone."""
        now, found = time.monotonic(), []
        for node in nodes:
            count = self._store.add(f"beat/{node['id']}", 0)
            last = self._beats.get(node["id"])
            if last is None or last[0] != count:
                self._beats[node["id"]] = (count, now)
            elif now - last[1] > self._options.keep_alive_interval * self._options.keep_alive_max_attempt:
                found.append(node["id"])
        return found

    def _lost_neighbour(self, nodes: list[dict[str, Any]]) -> list[str]:
        """Each host looks after the next one in the list, so that the store is not asked too much."""
        at = next((i for i, node in enumerate(nodes) if node["id"] == self._me["id"]), None)
        return [] if at is None or len(nodes) == 1 else self._lost([nodes[(at + 1) % len(nodes)]])

    # --- rounds

    def join(self) -> Round:
        """Takes part in the next round; returns when it is complete."""
        self._me["port"] = self._port()
        limit = time.monotonic() + self._options.join_timeout
        last_call: tuple[int, float] | None = None
        while True:
            text, state = self._read()
            ids = [node["id"] for node in state["nodes"]]
            mine = self._me["id"] in ids and state["round"] > self._round
            if state["complete"]:
                if mine:
                    return self._begin(state)
                # A round runs without this host: there is another one if it is needed here, or if it has room.
                if state["round"] == self._round or len(ids) < self._most or not ids:
                    self._write(text, {**state, "round": state["round"] + 1, "complete": False, "nodes": [self._me]})
                    continue
            elif not mine and len(ids) < self._most:
                self._write(text, {**state, "nodes": [*state["nodes"], self._me]})
                continue
            elif lost := self._lost_neighbour(state["nodes"]):
                self._write(text, {**state, "nodes": [node for node in state["nodes"] if node["id"] not in lost]})
                continue
            elif mine and len(ids) >= self._least:
                if last_call is None or last_call[0] != state["round"]:
                    last_call = (state["round"], time.monotonic() + self._options.last_call_timeout)
                if len(ids) == self._most or time.monotonic() >= last_call[1]:
                    self._write(text, {**state, "complete": True})
                    continue
            if time.monotonic() > limit:
                self._give_up()
                raise RendezvousError(f"{len(ids)} hosts have come in {self._options.join_timeout:g} s, and --nnodes={self._least}:{self._most} are wanted")
            time.sleep(_POLL)

    def _begin(self, state: dict[str, Any]) -> Round:
        nodes = state["nodes"]
        self._round = state["round"]
        self._looked = time.monotonic()
        node = [each["id"] for each in nodes].index(self._me["id"])
        counts = [each["processes"] for each in nodes]
        return Round(self._round, node, len(nodes), sum(counts[:node]), sum(counts), nodes[0]["address"], nodes[0]["port"])

    def is_over(self) -> bool:
        """Whether there is to be another round: a host wants one, or one of this round is lost. Looks at the store from time to time."""
        if time.monotonic() < self._looked + _LOOK:
            return False
        self._looked = time.monotonic()
        _, state = self._read()
        return state["round"] != self._round or bool(self._lost_neighbour(state["nodes"]))

    def moved_on(self) -> bool:
        """Whether the next round is there already."""
        return self._read()[1]["round"] != self._round

    # --- the end

    def _give_up(self) -> None:
        """Takes this host out of a round that is open."""
        while True:
            text, state = self._read()
            left = [node for node in state["nodes"] if node["id"] != self._me["id"]]
            if state["complete"] or len(left) == len(state["nodes"]) or self._write(text, {**state, "nodes": left}):
                return

    def leave(self) -> None:
        """This host takes part no more: the others go on without it, in another round."""
        self._stopped.set()
        with contextlib.suppress(RendezvousError):
            self._give_up()
            while True:
                text, state = self._read()
                if state["round"] != self._round or self._write(text, {**state, "round": state["round"] + 1, "complete": False, "nodes": []}):
                    return

    def close(self, reason: str) -> None:
        """Ends the job, on all hosts."""
        with contextlib.suppress(RendezvousError):
            while True:
                text, state = self._read()
                if self._write(text, {**state, "closed": reason}):
                    break
        if self._serves_store:
            time.sleep(3 * _LOOK)  # for the others to see it
        self._stopped.set()

    def finish(self) -> None:
        """This host's processes have ended successfully. The one that has the store stays until the others are done, too."""
        done = f"done/{self._round}"
        with contextlib.suppress(_C._DistError, RendezvousError):
            self._store.add(done, 1)
            limit = time.monotonic() + _EXIT
            while self._serves_store and time.monotonic() < limit:
                _, state = self._read()
                if state["round"] == self._round:
                    others = [node for node in state["nodes"] if node["id"] != self._me["id"]]
                    if self._store.add(done, 0) > len(others) - len(self._lost(others)):
                        break
                elif not state["complete"] and not state["nodes"]:
                    break
                time.sleep(_POLL)
        self._stopped.set()

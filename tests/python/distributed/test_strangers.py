"""Every port that naru opens, and who else may knock there: garbage, lengths, half-open connections, floods, slow ones. No stranger ends a program, fills its
memory, takes its descriptors or its time."""
import hashlib
import hmac
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import TRANSPORTS

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "NARU_STORE_TOKEN"
LIMIT = 16 << 20  # of a message to the store


HELLO, HELLO_BYTES = b"naru store 3\n", 13 + 32


def greeting():
    """A client's first words, with a proof that only a store without a token takes."""
    return HELLO + bytes(32) + bytes(32)


def proof(side, token, client_nonce, server_nonce):
    return hmac.digest(token.encode(), HELLO + side + client_nonce + server_nonce, hashlib.sha256)


def received(client, n):
    data = b""
    while len(data) < n:
        if not (piece := client.recv(n - len(data))):
            raise ConnectionError("cut off")
        data += piece
    return data


def introduce(client, token):
    """A client's side of the greeting; asserts that the store proves itself by `token`."""
    mine = os.urandom(32)
    client.sendall(HELLO + mine)
    answer = received(client, HELLO_BYTES + 32)
    theirs = answer[len(HELLO) : HELLO_BYTES]
    assert answer[: len(HELLO)] == HELLO and answer[HELLO_BYTES:] == proof(b"s", token, mine, theirs)
    client.sendall(proof(b"c", token, mine, theirs))


def message(what, *fields):
    body = what + b"".join(struct.pack("<I", len(field)) + field for field in fields)
    return struct.pack("<I", len(body)) + body


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def is_cut_off(client):
    """Whether the other side ends the connection, when it has said what it has to say."""
    try:
        while client.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def send_until_cut_off(client, data):
    try:
        client.sendall(data)
    except OSError:
        pass


def listening(process="self"):
    """(address, port) of all sockets of a process that listen."""
    own = set()
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            own.add(os.readlink(f"/proc/{process}/fd/{name}"))
        except OSError:
            pass
    found = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(path):
            continue
        for line in Path(path).read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and f"socket:[{parts[9]}]" in own:
                address, _, port = parts[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def address_of(port):
    return [address for address, p in listening() if p == port]


@pytest.fixture
def store(monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    return dist.TCPStore("127.0.0.1", 0, is_master=True)


def still_answers(store):
    other = dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=20))
    other.set("asked", "again")
    return store.get("asked") == b"again"


# --- the store


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_store_on_one_host_is_reached_from_nowhere_else(host, monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    if host == "::1" and not os.path.exists("/proc/net/if_inet6"):
        host = "127.0.0.1"
    store = dist.TCPStore(host, 0, is_master=True)
    assert address_of(store.port) in (["0100007F"], ["00000000000000000000000001000000"])
    dist.TCPStore(host, store.port).set("key", "value")
    assert store.get("key") == b"value"


def test_a_store_of_several_hosts_is_reached_from_all():
    store = dist.TCPStore("0.0.0.0", 0, is_master=True)
    assert address_of(store.port) in (["00000000"], ["0" * 32])
    assert still_answers(store)


def test_a_launchs_token_is_asked_for(monkeypatch):
    monkeypatch.setenv(TOKEN, "a" * 64)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    assert still_answers(store)
    for wrong in ("", "a" * 63, "a" * 63 + "b"):
        monkeypatch.setenv(TOKEN, wrong)
        said = "has not the token of this process's launch" if wrong else "launch whose token this process has not"
        with pytest.raises(dist.DistError, match=said):
            dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=20)).set("key", "value")
        with connected(store.port) as client:
            client.sendall(HELLO + os.urandom(32))
            theirs = received(client, HELLO_BYTES + 32)[len(HELLO) : HELLO_BYTES]
            client.sendall(proof(b"c", wrong, os.urandom(32), theirs))
            assert is_cut_off(client)
    monkeypatch.setenv(TOKEN, "a" * 65)
    with pytest.raises(ValueError, match="NARU_STORE_TOKEN may have 64 bytes, got 65"):
        dist.TCPStore("127.0.0.1", 0, is_master=True)
    monkeypatch.setenv(TOKEN, "a" * 64)
    assert not store.check(["key"]) and still_answers(store)


class Between:
    """Passes on what one client and a store say, and records it."""

    def __init__(self, port):
        self.listener, self.port, self.said = socket.create_server(("127.0.0.1", 0)), port, {"client": b"", "store": b""}
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        client = self.listener.accept()[0]
        there = connected(self.port)
        back = threading.Thread(target=self.carry, args=("store", there, client), daemon=True)
        back.start()
        self.carry("client", client, there)
        back.join()
        client.close(), there.close()

    def carry(self, who, source, target):
        try:
            while data := source.recv(65536):
                self.said[who] += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_what_was_recorded_of_a_greeting_serves_nobody(monkeypatch):
    token = "secret" * 10
    monkeypatch.setenv(TOKEN, token)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with connected(store.port) as client:  # the protocol, by another HMAC
        introduce(client, token)
        client.sendall(message(b"s", b"mine", b"1"))
        assert received(client, 4) == struct.pack("<I", 0) and store.get("mine") == b"1"
    between = Between(store.port)
    other = dist.TCPStore("127.0.0.1", between.listener.getsockname()[1], wait_for_workers=False)
    other.set("key", "first")
    said = between.said["client"]
    del other
    between.thread.join(20)
    assert said.startswith(HELLO) and b"key" in said and b"secret" not in said + between.said["store"]
    store.set("key", "second")
    replies = {"all of it": said, "the store's proof in return": None}
    for name, replayed in replies.items():
        with connected(store.port) as client:
            client.sendall(said[:HELLO_BYTES] if replayed is None else replayed)
            if replayed is None:
                client.sendall(received(client, HELLO_BYTES + 32)[HELLO_BYTES:] + message(b"s", b"key", b"third"))
            assert is_cut_off(client), name
    assert store.get("key") == b"second" and still_answers(store)


@pytest.mark.parametrize("answer", ["nothing", "an end", "another program's words", "zeros", "the proof of no token", "an old proof", "the client's nonce"])
def test_a_false_store_is_told_nothing(answer, monkeypatch):
    monkeypatch.setenv(TOKEN, "a" * 64)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with connected(store.port) as client:
        client.sendall(HELLO + bytes(32))
        old = received(client, HELLO_BYTES + 32)
    heard = []

    def serve(listener):
        with listener.accept()[0] as client:
            hello = received(client, HELLO_BYTES)
            mine = hello[len(HELLO) :]
            client.sendall({
                "nothing": b"", "an end": b"", "another program's words": b"HTTP/1.1 400 Bad Request\r\n".ljust(HELLO_BYTES + 32), "zeros": HELLO + bytes(64),
                "the proof of no token": HELLO + bytes(32) + proof(b"s", "", mine, bytes(32)), "an old proof": old, "the client's nonce": HELLO + mine + mine,
            }[answer])  # fmt: skip
            if answer != "an end":
                client.settimeout(20)
                heard.append(client.recv(65536))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        said = {"nothing": "did not answer within 500 ms", "an end": "closed by the other process", "another program's words": "no store of this version"}
        with pytest.raises(dist.DistNetworkError, match=said.get(answer, "has not the token of this process's launch")):
            dist.TCPStore("127.0.0.1", listener.getsockname()[1], timeout=timedelta(milliseconds=500)).set("key", "value")
        thread.join(30)
    assert heard == ([] if answer == "an end" else [b""])


@pytest.mark.parametrize("length", [0, LIMIT + 1, 2**30 - 100, 2**31, 2**32 - 1])
def test_a_message_of_an_impossible_length_ends_its_connection_at_once(store, length):
    with connected(store.port) as client:
        client.sendall(greeting() + struct.pack("<I", length))
        assert is_cut_off(client)
    assert still_answers(store)


def test_what_a_store_takes_has_a_limit_that_is_said(store):
    store.set("key", b"x" * (LIMIT - 100))
    assert len(store.get("key")) == LIMIT - 100
    with pytest.raises(dist.DistStoreError, match="16 MiB"):
        store.set("key", b"x" * LIMIT)
    assert still_answers(store)


def test_nothing_is_kept_of_those_that_have_not_greeted(store):
    text = b"naru store 3\n" + b"x" * (64 << 20)  # made before memory is measured: joining the two takes 128 MiB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4):
        with connected(store.port) as client:
            send_until_cut_off(client, text)
            assert is_cut_off(client)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10  # the 64 MiB that this test itself sends, and not 256 more
    assert still_answers(store)


def test_a_stranger_without_a_word_is_cut_off(store):
    with connected(store.port) as silent, connected(store.port) as half:
        half.sendall(greeting()[:20])
        assert is_cut_off(silent) and is_cut_off(half)
    assert still_answers(store)


HUNGRY = """
import os, resource, socket, sys
import naru.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True)
kind = sys.argv[1]
if kind == "memory":
    taken = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (taken + (100 << 20),) * 2)
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(store.port, flush=True)
sys.stdin.readline()
open("/dev/null").close()
store.set("key", "value")
print(dist.TCPStore("127.0.0.1", store.port).get("key").decode(), flush=True)
"""


@pytest.mark.parametrize("kind", ["memory", "descriptors", "descriptors of those that have greeted"])
def test_strangers_that_take_all_there_is_do_not_end_a_store(kind):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    env.pop(TOKEN, None)
    program = subprocess.Popen([sys.executable, "-c", HUNGRY, kind.split()[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    clients = []
    try:
        port = int(program.stdout.readline())
        for _ in range(30 if kind == "memory" else 100):
            client = connected(port)
            clients.append(client)
            client.settimeout(1)
            if kind == "memory":
                send_until_cut_off(client, greeting() + struct.pack("<I", LIMIT) + bytes(LIMIT - 1))
            elif "greeted" in kind:
                send_until_cut_off(client, greeting())
        if "greeted" in kind:  # without a token they are known, and not cut off: room is where they leave it
            for client in clients[10:]:
                client.close()
        out, _ = program.communicate("go\n", timeout=60)
        assert (program.returncode, out) == (0, "value\n")
    finally:
        program.kill()
        program.wait()
        for client in clients:
            client.close()


def test_one_that_never_reads_its_answers_takes_no_memory(store):
    store.set("large", b"x" * (8 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with connected(store.port) as client:
        client.sendall(greeting())
        client.settimeout(1)
        send_until_cut_off(client, message(b"g", b"large") * 100_000)
        assert still_answers(store)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


# --- a client with a seed, against each port


def hostile(rng, port, clients):
    """One thing that a stranger may do; `clients` are what it leaves open."""
    try:
        client = connected(port)
        client.settimeout(0.2)
        opening = rng.choice([b"", greeting(), greeting()[: rng.randrange(80)], b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(rng.randrange(1, 200))])
        client.sendall(opening)
        kind = rng.randrange(7)
        if kind == 0:
            client.sendall(rng.randbytes(rng.randrange(1, 5000)))
        elif kind == 1:
            client.sendall(struct.pack("<I", rng.choice([0, 1, 2, 2**16, 2**30, 2**32 - 1])) + rng.randbytes(rng.randrange(100)))
        elif kind == 2:  # inner lengths
            body = bytes([rng.choice(b"sgacwxen?")]) + struct.pack("<I", rng.choice([0, 1, 5, 2**31, 2**32 - 1])) + rng.randbytes(rng.randrange(20))
            client.sendall(struct.pack("<I", len(body)) + body)
        elif kind == 3:  # requests with too little, or numbers that are none
            client.sendall(message(bytes([rng.choice(b"sgacwxen")]), *(rng.choice([b"", b"k", b"9" * 40, b"-", b"\0"]) for _ in range(rng.randrange(4)))))
        elif kind == 4:
            for byte in message(b"s", b"slow", b"1"):
                client.sendall(bytes([byte]))
        elif kind == 5:
            send_until_cut_off(client, b"\xff" * (1 << 20))
        client.shutdown(rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])) if rng.random() < 0.2 else None
        clients.append(client)
    except OSError:
        pass
    while len(clients) > rng.randrange(40):
        gone = clients.pop(rng.randrange(len(clients)))
        if rng.random() < 0.3:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends by a reset
        gone.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("token", ["", "b" * 64], ids=["open", "with a token"])
def test_a_store_outlives_whatever_comes(seed, token, monkeypatch):
    monkeypatch.setenv(TOKEN, token)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store.set("own", "value")
    rng, clients = random.Random(seed), []
    for i in range(400):
        hostile(rng, store.port, clients)
        if i % 100 == 99:
            assert still_answers(store)
    if token:  # strangers have written nothing
        assert store.get("own") == b"value" and not store.check(["k"]) and store.num_keys() == 2
    for client in clients:
        client.close()


def meet(rank, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    x = torch.full((3,), float(rank + 1))
    dist.all_reduce(x)
    assert x.tolist() == [3, 3, 3]
    dist.destroy_process_group()


def until(found, seconds=60):
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
    return value


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ranks_find_each_other_among_strangers(tmp_path, monkeypatch, transport):
    monkeypatch.setenv("NARU_DISTRIBUTED_TRANSPORT", transport)
    context = mp.get_context("fork")
    ranks = [context.Process(target=meet, args=(rank, str(tmp_path))) for rank in range(2)]
    clients = []
    try:
        ranks[0].start()
        # Where rank 0 has said on which host it is, rank 1 is said to be there, too: rank 0 listens, and rank 1 has not come.
        file = tmp_path / "store"
        key = until(lambda: file.exists() and re.search(rb"\0([^\0]*host/)0", file.read_bytes()))[1].decode()
        store = dist.FileStore(str(file))
        store.set(f"{key}1", store.get(f"{key}0"))
        ((address, port),) = until(lambda: listening(ranks[0].pid))
        assert address == "0100007F"  # both are on one host
        clients += [connected(port) for _ in range(300)]  # without a word
        rng = random.Random(1)
        others = []
        for _ in range(200):
            hostile(rng, port, others)
        clients += others
        ranks[1].start()
        for rank in ranks:
            rank.join(60)
        assert [rank.exitcode for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            if rank.pid:
                rank.kill()
        for client in clients:
            client.close()

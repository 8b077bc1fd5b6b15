"""DistributedDataParallel(shards=S): the same parameters, bit for bit, whatever number of processes computes the shards."""
import hashlib
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from naru import nn
from naru.nn.parallel import DistributedDataParallel as DDP
from naru.nn.parallel._shards import TreeSum, part_of
from naru.utils.data import DataLoader, DistributedSampler, TensorDataset

SHARDS = 12
RANKS = [1, 2, 3, 4, 5, 6, 8]


def _begin(rank, body, size, path, rest):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    body(rank, size, *rest)
    dist.destroy_process_group()


def on_ranks(tmp_path, size, body, *rest):
    mp.start_processes(_begin, args=(body, size, str(tmp_path / f"store{size}"), rest), nprocs=size, start_method="fork")


@pytest.fixture
def alone():
    """A group of one process."""
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# --- programs, as a user writes them


class Words(nn.Module):
    """An MLP with dropout."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 33), nn.GELU(), nn.Dropout(0.3), nn.Linear(33, 33), nn.ReLU(), nn.Dropout(0.5), nn.Linear(33, 5))

    def forward(self, x):
        return self.layers(x)


class Pictures(nn.Module):
    """A small CNN with batch norm."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 7, 3, padding=1), nn.BatchNorm2d(7), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(7, 9, 3), nn.BatchNorm2d(9))
        self.head = nn.Linear(9 * 4, 5)

    def forward(self, x):
        return self.head(torch.relu(self.features(x)).flatten(1))


def words():
    return Words(), torch.randn(500, 20), lambda ps: torch.optim.Adam(ps, lr=0.01, weight_decay=0.1)


def pictures():
    return Pictures(), torch.randn(300, 3, 8, 8), lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True)


def hash_of(tensors):
    found = hashlib.sha256()
    for t in tensors:
        found.update(t.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


class Training:
    """Steps of one program; `program` makes the module, the inputs and the optimizer."""

    def __init__(self, program):
        torch.manual_seed(11)
        module, x, optimizer = program()
        self.data = TensorDataset(x, torch.randint(0, 5, (len(x),)))
        self.model = DDP(module, shards=SHARDS)
        self.optimizer = optimizer(self.model.parameters())
        # Every scale that does not overflow is doubled, so some steps overflow and are left out.
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**124, growth_interval=1)
        self.losses, self.left_out = [], 0

    def epoch(self, number, steps, skip=0):
        """Runs `steps` steps of an epoch, after the first `skip` ones."""
        sampler = DistributedSampler(self.data, shards=SHARDS, seed=3)
        sampler.set_epoch(number)
        loader = DataLoader(self.data, batch_size=3 * len(sampler.local_shards), sampler=sampler)
        for i, (x, y) in enumerate(loader):
            if i >= skip + steps:
                break
            if i >= skip:
                self.step(x, y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        losses = []
        for xs, ys in self.model.each_shard(x, y):
            loss = nn.functional.cross_entropy(self.model(xs), ys)
            self.scaler.scale(loss).backward()
            losses.append(loss)
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.scaler.step(self.optimizer)
        scale = self.scaler.get_scale()
        self.scaler.update()
        self.left_out += self.scaler.get_scale() < scale
        self.losses.append(self.model.mean_over_shards(losses))

    def hash(self):
        return hash_of([*self.model.state_dict().values(), *(p.grad for p in self.model.parameters()), *self.losses])

    def save(self, path):
        torch.save({"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict(),
                    "random": torch.get_rng_state()}, path)  # fmt: skip

    def load(self, path):
        found = torch.load(path)
        self.model.module.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.scaler.load_state_dict(found["scaler"])
        torch.set_rng_state(found["random"])


PROGRAMS = {"words": words, "pictures": pictures}


def ten_steps(rank, size, name, folder):
    training = Training(PROGRAMS[name])
    training.epoch(0, 6)
    training.epoch(1, 4)
    assert 0 < training.left_out < 8
    (folder / f"{size}_{rank}").write_text(training.hash())


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_number_of_processes_gives_one_hash(tmp_path, monkeypatch, name):
    table = {}
    for transport, size in [*(("shared", size) for size in RANKS), *((("mpi", 3),) if dist.is_mpi_available() else ())]:
        monkeypatch.setenv("NARU_DISTRIBUTED_TRANSPORT", transport)
        on_ranks(tmp_path, size, ten_steps, name, tmp_path)
        table[transport, size] = {(tmp_path / f"{size}_{rank}").read_text() for rank in range(size)}
        print(f"{name}: {size} processes, {transport}: {' '.join(sorted(table[transport, size]))}")
        (tmp_path / f"store{size}").unlink(missing_ok=True)
    assert len(set.union(*table.values())) == 1, table


def another_seed(rank, size, folder):
    training = Training(words)
    if size == 2:
        torch.manual_seed(12)
    training.epoch(0, 1)
    (folder / f"seed{size}_{rank}").write_text(training.hash())


def test_the_hashes_tell_programs_apart(tmp_path):
    """The table above would also have one hash in every row if the hash did not depend on what the program does."""
    for size in (1, 2):
        on_ranks(tmp_path, size, another_seed, tmp_path)
    assert (tmp_path / "seed1_0").read_text() != (tmp_path / "seed2_0").read_text() == (tmp_path / "seed2_1").read_text()


def before_checkpoint(rank, size, name, folder):
    training = Training(PROGRAMS[name])
    training.epoch(0, 5)
    if rank == 0:
        training.save(folder / "checkpoint.pt")
    dist.barrier()


def after_checkpoint(rank, size, name, folder):
    training = Training(PROGRAMS[name])
    training.load(folder / "checkpoint.pt")
    training.epoch(0, 3, skip=5)
    (folder / f"after_{size}_{rank}").write_text(hash_of([*training.model.state_dict().values(), *training.losses]))


def without_checkpoint(rank, size, name, folder):
    training = Training(PROGRAMS[name])
    training.epoch(0, 5)
    # As after a checkpoint, the second loop begins with the generator as the first loop has left it.
    training.losses = []
    training.epoch(0, 3, skip=5)
    (folder / f"whole_{rank}").write_text(hash_of([*training.model.state_dict().values(), *training.losses]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_checkpoint_goes_on_with_another_number_of_processes(tmp_path, name):
    on_ranks(tmp_path, 2, before_checkpoint, name, tmp_path)
    on_ranks(tmp_path, 3, after_checkpoint, name, tmp_path)
    on_ranks(tmp_path, 4, without_checkpoint, name, tmp_path)
    found = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name.startswith(("after", "whole"))}
    assert len(found) == 7 and len(set(found.values())) == 1, found


def on_devices(rank, size, folder):
    found = []
    with torch.virtual("cuda", count=1):
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            module = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 1)).to("cuda", dtype)
            model = DDP(module, shards=6)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            mine = [row for row in range(24) if row % 6 in model.local_shards]
            x = torch.randn(24, 8)[mine].to("cuda", dtype)
            for _ in range(4):
                optimizer.zero_grad()
                for part in model.each_shard(x):
                    model(part).float().pow(2).mean().backward()
                optimizer.step()
            found.append(hash_of(t.cpu().float() for t in model.state_dict().values()))
    (folder / f"devices_{size}_{rank}").write_text(" ".join(found))


def test_devices_and_halves_have_one_hash_too(tmp_path):
    for size in (1, 2, 4):
        on_ranks(tmp_path, size, on_devices, tmp_path)
    found = {path.read_text() for path in tmp_path.iterdir() if path.name.startswith("devices")}
    assert len(found) == 1 and len(set(found.pop().split())) == 2


# --- a step is that of as many processes as there are shards


def plain(rank, size, folder):
    torch.manual_seed(11)
    module = nn.Linear(20, 5)
    x, y = torch.randn(36, 20), torch.randint(0, 5, (36,))
    model = DDP(module)
    nn.functional.cross_entropy(model(x[rank::size]), y[rank::size]).backward()
    shared = DDP(nn.Linear(20, 5), shards=size)
    shared.module.load_state_dict(module.state_dict())
    for xs, ys in shared.each_shard(x[rank::size], y[rank::size]):
        nn.functional.cross_entropy(shared(xs), ys).backward()
    assert hash_of(p.grad for p in model.parameters()) == hash_of(p.grad for p in shared.parameters())
    (folder / f"plain_{rank}").write_text(hash_of(p.grad for p in model.parameters()))


def in_one_process(rank, size, folder):
    torch.manual_seed(11)
    model = DDP(nn.Linear(20, 5), shards=4)
    x, y = torch.randn(36, 20), torch.randint(0, 5, (36,))
    for xs, ys in model.each_shard(x, y):
        nn.functional.cross_entropy(model(xs), ys).backward()
    (folder / "plain_alone").write_text(hash_of(p.grad for p in model.parameters()))


def test_a_step_is_that_of_a_process_for_each_shard(tmp_path):
    on_ranks(tmp_path, 4, plain, tmp_path)
    on_ranks(tmp_path, 1, in_one_process, tmp_path)
    assert len({(tmp_path / f"plain_{name}").read_text() for name in (0, 1, 2, 3, "alone")}) == 1


def unused(rank, size):
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.often, self.rarely, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x, shard):
            return self.often(x).sum() + (self.rarely(x).sum() if shard == 3 else 0)

    model = DDP(Net(), shards=4, find_unused_parameters=True)
    for shard in model.each_shard():
        model(torch.full((1, 2), shard + 1.0), shard).backward()
    assert model.module.often.weight.grad.tolist() == [[2.5, 2.5]] and model.module.rarely.weight.grad.tolist() == [[1, 1]]
    assert model.module.never.weight.grad is None


def test_parameters_that_few_shards_use_get_their_mean(tmp_path):
    for size in (1, 2, 3):
        on_ranks(tmp_path, size, unused)


def test_gradients_are_added_to_those_before(alone):
    model = DDP(nn.Linear(2, 1, bias=False), shards=2)
    for _ in range(2):
        for x in model.each_shard(torch.ones(4, 2)):
            model(x).sum().backward()
    assert model.module.weight.grad.tolist() == [[4, 4]]


def test_buffers_end_with_their_means_and_counts_rise_by_one(alone):
    model = DDP(nn.BatchNorm1d(1), shards=2)
    model.module.register_buffer("constant", torch.tensor([0.1]))
    x = torch.tensor([[0.0], [10.0], [2.0], [14.0]])  # shards have the means 1 and 12
    for xs in model.each_shard(x):
        model(xs).sum().backward()
    assert model.module.running_mean.item() == pytest.approx((0.1 + 1.2) / 2)
    assert model.module.num_batches_tracked.item() == 1 and model.module.constant.item() == torch.tensor(0.1).item()


def test_each_shard_has_random_numbers_of_its_own_and_leaves_the_generator(alone):
    model = DDP(nn.Linear(1, 1), shards=3)
    torch.manual_seed(5)
    found = []
    for _ in range(2):
        for x in model.each_shard(torch.ones(3, 1)):
            found.append(torch.rand(1).item())
            model(x).sum().backward()
    after = torch.rand(1).item()
    assert len(set(found)) == 6
    torch.manual_seed(5)
    for _ in range(2):
        for x in model.each_shard(torch.ones(3, 1)):
            torch.rand(1000)
            model(x).sum().backward()
    assert torch.rand(1).item() == after


# --- the sampler


def test_the_sampler_gives_shards_what_as_many_processes_would_get():
    data = range(50)
    for drop_last in (False, True):
        of_each = [list(DistributedSampler(data, SHARDS, shard, seed=4, drop_last=drop_last)) for shard in range(SHARDS)]
        for size in RANKS:
            for rank in range(size):
                sampler = DistributedSampler(data, size, rank, seed=4, drop_last=drop_last, shards=SHARDS)
                found, local = list(sampler), list(sampler.local_shards)
                assert len(found) == len(sampler)
                for i, shard in enumerate(local):
                    assert found[i :: len(local)] == of_each[shard]


def test_the_trees_sum_keeps_few_tensors():
    total = TreeSum(1000)
    for shard in range(1000):
        total.add(shard, [torch.ones(1)])
        assert len(total.nodes) <= 10
    assert [(first, count) for first, count, _ in total.nodes] == [(0, 1000)] and total.nodes[0][2][0].item() == 1000


def test_values_of_any_structure_are_divided():
    x = torch.arange(6)
    found = part_of({"x": x, "names": ["a", "b", "c", "d", "e", "f"], "pair": (x, [x * 2]), "lr": 0.1}, 1, 3)
    assert found["x"].tolist() == [1, 4] and found["names"] == ["b", "e"] and found["pair"][1][0].tolist() == [2, 8] and found["lr"] == 0.1


# --- what is wrong


def test_what_does_not_fit_is_refused(alone):
    with pytest.raises(TypeError, match="shards must be an int, got float"):
        DDP(nn.Linear(1, 1), shards=2.0)
    with pytest.raises(ValueError, match="at least the number of processes, 1, so that each has one; got 0"):
        DDP(nn.Linear(1, 1), shards=0)
    with pytest.raises(ValueError, match="shards must be at least the number of processes, 4"):
        DistributedSampler(range(4), 4, 0, shards=3)
    with pytest.raises(ValueError, match="0 is a SyncBatchNorm, whose statistics depend on the number of processes"):
        DDP(nn.Sequential(nn.SyncBatchNorm(3)), shards=2)
    with pytest.raises(RuntimeError, match="the model has no shards"):
        DDP(nn.Linear(1, 1)).each_shard()
    model = DDP(nn.Linear(1, 1), shards=2)
    with pytest.raises(RuntimeError, match="training runs in `for x, y in model.each_shard"):
        model(torch.ones(1, 1))
    with torch.no_grad():
        assert model(torch.ones(1, 1)).shape == (1, 1)
    with pytest.raises(ValueError, match=r"rows of a tensor of shape \[3, 1\] do not divide among this process's 2 shards"):
        next(model.each_shard(torch.ones(3, 1)))
    with pytest.raises(RuntimeError, match="no gradient has come for weight, bias"):
        for _ in model.each_shard():
            pass
    for refused in (model.no_sync, model.join):
        with pytest.raises(RuntimeError, match="is not for models with shards"), refused():
            pass
    with pytest.raises(RuntimeError, match="register_comm_hook is not for models with shards"):
        model.register_comm_hook(None, lambda state, bucket: None)
    with pytest.raises(ValueError, match="wanted one tensor for each of this process's 2 shards, got 1"):
        model.mean_over_shards([torch.ones(())])


def test_a_loop_that_ends_early_leaves_the_gradients_as_they_were(alone):
    model = DDP(nn.Linear(1, 1), shards=2)
    model.module.weight.grad = torch.full((1, 1), 7.0)
    with pytest.raises(ZeroDivisionError):
        for x in model.each_shard(torch.ones(2, 1)):
            model(x).sum().backward()
            raise ZeroDivisionError
    assert model.module.weight.grad.item() == 7 and model.module.bias.grad is None
    for x in model.each_shard(torch.ones(2, 1)):  # and another step can follow
        model(x).sum().backward()
    assert model.module.weight.grad.item() == 8

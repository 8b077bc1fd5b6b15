"""Join, and PowerSGD."""
import naru as torch
import naru.distributed as dist
import pytest
from naru.distributed.algorithms import Join, Joinable, JoinHook
from naru.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from naru.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook, powerSGD_hook
from naru.distributed.optim import ZeroRedundancyOptimizer
from naru.nn.parallel import DistributedDataParallel as DDP
from ranks import on_ranks


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8))


def joins(rank, size):
    # Each rank has rank + 1 batches. What ranks without batches add is zero.
    batches = [[torch.randn(2, 8, generator=torch.Generator().manual_seed(10 * r + i)) for i in range(r + 1)] for r in range(size)]
    for by_all in (True, False):
        plain = net()
        adam = torch.optim.AdamW(plain.parameters(), lr=0.01)
        for i in range(size):
            active = [r for r in range(size) if i <= r]
            sum(plain(batches[r][i]).square().mean() for r in active).backward()
            for p in plain.parameters():
                p.grad.div_(size if by_all else len(active))
            adam.step()
            adam.zero_grad()
        model = DDP(net(), gradient_as_bucket_view=True)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01)
        with Join([model, optimizer], divide_by_initial_world_size=by_all):
            for x in batches[rank]:
                model(x).square().mean().backward()
                optimizer.step()
                model.zero_grad(set_to_none=False)
        for p, q in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(p, q)
    model = DDP(net())
    with pytest.raises(RuntimeError, match="exhausted inputs"), Join([model], throw_on_early_termination=True):
        for x in batches[rank]:
            model(x).sum().backward()
    dist.barrier()

    class Counter(Joinable):
        """As PyTorch's tutorial has it."""

        def __init__(self):
            super().__init__()
            self.count = torch.zeros(1)

        def __call__(self):
            Join.notify_join_context(self)
            one = torch.ones(1)
            dist.all_reduce(one)
            self.count += one

        def join_hook(self, **kwargs):
            counter = self

            class Hook(JoinHook):
                def main_hook(self):
                    dist.all_reduce(torch.zeros(1))

                def post_hook(self, is_last_joiner):
                    assert is_last_joiner == (rank == size - 1)
                    dist.broadcast(counter.count, size - 1)

            return Hook()

        join_device = property(lambda self: torch.device("cpu"))
        join_process_group = property(lambda self: dist.group.WORLD)

    counter = Counter()
    with Join([counter]):
        for _ in range(rank + 1):
            counter()
    assert counter.count.item() == sum(r + 1 for r in range(size))
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])
    Join.notify_join_context(counter)  # outside of a Join nothing is sent
    dist.barrier()


def compresses(rank, size):
    target = torch.randn(8, 8, generator=torch.Generator().manual_seed(3))
    for hook, options in ((powerSGD_hook, {}), (powerSGD_hook, {"orthogonalization_epsilon": 1e-8}), (batched_powerSGD_hook, {})):
        model = DDP(net())
        state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, **options)
        model.register_comm_hook(state, hook)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for step in range(60):
            x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * rank + step))
            loss = (model(x) - x @ target / 4).square().mean()
            loss.backward()
            sgd.step()
            sgd.zero_grad()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 2 and state.iter == 60
        rate, before, after = state.compression_stats()
        assert rate > 1 and before > after > 0
        for p in model.parameters():  # all ranks have the same
            other = p.detach().clone()
            dist.broadcast(other, 0)
            assert torch.equal(other, p)
    # As good as exact where the gradients are of that rank.
    exact, model = DDP(torch.nn.Linear(8, 8, bias=False)), DDP(torch.nn.Linear(8, 8, bias=False))
    model.module.load_state_dict(exact.module.state_dict())
    model.register_comm_hook(PowerSGDState(None, 1, 2, use_error_feedback=False, min_compression_rate=1), powerSGD_hook)
    for step in range(4):
        for m in (exact, model):
            m.zero_grad()
            m(torch.full((1, 8), step + 1.0)).sum().backward()
        torch.testing.assert_close(model.module.weight.grad, exact.module.weight.grad)
    for kind in DDPCommHookType:
        model = DDP(net())
        register_ddp_comm_hook(kind, model)
        model(torch.full((1, 8), float(rank))).sum().backward()
        mean = model.module[0].weight.grad.clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        assert torch.allclose(mean, model.module[0].weight.grad, rtol=1e-2, atol=1e-2) != (kind is DDPCommHookType.NOOP)
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        PowerSGDState(None, start_powerSGD_iter=1)


@pytest.mark.parametrize("body", [joins, compresses], ids=lambda body: body.__name__)
def test_on_three_ranks(tmp_path, body):
    on_ranks(tmp_path, 3, body)

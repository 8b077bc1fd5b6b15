"""torch.amp.GradScaler: scaling, unscaling, skipped steps, updates of the scale, and what it passes to optimizers."""

import pickle

import pytest

import naru as torch

F16, F32 = torch.float16, torch.float32


class Trap:
    """A parameter whose gradient is what it is told."""

    def __init__(self, scaler, device="cuda"):
        self.w = torch.nn.Parameter(torch.ones(3, device=device))
        self.optimizer = torch.optim.SGD([self.w], lr=1.0)
        self.scaler = scaler

    def step(self, factor):
        self.optimizer.zero_grad()
        self.scaler.scale((self.w * factor).sum()).backward()
        result = self.scaler.step(self.optimizer)
        self.scaler.update()
        return result


def test_the_scale_shrinks_after_a_skipped_step_and_grows_after_enough_good_ones():
    t = Trap(torch.amp.GradScaler("cuda", init_scale=4.0, growth_interval=2))
    t.step(0.25)
    assert t.w.tolist() == [0.75] * 3 and t.scaler.get_scale() == 4.0 and t.scaler.last_step == (True, 4.0, "")
    t.step(0.25)
    assert t.scaler.get_scale() == 8.0
    before = t.w.tolist()
    assert t.step(float("inf")) is None
    assert t.w.tolist() == before and t.scaler.get_scale() == 4.0
    assert not t.scaler.last_step
    assert str(t.scaler.last_step) == (
        "skipped at scale 8: 1 of 1 gradients are not finite; the first is of parameter 0 in group 0, shape (3,): 3 inf, 0 nan of 3"
    )
    t.step(0.25)
    assert t.scaler.get_scale() == 4.0 and t.scaler.last_step.stepped  # the count was reset
    t.step(float("nan"))
    assert "0 inf, 3 nan of 3" in t.scaler.last_step.reason
    t.scaler.update(64.0)
    assert t.scaler.get_scale() == 64.0


def test_gradients_can_be_looked_at_between_unscaling_and_the_step():
    t = Trap(torch.amp.GradScaler("cuda", init_scale=16.0))
    t.scaler.scale((t.w * 3).sum()).backward()
    assert t.w.grad.tolist() == [48.0] * 3
    t.scaler.unscale_(t.optimizer)
    assert t.w.grad.tolist() == [3.0] * 3
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since the last update"):
        t.scaler.unscale_(t.optimizer)
    torch.nn.utils.clip_grad_norm_([t.w], 1.0)
    t.scaler.step(t.optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update"):
        t.scaler.step(t.optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        t.scaler.unscale_(t.optimizer)
    t.scaler.update()
    assert abs(t.w[0].item() - (1 - 3 / 27**0.5)) < 1e-6
    assert t.scaler.scale([t.w, (t.w,)])[1][0].tolist() == (t.w * 16).tolist()


def test_misuse_of_the_scaler_is_said():
    t = Trap(torch.amp.GradScaler("cuda"))
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        t.scaler.step(t.optimizer)
    t.scaler.scale(t.w.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        t.scaler.step(t.optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        torch.amp.GradScaler("cuda").__class__.update(t.scaler)
    half = torch.nn.Parameter(torch.ones(2, dtype=F16, device="cuda"))
    t.scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        t.scaler.unscale_(torch.optim.SGD([half], lr=1.0))
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError, match="factor must be"):
            torch.amp.GradScaler("cuda", **wrong)
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        t.scaler.scale(3)


def test_the_scalers_state_is_kept_and_taken_back():
    t = Trap(torch.amp.GradScaler("cuda", init_scale=32.0, growth_interval=5))
    t.step(0.5)
    state = t.scaler.state_dict()
    assert state == {"scale": 32.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 5, "_growth_tracker": 1}
    other = torch.amp.GradScaler("cuda")
    other.load_state_dict(state)
    assert other.state_dict() == state == pickle.loads(pickle.dumps(t.scaler)).state_dict()
    off = torch.amp.GradScaler("cuda", enabled=False)
    assert off.state_dict() == {} and off.get_scale() == 1.0 and not off.is_enabled() and off.scale(3) == 3
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        other.load_state_dict({})


def test_the_scale_is_a_float32_tensor_so_that_a_half_precision_loss_does_not_overflow():
    scaler = torch.amp.GradScaler("cuda")
    assert scaler._scale is None and scaler._growth_tracker is None and scaler.get_scale() == 65536.0
    scaled = scaler.scale(torch.ones((), dtype=F16, device="cuda"))
    assert scaled.dtype == F32 and scaled.item() == 65536.0
    assert scaler.scale(torch.full((2,), 2.0**-10, dtype=F16, device="cuda")).tolist() == [64.0] * 2
    assert scaler._scale.dtype == F32 and scaler._growth_tracker.dtype == torch.int32 and scaler._scale.device.type == "cuda"
    taken = pickle.loads(pickle.dumps(scaler))
    assert taken._scale is None and taken.get_scale() == 65536.0


class Deciding(torch.optim.SGD):
    """An optimizer that looks at the scale itself."""

    _step_supports_amp_scaling = True

    def step(self, closure=None):
        if not self.found_inf.item():
            for p in self.param_groups[0]["params"]:
                p.data -= p.grad / self.grad_scale


class Taking(torch.optim.SGD):
    _step_supports_amp_scaling = True

    def step(self, closure=None, *, grad_scaler=None):
        assert not hasattr(self, "grad_scale")
        grad_scaler.unscale_(self)
        super().step()


def test_an_optimizer_that_supports_scaling_is_given_the_scale():
    t = Trap(torch.amp.GradScaler("cuda", init_scale=8.0))
    t.optimizer = Deciding([t.w], lr=1.0)
    t.step(0.25)
    assert t.w.tolist() == [0.75] * 3 and t.scaler.last_step == (True, 8.0, "") and not hasattr(t.optimizer, "found_inf")
    t.step(float("inf"))
    assert t.w.tolist() == [0.75] * 3 and t.scaler.get_scale() == 4.0 and not t.scaler.last_step
    t.optimizer = Taking([t.w], lr=1.0)
    with pytest.warns(FutureWarning, match="GradScaler is going to stop passing itself"):
        t.step(0.25)
    assert t.w.tolist() == [0.5] * 3


def test_gradients_are_unscaled_in_place_and_checked_as_they_were():
    found, half = torch.zeros(1), torch.tensor([60000.0], dtype=F16)
    lists = [torch.ones(2), half, torch.ones(1, dtype=torch.float64)]
    torch._amp_foreach_non_finite_check_and_unscale_(lists, found, torch.tensor(2.0**-25))
    assert found == 0 and lists[0][0] == 2.0**-25 and half.item() == torch.tensor(60000 * 2.0**-25).half().item()
    torch._amp_foreach_non_finite_check_and_unscale_([torch.tensor([1.0, float("nan")])], found, torch.tensor(0.5))
    assert found == 1
    sparse = torch.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [64000.0, 32.0, 64000.0], (2, 3), dtype=F16)
    p = torch.nn.Parameter(torch.zeros(2, 3, dtype=F16))
    p.grad, scaler = sparse, torch.amp.GradScaler("cpu")
    assert scaler._unscale_grads_(torch.optim.SGD([p], lr=1.0), torch.tensor(0.25), torch.zeros(()), True)[torch.device("cpu")] == 1
    for tensors, inverse, error, words in (
        (torch.ones(2), torch.ones(1), TypeError, "must be tuple of Tensors, not Tensor"),
        ([torch.ones(2)], torch.ones(2), RuntimeError, "inv_scale must be a 1-element tensor"),
        ([torch.ones(2, dtype=torch.int64)], torch.ones(1), NotImplementedError, "not implemented for 'Long'"),
    ):
        with pytest.raises(error, match=words):
            torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, inverse)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_scale_is_rounded_once_and_does_not_grow_over_float32s_range(kind):
    scale, count = torch.tensor(3.0, device=kind), torch.tensor(0, dtype=torch.int32, device=kind)
    assert torch._amp_update_scale_(scale, count, torch.ones((), device=kind), 2.0, 0.1, 2) is scale
    assert scale.item() == torch.tensor(0.1 * 3.0).item() and count == 0
    for expected in (1, 0):
        torch._amp_update_scale_(scale.fill_(2.0**127), count, torch.zeros((), device=kind), 2.0, 0.1, 2)
        assert scale.item() == 2.0**127 and count == expected
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(scale, count.long(), scale, 2.0, 0.1, 2)

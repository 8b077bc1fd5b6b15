"""What PyTorch 2.15 takes, refuses and lays out: out= of reductions, layouts of stack and nonzero, numbers for reductions, constants that require
grad, writes to what a gradient needs. The values are PyTorch's own."""
import pytest

import naru as torch
import naru.nn.functional as F

X = torch.arange(6.0).reshape(2, 3) + 1
Y = torch.ones(2, 3)
SIGNS = torch.tensor([[1.0, -1, 1], [-1, 1, -1]])


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("options", [{}, {"dtype": torch.float64}], ids=["", "dtype"])
def test_reductions_of_all_elements_take_no_out(name, options):
    with pytest.raises(TypeError, match=rf"{name}\(\)"):
        getattr(torch, name)(X, out=torch.empty(()), **options)
    out = torch.empty(0, dtype=torch.float64)
    assert getattr(torch, name)(X, 1, out=out) is out and out.shape == (2,)
    assert getattr(torch, name)(X, None if name == "sum" else 0, True).shape == ((1, 1) if name == "sum" else (1, 3))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod", "softmax", "log_softmax"])
def test_a_dtype_that_is_named_is_that_of_out(name):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        getattr(torch, name)(X, 1, dtype=torch.float64, out=torch.empty(0))


def test_mean_of_integers_has_no_dtype_that_out_gives():
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        torch.mean(X.long(), 1, out=torch.empty(0))


@pytest.mark.parametrize("kind", ["cpu", "cuda:0"])
def test_columns_of_positions_are_dense(kind):
    for shape, strides in (((2, 3), (1, 6)), ((2, 3, 2), (1, 12)), ((3,), (1, 3)), ((), (1, 1))):
        mask = torch.ones(shape, device=kind)
        assert torch.nonzero(mask).stride() == torch.argwhere(mask).stride() == strides
    assert torch.nonzero(torch.zeros(2, 3, device=kind)).stride() == (1, 0)
    mask = torch.tensor([[0, 1, 1], [1, 0, 1]], device=kind)
    for found in (torch.nonzero(mask, as_tuple=True), mask.nonzero(as_tuple=True), torch.where(mask)):
        assert [(i.stride(), i.storage_offset(), i.tolist()) for i in found] == [((1,), 0, [0, 0, 1, 1]), ((1,), 4, [1, 2, 0, 2])]


def test_stack_keeps_the_order_of_dimensions_that_cat_keeps():
    c = torch.arange(120.0).reshape(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    strides = [(120, 60, 1, 15, 3), (120, 3, 1, 30, 6), (120, 1, 60, 15, 3), (120, 1, 30, 15, 3), (120, 40, 10, 2, 1)]
    for dim, wanted in enumerate(strides):
        made = torch.stack([c, c + 1], dim)
        assert made.stride() == wanted and torch.equal(made, torch.stack([c.contiguous(), c.contiguous() + 1], dim))


LOSSES = {
    "hinge_embedding_loss": ((X, SIGNS), 9.0), "kl_div": ((X, Y), -21.0), "cosine_embedding_loss": ((X, Y, torch.tensor([1, -1])), 1.0611),
    "margin_ranking_loss": ((X, Y * 3, SIGNS), 6.0), "triplet_margin_loss": ((X, Y, X * 0.5), 5.0488),
    "binary_cross_entropy_with_logits": ((X, Y), 0.5161), "poisson_nll_loss": ((X, Y, True, False, 1e-8), 615.6329),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_the_top_level_take_numbers_for_the_reduction(name):
    loss, (args, total) = getattr(torch, name), LOSSES[name]
    rows = loss(*args, 0) if name == "poisson_nll_loss" else loss(*args)  # none is the default
    assert rows.dim() > 0 and torch.equal(rows, loss(*args, reduction=3))
    assert loss(*args, reduction=2).item() == pytest.approx(total, rel=1e-4) and loss(*args, reduction=1).item() == pytest.approx(total / rows.numel(), rel=1e-4)
    for other in ("mean", None, True):
        with pytest.raises(TypeError, match=f"argument 'reduction' must be int, not {type(other).__name__}"):
            loss(*args, reduction=other)


@pytest.mark.parametrize("name", ["kl_div", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss", "hinge_embedding_loss", "mse_loss"])
@pytest.mark.parametrize("reduction", [0, 1, None, "bad"])
def test_losses_of_functional_take_words_for_the_reduction(name, reduction):
    args = {"margin_ranking_loss": (X, Y, SIGNS), "triplet_margin_loss": (X, Y, X)}.get(name, (X, Y))
    with pytest.raises(ValueError, match=f"{reduction} is not a valid value for reduction"):
        getattr(F, name)(*args, reduction=reduction)


CONSTANT = {
    "binary_cross_entropy weight": lambda w: F.binary_cross_entropy(X / 8, Y, w[:3]),
    "binary_cross_entropy_with_logits weight": lambda w: F.binary_cross_entropy_with_logits(X, Y, w[:3]),
    "binary_cross_entropy_with_logits pos_weight": lambda w: F.binary_cross_entropy_with_logits(X, Y, pos_weight=w[:3]),
    "nll_loss_forward weight": lambda w: F.nll_loss(X, torch.tensor([1, 0]), w[:3]),
    "nll_loss2d_forward weight": lambda w: F.nll_loss(X[None, :, :, None], torch.zeros(1, 3, 1, dtype=torch.int64), w[:2]),
    "multi_margin_loss weight": lambda w: F.multi_margin_loss(X, torch.tensor([1, 0]), weight=w[:3]),
    "soft_margin_loss target": lambda w: F.soft_margin_loss(X, w[:3].expand(2, 3)),
    "native_batch_norm running_mean": lambda w: F.batch_norm(X, w[:3], torch.ones(3)),
    "native_batch_norm running_var": lambda w: F.batch_norm(X, torch.ones(3), w[:3]),
    "fractional_max_pool2d random_samples": lambda w: F.fractional_max_pool2d(torch.ones(1, 2, 6, 6), 2, 3, _random_samples=w.reshape(1, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_what_counts_as_a_constant_must_not_require_grad(name):
    function, argument = name.split()
    w = torch.full((4,), 0.5, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"The function '{function}' is not differentiable with respect to argument '{argument}'"):
        CONSTANT[name](w)
    CONSTANT[name](w.detach())
    with torch.no_grad():
        CONSTANT[name](w)
    for call in (F.cross_entropy, lambda *a: F.cross_entropy(*a, label_smoothing=0.1)):
        with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
            call(X, torch.tensor([1, 0]), w[:3])


SURVIVING = {"3 / x": lambda x: 3 / x, "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([1, 0]))}


@pytest.mark.parametrize("name", SURVIVING)
@pytest.mark.parametrize("kind", ["cpu", "cuda:0"])
def test_a_gradient_of_what_pytorch_keeps_apart_survives_a_write(name, kind):
    """PyTorch saves 1 / x, and log_softmax(x), which a later write to x does not reach."""
    call = (lambda x: F.cross_entropy(x, torch.tensor([1, 0], device=kind))) if name == "cross_entropy" else SURVIVING[name]
    start = X.to(kind).requires_grad_()
    wanted, = torch.autograd.grad(call(start * 1).sum(), start)
    x = start * 1
    y = call(x)
    with torch.no_grad():
        x.zero_()
    assert torch.equal(torch.autograd.grad(y.sum(), start)[0], wanted)
    x = start * 1
    second, = torch.autograd.grad(call(x).sum(), x, create_graph=True)
    assert second.requires_grad and torch.autograd.grad(second.square().sum(), start)[0].abs().sum() > 0


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_tensor_as_learning_rate_and_foreach_are_refused_together(name):
    make, p = getattr(torch.optim, name), [torch.ones(1, requires_grad=True)]
    with pytest.raises(ValueError, match="lr as a Tensor is not supported for capturable=False and foreach=True"):
        make(p, lr=torch.tensor(0.1), foreach=True)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        make(p, lr=torch.tensor([0.1, 0.2]))
    make(p, lr=torch.tensor(0.1)), make(p, lr=0.1, foreach=True), make(p, lr=torch.tensor(0.1), foreach=True, capturable=True)


def test_functions_that_ask_torch_function_are_listed():
    found = torch.overrides.get_overridable_functions()
    assert {torch, torch.functional, F, torch.Tensor, torch.linalg, torch.fft, torch.special} == {*found}
    assert torch.add in found[torch] and F.gelu in found[F] and torch.Tensor.add in found[torch.Tensor] and torch.linalg.inv in found[torch.linalg]
    assert torch.zeros not in found[torch] and torch.is_grad_enabled not in found[torch]


@pytest.mark.parametrize("name", ["abs", "absolute"])
def test_the_magnitude_of_complex_numbers_is_converted_to_out(name):
    f, z = getattr(torch, name), torch.tensor([3 + 4j, 1j])
    for dtype in (torch.float32, torch.float64, torch.complex64):
        out = torch.empty(2, dtype=dtype)
        assert f(z, out=out) is out and torch.equal(out, torch.tensor([5.0, 1.0]).to(dtype))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        f(z, out=torch.empty(2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        f(torch.ones(2), out=torch.empty(2, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_where_takes_bytes_as_a_condition_and_no_other_integers(kind):
    bytes_ = torch.tensor([1, 0, 2], dtype=torch.uint8, device=kind)
    x = torch.tensor([1.0, 2.0, 3.0], device=kind, requires_grad=True)
    for found in (torch.where(bytes_, x, 0.0), x.where(bytes_, torch.zeros(3, device=kind))):
        assert found.tolist() == [1, 0, 3]
        assert torch.autograd.grad(found.sum(), x)[0].tolist() == [1, 0, 1]
    assert torch.func.vmap(torch.where)(bytes_, x.detach(), x.detach() * 2).tolist() == [1, 4, 3]
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor, but got a tensor with dtype Int"):
        torch.where(bytes_.int(), x, 0.0)

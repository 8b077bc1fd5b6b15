"""Mixed precision: the dtypes that operators are cast to, and gradient scaling."""
import copy
import threading
import warnings

import naru as torch
import pytest
from naru.autograd import Function

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
F = torch.nn.functional


def m(dtype=F32, device="cuda", n=4):
    return torch.rand(n, n, dtype=F32).to(device, dtype) * 0.5 + 0.25


PRODUCTS = {
    "matmul": lambda a, b: torch.matmul(a, b), "@": lambda a, b: a @ b, "mm": lambda a, b: a.mm(b), "mv": lambda a, b: a.mv(b[0]),
    "F.prelu": lambda a, b: F.prelu(a.to(b.dtype), b[0].float()),
    "bmm": lambda a, b: torch.bmm(a[None], b[None]), "addmm": lambda a, b: torch.addmm(a, a, b), "linear": lambda a, b: F.linear(a, b, b[0]), "scaled_dot_product_attention": lambda a, b: F.scaled_dot_product_attention(a, b, b),
    "baddbmm": lambda a, b: torch.baddbmm(a[None], a[None], b[None]), "einsum": lambda a, b: torch.einsum("ij,jk->ik", a, b),
}  # fmt: skip
FLOAT32 = {
    "exp": lambda a: a.exp(), "log": torch.log, "pow": lambda a: a**2, "pow()": lambda a: a.pow(1.5), "rpow": lambda a: 2.0**a,
    "rsqrt": torch.rsqrt, "softmax": lambda a: a.softmax(1), "F.log_softmax": lambda a: F.log_softmax(a, 1), "sum": torch.sum,
    "cumsum": lambda a: a.cumsum(0), "prod": lambda a: a.prod(), "norm": lambda a: a.norm(), "logsumexp": lambda a: a.logsumexp(1),
    "layer_norm": lambda a: F.layer_norm(a, (4,)), "mse_loss": lambda a: F.mse_loss(a, a * 2), "l1_loss": lambda a: F.l1_loss(a, a * 2),
    "cross_entropy": lambda a: F.cross_entropy(a, torch.zeros(4, dtype=torch.int64, device=a.device)), "tan": torch.tan,
    "bce_with_logits": lambda a: F.binary_cross_entropy_with_logits(a, a), "softplus": F.softplus, "reciprocal": torch.reciprocal,
    "huber_loss": lambda a: F.huber_loss(a, a * 2), "kl_div": lambda a: F.kl_div(a, a * 2, reduction="sum"),
    "cosine_similarity": lambda a: F.cosine_similarity(a, a * 2), "soft_margin_loss": lambda a: F.soft_margin_loss(a, a * 2),
}  # fmt: skip
AS_THEY_COME = {
    "add": lambda a: a + a, "mul": lambda a: a * 2, "relu": torch.relu, "sqrt": torch.sqrt, "tanh": torch.tanh, "mean": torch.mean,
    "max": lambda a: a.max(), "t": lambda a: a.t(), "gelu": F.gelu, "sin": torch.sin,
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("kind, half", [("cuda", F16), ("cuda", BF16), ("mps", F16), ("cpu", BF16), ("cpu", F16)])
def test_products_are_computed_in_16_bits(name, kind, half):
    if kind == "cpu" and name == "mv":
        return  # not in PyTorch's list for the cpu
    a, b = m(F32, kind), m(F16, kind)
    with torch.autocast(kind, dtype=half):
        result = PRODUCTS[name](a, b)
    assert result.dtype == half
    assert (result.float() - PRODUCTS[name](a, b.float())).abs().max().item() < 0.05


@pytest.mark.parametrize("name", FLOAT32)
def test_what_needs_range_or_digits_is_computed_in_float32(name):
    a = m(F16)
    with torch.autocast("cuda"):
        result = FLOAT32[name](a)
    assert result.dtype == F32 and torch.equal(result.cpu(), FLOAT32[name](a.float()).cpu())


@pytest.mark.parametrize("name", AS_THEY_COME)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_everything_else_stays_in_its_type(name, dtype):
    with torch.autocast("cuda"):
        assert AS_THEY_COME[name](m(dtype)).dtype == dtype


def one_call(name):
    """A call of the function `name` with floating-point tensors a, b (4, 4); None where there is no such function."""
    special = {
        "mv": lambda a, b: torch.mv(a, b[0]), "bmm": lambda a, b: torch.bmm(a[None], b[None]), "addmm": lambda a, b: torch.addmm(a, a, b),
        "baddbmm": lambda a, b: torch.baddbmm(a[None], a[None], b[None]), "addmv": lambda a, b: torch.addmv(a[0], a, b[0]),
        "addbmm": lambda a, b: torch.addbmm(a, a[None], b[None]),
        "scaled_dot_product_attention": lambda a, b: F.scaled_dot_product_attention(a, b, b),
        "linear": lambda a, b: F.linear(a, b), "prelu": lambda a, b: F.prelu(a, b[0]), "dot": lambda a, b: torch.dot(a[0], b[0]),
        "vdot": lambda a, b: torch.vdot(a[0], b[0]), "addcmul": lambda a, b: torch.addcmul(a, a, b), "addcdiv": lambda a, b: torch.addcdiv(a, a, b),
        "cross": lambda a, b: torch.cross(a[:, :3], b[:, :3], 1), "cat": lambda a, b: torch.cat([a, b]), "concat": lambda a, b: torch.concat([a, b]),
        "concatenate": lambda a, b: torch.concatenate([a, b]), "stack": lambda a, b: torch.stack([a, b]),
        "tensordot": lambda a, b: torch.tensordot(a, b, 1), "bilinear": lambda a, b: F.bilinear(a, a, b[None]),
        "index_put": lambda a, b: a.index_put((torch.tensor([0], device=a.device),), b[:1]),
        "index_copy": lambda a, b: a.index_copy(0, torch.tensor([0], device=a.device), b[:1]),
        "scatter_add": lambda a, b: torch.scatter_add(a, 0, torch.zeros(1, 4, dtype=torch.int64, device=a.device), b),
        "pow": lambda a, b: a.pow(1.5), "layer_norm": lambda a, b: F.layer_norm(a, (4,)), "quantile": lambda a, b: torch.quantile(a, 0.5), "nanquantile": lambda a, b: torch.nanquantile(a, 0.5),
        "nll_loss": lambda a, b: F.nll_loss(a, torch.zeros(4, dtype=torch.int64, device=a.device)),
        "cross_entropy": lambda a, b: F.cross_entropy(a, torch.zeros(4, dtype=torch.int64, device=a.device)),
        "poisson_nll_loss": lambda a, b: F.poisson_nll_loss(a, b),
        "cosine_embedding_loss": lambda a, b: F.cosine_embedding_loss(a, b, torch.ones(4, device=a.device)),
        "margin_ranking_loss": lambda a, b: F.margin_ranking_loss(a[0], b[0], torch.ones(4, device=a.device, dtype=a.dtype)),
        "multi_margin_loss": lambda a, b: F.multi_margin_loss(a, torch.zeros(4, dtype=torch.int64, device=a.device)),
        "multilabel_margin_loss": lambda a, b: F.multilabel_margin_loss(a, torch.zeros(4, 4, dtype=torch.int64, device=a.device)),
        "ctc_loss": lambda a, b: F.ctc_loss(a, torch.ones(1, 1, dtype=torch.int64, device=a.device), [4], [1]),
        "conv_tbc": lambda a, b: F.conv_tbc(a[None], b[None], b[0]),
        "triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, b),
        "renorm": lambda a, b: torch.renorm(a, 2, 0, 1.0), "addr": lambda a, b: torch.addr(a, a[0], b[0]),
        "group_norm": lambda a, b: F.group_norm(a, 2), "grid_sample": lambda a, b: F.grid_sample(a[None, None], b.reshape(1, 2, 4, 2)),
    }  # fmt: skip
    L, good = torch.linalg, lambda a: a + 4 * torch.eye(4, device=a.device, dtype=a.dtype)
    special |= {
        "solve": lambda a, b: L.solve(good(a), b), "inverse": lambda a, b: good(a).inverse(), "inv_ex": lambda a, b: L.inv_ex(good(a))[0],
        "lstsq": lambda a, b: L.lstsq(good(a), b)[0], "cholesky": lambda a, b: L.cholesky(good(a)), "cholesky_ex": lambda a, b: L.cholesky_ex(a)[0],
        "qr": lambda a, b: L.qr(a)[0], "svd": lambda a, b: a.svd()[1], "svdvals": lambda a, b: L.svdvals(a), "eigh": lambda a, b: L.eigh(a)[0],
        "eigvalsh": lambda a, b: L.eigvalsh(a), "eig": lambda a, b: L.eig(a)[0].real, "eigvals": lambda a, b: L.eigvals(a).real, "householder_product": lambda a, b: L.householder_product(a, b[0]), "geqrf": lambda a, b: a.geqrf()[1],
        "cond": lambda a, b: L.cond(good(a)), "tensorinv": lambda a, b: L.tensorinv(good(a), 1), "tensorsolve": lambda a, b: L.tensorsolve(good(a), b[0]),
        "triangular_solve": lambda a, b: b.triangular_solve(good(a))[0], "ormqr": lambda a, b: a.ormqr(b[0], b),
        "lu_solve": lambda a, b: b.lu_solve(good(a), torch.arange(1, 5, dtype=torch.int32, device=a.device)),
        "matrix_rank": lambda a, b: (L.matrix_rank(a), a.float())[1], "multi_dot": lambda a, b: L.multi_dot([a, b]), "chain_matmul": lambda a, b: L.multi_dot([a, b]), "vecdot": L.vecdot,
    }  # fmt: skip
    for n in (1, 2, 3):
        for kind in ("conv", "conv_transpose"):
            special[f"{kind}{n}d"] = lambda a, b, f=f"{kind}{n}d", n=n: getattr(F, f)(a.reshape(1, 4, 4, *[1] * (n - 1)), b.reshape(4, 4, *[1] * n))
    for name_of_fft in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"):
        special[name_of_fft] = lambda a, b, f=name_of_fft: getattr(torch.fft, f)(a).real
    for n in (1, 2, 3):
        cube = (1, 1, 4, 4) if n == 2 else (1, 1, 1, 4, 4) if n == 3 else (1, 4, 4)
        window = (1, 2, 2) if n == 3 else 2
        special |= {
            f"avg_pool{n}d": lambda a, b, n=n, c=cube, w=window: getattr(F, f"avg_pool{n}d")(a.reshape(c), w),
            f"max_pool{n}d": lambda a, b, n=n, c=cube, w=window: getattr(F, f"max_pool{n}d")(a.reshape(c), w),
            f"adaptive_avg_pool{n}d": lambda a, b, n=n, c=cube: getattr(F, f"adaptive_avg_pool{n}d")(a.reshape(c), 1),
            f"adaptive_max_pool{n}d": lambda a, b, n=n, c=cube: getattr(F, f"adaptive_max_pool{n}d")(a.reshape(c), 1),
            f"max_unpool{n}d": lambda a, b, n=n, c=cube: getattr(F, f"max_unpool{n}d")(a.reshape(c), torch.arange(16, device=a.device).reshape(c) % 4, (1,) * n, output_size=c[2:]),
        }
    special["pad"] = lambda a, b: F.pad(F.pad(a[None], (1, 1), mode="replicate"), (1, 1), mode="reflect")
    special["fractional_max_pool2d"] = lambda a, b: F.fractional_max_pool2d(a[None, None], 2, output_size=2)
    special["fractional_max_pool3d"] = lambda a, b: F.fractional_max_pool3d(a.reshape(1, 2, 2, 4), 1, output_size=(1, 1, 2))
    special["stft"] = lambda a, b: torch.stft(a.reshape(16), 4, window=b[0], return_complex=True).real
    special["polar"] = lambda a, b: torch.polar(a, b).real
    along = {"softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logsumexp"}
    two = {"matmul", "mm", "cdist", "dist", "cosine_similarity", "atan2", "arctan2", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
           "hinge_embedding_loss", "soft_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cholesky_solve"}  # fmt: skip
    if name in special:
        return special[name]
    places = [p for p in (torch, F, torch.Tensor) if hasattr(p, name)]
    if not places:
        return None
    function = getattr(places[0], name)
    if name in along:
        return lambda a, b: function(a, 1)
    return (lambda a, b: function(a, b)) if name in two else lambda a, b: function(a)


@pytest.mark.parametrize("kind, half", [("cuda", F16), ("cpu", BF16)])
def test_every_function_on_the_lists_casts_as_they_say(kind, half):
    checked = 0
    for name, rules in torch._C._autocast_rules().items():
        rule, call = rules[kind != "cpu"], one_call(name)
        if rule in ("", "refused") or call is None:
            continue
        first, second, wanted = {"lower": (F32, F32, half), "float32": (half, half, F32), "widest": (half, F32, F32)}[rule]
        a, b = m(first, kind), m(second, kind)
        with torch.autocast(kind, dtype=half):
            assert call(a, b).dtype == wanted, f"{name} on {kind}"
        checked += 1
    assert checked > (40 if kind == "cuda" else 20)


def test_the_widest_type_decides_where_several_tensors_must_agree():
    a, b = m(F16), m(F32)
    with torch.autocast("cuda"):
        assert torch.cat([a, b]).dtype == torch.stack([a, b]).dtype == F32
        assert torch.cat([a, a]).dtype == F16
        assert torch.dot(a[0], b[0]).dtype == F32
        assert torch.addcmul(a, a, b).dtype == F32
        assert torch.cat([a, m(torch.bfloat16)]).dtype == F32
    with torch.autocast("cpu"):
        assert torch.cat([a.cpu().bfloat16(), b.cpu()]).dtype == F32


def test_float64_and_integers_and_other_kinds_of_devices_are_left_alone():
    with torch.autocast("cuda"):
        assert (m(F64) @ m(F64)).dtype == F64 and m(F64).exp().dtype == F64
        assert (torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)).dtype == torch.int64
        assert (m(F32, "cpu") @ m(F32, "cpu")).dtype == F32
        assert (m(F32, "mps") @ m(F32, "mps")).dtype == F32
    assert (m() @ m()).dtype == F32
    with torch.autocast("cpu"):
        assert m(BF16, "cpu").exp().dtype == BF16  # not in PyTorch's list for the cpu
        assert F.mse_loss(m(BF16, "cpu"), m(BF16, "cpu")).dtype == F32


def test_a_dtype_that_is_named_stands_above_the_list_and_out_takes_no_part():
    with torch.autocast("cuda"):
        assert m(F16).sum(dtype=F16).dtype == F16
        assert m(F16).softmax(1, dtype=F64).dtype == F64
        out = torch.empty(4, 4, device="cuda")
        assert torch.matmul(m(), m(), out=out).dtype == F32


def test_blocks_nest_and_end_with_what_was_before():
    a = m()
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        assert (a @ a).dtype == F16
        with torch.autocast("cuda", enabled=False):
            assert not torch.is_autocast_enabled() and (a @ a).dtype == F32
            with torch.autocast("cuda", dtype=BF16):
                assert (a @ a).dtype == BF16 and torch.get_autocast_dtype("cuda") == BF16
        assert (a @ a).dtype == F16
        with torch.autocast("cpu"):
            assert (a.cpu() @ a.cpu()).dtype == BF16 and (a @ a).dtype == F16
    assert not torch.is_autocast_enabled() and (a @ a).dtype == F32
    assert torch.get_autocast_dtype("cuda") == torch.get_autocast_gpu_dtype() == F16
    with pytest.raises(ZeroDivisionError):
        with torch.autocast("cuda"):
            1 / 0  # noqa: B018
    assert (a @ a).dtype == F32
    block = torch.autocast("cuda")
    with block, block:
        assert (a @ a).dtype == F16
    assert (a @ a).dtype == F32


def test_it_decorates_functions_and_belongs_to_the_thread():
    @torch.autocast("cuda", dtype=BF16)
    def product(a):
        """Its docstring."""
        return a @ a

    assert product(m()).dtype == BF16 and product.__doc__ == "Its docstring." and (m() @ m()).dtype == F32
    seen = []
    with torch.autocast("cuda"):
        thread = threading.Thread(target=lambda: seen.append((m() @ m()).dtype))
        thread.start()
        thread.join()
    assert seen == [F32]
    with pytest.raises(TypeError, match="requires a callable"):
        torch.autocast("cuda")(3)


def test_a_weight_is_cast_once_in_a_block_and_never_stale():
    weight = torch.nn.Parameter(m())
    x = m()
    with torch.autocast("cuda"):
        with torch.no_grad():
            first = x @ weight
        second = x @ weight  # a cast made without grad must not be reused for the weight
        assert second.requires_grad and not first.requires_grad
        second.float().sum().backward()
        assert weight.grad is not None and weight.grad.dtype == F32
        with torch.no_grad():
            weight.mul_(2)
        assert torch.equal((x @ weight).cpu(), (second.detach() * 2).cpu())
    weight.grad = None
    with torch.autocast("cuda"):
        torch.cuda.synchronize()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        first = x.half() @ weight
        torch.cuda.synchronize()
        with_cast = torch.cuda.memory_stats()["allocation.all.allocated"] - before
        again = x.half() @ weight
        torch.cuda.synchronize()
        assert torch.cuda.memory_stats()["allocation.all.allocated"] - before - with_cast < with_cast
        (first + again).sum().backward()
    expected = 2 * x.half().float().sum(0)[:, None].expand(4, 4)
    assert (weight.grad - expected).abs().max().item() < 0.05


def test_probabilities_are_refused_where_they_are_unsafe():
    p = torch.sigmoid(m())
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(p, p)
    with torch.autocast("cpu"):
        assert F.binary_cross_entropy(p.cpu().bfloat16(), p.cpu()).dtype == F32


def test_wrong_arguments_are_said_and_a_type_that_cannot_be_turns_it_off():
    with pytest.raises(RuntimeError, match="device type at start of device string: abacus"):
        torch.autocast("abacus")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(torch.float16)
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        with torch.autocast("cpu", dtype=F32):
            assert not torch.is_autocast_enabled("cpu")
    assert torch.amp.is_autocast_available("mps") and not torch.amp.is_autocast_available("abacus")


def test_functions_of_ones_own_choose_their_type_and_keep_the_state_for_backward():
    seen = []

    class Product(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=F32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a.dtype, torch.is_autocast_enabled()))
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g.dtype, torch.is_autocast_enabled()))
            return g @ b.t(), a.t() @ g

    class Plain(Product):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

    a = m().requires_grad_()
    with torch.autocast("cuda"):
        out = Product.apply(a.half(), a)
    assert out.dtype == F32
    out.sum().backward()
    assert seen == [(F32, False), (F32, False)]
    seen.clear()
    with torch.autocast("cuda", dtype=BF16):
        out = Plain.apply(a, a)
    assert out.dtype == BF16
    out.sum().backward()
    assert seen == [(BF16, True)] and not torch.is_autocast_enabled()


@pytest.mark.parametrize("kind, half", [("cuda", F16), ("mps", F16), ("cpu", BF16)])
def test_a_training_run_in_mixed_precision_comes_close_to_one_in_float32(kind, half):
    x, target = m(F32, kind, 32), m(F32, kind, 32)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).to(kind)

    def train(model, enabled):
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.amp.GradScaler(kind, enabled=enabled)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            with torch.autocast(device_type=kind, dtype=half, enabled=enabled):
                output = model(x)
                assert output.dtype == (half if enabled else F32)
                loss = F.mse_loss(output, target)
                assert loss.dtype == F32
            scaler.scale(loss).backward()
            assert scaler.step(optimizer) is None and scaler.last_step.stepped
            scaler.update()
            losses.append(loss.item())
        assert all(p.dtype == F32 for p in model.parameters())
        return losses

    plain, mixed = train(copy.deepcopy(model), False), train(model, True)
    assert mixed[-1] < 0.2 * mixed[0]
    assert all(abs(a - b) < 0.02 * plain[0] for a, b in zip(plain, mixed))


def test_the_older_names_warn_and_work():
    with pytest.warns(FutureWarning, match="is deprecated"):
        block, scaler = torch.cuda.amp.autocast(), torch.cuda.amp.GradScaler(init_scale=2.0)
    with block:
        assert (m() @ m()).dtype == F16
    assert scaler.get_scale() == 2.0


def test_without_a_cuda_device_it_warns_and_computes_as_if_it_were_not_there():
    with torch.virtual("cuda", count=0):
        with pytest.warns(UserWarning, match="Disabling autocast"):
            with torch.autocast("cuda"):
                assert not torch.is_autocast_enabled()
        with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
            assert not torch.amp.GradScaler("cuda").is_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast("cuda"):
            assert torch.is_autocast_enabled()

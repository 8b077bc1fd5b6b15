"""Attention, MultiheadAttention and the Transformer, compared with values recorded from PyTorch 2.15."""
import copy
import math
import pickle
import warnings

import naru as torch
import numpy as np
import pytest
from naru import nn
from naru.nn.attention import SDPBackend, sdpa_kernel
from naru.nn.attention.bias import causal_lower_right, causal_upper_left

F = nn.functional
F64 = torch.float64


def waves(*shape, start=0.0):
    n = math.prod(shape)
    return (torch.arange(n, dtype=F64) * 0.7 + start).sin().reshape(shape)


def by_hand(q, k, v, mask=None, scale=None):
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


def gradients(f, *tensors):
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    out = f(*leaves)
    (out * waves(*out.shape, start=1.0).to(out.device)).sum().backward()
    return [out.detach(), *(t.grad for t in leaves)]


def agree(got, want, tolerance=1e-12):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mask", [None, "causal", "bool", "rows", "float"])
def test_attention_and_its_gradients_are_those_of_the_formula(mask):
    q, k, v = waves(2, 4, 5, 3), waves(2, 4, 6, 3, start=2.0), waves(2, 4, 6, 2, start=3.0)
    hidden = torch.triu(torch.full((5, 6), -math.inf, dtype=F64), 1)
    if mask == "float":
        m = waves(4, 1, 6, start=5.0)
        return agree(gradients(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, m), gradients(by_hand, q, k, v, m))
    options = {None: {}, "causal": {"is_causal": True}, "bool": {"attn_mask": hidden == 0}, "rows": {"attn_mask": waves(2, 1, 1, 6) < 0.5}}[mask]
    added = {None: None, "causal": hidden, "bool": hidden, "rows": torch.where(waves(2, 1, 1, 6) < 0.5, 0.0, -math.inf)}[mask]
    agree(gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q, k, v), gradients(lambda q, k, v: by_hand(q, k, v, added), q, k, v))


def test_heads_of_key_and_value_may_be_fewer_and_the_scale_any():
    q, k, v = waves(1, 4, 3, 2), waves(1, 2, 5, 2, start=1.0), waves(1, 2, 5, 2, start=2.0)
    got = gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3, enable_gqa=True), q, k, v)
    want = gradients(lambda q, k, v: by_hand(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), scale=0.3), q, k, v)
    agree(got, want)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": "bool"}])
def test_long_sequences_go_block_by_block_and_give_the_same(options):
    n, m = 2200, 2048  # more scores than fit in a block
    q, k, v = waves(n, 2), waves(m, 2, start=1.0), waves(m, 1, start=2.0)
    mask = torch.arange(m) % 3 != 0
    added = torch.where(mask, 0.0, -math.inf).to(F64) if "attn_mask" in options else torch.triu(torch.full((n, m), -math.inf, dtype=F64), 1) if options else None
    options = {"attn_mask": mask} if "attn_mask" in options else options
    got = gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q, k, v)
    agree(got, gradients(lambda q, k, v: by_hand(q, k, v, added), q, k, v), 1e-9)
    leaf = q.clone().requires_grad_()
    assert F.scaled_dot_product_attention(leaf, k, v).grad_fn.name() == "ScaledDotProductAttentionBackward0"


# Query and key rows: whole tiles of 64, parts of one, more queries than keys and the other way round.
LENGTHS = [(128, 128), (200, 200), (129, 65), (64, 130), (300, 70), (70, 300)]


def by_whole_matrices(q, k, v):
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax((q * q.shape[-1] ** -0.5 @ k.mT).masked_fill(hidden, -math.inf), -1) @ v


@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("queries, keys", LENGTHS)
def test_causal_attention_by_tiles_has_the_bits_of_whole_matrices(queries, keys, dtype, device, own_matmuls):
    torch.manual_seed(1)
    given = [torch.randn(5, 4, n, width).to(dtype).to(device) for n, width in ((queries, 16), (keys, 16), (keys, 6))]
    laid = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in given]  # heads beside each other, as modules have them
    wide = (lambda t: t.float()) if dtype == torch.bfloat16 and device == "cpu" else (lambda t: t)
    want = gradients(lambda *t: by_whole_matrices(*map(wide, t)).to(dtype), *given)
    for tensors in (given, laid):
        got = gradients(lambda *t: F.scaled_dot_product_attention(*t, is_causal=True), *tensors)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("shape", [(20, 130, 16), (4, 5, 130, 16)], ids=str)
def test_causal_attention_of_a_tensor_to_itself_adds_its_gradients_in_the_order_of_the_formula(shape, own_matmuls):
    x = torch.randn(*shape)
    want = gradients(lambda x: by_whole_matrices(x, x, x), x)
    got = gradients(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), x)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("queries, keys", LENGTHS)
def test_causal_attention_gives_each_gradient_alone_and_those_of_gradients(queries, keys):
    q, k, v = (waves(4, 4, n, w, start=w) for n, w in ((queries, 3), (keys, 3), (keys, 2)))
    leaves = [t.requires_grad_() for t in (q, k, v)]

    def seconds(f):
        first = torch.autograd.grad((f(*leaves) * waves(4, 4, queries, 2)).sum(), leaves, create_graph=True)
        return [*first, *torch.autograd.grad(sum((g * waves(*g.shape)).sum() for g in first), leaves)]

    agree([t.detach() for t in seconds(lambda *t: F.scaled_dot_product_attention(*t, is_causal=True))], [t.detach() for t in seconds(by_whole_matrices)], 1e-9)
    out = F.scaled_dot_product_attention(*leaves, is_causal=True)
    full = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    for leaf, want in zip(leaves, full):
        assert torch.equal(torch.autograd.grad(out.sum(), leaf, retain_graph=True)[0], want)


@pytest.mark.parametrize("seen", [64, 128, 192])
def test_causal_attention_does_not_read_what_lies_above_the_diagonal_tiles(seen):
    q, k, v = (torch.randn(4, 4, 256, 8) for _ in range(3))
    k[..., seen:, :] = v[..., seen:, :] = math.nan
    leaves = [t.requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, is_causal=True)
    assert not out[..., :seen, :].isnan().any() and out[..., seen:, :].isnan().all()
    dq, = torch.autograd.grad(out, q, torch.ones_like(out))
    assert not dq[..., :seen, :].isnan().any()
    q2, k2, v2 = (torch.randn(4, 4, 256, 8).requires_grad_() for _ in range(3))
    g = torch.ones(4, 4, 256, 8)
    g[..., :seen, :] = math.nan  # the first queries do not reach the last keys
    dk, dv = torch.autograd.grad(F.scaled_dot_product_attention(q2, k2, v2, is_causal=True), [k2, v2], g)
    for t in (dk, dv):
        assert t[..., :seen, :].isnan().all() and not t[..., seen:, :].isnan().any()


def test_memory_does_not_grow_with_the_square_of_the_length():
    device = "cuda"

    def peak(length):
        q = torch.ones(4, length, 8, device=device, requires_grad=True)
        torch.accelerator.empty_cache()
        torch.accelerator.reset_peak_memory_stats(device)
        F.scaled_dot_product_attention(q, q, q).sum().backward()
        torch.accelerator.synchronize(device)
        return torch.accelerator.max_memory_allocated(device)

    assert peak(4096) < 2.5 * peak(2048)


def test_a_row_that_sees_nothing_is_zero_and_gradients_stay_numbers():
    q = waves(3, 2).requires_grad_()
    out = F.scaled_dot_product_attention(q, q, q, torch.tensor([[True, False, True], [False] * 3, [True] * 3]))
    out.sum().backward()
    assert out[1].tolist() == [0, 0] and q.grad.isfinite().all()


def test_dropout_keeps_the_mean_and_zeroes_weights():
    torch.manual_seed(0)
    q, v = torch.zeros(1, 200, 1), torch.eye(200).unsqueeze(0)
    weights = F.scaled_dot_product_attention(q, q, v, dropout_p=0.25) * 200
    assert sorted(weights.unique().tolist()) == pytest.approx([0.0, 4 / 3], rel=1e-5) and abs(weights.mean().item() - 1) < 0.03
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 1.5"):
        F.scaled_dot_product_attention(q, q, v, dropout_p=1.5)


def test_kernels_are_named_and_causal_masks_by_formula():
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], set_priority=True):
        assert torch.backends.cuda.math_sdp_enabled() and not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() and int(SDPBackend.EFFICIENT_ATTENTION) == 2
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list"):
        sdpa_kernel("math").__enter__()
    q, k = waves(2, 3), waves(4, 3, start=1.0)
    want = F.scaled_dot_product_attention(q, k, k, torch.ones(2, 4, dtype=torch.bool).tril(2))
    assert torch.equal(F.scaled_dot_product_attention(q, k, k, causal_lower_right(2, 4)), want)
    assert torch.equal(F.scaled_dot_product_attention(q, k, k, causal_upper_left(2, 4)), F.scaled_dot_product_attention(q, k, k, is_causal=True))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        F.scaled_dot_product_attention(q, k, k, causal_lower_right(2, 4), is_causal=True)


def filled(module, scale=0.3):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(waves(*p.shape, start=float(i)) * scale)
    return module


def figure(t):
    return (t.detach() * waves(*t.shape)).sum().item()


def test_its_layers_are_pytorchs_number_by_number():
    HEADS = [  # (options, masks, sum over the result, sum over the weights, sum over the gradients)
        ({}, "none", 9.674718165532404, 0.9110599353128754, 394.73926758490893),
        ({}, "heads", 9.785535212964248, -0.3300103973385736, 388.62271356493665),
        ({}, "both", -6.439853088561906, 0.7560776765652619, 303.94215430650513),
        ({"kdim": 5, "vdim": 7}, "padding", 4.7920970001225855, 0.9434560080667043, 72.34131681839474),
        ({"add_bias_kv": True, "add_zero_attn": True}, "padding", 19.790074516457494, -1.4871763146750225, 294.54099484166863),
        ({"bias": False}, "heads", -9.073322703482217, -0.3031285706859686, 326.559481023676),
    ]
    for options, masks, *want in HEADS:
        layer = filled(nn.MultiheadAttention(8, 2, dtype=F64, **options))
        q, k, v = waves(3, 2, 8), waves(4, 2, options.get("kdim", 8), start=1.0), waves(4, 2, options.get("vdim", 8), start=2.0)
        given = {
            "none": {}, "padding": {"key_padding_mask": torch.tensor([[False, False, False, True], [False, False, True, True]])},
            "heads": {"attn_mask": waves(4, 3, 4, start=4.0)}, "both": {"attn_mask": waves(3, 4) > 0.5, "key_padding_mask": torch.tensor([[False] * 3 + [True]] * 2)},
        }[masks]  # fmt: skip
        out, weights = layer(q, k, v, average_attn_weights=masks != "heads", **given)
        again, none = layer(q, k, v, need_weights=False, **given)
        (again * waves(*again.shape)).sum().backward()
        got = [figure(out), figure(weights), sum(p.grad.abs().sum().item() for p in layer.parameters())]
        assert got == pytest.approx(want, rel=1e-9) and none is None and torch.allclose(out, again), (options, masks)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("options, want", [
    ({}, (-3.484898365417408, -3.4862962980464367, -3.486548768074946)),
    ({"batch_first": True, "norm_first": True, "activation": "gelu"}, (-3.1839871531295394, -3.189788478521371, -3.181874273627316)),
    ({"bias": False}, (-0.3615282113268823, -0.2752886936361443, -0.3500328462628822)),
])  # fmt: skip
def test_the_transformer_gives_pytorchs_numbers(options, want):
    model = filled(nn.Transformer(8, 2, 2, 1, 16, dtype=F64, **options)).eval()
    first = options.get("batch_first", False)
    src, tgt = (waves(2, 5, 8), waves(2, 3, 8, start=1.0)) if first else (waves(5, 2, 8), waves(3, 2, 8, start=1.0))
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=F64)
    got = (model(src, tgt), model(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding), model(src, tgt, tgt_mask=mask, tgt_is_causal=True))
    assert [figure(t) for t in got] == pytest.approx(want, rel=1e-9)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
        model(src, waves(4, 4, 8))
    with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model"):
        model(src, tgt[..., :6])


def test_states_have_pytorchs_names_in_pytorchs_order():
    layer = ["self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"]
    assert list(nn.TransformerEncoderLayer(8, 2, 16).state_dict()) == layer
    decoder = [*layer[:4], *(name.replace("self_attn", "multihead_attn") for name in layer[:4]), *layer[4:], "norm3.weight", "norm3.bias"]
    assert list(nn.TransformerDecoderLayer(8, 2, 16).state_dict()) == decoder
    assert list(nn.MultiheadAttention(8, 2, kdim=4, bias=False, add_bias_kv=True).state_dict()) == ["q_proj_weight", "k_proj_weight", "v_proj_weight", "bias_k", "bias_v", "out_proj.weight"]
    names = list(nn.Transformer(8, 2, 2, 1, 16).state_dict())
    assert names[12] == "encoder.layers.1.self_attn.in_proj_weight" and names[-1] == "decoder.norm.bias"


def test_copies_of_a_layer_begin_equal_and_live_apart():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    a, b = encoder.layers
    assert torch.equal(a.linear1.weight, b.linear1.weight) and a.linear1.weight is not b.linear1.weight
    x = waves(2, 3, 8).float()
    encoder.eval()
    assert torch.equal(copy.deepcopy(encoder)(x), encoder(x)) and torch.equal(pickle.loads(pickle.dumps(encoder))(x), encoder(x))


def test_in_evaluation_without_gradients_padding_is_zero():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
    x, padding = waves(2, 3, 8).float(), torch.tensor([[False, False, True], [False] * 3])
    with_history = encoder(x, src_key_padding_mask=padding)
    with torch.no_grad():
        without = encoder(x, src_key_padding_mask=padding)
    assert with_history[0, 2].abs().sum() > 0 and without[0, 2].abs().sum() == 0 and torch.equal(without[0, :2], with_history[0, :2].detach())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1)
    assert "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.self_attn.batch_first was not True" in str(seen[0].message)


LAYER, X = nn.MultiheadAttention(8, 2), torch.zeros(3, 2, 8)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: nn.MultiheadAttention(8, 3), AssertionError, "embed_dim must be divisible by num_heads"),
    (lambda: nn.MultiheadAttention(0, 1), ValueError, "embed_dim and num_heads must be greater than 0, got embed_dim=0 and num_heads=1 instead"),
    (lambda: LAYER(X[0, 0], X, X), AssertionError, "query should be unbatched 2D or batched 3D tensor but received 1-D query tensor"),
    (lambda: LAYER(X, X[0], X), AssertionError, "For batched (3-D) `query`, expected `key` and `value` to be 3-D but found 2-D and 3-D tensors respectively"),
    (lambda: LAYER(X, X, X, key_padding_mask=torch.zeros(3)), AssertionError, "For batched (3-D) `query`, expected `key_padding_mask` to be `None` or 2-D but found 1-D tensor instead"),
    (lambda: LAYER(X, X, X, attn_mask=torch.zeros(3, 2)), RuntimeError, "The shape of the 2D attn_mask is torch.Size([3, 2]), but should be (3, 3)."),
    (lambda: LAYER(X, X, X, attn_mask=torch.zeros(3, 2).long()), AssertionError, "only bool and floating types of attn_mask are supported"),
    (lambda: LAYER(X, X, X, is_causal=True), RuntimeError, "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to create this mask."),
    (lambda: LAYER(X[..., :6], X, X), AssertionError, "was expecting embedding dimension of 8, but got 6"),
    (lambda: LAYER(X, X, X[:2]), AssertionError, "key shape torch.Size([3, 2, 8]) does not match value shape torch.Size([2, 2, 8])"),
    (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), RuntimeError, "activation should be relu/gelu, not tanh"),
    (lambda: nn.TransformerEncoder(nn.Linear(1, 1), 1 << 62), ValueError, "num_layers: wanted at most 100000, got 4611686018427387904"),
    (lambda: nn.RNN(300, 1, num_layers=2**31 - 1), ValueError, "num_layers: wanted at most 100000, got 2147483647"),
    (lambda: nn.TransformerDecoder(None, 2), TypeError, "NoneType is not a Module subclass"),
    (lambda: LAYER([1], X, X), Exception, "'list' object has no attribute"),
])  # fmt: skip
def test_what_does_not_fit_is_said_in_pytorchs_words(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value).startswith(text)


def test_scores_and_masks_may_be_functions_of_positions():
    from naru.nn.attention.flex_attention import AuxRequest, and_masks, create_block_mask, create_mask, flex_attention, or_masks

    q, k, v = waves(2, 4, 6, 3), waves(2, 2, 6, 3, start=1.0), waves(2, 2, 6, 2, start=2.0)
    document = torch.tensor([0, 0, 0, 1, 1, 1])
    causal, same = lambda b, h, q, k: q >= k, lambda b, h, q, k: document[q] == document[k]  # noqa: E731
    mask = create_block_mask(and_masks(causal, same), None, None, 6, 6, device="cpu", BLOCK_SIZE=2)
    both = torch.ones(6, 6, dtype=torch.bool).tril() & (document[:, None] == document)
    assert torch.equal(create_mask(and_masks(causal, same), 2, None, 6, 6, "cpu")[1, 0], both) and create_mask(or_masks(causal, same), 1, 1, 6, 6, "cpu")[0, 0, 0, 2]
    assert mask.shape == (1, 1, 6, 6) and mask.kv_num_blocks.tolist() == [[[1, 2, 2]]] and mask.full_kv_num_blocks.tolist() == [[[0, 0, 0]]]
    whole = create_block_mask(causal, None, None, 6, 6, device="cpu", BLOCK_SIZE=2)
    assert whole.full_kv_num_blocks.tolist() == [[[0, 1, 2]]] and whole.kv_indices[0, 0, 1].tolist() == [1, 0, 2] and whole.sparsity() == pytest.approx(100 / 3)
    assert torch.allclose(flex_attention(q, k, v, block_mask=mask, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, both, enable_gqa=True))
    slopes = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=F64)
    got, aux = flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (j - i), mask, enable_gqa=True, return_aux=AuxRequest(lse=True, max_scores=True))
    added = slopes.view(4, 1, 1) * (torch.arange(6) - torch.arange(6)[:, None]) + torch.where(both, 0.0, -math.inf)
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    scores = q @ k.mT / math.sqrt(3) + added
    assert torch.allclose(got, by_hand(q, k, v, added)) and torch.allclose(aux.lse, scores.logsumexp(-1)) and torch.allclose(aux.max_scores, scores.amax(-1))
    with pytest.raises(ValueError, match="Expect query and key/value to have the same number of heads but got Hq=4 and Hkv=2"):
        flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        and_masks(3)

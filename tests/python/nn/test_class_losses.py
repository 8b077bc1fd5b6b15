"""Losses over classes, sequences and bags, functions and modules: PyTorch 2.15's error texts, extreme inputs, gradients."""
import warnings

import naru as torch
import numpy as np
import pytest
from naru import nn
from naru.nn import functional as F

X = torch.tensor([[0.5, -1.0, 2.0, 0.0], [1.0, 0.0, -2.0, 3.0], [0.25, 0.5, 0.75, 1.0]])
Y = torch.tensor([0, 3, 1])
SEVERAL = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 0, 0]])
LOG = torch.zeros(6, 3, 5).log_softmax(2)
TARGETS = torch.tensor([[1, 2, 3], [2, 2, 4], [1, 1, 1]])
STEPS, COUNTS = torch.tensor([6, 5, 4]), torch.tensor([3, 2, 1])
TABLE = torch.arange(20.0).reshape(10, 2)
ROWS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
BEGINS = torch.tensor([0, 4])

ERRORS = [
    (lambda: F.multi_margin_loss(X, Y, p=3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda: F.multi_margin_loss(X, torch.tensor([0, 4, 1])), RuntimeError, "target out of range"),
    (lambda: F.multi_margin_loss(X, torch.tensor([0, -1, 1])), RuntimeError, "target out of range"),
    (lambda: F.multi_margin_loss(X, Y[:2]), RuntimeError, "Expected target size [3], but got [2]. Input has shape [3, 4]."),
    (lambda: F.multi_margin_loss(torch.zeros(2, 3, 4), Y), RuntimeError, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [2, 3, 4]"),
    (lambda: F.multi_margin_loss(torch.zeros(3, 0), Y), RuntimeError, "Expected non-empty vector or matrix"),
    (lambda: F.multi_margin_loss(X, Y, weight=torch.ones(3)), RuntimeError, "inconsistent weight size, expected 4 but got [3]"),
    (lambda: F.multi_margin_loss(X, Y, weight=torch.ones(2, 2)), ValueError, "weight must be one-dimensional"),
    (lambda: F.multi_margin_loss(X, Y.int()), RuntimeError, "expected scalar type Long but found Int"),
    (lambda: F.multi_margin_loss(X, Y.float()), RuntimeError, "expected scalar type Long but found Float"),
    (lambda: F.multi_margin_loss(X.long(), Y), NotImplementedError, "\"multi_margin_loss_cpu_kernel\" not implemented for 'Long'"),
    (lambda: F.multi_margin_loss(X, Y, weight=torch.ones(4).double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: F.multi_margin_loss(X, Y, weight=torch.ones(4, requires_grad=True)), RuntimeError,
     "The function 'multi_margin_loss' is not differentiable with respect to argument 'weight'"),
    (lambda: F.multi_margin_loss(X, Y, reduction="foo"), ValueError, "foo is not a valid value for reduction"),
    (lambda: F.multilabel_margin_loss(X, SEVERAL + 4), RuntimeError, "argument #2 'target' is out of range"),
    (lambda: F.multilabel_margin_loss(X, SEVERAL - 3), RuntimeError, "argument #2 'target' is out of range"),
    (lambda: F.multilabel_margin_loss(X, SEVERAL[:2]), RuntimeError, "inconsistent target size: [2, 4] for input of size: [3, 4]"),
    (lambda: F.multilabel_margin_loss(X, SEVERAL.int()), RuntimeError, "expected scalar type Long but found Int"),
    (lambda: F.multilabel_soft_margin_loss(X.long(), SEVERAL), NotImplementedError, "\"log_sigmoid_cpu\" not implemented for 'Long'"),
    (lambda: F.multilabel_soft_margin_loss(X, X, reduction="foo"), ValueError, "foo is not valid"),
    (lambda: F.multilabel_soft_margin_loss(X[0, 0], X[0, 0]), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: F.triplet_margin_with_distance_loss(X, X, X, margin=0), ValueError, "margin must be greater than 0, got 0"),
    (lambda: F.triplet_margin_with_distance_loss(X, X[0], X), RuntimeError, "but got: anchor 2D, positive 1D, and negative 2D inputs"),
    (lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0), ValueError, "expected margin to be greater than 0, got -1.0 instead"),
    (lambda: F.ctc_loss(LOG, TARGETS, [7, 5, 4], COUNTS), RuntimeError, "Expected input_lengths to have value at most 6, but got value 7"),
    (lambda: F.ctc_loss(LOG, TARGETS, [-1, 5, 4], COUNTS), RuntimeError, "Expected input_lengths to have value at least 0, but got value -1"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS, [-1, 2, 1]), RuntimeError, "Expected target_lengths to have value at least 0, but got value -1"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS, [4, 2, 1]), RuntimeError, "Expected tensor to have size at least 4 at dimension 1, but got size 3 for argument #2 'targets'"),
    (lambda: F.ctc_loss(LOG, TARGETS, [5, 4], COUNTS), RuntimeError, "input_lengths must be of size batch_size"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS, [5, 4]), RuntimeError, "target_lengths must be of size batch_size"),
    (lambda: F.ctc_loss(LOG, TARGETS[:2], STEPS, COUNTS), RuntimeError, "Expected tensor to have size 3 at dimension 0, but got size 2"),
    (lambda: F.ctc_loss(LOG, TARGETS[0], STEPS, COUNTS), RuntimeError, "Expected tensor to have size 6 at dimension 0, but got size 3"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS, COUNTS, blank=5), RuntimeError, "blank must be in label range"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS.float(), COUNTS), RuntimeError, "input_lengths must be integral"),
    (lambda: F.ctc_loss(LOG, TARGETS, STEPS, COUNTS.float()), RuntimeError, "target_lengths must be integral"),
    (lambda: F.ctc_loss(LOG.half(), TARGETS, STEPS, COUNTS), NotImplementedError, "\"ctc_loss_cpu\" not implemented for 'Half'"),
    (lambda: F.ctc_loss(LOG[0, 0], TARGETS, STEPS, COUNTS), RuntimeError, "Expected 3-dimensional tensor, but got 2-dimensional tensor for argument #1 'log_probs'"),
    (lambda: F.ctc_loss(LOG[:0], TARGETS, STEPS, COUNTS), RuntimeError, "log_probs tensor must not be empty"),
    (lambda: F.ctc_loss(LOG, TARGETS[None], STEPS, COUNTS), RuntimeError, "Expected 1 to 2 dimensions, but got 3-dimensional tensor for argument #2 'targets'"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, padding_idx=10), RuntimeError, "padding_idx must be within the number of embeddings, -10 through 9, but got 10"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, mode="sum", per_sample_weights=torch.ones(8).double()), RuntimeError,
     "to have the same type as tensor for argument #1 'per_sample_weights'; but type torch.FloatTensor does not equal torch.DoubleTensor"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, per_sample_weights=torch.ones(8)), NotImplementedError, "per_sample_weights is only supported for mode='sum' (got mode='mean')"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, mode="sum", per_sample_weights=torch.ones(7)), ValueError,
     "If per_sample_weights (torch.Size([7])) is not None, then it must have the same shape as the input (torch.Size([8]))"),
    (lambda: F.embedding_bag(ROWS, TABLE[None], BEGINS), ValueError, "weight has to be a 2D Tensor, but got Tensor of dimension 3"),
    (lambda: F.embedding_bag(ROWS.reshape(2, 4), TABLE, BEGINS), ValueError, "if input is 2D, then offsets has to be None"),
    (lambda: F.embedding_bag(ROWS, TABLE), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(ROWS[None, None], TABLE), ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dimension 3"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, mode="x"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS + 1), RuntimeError, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got 1"),
    (lambda: F.embedding_bag(ROWS, TABLE, torch.tensor([0, 9])), RuntimeError, "offsets[-1] can not be greater than input's length 8 but got offsets[-1] of 9"),
    (lambda: F.embedding_bag(ROWS, TABLE, torch.tensor([0, 5, 3])), RuntimeError, "offsets have to be in ascending order"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS[:0], include_last_offset=True), RuntimeError, "include_last_offset: number of offset should be at least 1"),
    (lambda: F.embedding_bag(ROWS + 5, TABLE, BEGINS), RuntimeError, "Expected idx >= 0 && idx < num_embeddings"),
    (lambda: F.embedding_bag(ROWS.float(), TABLE, BEGINS), RuntimeError, "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor"),
    (lambda: F.embedding_bag(ROWS, TABLE.long(), BEGINS), RuntimeError, "scalar types: Half, BFloat16, Float, Double; but got torch.LongTensor"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, mode="max", scale_grad_by_freq=True), ValueError, "max mode does not support scaling the gradient by the frequency"),
    (lambda: F.embedding_bag(ROWS, TABLE, BEGINS, mode="max", sparse=True), ValueError, "max mode does not support sparse weights"),
    (lambda: F.pdist(X, -1), RuntimeError, "pdist only supports non-negative p values"),
    (lambda: F.pdist(X[0]), RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    (lambda: F.pdist(X.long()), RuntimeError, "pdist only supports floating-point dtypes"),
    (lambda: F.rrelu(X, 0.5, 0.1, training=True), RuntimeError, "Lower bound should be less than or equal to the upper bound"),
    (lambda: F.rrelu(X, 0.0, float("inf"), training=True), RuntimeError, "rrelu: upper bound must be finite, got inf"),
    (lambda: F.rrelu(X.long(), training=True), NotImplementedError, "\"rrelu_with_noise_out_cpu\" not implemented for 'Long'"),
    (lambda: F.feature_alpha_dropout(X, 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda: F.feature_alpha_dropout(X[0], 0.5, True), RuntimeError, "Feature dropout requires at least 2 dimensions in the input"),
    (lambda: F.dropout3d(X[0], 0.5, True), RuntimeError, "Feature dropout requires at least 2 dimensions in the input"),
    (lambda: F.conv_tbc(torch.ones(5, 3), torch.ones(3, 3, 4), torch.ones(4)), RuntimeError, "Input must have 3 dims: time, batch, in_channel"),
    (lambda: F.conv_tbc(torch.ones(5, 2, 3), torch.ones(3, 4), torch.ones(4)), RuntimeError, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
    (lambda: F.conv_tbc(torch.ones(5, 2, 3), torch.ones(3, 2, 4), torch.ones(4)), RuntimeError, "Input dim 2 (input channels) is not == dim 1 in the weight tensor"),
    (lambda: F.conv_tbc(torch.ones(5, 2, 3), torch.ones(3, 3, 4), torch.ones(3)), RuntimeError, "Bias size must equal dim 2 in the weight tensor (output channels)."),
    (lambda: F.grouped_mm(X, torch.ones(2, 4, 5)), RuntimeError, "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"),
    (lambda: F.grouped_mm(X, torch.ones(2, 4, 5), offs=torch.tensor([1, 3])), RuntimeError, "Offsets have to be int32"),
    (lambda: F.grouped_mm(X, torch.ones(2, 4, 5), offs=torch.tensor([3, 1], dtype=torch.int32)), RuntimeError, "offs have to rise from 0 to at most 3"),
    (lambda: F.grouped_mm(X, torch.ones(3, 4, 5), offs=torch.tensor([1, 3], dtype=torch.int32)), RuntimeError, "matrix batch sizes have to match"),
    (lambda: F.grouped_mm(X, torch.ones(2, 3, 5), offs=torch.tensor([1, 3], dtype=torch.int32)), RuntimeError, "contraction dimension of mat_a and mat_b must match"),
    (lambda: F.linear_cross_entropy(X, torch.ones(5, 3), Y), RuntimeError, "expected equal input and linear_weight last dimensions (in_features), got 4 and 3, respectively"),
    (lambda: F.linear_cross_entropy(X, torch.ones(4), Y), RuntimeError, "expected linear_weight with dimensionality at least 2, got 1"),
    (lambda: F.linear_cross_entropy(X, torch.ones(5, 4), torch.ones(3, 5), ignore_index=1), RuntimeError, "ignore_index cannot be specified when target contains probabilities"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]), ValueError, "cutoffs should be a sequence of unique, positive integers"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(X, Y + 8), RuntimeError, "Target values should be in [0, 9], but values in range [8, 11] were found. "),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(X, SEVERAL), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    (lambda: nn.CrossMapLRN2d(3)(X), ValueError, "CrossMapLRN2d: Expected input to be 4D, got 2D instead."),
]  # fmt: skip


@pytest.mark.parametrize("case", ERRORS, ids=[e[2][:60] for e in ERRORS])
def test_what_does_not_fit_is_told_in_pytorchs_words(case):
    call, kind, text = case
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)


def test_every_public_function_of_pytorchs_is_there():
    # dir(torch.nn.functional) of PyTorch 2.15, without what its modules import and without quantized functions (scaled_*).
    later = {"multi_head_attention_forward"}
    names = """adaptive_avg_pool1d adaptive_max_pool1d affine_grid alpha_dropout avg_pool1d batch_norm bilinear binary_cross_entropy celu channel_shuffle
        conv1d conv_tbc cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout1d elu_ embedding embedding_bag feature_alpha_dropout fold
        fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm grouped_mm gumbel_softmax hardshrink hardtanh_
        hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu_ linear linear_cross_entropy local_response_norm
        log_softmax logsigmoid lp_pool3d margin_ranking_loss max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle
        pixel_unshuffle poisson_nll_loss prelu relu6 relu_ rms_norm rrelu rrelu_ scaled_dot_product_attention selu_ silu smooth_l1_loss
        soft_margin_loss softmin softplus softshrink softsign tanhshrink threshold_ triplet_margin_loss triplet_margin_with_distance_loss unfold
        upsample_bilinear""".split()
    assert {n for n in names if not hasattr(F, n)} <= later


def test_a_target_that_is_too_long_has_infinite_loss_unless_that_counts_as_nothing():
    x = LOG.clone().requires_grad_()
    losses = F.ctc_loss(x, TARGETS, [2, 5, 4], COUNTS, reduction="none")
    assert losses[0].item() == float("inf") and losses[1:].isfinite().all()
    (gradient,) = torch.autograd.grad(losses.sum(), x)
    assert gradient[:2, 0].isnan().all() and (gradient[2:, 0] == 0).all() and gradient[:, 1:].isfinite().all()
    losses = F.ctc_loss(x, TARGETS, [2, 5, 4], COUNTS, reduction="none", zero_infinity=True)
    (gradient,) = torch.autograd.grad(losses.sum(), x)
    assert losses[0].item() == 0 and (gradient[:, 0] == 0).all() and (gradient[5:, 1] == 0).all()


def test_ctc_of_nothing_is_certain_and_of_one_sequence_has_no_batch():
    assert F.ctc_loss(LOG, TARGETS, [0, 5, 4], [0, 2, 1], reduction="none")[0].item() == 0
    assert F.ctc_loss(LOG, TARGETS, [0, 5, 4], COUNTS, reduction="none")[0].item() == float("inf")
    all_blank = F.ctc_loss(LOG, TARGETS, STEPS, [0, 0, 0], reduction="none")
    np.testing.assert_allclose(all_blank.numpy(), np.log(5) * np.array([6, 5, 4]), rtol=1e-6)
    alone = F.ctc_loss(LOG[:, 0], TARGETS[0], torch.tensor(6), torch.tensor(3), reduction="none")
    assert alone.shape == () and alone.item() == F.ctc_loss(LOG, TARGETS, STEPS, COUNTS, reduction="none")[0].item()
    behind = F.ctc_loss(LOG, torch.tensor([1, 2, 3, 2, 2, 1]), STEPS, COUNTS, reduction="none")
    assert behind.tolist() == F.ctc_loss(LOG, TARGETS, STEPS, COUNTS, reduction="none").tolist()


def test_the_gradient_of_ctc_has_no_gradient():
    x = LOG.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.ctc_loss(x, TARGETS, STEPS, COUNTS), x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_ctc_loss_backward is not implemented"):
        gradient.square().sum().backward()


def test_labels_beyond_the_first_negative_one_and_repeated_ones_count_as_pytorch_counts_them():
    x = torch.tensor([[0.1, 0.2, 0.4, 0.8]], dtype=torch.float64)
    assert F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]])).item() == pytest.approx(0.85)
    assert F.multilabel_margin_loss(x, torch.tensor([[3, 3, -1, 1]])).item() == pytest.approx(2 * (0.3 + 0.4 + 0.6) / 4)
    assert F.multilabel_margin_loss(x, torch.tensor([[-1, 0, 0, 0]])).item() == 0
    assert F.multilabel_margin_loss(x[0], torch.tensor([3, 0, -1, 1]), reduction="none").shape == ()
    assert F.multi_margin_loss(x[0], torch.tensor(3), reduction="none").shape == ()
    assert F.multi_margin_loss(x[0], torch.tensor([3]), reduction="none").shape == (1,)


def test_empty_bags_are_zero_and_the_last_offset_may_be_an_end():
    for mode in ("sum", "mean", "max"):
        out = F.embedding_bag(ROWS, TABLE, torch.tensor([0, 4, 4, 8]), mode=mode)
        assert (out[1] == 0).all() and (out[3] == 0).all() and (out[[0, 2]] != 0).all()
        two = F.embedding_bag(ROWS, TABLE, torch.tensor([0, 4, 8]), mode=mode, include_last_offset=True)
        assert two.tolist() == out[[0, 2]].tolist() == F.embedding_bag(ROWS.reshape(2, 4), TABLE, mode=mode).tolist()
        assert F.embedding_bag(ROWS[:0], TABLE, torch.tensor([0, 0]), mode=mode).tolist() == [[0, 0], [0, 0]]
        assert (F.embedding_bag(torch.tensor([4, 4]), TABLE, torch.tensor([0]), padding_idx=4, mode=mode) == 0).all()


def test_gradients_of_a_table_are_divided_by_how_often_a_row_is_read():
    for call in (lambda w: F.embedding(ROWS, w, scale_grad_by_freq=True), lambda w: F.embedding_bag(ROWS, w, BEGINS, scale_grad_by_freq=True, mode="sum")):
        w = TABLE.clone().requires_grad_()
        call(w).sum().backward()
        assert w.grad[:, 0].tolist() == [0, 1, 1, 1, 1, 1, 0, 0, 0, 1]
    w = TABLE.clone().requires_grad_()
    F.embedding_bag(torch.tensor([[3, 3, 1]]), w, mode="max").sum().backward()
    assert w.grad[3].tolist() == [1, 1] and w.grad.sum().item() == 2, "of equal rows the first takes the gradient"


def test_slopes_are_drawn_within_their_limits():
    x = torch.full((1000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.25, 0.5, training=True)
    slopes = -y.detach()
    assert 0.25 <= slopes.min().item() < 0.26 and 0.49 < slopes.max().item() <= 0.5
    y.sum().backward()
    assert x.grad.tolist() == slopes.tolist()
    layer = nn.RReLU().eval()
    assert layer(x.detach()).unique().tolist() == [-(torch.tensor((1 / 8 + 1 / 3) / 2)).item()]
    z = torch.full((10,), -1.0)
    assert nn.RReLU(inplace=True)(z) is z and (z > -0.4).all()


def test_whole_channels_are_dropped_to_the_least_value_of_selu():
    torch.manual_seed(0)
    out = nn.FeatureAlphaDropout(0.5)(torch.zeros(50, 40, 3))
    assert (out == out[..., :1]).all() and len(out.unique()) == 2
    assert abs(out.mean().item()) < 0.05
    assert nn.FeatureAlphaDropout(0.5).eval()(X) is X


def test_the_adaptive_softmax_is_a_distribution_over_all_classes():
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True).double()
    x, y = torch.randn(6, 8, dtype=torch.float64), torch.tensor([0, 4, 11, 2, 7, 6])
    every = layer.log_prob(x)
    np.testing.assert_allclose(every.exp().sum(1).detach().numpy(), np.ones(6), rtol=1e-12)
    output, loss = layer(x, y)
    np.testing.assert_allclose(output.detach().numpy(), every.gather(1, y[:, None]).squeeze(1).detach().numpy(), rtol=1e-12)
    assert loss.item() == pytest.approx(-output.mean().item())
    assert layer.predict(x).tolist() == every.argmax(1).tolist()
    assert layer(x[1], y[1]).output.item() == pytest.approx(output[1].item())
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.reset_parameters()


def test_a_linear_layers_cross_entropy_is_both_in_one():
    layer = nn.LinearCrossEntropyLoss(4, 5, out_features=(2,), bias=True)
    target = torch.tensor([[0, 4], [1, 2], [3, 3]])
    logits = layer.linear(X).reshape(3, 5, 2)
    assert layer(X, target).item() == F.cross_entropy(logits, target).item()
    with pytest.warns(UserWarning, match="falling back to the reference path"):
        F.linear_cross_entropy(X, torch.ones(5, 4), Y, options=nn.LinearCrossEntropyOptions())


def test_groups_may_be_rows_columns_or_what_is_summed_over():
    a, b, offs = torch.randn(8, 6).double(), torch.randn(6, 9).double(), torch.tensor([2, 2, 5], dtype=torch.int32)
    sums = F.grouped_mm(a, b, offs=offs)
    np.testing.assert_allclose(sums.numpy(), np.stack([a[:, :2] @ b[:2], np.zeros((8, 9)), a[:, 2:5] @ b[2:5]]), atol=1e-12)
    columns = F.grouped_mm(torch.stack([a, 2 * a, 3 * a]), b, offs=offs)
    np.testing.assert_allclose(columns[:, :5].numpy(), np.concatenate([a @ b[:, :2], 3 * (a @ b)[:, 2:5]], 1), atol=1e-12)
    assert (columns[:, 5:] == 0).all()
    np.testing.assert_allclose(F.grouped_mm(a[None], b[None])[0].numpy(), (a @ b).numpy(), atol=1e-12)


def test_neighbours_of_an_even_count_lie_on_both_sides():
    out = nn.CrossMapLRN2d(4, alpha=1.0)(torch.arange(6.0).reshape(1, 6, 1, 1)).flatten()
    np.testing.assert_allclose(out.numpy(), [0.0, 0.5443, 0.6473, 0.6163, 0.5679, 0.8140], atol=5e-5)


def test_modules_of_these_losses_call_their_functions():
    assert nn.MultiMarginLoss(2, weight=torch.ones(4))(X, Y).item() == F.multi_margin_loss(X, Y, 2, weight=torch.ones(4)).item()
    assert nn.MultiLabelMarginLoss()(X, SEVERAL).item() == F.multilabel_margin_loss(X, SEVERAL).item()
    assert nn.MultiLabelSoftMarginLoss()(X, X).item() == F.multilabel_soft_margin_loss(X, X).item()
    assert nn.CTCLoss(reduction="sum")(LOG, TARGETS, STEPS, COUNTS).item() == F.ctc_loss(LOG, TARGETS, STEPS, COUNTS, reduction="sum").item()
    assert nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), swap=True)(X, X + 1, X).item() == 5.0
    assert nn.EmbeddingBag.from_pretrained(TABLE, mode="sum")(ROWS, BEGINS).tolist() == [[24, 28], [36, 40]]
    assert nn.CosineSimilarity()(X, X).tolist() == F.cosine_similarity(X, X).tolist()
    assert nn.PairwiseDistance(1.0)(X, X + 1).tolist() == F.pairwise_distance(X, X + 1, 1.0).tolist()
    with warnings.catch_warnings(), pytest.raises(FutureWarning):
        warnings.simplefilter("error")
        nn.NLLLoss2d()


@pytest.mark.parametrize("name, input, target, result", [
    ("soft_margin_loss", "float16", "float32", "float16"), ("soft_margin_loss", "float32", "bool", "float32"), ("soft_margin_loss", "float32", "int64", "float32"),
    ("soft_margin_loss", "int64", "float32", "result type Float can't be cast to the desired output type Long"),
    ("soft_margin_loss", "bool", "float32", "Negation, the `-` operator, on a bool tensor is not supported"),
    ("binary_cross_entropy_with_logits", "float32", "float16", "float16"), ("binary_cross_entropy_with_logits", "bfloat16", "float32", "float32"),
    ("binary_cross_entropy_with_logits", "float32", "int64", "result type Float can't be cast to the desired output type Long"),
    ("binary_cross_entropy_with_logits", "float32", "bool", "Subtraction, the `-` operator, with two bool tensors is not supported"),
    ("binary_cross_entropy_with_logits", "int64", "float32", "\"log_sigmoid_cpu\" not implemented for 'Long'"),
])  # fmt: skip
def test_a_loss_has_the_type_that_pytorch_gives_it(name, input, target, result):
    x, y = torch.ones(3, dtype=getattr(torch, input)), torch.ones(3, dtype=getattr(torch, target))
    if hasattr(torch, result):
        assert getattr(F, name)(x, y).dtype == getattr(torch, result)
    else:
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            getattr(F, name)(x, y)
        assert result in str(error.value)


Q = torch.ones(2, 3, 3, 5)
ATTENTION_ERRORS = [
    (lambda: F.scaled_dot_product_attention(Q, Q[:, :2], Q[:, :2], enable_gqa=True), "Number of heads in key and value must divide the number of heads in query"),
    (lambda: F.scaled_dot_product_attention(Q, Q[:, :0], Q[:, :0], enable_gqa=True), "Number of heads in key and value must divide the number of heads in query"),
    (lambda: F.scaled_dot_product_attention(Q[0, 0, 0], Q[0, 0, 0], Q[0, 0, 0]), "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1"),
    (lambda: F.scaled_dot_product_attention(Q, Q.double(), Q), "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: double"),
    (lambda: F.scaled_dot_product_attention(Q, Q, Q, torch.ones(3, 3).long()), "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: long"),
    (lambda: F.scaled_dot_product_attention(Q, Q, Q, torch.ones(3, 3), is_causal=True), "Explicit attn_mask should not be set when is_causal=True"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ATTENTION_ERRORS)
def test_attention_tells_what_does_not_fit(call, text):
    with pytest.raises(RuntimeError) as error:
        call()
    assert text in str(error.value)


def test_a_position_that_sees_nothing_gets_nothing():
    q = torch.randn(2, 3, 5, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    for given in (mask, torch.zeros(3, 3).masked_fill(~mask, float("-inf"))):
        out = F.scaled_dot_product_attention(q, q, q, given)
        assert (out[:, 1] == 0).all() and out.isfinite().all()
        (gradient,) = torch.autograd.grad(out.sum(), q)
        assert gradient.isfinite().all()

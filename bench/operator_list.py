"""What `./run bench --ops` measures: (operator, call, small operands, large operands).

Operands are "x 64 64; i<10 64": a tensor x of numbers between 0.1 and 0.9 (s: between -0.9 and 0.9), integers i below 10; t is the library, F its nn.functional.
Activations see both signs: PyTorch leaves out what negative numbers would cost where it meets none.
"""
ELEMENTS = "x 1000", "x 1000000"
SIGNED = "s 1000", "s 1000000"
PAIRS = "x 1000; y 1000", "x 1000000; y 1000000"
ROWS = "x 32 32", "x 1024 1024"
IMAGE = "x 1 8 16 16", "x 8 32 64 64"
WHOLE = "i<100 1000; j<7 1000", "i<100 1000000; j<7 1000000"

UNARY = """abs neg sign square reciprocal sqrt rsqrt floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
    asinh atanh erf erfc erfinv lgamma digamma sigmoid logical_not isnan isinf isfinite signbit nan_to_num logit special.entr special.i0 special.i1
    special.ndtr special.ndtri special.log_ndtr special.erfcx""".split()
ACTIVATIONS = """relu relu6 silu logsigmoid gelu softsign mish hardsigmoid hardswish elu celu selu softplus leaky_relu hardtanh hardshrink softshrink tanhshrink glu
    rrelu""".split()
BINARY = """add sub mul div floor_divide remainder fmod pow atan2 maximum minimum fmax hypot copysign xlogy logaddexp logaddexp2 eq lt logical_and nextafter
    heaviside""".split()
REDUCTIONS = """sum mean prod amax argmax any var std logsumexp cumsum cumprod nansum nanmean median max sort cummax logcumsumexp softmax log_softmax
    count_nonzero mode argsort""".split()

OTHERS = [
    *((f"{name} of positive", f"F.{name}(x)", *ELEMENTS) for name in ("elu", "celu", "selu", "softplus")),
    ("lerp", "t.lerp(x, y, 0.3)", *PAIRS), ("clamp", "x.clamp(0.2, 0.7)", *ELEMENTS), ("where", "t.where(x > 0.5, x, y)", *PAIRS),
    ("addcmul", "t.addcmul(x, y, y)", *PAIRS), ("to int64", "x.to(t.int64)", *ELEMENTS), ("to float16", "x.to(t.float16)", *ELEMENTS),
    ("bitwise_and", "i & j", *WHOLE), ("bitwise_left_shift", "i << j", *WHOLE), ("gcd", "t.gcd(i, j)", *WHOLE), ("int floor_divide", "i // (j + 1)", *WHOLE),
    ("norm", "x.norm(2, 1)", *ROWS), ("aminmax", "t.aminmax(x, dim=1)[0]", *ROWS), ("topk", "x.topk(5)[0]", *ROWS), ("kthvalue", "x.kthvalue(5)[0]", *ROWS),
    ("quantile", "t.quantile(x, 0.3, dim=1)", *ROWS), ("unique", "t.unique(i)", "i<100 1000", "i<100 1000000"), ("bincount", "t.bincount(i)", "i<100 1000", "i<100 1000000"),
    ("histc", "t.histc(x, 20)", *ELEMENTS), ("searchsorted", "t.searchsorted(t.linspace(0, 1, 100), x)", *ELEMENTS), ("sum(0)", "x.sum(0)", *ROWS), ("diff", "x.diff()", *ROWS),
    ("cdist", "t.cdist(x, x)", "x 16 8", "x 512 64"), ("pdist", "F.pdist(x)", "x 16 8", "x 512 64"), ("cov", "t.cov(x)", *ROWS),
    ("transpose", "x.t().contiguous()", *ROWS), ("cat", "t.cat([x, x], 1)", *ROWS), ("stack", "t.stack([x, x])", *ROWS), ("flip", "x.flip(1)", *ROWS),
    ("roll", "x.roll(3, 1)", *ROWS), ("repeat", "x.repeat(2, 2)", *ROWS), ("tril", "x.tril()", *ROWS), ("unfold", "x.unfold(1, 4, 2).contiguous()", *ROWS),
    ("rot90", "x.rot90()", *ROWS), ("repeat_interleave", "x.repeat_interleave(2, 1)", *ROWS), ("block_diag", "t.block_diag(x, x)", *ROWS),
    ("gather", "x.gather(1, i)", "x 32 32; i<32 32 32", "x 1024 1024; i<1024 1024 1024"), ("index_select", "x.index_select(1, i)", "x 32 32; i<32 32", "x 1024 1024; i<1024 1024"),
    ("index rows", "x[i]", "x 32 32; i<32 32", "x 1024 1024; i<1024 1024"), ("masked_select", "x[x > 0.5]", *ROWS), ("masked_fill", "x.masked_fill(x > 0.5, 0)", *ROWS),
    ("nonzero", "(x > 0.5).nonzero()", *ROWS), ("take", "x.take(i)", "x 32 32; i<32 32", "x 1024 1024; i<1024 100000"),
    ("scatter", "x.scatter(1, i, x)", "x 32 32; i<32 32 32", "x 1024 1024; i<1024 1024 1024"),
    ("scatter_add", "x.scatter_add(1, i, x)", "x 32 32; i<32 32 32", "x 1024 1024; i<1024 1024 1024"),
    ("scatter_reduce amax", "x.scatter_reduce(1, i, x, 'amax')", "x 32 32; i<32 32 32", "x 1024 1024; i<1024 1024 1024"),
    ("index_add", "x.index_add(0, i, x)", "x 32 32; i<32 32", "x 1024 1024; i<1024 1024"), ("put", "t.zeros(1024).index_put((i,), x, accumulate=True)", "x 100; i<1024 100", "x 100000; i<1024 100000"),
    ("matmul", "x @ x", "x 16 16", "x 512 512"), ("bmm", "x @ x", "x 4 16 16", "x 64 64 64"), ("matmul vector", "x @ v", "x 32 32; v 32", "x 1024 1024; v 1024"),
    ("linear", "F.linear(x, w, b)", "x 8 32; w 32 32; b 32", "x 256 512; w 512 512; b 512"), ("bilinear", "F.bilinear(x, x, w)", "x 8 8; w 4 8 8", "x 64 64; w 32 64 64"),
    ("einsum", "t.einsum('bij,bjk->bik', x, x)", "x 4 16 16", "x 64 64 64"), ("outer", "t.outer(v, v)", "v 32", "v 1024"),
    ("linalg.solve", "t.linalg.solve(x @ x.mT + t.eye(x.size(0)), x)", "x 8 8", "x 256 256"), ("linalg.inv", "t.linalg.inv(x @ x.mT + t.eye(x.size(0)))", "x 8 8", "x 256 256"),
    ("linalg.cholesky", "t.linalg.cholesky(x @ x.mT + t.eye(x.size(0)))", "x 8 8", "x 256 256"), ("linalg.qr", "t.linalg.qr(x)[0]", "x 8 8", "x 256 256"),
    ("linalg.svd", "t.linalg.svd(x)[0]", "x 8 8", "x 128 128"), ("linalg.eigh", "t.linalg.eigh(x @ x.mT)[0]", "x 8 8", "x 128 128"), ("linalg.det", "t.linalg.det(x)", "x 8 8", "x 256 256"),
    ("conv1d", "F.conv1d(x, w, padding=1)", "x 1 8 32; w 8 8 3", "x 8 64 1024; w 64 64 3"), ("conv2d 3x3", "F.conv2d(x, w, padding=1)", "x 1 8 16 16; w 8 8 3 3", "x 4 64 56 56; w 64 64 3 3"),
    ("conv2d 1x1", "F.conv2d(x, w)", "x 1 8 16 16; w 8 8 1 1", "x 4 64 56 56; w 128 64 1 1"), ("conv2d 7x7 deep", "F.conv2d(x, w, padding=3)", "x 1 16 7 7; w 16 16 7 7", "x 1 256 14 14; w 256 256 7 7"),
    ("conv2d strided", "F.conv2d(x, w, stride=2, padding=3)", "x 1 3 16 16; w 8 3 7 7", "x 2 3 224 224; w 64 3 7 7"),
    ("conv2d depthwise", "F.conv2d(x, w, padding=1, groups=x.size(1))", "x 1 8 16 16; w 8 1 3 3", "x 4 64 56 56; w 64 1 3 3"),
    ("conv2d groups", "F.conv2d(x, w, padding=1, groups=4)", "x 1 8 16 16; w 8 2 3 3", "x 4 64 56 56; w 64 16 3 3"), ("conv3d", "F.conv3d(x, w, padding=1)", "x 1 4 8 8 8; w 4 4 3 3 3", "x 1 16 16 32 32; w 16 16 3 3 3"),
    ("conv_transpose2d", "F.conv_transpose2d(x, w, stride=2)", "x 1 8 8 8; w 8 8 2 2", "x 4 64 28 28; w 64 32 2 2"), ("conv_tbc", "F.conv_tbc(x, w, b, 1)", "x 16 2 8; w 3 8 8; b 8", "x 128 8 64; w 3 64 64; b 64"),
    ("max_pool2d", "F.max_pool2d(x, 2)", *IMAGE), ("max_pool2d 3x3", "F.max_pool2d(x, 3, 2, 1)", *IMAGE), ("avg_pool2d", "F.avg_pool2d(x, 2)", *IMAGE), ("lp_pool2d", "F.lp_pool2d(x, 2, 2)", *IMAGE),
    ("adaptive_avg_pool2d", "F.adaptive_avg_pool2d(x, 7)", *IMAGE), ("adaptive_avg_pool2d 1", "F.adaptive_avg_pool2d(x, 1)", *IMAGE), ("adaptive_max_pool2d", "F.adaptive_max_pool2d(x, 7)", *IMAGE),
    ("batch_norm", "F.batch_norm(x, None, None, training=True)", *IMAGE), ("group_norm", "F.group_norm(x, 4)", *IMAGE), ("instance_norm", "F.instance_norm(x)", *IMAGE),
    ("layer_norm", "F.layer_norm(x, x.shape[1:])", *ROWS), ("rms_norm", "F.rms_norm(x, x.shape[1:])", *ROWS), ("local_response_norm", "F.local_response_norm(x, 5)", *IMAGE),
    ("pad", "F.pad(x, (1, 2, 3, 4))", *IMAGE), ("pad reflect", "F.pad(x, (1, 2, 3, 4), 'reflect')", *IMAGE), ("pad replicate", "F.pad(x, (1, 2, 3, 4), 'replicate')", *IMAGE), ("pad circular", "F.pad(x, (1, 2, 3, 4), 'circular')", *IMAGE),
    ("interpolate nearest", "F.interpolate(x, scale_factor=2)", *IMAGE), ("interpolate bilinear", "F.interpolate(x, scale_factor=2, mode='bilinear')", *IMAGE),
    ("interpolate bicubic", "F.interpolate(x, scale_factor=2, mode='bicubic')", *IMAGE), ("grid_sample", "F.grid_sample(x, g, align_corners=False)", "x 1 8 16 16; g 1 16 16 2", "x 8 32 64 64; g 8 64 64 2"),
    ("pixel_shuffle", "F.pixel_shuffle(x, 2)", *IMAGE), ("channel_shuffle", "F.channel_shuffle(x, 2)", *IMAGE), ("F.unfold", "F.unfold(x, 3)", *IMAGE), ("F.fold", "F.fold(x, (17, 17), 2)", "x 1 16 256", "x 32 128 256"),
    ("embedding", "F.embedding(i, w)", "w 100 16; i<100 32", "w 10000 64; i<10000 8192"), ("embedding_bag", "F.embedding_bag(i, w)", "w 100 16; i<100 8 8", "w 10000 64; i<10000 1024 16"),
    ("one_hot", "F.one_hot(i, 100)", "i<100 32", "i<100 8192"), ("dropout", "F.dropout(x, 0.3)", *ELEMENTS), ("attention", "F.scaled_dot_product_attention(x, x, x)", "x 1 2 16 16", "x 2 8 256 64"),
    ("cross_entropy", "F.cross_entropy(x, i)", "x 32 10; i<10 32", "x 1024 1000; i<1000 1024"), ("nll_loss", "F.nll_loss(x, i)", "x 32 10; i<10 32", "x 1024 1000; i<1000 1024"),
    ("mse_loss", "F.mse_loss(x, y)", *PAIRS), ("l1_loss", "F.l1_loss(x, y)", *PAIRS), ("smooth_l1_loss", "F.smooth_l1_loss(x, y)", *PAIRS), ("huber_loss", "F.huber_loss(x, y)", *PAIRS), ("kl_div", "F.kl_div(x, y, reduction='sum')", *PAIRS),
    ("binary_cross_entropy", "F.binary_cross_entropy(x, y)", *PAIRS), ("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits(x, y)", *PAIRS), ("poisson_nll_loss", "F.poisson_nll_loss(x, y)", *PAIRS),
    ("gaussian_nll_loss", "F.gaussian_nll_loss(x, y, y)", *PAIRS), ("soft_margin_loss", "F.soft_margin_loss(x, y)", *PAIRS), ("hinge_embedding_loss", "F.hinge_embedding_loss(x, y)", *PAIRS),
    ("cosine_similarity", "F.cosine_similarity(x, x)", *ROWS), ("triplet_margin_loss", "F.triplet_margin_loss(x, x, x)", *ROWS), ("multi_margin_loss", "F.multi_margin_loss(x, i)", "x 32 10; i<10 32", "x 1024 100; i<100 1024"),
    ("multilabel_margin_loss", "F.multilabel_margin_loss(x, i - 1)", "x 32 10; i<11 32 10", "x 256 50; i<51 256 50"), ("multilabel_soft_margin_loss", "F.multilabel_soft_margin_loss(x, x)", *ROWS),
    ("ctc_loss", "F.ctc_loss(x, i + 1, [x.size(0)] * x.size(1), [i.size(1)] * x.size(1))", "x 12 2 10; i<9 2 4", "x 100 16 50; i<49 16 20"),
    ("rand", "t.rand(x.shape)", *ELEMENTS), ("randn", "t.randn(x.shape)", *ELEMENTS), ("bernoulli", "t.bernoulli(x)", *ELEMENTS), ("multinomial", "t.multinomial(x, 10)", *ROWS), ("randperm", "t.randperm(x.size(0))", *ELEMENTS),
]  # fmt: skip

EXTRA = {"softmax": "x.softmax(1)", "log_softmax": "x.log_softmax(1)"}


def operators():
    """All of them: (name, call, small operands, large operands)."""
    out = [(name, f"t.{name}(x)", *ELEMENTS) for name in UNARY]
    out += [(name, f"F.{name}(s)", *SIGNED) for name in ACTIVATIONS]
    out += [(name, f"t.{name}(x, y)", *PAIRS) for name in BINARY]
    out += [(name, EXTRA.get(name, f"t.{name}(x, 1)"), *ROWS) for name in REDUCTIONS]
    return out + OTHERS

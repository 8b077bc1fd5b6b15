"""Explanations, by operator, for failures on the board whose error message does not explain them."""

from __future__ import annotations

_COPIES = "a conjugate is a copy (from-pytorch.md)"
_EXACT = "PyTorch's own error in float64 is 1e-7, naru's 1e-16"
_CUDA = "compiles CUDA text; naru's kernels are `naru.kernel`"
_HALF = "the last digit of 16-bit numbers: both round after each step, in another order"
_LAST = "the last digits of float32 or complex64: products and decompositions of other libraries, sums in another order"
_BRANCH = "PyTorch's gradient is NaN where a branch that is not taken divides by zero; naru's is that of the branch that is"
_OVERFLOW = "PyTorch's steps overflow in float16; naru's result is finite, or infinite by the formula"
_TWICE = "naru's gradient has one more; PyTorch's is made with the forward pass and has none"
_CHAOS = "the iteration is done in bfloat16, where one rounding changes the third digit"

REASONS: dict[str, str] = {
    "H": _COPIES,
    "mH": _COPIES,
    "conj": _COPIES,
    "special.bessel_j0": _EXACT,
    "special.bessel_j1": _EXACT,
    "special.bessel_y0": _EXACT,
    "special.bessel_y1": _EXACT,
    "as_strided_scatter": "PyTorch's gradient goes to the elements that were overwritten, which do not count, and not to those that stand",
    "sparse.sampled_addmm": "PyTorch hands on a dense gradient as it came, naru takes its stored places",
    "optim.Muon": _CHAOS,
    "jiterator_unary": _CUDA,
    "jiterator_binary": _CUDA,
    "jiterator_binary_return_by_ref": _CUDA,
    "jiterator_4inputs_with_extra_args": _CUDA,
    "jiterator_2inputs_2outputs": _CUDA,
    "__rpow__": _OVERFLOW + "; the last digit of complex64",
    "pow": _OVERFLOW,
    "matrix_exp": _OVERFLOW,
    "true_divide": _HALF,
    "div/no_rounding_mode": _HALF,
    "cummin": _HALF,
    "take_along_dim": _HALF,
    "masked.prod": _HALF,
    "masked.normalize": _HALF,
    "special.i1e": _HALF,
    "native_batch_norm": _HALF,
    "sparse.mm/reduce": _HALF,
    "linalg.cond": _LAST,
    "linalg.eig": _LAST,
    "linalg.householder_product": _LAST,
    "linalg.lstsq": _LAST,
    "linalg.lstsq/grad_oriented": _LAST,
    "linalg.svd": _LAST,
    "svd": _LAST,
    "fft.hfft2": _LAST,
    "nn.CTCLoss": _LAST,
    "nn.LazyConv3d": _LAST,
    "nn.MultiheadAttention": _LAST,
    "nn.Transformer": _LAST,
    "nn.TransformerDecoderLayer": _LAST,
    "nn.functional.poisson_nll_loss": _BRANCH,
    "addbmm": "PyTorch's addbmm_ gives a tensor of one element the shape of the result; naru refuses to, as all other operators in place do",
    "cov": "weights in float32 whose sum almost vanishes once twice their squares are taken off: the rounding of the sum decides",
    "logcumsumexp": "the imaginary part of a logarithm is open by multiples of 2 pi",
    "nn.KLDivLoss": "a negative target has no logarithm: NaN in both, and where the result is not used PyTorch's gradient is 0",
    "nn.functional.linear_cross_entropy/chunked": _TWICE,
    "nn.functional.linear_cross_entropy/chunked_none": _TWICE,
    "nn.functional.batch_norm": _HALF,
    "nn.functional.interpolate/bicubic": "uint8: a value between two numbers goes to the other one",
    "nn.functional.scaled_dot_product_attention": _LAST,
    "pca_lowrank": _LAST,
    "svd_lowrank": _LAST,
    "optim.LBFGS": "a slope without end is climbed: numbers of 1e65 to 1e80 after five steps, which the first rounding decides",
    "msort": "gradients of equal elements: PyTorch's sort leaves their order open, naru's keeps it",
    "linalg.norm/subgradients_at_zero": "PyTorch's second derivative at zero is NaN; naru's is that of the subgradient, which is 0",
}

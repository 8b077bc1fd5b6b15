"""Why what is not right on the board is not, where the error itself does not say it: by operator."""

from __future__ import annotations

_COPIES = "a conjugate is a copy (from-pytorch.md)"
_EXACT = "PyTorch's own error in float64 is 1e-7, naru's 1e-16"
_CUDA = "compiles CUDA text; naru's kernels are `naru.kernel`"
_CHAOS = "the iteration is done in bfloat16, where one rounding changes the third digit"

REASONS: dict[str, str] = {
    "H": _COPIES,
    "mH": _COPIES,
    "conj": _COPIES,
    "special.bessel_j0": _EXACT,
    "special.bessel_j1": _EXACT,
    "special.bessel_y0": _EXACT,
    "special.bessel_y1": _EXACT,
    "as_strided_scatter": "PyTorch's gradient goes to elements that were overwritten, too",
    "sparse.sampled_addmm": "complex sparse tensors are not there; PyTorch hands on a dense gradient as it came, naru takes its stored places",
    "optim.Muon": _CHAOS,
    "jiterator_unary": _CUDA,
    "jiterator_binary": _CUDA,
    "jiterator_binary_return_by_ref": _CUDA,
    "jiterator_4inputs_with_extra_args": _CUDA,
    "jiterator_2inputs_2outputs": _CUDA,
    "nn.functional.rrelu": "PyTorch draws for the negative elements alone",
}

"""torch.special: special mathematical functions."""

from typing import TYPE_CHECKING

from . import _C, _missing
from ._C import digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma, round, sinc, softmax, xlogy, zeta
from ._C import digamma as psi
from ._C import lgamma as gammaln
from ._C import mvlgamma as multigammaln
from ._C import sigmoid as expit

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "log_softmax", "logit", "logsumexp", "multigammaln",
           "polygamma", "psi", "round", "sinc", "softmax", "xlogy", "zeta"]  # fmt: skip

if TYPE_CHECKING:
    from ._C import (
        special_airy_ai as airy_ai,
        special_bessel_j0 as bessel_j0,
        special_bessel_j1 as bessel_j1,
        special_bessel_y0 as bessel_y0,
        special_bessel_y1 as bessel_y1,
        special_chebyshev_polynomial_t as chebyshev_polynomial_t,
        special_chebyshev_polynomial_u as chebyshev_polynomial_u,
        special_chebyshev_polynomial_v as chebyshev_polynomial_v,
        special_chebyshev_polynomial_w as chebyshev_polynomial_w,
        special_entr as entr,
        special_erfcx as erfcx,
        special_gammainc as gammainc,
        special_gammaincc as gammaincc,
        special_hermite_polynomial_h as hermite_polynomial_h,
        special_hermite_polynomial_he as hermite_polynomial_he,
        special_i0e as i0e,
        special_i1 as i1,
        special_i1e as i1e,
        special_laguerre_polynomial_l as laguerre_polynomial_l,
        special_legendre_polynomial_p as legendre_polynomial_p,
        special_log_ndtr as log_ndtr,
        special_modified_bessel_i0 as modified_bessel_i0,
        special_modified_bessel_i1 as modified_bessel_i1,
        special_modified_bessel_k0 as modified_bessel_k0,
        special_modified_bessel_k1 as modified_bessel_k1,
        special_ndtr as ndtr,
        special_ndtri as ndtri,
        special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
        special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
        special_shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
        special_shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
        special_shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
        special_shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
        special_spherical_bessel_j0 as spherical_bessel_j0,
        special_xlog1py as xlog1py,
    )

    __all__ += [
        "airy_ai",
        "bessel_j0",
        "bessel_j1",
        "bessel_y0",
        "bessel_y1",
        "chebyshev_polynomial_t",
        "chebyshev_polynomial_u",
        "chebyshev_polynomial_v",
        "chebyshev_polynomial_w",
        "entr",
        "erfcx",
        "gammainc",
        "gammaincc",
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "i0e",
        "i1",
        "i1e",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
        "log_ndtr",
        "modified_bessel_i0",
        "modified_bessel_i1",
        "modified_bessel_k0",
        "modified_bessel_k1",
        "ndtr",
        "ndtri",
        "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
        "shifted_chebyshev_polynomial_t",
        "shifted_chebyshev_polynomial_u",
        "shifted_chebyshev_polynomial_v",
        "shifted_chebyshev_polynomial_w",
        "spherical_bessel_j0",
        "xlog1py",
    ]

for _name in [name for name in dir(_C) if name.startswith("special_")]:
    globals()[_name.removeprefix("special_")] = getattr(_C, _name)
    __all__.append(_name.removeprefix("special_"))
del _name

__getattr__ = _missing.module_getattr(__name__)

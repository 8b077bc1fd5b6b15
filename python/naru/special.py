"""torch.special: functions of mathematics under the names that they have there."""

from . import _C, _missing
from ._C import digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma, round, sinc, softmax, xlogy, zeta
from ._C import digamma as psi
from ._C import lgamma as gammaln
from ._C import mvlgamma as multigammaln
from ._C import sigmoid as expit

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "log_softmax", "logit", "logsumexp", "multigammaln",
           "polygamma", "psi", "round", "sinc", "softmax", "xlogy", "zeta"]  # fmt: skip

for _name in [name for name in dir(_C) if name.startswith("special_")]:
    globals()[_name.removeprefix("special_")] = getattr(_C, _name)
    __all__.append(_name.removeprefix("special_"))
del _name

__getattr__ = _missing.module_getattr(__name__)

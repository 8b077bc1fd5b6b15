"""torch.special: functions of mathematics under the names that they have there."""

from ._C import digamma, erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logit, logsumexp, polygamma, round, softmax, xlogy, zeta
from ._C import digamma as psi
from ._C import lgamma as gammaln
from ._C import sigmoid as expit

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "log_softmax", "logit", "logsumexp", "polygamma", "psi",
           "round", "softmax", "xlogy", "zeta"]  # fmt: skip

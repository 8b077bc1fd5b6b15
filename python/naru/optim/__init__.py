"""`torch.optim`: optimizers and learning-rate schedules."""

from __future__ import annotations

from .. import _missing
from . import lr_scheduler, optimizer
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax, NAdam
from .asgd import ASGD
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam
from . import swa_utils  # isort: skip

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "SGD", "SparseAdam", "lr_scheduler", "optimizer", "swa_utils",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)

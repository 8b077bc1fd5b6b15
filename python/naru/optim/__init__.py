"""`torch.optim`: optimizers and learning-rate schedules."""

from __future__ import annotations

from .. import _missing
from . import lr_scheduler, optimizer
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax, NAdam
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RMSprop", "SGD", "lr_scheduler", "optimizer"]

__getattr__ = _missing.module_getattr(__name__)

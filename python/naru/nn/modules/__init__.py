"""The layers, one file for each family."""

from __future__ import annotations

from ... import _missing
from .activation import *
from .attention import *
from .batchnorm import *
from .class_loss import *
from .container import *
from .conv import *
from .dropout import *
from .flatten import *
from .image import *
from .lazy import *
from .linear import *
from .loss import *
from .module import Module
from .normalization import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *

__getattr__ = _missing.module_getattr(__name__)

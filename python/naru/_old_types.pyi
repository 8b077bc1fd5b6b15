# What a type checker knows of the types of PyTorch's past, which are made when they are asked for (_compat/tensor_types.py, _storage_methods.py).
from typing import TypeAlias

from ._C import Tensor as _Tensor, TypedStorage as _TypedStorage

FloatTensor: TypeAlias = _Tensor
DoubleTensor: TypeAlias = _Tensor
HalfTensor: TypeAlias = _Tensor
BFloat16Tensor: TypeAlias = _Tensor
ByteTensor: TypeAlias = _Tensor
CharTensor: TypeAlias = _Tensor
ShortTensor: TypeAlias = _Tensor
IntTensor: TypeAlias = _Tensor
LongTensor: TypeAlias = _Tensor
BoolTensor: TypeAlias = _Tensor
FloatStorage: TypeAlias = _TypedStorage
DoubleStorage: TypeAlias = _TypedStorage
HalfStorage: TypeAlias = _TypedStorage
BFloat16Storage: TypeAlias = _TypedStorage
ByteStorage: TypeAlias = _TypedStorage
CharStorage: TypeAlias = _TypedStorage
ShortStorage: TypeAlias = _TypedStorage
IntStorage: TypeAlias = _TypedStorage
LongStorage: TypeAlias = _TypedStorage
BoolStorage: TypeAlias = _TypedStorage
ComplexFloatStorage: TypeAlias = _TypedStorage
ComplexDoubleStorage: TypeAlias = _TypedStorage

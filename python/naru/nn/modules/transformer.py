"""The Transformer and its parts (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import functional as F
from .. import init
from .._attention import _canonical_mask, _none_or_dtype
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module, check_layer_count, type_name
from .normalization import LayerNorm

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    return _C.triu(_C.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _is_causal_mask(mask: Tensor | None, said: bool | None, tensor: Tensor, batch_first: bool) -> bool:
    """Whether a mask is the causal mask of the tensor's length; `said`, if not None, decides instead."""
    if said is not None or mask is None:
        return said is True
    size = tensor.size(1 if batch_first and tensor.dim() == 3 else 0)
    if tuple(mask.shape) != (size, size):
        return False
    return bool((mask == _generate_square_subsequent_mask(size, mask.device, mask.dtype)).all())


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


class _Layer(Module):
    """Base of the encoder and decoder layers."""

    __constants__ = ["norm_first"]

    def _make(
        self, attentions: tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Any,
        layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        parts = range(1, len(attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attend(layer: Module, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
    return layer(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers, each with dropout, a residual connection and a layer norm.

    Args:
        d_model: the number of features of input and output.
        nhead: the number of attention heads.
        dim_feedforward: the number of features between the linear layers.
        dropout: the dropout probability, in training.
        activation: "relu", "gelu", or a function, between the linear layers.
        layer_norm_eps: the eps of the norms.
        batch_first: whether tensors are (N, S, E) instead of (S, N, E).
        norm_first: whether norms come before attention and linear layers instead of after.
        bias: whether linear layers and norms have biases.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Attributes: self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2.

    >>> import naru
    >>> naru.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(naru.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            ("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype
        )
        found = self.activation
        self.activation_relu_or_gelu = 1 if found is F.relu or isinstance(found, ReLU) else 2 if found is F.gelu or isinstance(found, GELU) else 0

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """src (S, N, E), (N, S, E) or (S, E); src_mask (S, S) or (N · nhead, S, S); src_key_padding_mask (N, S) or (S,). Returns src's shape."""
        padding = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(src_mask), "src_mask", src.dtype)
        mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, then two linear layers, each with dropout, a residual connection and a layer norm.

    Attributes: self_attn, multihead_attn, linear1, dropout, linear2, norm1 to norm3, dropout1 to dropout3.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as in `TransformerEncoderLayer`.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> naru.nn.TransformerDecoderLayer(8, 2, 16)(naru.ones(3, 2, 8), naru.ones(5, 2, 8)).shape
    torch.Size([3, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            ("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias, device, dtype,
        )  # fmt: skip

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt (T, N, E), memory (S, N, E), or N first if batch_first, or without N; masks for attention to tgt and to memory. Returns tgt's shape."""
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed(x))


def _get_clones(module: Module, count: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"{type_name(module)} is not a Module subclass")
    check_layer_count(count)
    copies = ModuleList()
    for _ in range(count):
        copies.append(copy.deepcopy(module))
    return copies


def _why_not_nested(layer: Any) -> str:
    """The reason why PyTorch's encoder would not skip padding with nested tensors; "" if it would."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    if layer.norm_first:
        return f"{name}.norm_first was True"
    if not layer.self_attn.batch_first:
        return f"{name}.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not layer.self_attn._qkv_same_embed_dim:
        return f"{name}.self_attn._qkv_same_embed_dim was not True"
    if layer.self_attn.in_proj_bias is None:
        return f"{name}.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return f"{name}.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return f"{name}.norm1.eps was not equal to {name}.norm2.eps"
    if layer.self_attn.num_heads % 2 == 1:
        return f"{name}.self_attn.num_heads is odd"
    return ""


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after another, and then a norm.

    Args:
        encoder_layer: the layer to copy, a TransformerEncoderLayer.
        num_layers: the number of copies.
        norm: a module that is applied last, or None.
        enable_nested_tensor: in evaluation without gradients, results at padding positions (after the sequences) are 0 before the norm, as in PyTorch.
        mask_check: whether to check that padding is only at the end of sequences; otherwise this is assumed.

    >>> import naru
    >>> layer = naru.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> naru.nn.TransformerEncoder(layer, 3)(naru.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}", stacklevel=2)
            self.use_nested_tensor = False

    def _leaves_padding_out(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        first: Any = self.layers[0]
        if not getattr(self, "use_nested_tensor", False) or first.training or src.dim() != 3 or padding is None or mask is not None:
            return False
        tracked = _C.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        if tracked or _C.is_autocast_enabled():
            return False
        return not getattr(self, "mask_check", True) or bool(((padding[:, 1:] == 0) <= (padding[:, :-1] == 0)).all())

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        """src and masks as in `TransformerEncoderLayer`; is_causal: whether mask is the causal mask; detected if None. Returns src's shape."""
        padding = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask), "mask", src.dtype)
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, False)
        first: Any = self.layers[0]
        causal = _is_causal_mask(mask, is_causal, src, first.self_attn.batch_first)
        output, leaves_out = src, self._leaves_padding_out(src, mask, padding)
        if leaves_out and src.device.type == "cpu" and not causal:  # on other devices, computing the padded batch is cheaper than launches for each sequence
            from ...nested._attention import encoded

            output = encoded(self.layers, src, padding == 0)
        else:
            for layer in self.layers:
                output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0) if leaves_out else output
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """`num_layers` copies of a layer, one after another, and then a norm.

    Args:
        decoder_layer: the layer to copy, a TransformerDecoderLayer.
        num_layers: the number of copies.
        norm: a module that is applied last, or None.

    >>> decoder = naru.nn.TransformerDecoder(naru.nn.TransformerDecoderLayer(d_model=4, nhead=2, dim_feedforward=8), num_layers=2)
    >>> decoder(naru.ones(3, 1, 4), naru.ones(5, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Tensors and masks as in `TransformerDecoderLayer`; tgt_is_causal: whether tgt_mask is the causal mask; detected if None."""
        first: Any = self.layers[0]
        causal = _is_causal_mask(tgt_mask, tgt_is_causal, tgt, first.self_attn.batch_first)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder over a source and a decoder over a target. Parameters of more than one dimension are initialised uniform with Glorot's bound.

    Args:
        d_model: the number of features of source and target.
        nhead: the number of attention heads.
        num_encoder_layers, num_decoder_layers: the numbers of layers.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as in `TransformerEncoderLayer`.
        custom_encoder, custom_decoder: modules to use instead of `TransformerEncoder` and `TransformerDecoder`.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> model = naru.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(naru.ones(2, 5, 8), naru.ones(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **factory), num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **factory), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """src (S, N, E) and tgt (T, N, E), or (N, S, E) and (N, T, E), or (S, E) and (T, E). Returns tgt's shape. RuntimeError for others."""
        dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(dim) != tgt.size(dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): 0 up to the diagonal and -inf above it, so that no position attends to later ones.

        >>> import naru
        >>> naru.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

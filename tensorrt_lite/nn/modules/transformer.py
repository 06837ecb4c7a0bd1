"""Transformer encoder and decoder (Vaswani et al. 2017)."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core.warning import warn
from tensorrt_lite.backends import mha

from .. import functional as F
from ..init import xavier_uniform_
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from ._typed import TensorModule
from .module import Module
from .normalization import LayerNorm

_amp_state = LazyModule("tensorrt_lite.amp._state")
_nn = LazyModule("tensorrt_lite.nn")
_strided = LazyModule("tensorrt_lite.nested._strided")


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    """(size, size), minus infinity above the diagonal."""
    return trt.triu(trt.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _is_causal(mask: Any, is_causal: bool | None, size: int | None) -> bool:
    """The caller's answer, or whether `mask` is the causal mask."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    size = mask.size(-2) if size is None else size
    causal = _causal_mask(size, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _sequence_length(source: Any, batch_first: bool) -> int | None:
    if source.dim() == 2:
        return source.size(0)
    return source.size(1 if batch_first else 0)


def fused_activation(layer: Any) -> int:
    """Which of the activations of PyTorch's fused encoder layer this one has: 1 for ReLU, 2 for GELU, 0 for none of them."""
    activation = layer.activation
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _why_not_nested(layer: Any) -> str:
    """Why PyTorch hands padded batches to layers like this one as they are, not as nested tensors, in its words; "" where it does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not layer.self_attn.batch_first:
        return "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not layer.self_attn._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if layer.self_attn.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not fused_activation(layer):
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    return "encoder_layer.self_attn.num_heads is odd" if layer.self_attn.num_heads % 2 else ""


def takes_nested_batches(layer: Any) -> bool:
    """Whether PyTorch hands padded batches to layers like this one as nested tensors: those that its fused layer stands for."""
    return not _why_not_nested(layer)


def _activation(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    if name == "relu":
        return F.relu
    if name == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {name}")


def _copies(module: Module, count: int) -> ModuleList:
    from copy import deepcopy

    return ModuleList([deepcopy(module) for _ in range(count)])


class _FeedForward(TensorModule):
    """Construction and feed-forward block shared by encoder and decoder layers."""

    __constants__ = ["norm_first"]

    def _make(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Any,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
        decoder: bool,
    ) -> None:
        place = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place
        )
        if decoder:
            self.multihead_attn = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **place
            )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        count = 3 if decoder else 2
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _attend_self(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        return self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)


class TransformerEncoderLayer(_FeedForward):
    """Self-attention and a feed-forward network, each with residual and layer norm. src: (S, N, E) or (S, E).

    Parameters:
        d_model (int): E, the number of features
        nhead (int): how many heads of attention; divides d_model
        dim_feedforward (int, default 2048): the width of the feed-forward network
        dropout (float, default 0.1): the probability that an element is dropped in training
        activation (str or function, default relu): the activation of the feed-forward network: 'relu', 'gelu' or a
            function
        layer_norm_eps (float, default 1e-05): eps of the layer norms
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        norm_first (bool, default False): whether layer norms come before attention and feed-forward network, not behind
        bias (bool, default True): whether linear layers and norms have biases
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.TransformerEncoderLayer(d_model=16, nhead=4, dim_feedforward=32, batch_first=True)
    >>> mask = trt.nn.Transformer.generate_square_subsequent_mask(5)
    >>> layer(trt.randn(2, 5, 16), src_mask=mask, is_causal=True).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
            decoder=False,
        )

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        x = src
        if self.norm_first:
            attended = self._attend_self(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            x = x + self.dropout1(attended)
            return x + self.dropout2(self._feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout1(self._attend_self(x, src_mask, src_key_padding_mask, is_causal)))
        return self.norm2(x + self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_FeedForward):
    """Self-attention, attention to `memory` and a feed-forward network. tgt: (T, N, E), memory: (S, N, E).

    Parameters:
        d_model (int): E, the number of features
        nhead (int): how many heads of attention; divides d_model
        dim_feedforward (int, default 2048): the width of the feed-forward network
        dropout (float, default 0.1): the probability that an element is dropped in training
        activation (str or function, default relu): the activation of the feed-forward network: 'relu', 'gelu' or a
            function
        layer_norm_eps (float, default 1e-05): eps of the layer norms
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        norm_first (bool, default False): whether layer norms come before attention and feed-forward network, not behind
        bias (bool, default True): whether linear layers and norms have biases
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.TransformerDecoderLayer(d_model=16, nhead=4, norm_first=True, batch_first=True)
    >>> memory = trt.randn(2, 7, 16)
    >>> layer(trt.randn(2, 5, 16), memory).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
            decoder=True,
        )

    def _attend_memory(self, x: Any, memory: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        return self.multihead_attn(
            x,
            memory,
            memory,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        cross = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self.dropout1(self._attend_self(self.norm1(x), *own))
            x = x + self.dropout2(self._attend_memory(self.norm2(x), *cross))
            return x + self.dropout3(self._feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout1(self._attend_self(x, *own)))
        x = self.norm2(x + self.dropout2(self._attend_memory(x, *cross)))
        return self.norm3(x + self.dropout3(self._feed_forward(x)))


class TransformerEncoder(TensorModule):
    """A stack of copies of an encoder layer. src: (S, N, E) or (S, E).

    In evaluation, where no gradient is recorded, padding behind sequences (`src_key_padding_mask`) is not computed but taken out, and zero in the result, if the
    layers are `batch_first` and as PyTorch's fused ones are; `enable_nested_tensor=False` leaves it in.

    Parameters:
        encoder_layer (Module): the layer that is copied
        num_layers (int): how many copies
        norm (Module or None, default None): the layer norm behind the last layer; None has none
        enable_nested_tensor (bool, default True): whether padding is not computed in evaluation
        mask_check (bool, default True): whether the padding mask is checked for that

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True)
    >>> encoder = trt.nn.TransformerEncoder(layer, num_layers=2)
    >>> padding = trt.tensor([[False, False, False], [False, False, True]])  # the second is one shorter
    >>> encoder(trt.randn(2, 3, 16), src_key_padding_mask=padding).shape
    torch.Size([2, 3, 16])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why_not = _why_not_nested(encoder_layer) if enable_nested_tensor else ""
        if why_not:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}")

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        batch_first = getattr(self.layers[0].self_attn, "batch_first", False) if len(self.layers) else False
        nested = getattr(type(src), "_made_of_parts", False)
        causal = bool(is_causal) if nested else _is_causal(mask, is_causal, _sequence_length(src, batch_first))
        output, padding = src, src_key_padding_mask
        packed = padding is not None and mask is None and not nested and self._leaves_padding_out(src, padding)
        if packed:
            output, padding = _strided.from_mask(src, padding.logical_not()), None
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if packed:
            output = output.to_padded_tensor(0.0, src.shape)
        return output if self.norm is None else self.norm(output)

    def _leaves_padding_out(self, src: Any, padding: Any) -> bool:
        """Whether PyTorch's encoder, too, would turn the batch into a nested tensor."""
        if not len(self.layers) or self.layers[0].training or src.dim() != 3 or tuple(padding.shape) != tuple(src.shape[:2]):
            return False
        layer = self.layers[0]
        if not (self.enable_nested_tensor and takes_nested_batches(layer) and mha.get_fastpath_enabled()) or _amp_state.is_autocast_enabled(src.device.type):
            return False
        if trt.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in layer.parameters())):
            return False
        if type(src) not in (trt.Tensor, _nn.Parameter) or src.device.type == "meta":
            return False

        return not self.mask_check or _strided.is_left_aligned(padding.logical_not())


class TransformerDecoder(TensorModule):
    """A stack of copies of a decoder layer. tgt: (T, N, E), memory: (S, N, E).

    Parameters:
        decoder_layer (Module): the layer that is copied
        num_layers (int): how many copies
        norm (Module or None, default None): the layer norm behind the last layer; None has none

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.TransformerDecoderLayer(d_model=16, nhead=4, batch_first=True)
    >>> decoder = trt.nn.TransformerDecoder(layer, num_layers=2)
    >>> mask = trt.nn.Transformer.generate_square_subsequent_mask(5)
    >>> decoder(trt.randn(2, 5, 16), trt.randn(2, 7, 16), tgt_mask=mask).shape
    torch.Size([2, 5, 16])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        batch_first = getattr(self.layers[0].self_attn, "batch_first", False) if len(self.layers) else False
        causal = _is_causal(tgt_mask, tgt_is_causal, _sequence_length(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(TensorModule):
    """Encoder and decoder. src: (S, N, E), tgt: (T, N, E), N first with batch_first; output like tgt.

    Parameters:
        d_model (int, default 512): E, the number of features
        nhead (int, default 8): how many heads of attention; divides d_model
        num_encoder_layers (int, default 6): how many layers the encoder has
        num_decoder_layers (int, default 6): how many layers the decoder has
        dim_feedforward (int, default 2048): the width of the feed-forward network
        dropout (float, default 0.1): the probability that an element is dropped in training
        activation (str or function, default relu): the activation of the feed-forward network: 'relu', 'gelu' or a
            function
        custom_encoder (Module or None, default None): the encoder, instead of a TransformerEncoder
        custom_decoder (Module or None, default None): the decoder, instead of a TransformerDecoder
        layer_norm_eps (float, default 1e-05): eps of the layer norms
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        norm_first (bool, default False): whether layer norms come before attention and feed-forward network, not behind
        bias (bool, default True): whether linear layers and norms have biases
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Transformer(d_model=16, nhead=4, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
    >>> src, tgt = trt.randn(2, 7, 16), trt.randn(2, 5, 16)
    >>> model(src, tgt, tgt_mask=model.generate_square_subsequent_mask(5)).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
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
        shared = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*shared), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*shared), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Xavier-uniform for every matrix."""
        for param in self.parameters():
            if param.dim() > 1:
                xavier_uniform_(param)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """(sz, sz), minus infinity above the diagonal: position i attends to positions up to i."""
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

"""Functions of neural networks: convolutions, pooling, activations, normalization, losses, attention, embeddings and dropout.

Each takes its weights as arguments and keeps no state. The classes of `nn` have the same functions as layers, which own
their weights. Names, arguments and results are those of torch.nn.functional.

>>> import tensorrt_lite as trt
>>> x, weight = trt.tensor([[1.0, -2.0]]), trt.tensor([[3.0, 1.0]])
>>> trt.nn.functional.relu(trt.nn.functional.linear(x, weight))
tensor([[1.]])
"""

# Compositions come from the `_functional` package, compiled operators by re-export. A compiled operator is bound on first
# use (module `__getattr__`), after which it is an ordinary global: no wrapper stands between a call and its entry, and
# importing this module does not touch the operator table.

from __future__ import annotations

from importlib import import_module as _import_module

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root
from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite import _public

from ._functional.activation import (
    celu,
    elu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    rrelu_,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from ._functional.attention import multi_head_attention_forward
from ._functional.distance import bilinear, cosine_similarity, pairwise_distance, pdist
from ._functional.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from ._functional.embedding import embedding, embedding_bag
from ._functional.linear_cross_entropy import linear_cross_entropy
from ._functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._functional.products import ScalingType, SwizzleType, grouped_mm, scaled_grouped_mm, scaled_mm
from ._functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from ._functional.pooling import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._functional.vision import (
    affine_grid,
    fold,
    grid_sample,
    interpolate,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from tensorrt_lite import _ops
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
_overrides = _LazyModule("tensorrt_lite.overrides")

if TYPE_CHECKING:
    from tensorrt_lite._nn_operators import (
        adaptive_avg_pool1d,
        avg_pool1d,
        avg_pool2d,
        avg_pool3d,
        celu_,
        channel_shuffle,
        conv1d,
        conv2d,
        conv3d,
        conv_tbc,
        conv_transpose1d,
        conv_transpose2d,
        conv_transpose3d,
        elu_,
        gelu,
        hardshrink,
        hardtanh_,
        leaky_relu_,
        linear,
        logsigmoid,
        native_channel_shuffle,
        one_hot,
        pad,
        pixel_shuffle,
        pixel_unshuffle,
        prelu,
        relu_,
        scaled_dot_product_attention,
        selu_,
        softplus,
        softshrink,
        threshold_,
    )

# Compiled operators that need no Python in front: public name -> schema name where the two differ.
_RENAMED = {"logsigmoid": "log_sigmoid", "native_channel_shuffle": "channel_shuffle"}

__all__ = [
    "ScalingType",
    "SwizzleType",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "scaled_grouped_mm",
    "scaled_mm",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


# What is the package's function of the same name.
_SHARED = {
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink", "native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "prelu", "relu_", "rrelu_", "selu_", "threshold_",
}  # fmt: skip
_LAZY_IN_ROOT = {"cosine_similarity", "pairwise_distance"}  # which the root module has from here
# These ask by what they call.
_UNASKED = {"sigmoid", "tanh", "upsample", "upsample_bilinear", "upsample_nearest"}


def _publish() -> None:
    for name in _SHARED & globals().keys():
        module = "tensorrt_lite" if hasattr(_root, name) or name in _LAZY_IN_ROOT else __name__
        shared = getattr(_root, name, None) or _public.function(globals()[name], name, module)
        globals()[name] = shared
    _public.publish(globals(), set(__all__) - _UNASKED)


_publish()


def __getattr__(name: str) -> Any:
    if name in ("handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        return getattr(_overrides, name)
    if name == "grad":
        return _import_module("tensorrt_lite.nn.grad")
    if name not in __all__:
        raise _missing.error("nn.functional", name)

    if name in _SHARED and name in _ops.FUNCTIONS:
        value = getattr(_root, name)
    else:
        value = _public.function(getattr(_ops, _RENAMED.get(name, name)), name, __name__)
    globals()[name] = value
    return value


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())

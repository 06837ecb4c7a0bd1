"""torch.nn.functional's names: compositions from the `_functional` package, compiled operators by re-export.

A compiled operator is bound on first use (module `__getattr__`), after which it is an ordinary global: no wrapper
stands between a call and its entry, and importing this module does not touch the operator table.
"""
from __future__ import annotations

from typing import Any

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
    channel_shuffle,
    fold,
    grid_sample,
    interpolate,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

# Public name -> schema name of the compiled operators that need no Python in front.
_COMPILED = {
    name: name
    for name in (
        "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d celu_ conv1d conv2d conv3d conv_tbc conv_transpose1d "
        "conv_transpose2d conv_transpose3d elu_ gelu hardshrink hardtanh_ leaky_relu_ linear native_channel_shuffle "
        "one_hot pad prelu relu_ scaled_dot_product_attention selu_ softplus softshrink threshold_"
    ).split()
}
_COMPILED["logsigmoid"] = "log_sigmoid"

__all__ = [
    *_COMPILED,
    *(name for name, value in list(globals().items()) if callable(value) and not name.startswith("_") and name != "Any"),
]


def __getattr__(name: str) -> Any:
    operator = _COMPILED.get(name)
    if operator is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tensorrt_lite import _ops

    value = globals()[name] = getattr(_ops, operator)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_COMPILED})

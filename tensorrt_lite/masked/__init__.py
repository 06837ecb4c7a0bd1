"""torch.masked: functions that leave elements out, and tensors that carry the mask which says which (docs/masked.md).

>>> import tensorrt_lite as trt
>>> x, mask = trt.tensor([1.0, 5.0, 3.0]), trt.tensor([True, False, True])
>>> print(sum(x, mask=mask).item(), amax(x, mask=mask).item())
4.0 3.0
>>> print(masked_tensor(x, mask) + 1)
MaskedTensor(
  [  2.0000,       --,   4.0000]
)
"""

from tensorrt_lite.masked._functions import (
    _canonical_dim,
    _input_mask,
    _output_mask,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from tensorrt_lite.masked._tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "MaskedTensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

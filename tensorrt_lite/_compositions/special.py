"""Special functions over others: the multivariate gamma function, floats taken apart."""

from __future__ import annotations

import math

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dtype import _dtype_by_name, get_default_dtype
from tensorrt_lite._C.core.parallel import get_num_threads
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.core.return_types import result_type
from tensorrt_lite._C.ops.support import check_outputs, deliver_result, int_argument, tensor_argument, type_name

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_int32 = _dtype_by_name("int32")
_EXPONENTS = 1 << 15  # elements whose exponents are held as floats, for each thread
_CPP_NAMES = {"torch.float16": "c10::Half", "torch.bfloat16": "c10::BFloat16", "torch.float32": "float", "torch.float64": "double"}


def _cpp_name(x: Tensor) -> str:
    return _CPP_NAMES.get(str(x.dtype), str(x.dtype).removeprefix("torch."))


def frexp(input: Any, *, out: Any = None) -> Any:
    """Mantissas and exponents."""
    x = tensor_argument(input, "frexp", "input")
    if not x.is_floating_point():
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, but got {type_name(x.dtype)}")
    mantissa, exponent = _ops._frexp_mantissa(x), _exponents(x.detach())
    if out is not None:
        check_outputs(out, "frexp", 2)
        if out[0].dtype != x.dtype:
            raise RuntimeError(f"torch.frexp() expects mantissa to have dtype {_CPP_NAMES[str(x.dtype)]} but got {_cpp_name(out[0])}")
        if out[1].dtype != _int32:
            raise RuntimeError(f"torch.frexp() expects exponent to have int dtype but got {_cpp_name(out[1])}")
        deliver_result("frexp", mantissa, out[0])
        deliver_result("frexp", exponent, out[1])
        return out
    return result_type("frexp", ("mantissa", "exponent"))((mantissa, exponent))


def _exponents(x: Tensor) -> Tensor:
    """The loop writes x's type: of many elements on the CPU a block at a time becomes int32."""
    block = _EXPONENTS * get_num_threads()
    if not x.is_cpu or x.numel() <= block or not x.is_contiguous() or is_transformed([x]):
        return _ops._frexp_exponent(x).to(_int32)
    exponent = _ops.empty(x.shape, dtype=_int32)
    for given, taken in zip(x.view(-1).split(block), exponent.view(-1).split(block)):
        taken.copy_(_ops._frexp_exponent(given))
    return exponent


def mvlgamma_(input: Any, p: Any) -> Tensor:
    """mvlgamma in place."""
    x = tensor_argument(input, "mvlgamma_", "input")
    if not x.is_floating_point():
        raise RuntimeError(f"mvlgamma: result type {type_name(x.dtype)} can't be cast to the desired output type {type_name(get_default_dtype())}")
    return x.copy_(mvlgamma(x, p))


def mvlgamma(input: Any, p: Any, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p >= 1."""
    x = tensor_argument(input, "mvlgamma", "input")
    p = int_argument(p, "mvlgamma", "p")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if x.is_complex():
        raise NotImplementedError(f"\"mvlgamma_cpu\" not implemented for '{type_name(x.dtype)}'")
    if not x.is_floating_point():
        x = x.to(get_default_dtype())
    # one tensor of all terms, so that a p beyond memory is refused at once
    total = _ops.lgamma(x.unsqueeze(-1) - 0.5 * _ops.arange(p, dtype=x.dtype, device=x.device)).sum(-1)
    return deliver_result("mvlgamma", total + p * (p - 1) / 4.0 * math.log(math.pi), out)

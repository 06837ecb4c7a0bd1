"""Compositions with a derivative of their own: that of the steps would not exist, or would cost more."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _ops
from tensorrt_lite._compositions import linear_algebra as _linear_algebra
from tensorrt_lite._C.ops.linalg import derivatives as _derivatives
from tensorrt_lite.autograd import Function


class Pinv(Function):
    """The pseudoinverse has a derivative wherever the rank is constant, singular vectors only where their values differ."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
        return _linear_algebra._pinv_value(A, atol, rtol, hermitian)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> tuple:
        A, result = ctx.saved_tensors
        return _derivatives.pinv(g, A, result), None, None, None

    @staticmethod
    def jvp(ctx: Any, A_t: Any, *others: Any) -> Any:
        A, result = ctx.saved_tensors
        change, adjoint = _derivatives.H(A_t), _derivatives.H(result)
        left = result @ adjoint @ change
        right = change @ adjoint @ result
        return left - left @ A @ result + right - result @ A @ right - result @ A_t @ result


class MatrixExp(Function):
    """The derivative is the upper right block of the exponential of [[A^H, g], [0, A^H]]."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, A: Any) -> Any:
        return MatrixExp.apply(A.movedim(in_dims[0], 0)), 0

    @staticmethod
    def forward(A: Any) -> Any:
        return _linear_algebra._matrix_exp_value(A)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (A,) = ctx.saved_tensors
        a, n = _derivatives.H(A), A.shape[-1]
        blocks = _ops.cat((_ops.cat((a, g), -1), _ops.cat((_ops.zeros_like(a), a), -1)), -2)
        return _linear_algebra.linalg_matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)

    @staticmethod
    def jvp(ctx: Any, A_t: Any) -> Any:
        (A,) = ctx.saved_tensors
        n = A.shape[-1]
        blocks = _ops.cat((_ops.cat((A, A_t), -1), _ops.cat((_ops.zeros_like(A), A), -1)), -2)
        return _linear_algebra.linalg_matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)

"""Custom Functions: a forward and a backward written by the user, recorded as one Node.

Each subclass of Function gets a Node class ``<name>Backward``; an instance of it is the ``ctx`` of one call and the
``grad_fn`` of its outputs. The recording itself is compiled (``tensorrt_lite._C.autograd.function``).
"""

from __future__ import annotations

import warnings
from functools import wraps

from tensorrt_lite._C.autograd import function as _compiled
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite.autograd.grad_mode import no_grad as _no_grad

__all__ = ["Function", "FunctionCtx", "BackwardCFunction", "once_differentiable", "NestedIOFunction", "InplaceFunction"]

FunctionCtx = _compiled.FunctionNode
BackwardCFunction = _compiled.FunctionNode


class FunctionMeta(type):
    """Gives every Function its Node class."""

    def __init__(cls, name, bases, attrs):
        node = type(name + "Backward", (_compiled.FunctionNode,), {"_forward_cls": cls})
        cls._backward_cls = node
        if bases:
            cls._separate_context = cls.setup_context is not Function.setup_context
            cls._has_defaults = cls._separate_context and bool(getattr(cls.forward, "__defaults__", None))
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """Base of custom autograd functions: define ``forward`` and ``backward`` as static methods and call ``apply``."""

    _separate_context = False
    _has_defaults = False  # of a forward without ctx, which backward has gradients of, too
    _below_transform = False  # of Functions that transforms make for one of their levels
    generate_vmap_rule = False

    def __init__(self, *args, **kwargs) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class itself. "
            "Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method."
        )

    @staticmethod
    def forward(*args, **kwargs):
        """forward(ctx, *args) or, beside setup_context, forward(*args) -> Tensor or tuple."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save for backward what it needs; for a forward without ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """backward(ctx, *grad_outputs) -> one gradient (or None) per argument of forward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """jvp(ctx, *grad_inputs) -> one tangent per output of forward: forward-mode differentiation."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        """vmap(info, in_dims, *args) -> (outputs, out_dims): the rule for vmap, of values with the batch along in_dims (None: the same for all of it).

        info.batch_size is the batch's size, info.randomness what vmap was told. `generate_vmap_rule = True` stands for a rule made of forward, setup_context,
        backward and jvp.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True.")

    apply = classmethod(_compiled.apply)

    @classmethod
    def _backward_function(cls):
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward:
            if vjp is not Function.vjp:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
                )
            return backward
        return vjp

    @classmethod
    def _bind(cls, args: tuple, kwargs: dict) -> tuple:
        """Positional arguments of forward, defaults among them, from a call with keywords. TypeError when they do not fit."""
        from inspect import signature

        bound = signature(cls.forward).bind(*(() if cls._separate_context else (None,)), *args, **kwargs)
        if kwargs and bound.kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes keyword arguments only for positional parameters of forward")
        bound.apply_defaults()
        return bound.args if cls._separate_context else bound.args[1:]


class InplaceFunction(Function):
    """A Function with an ``inplace`` flag; kept for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _RefuseSecondDerivative(Function):
    """Passes values through; its own backward fails."""

    @staticmethod
    def forward(ctx, *values):
        return tuple(v.detach() for v in values)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward):
    """Decorator for a backward that does not support higher derivatives: asking for them raises RuntimeError."""

    @wraps(backward)
    def wrapper(ctx, *args):
        with _no_grad():
            outputs = backward(ctx, *args)
        if not is_grad_enabled() or not any(isinstance(a, TensorBase) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        places = [i for i, v in enumerate(values) if v is not None]
        # the link to a Node that refuses: a leaf of its own makes the values require a gradient
        linked = _RefuseSecondDerivative.apply(*(values[i].detach().requires_grad_() for i in places))
        result = list(values)
        for i, v in zip(places, linked):
            result[i] = v
        return result[0] if single else tuple(result)

    return wrapper


class NestedIOFunction(Function):
    """Not implemented: PyTorch's legacy Function over nested inputs. Raises NotImplementedError."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("NestedIOFunction is not implemented; pass the tensors of a nested structure one by one to a Function")

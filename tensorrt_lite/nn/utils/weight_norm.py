"""Weight normalisation by a hook before each call; `parametrizations.weight_norm` is its successor."""

from __future__ import annotations

import warnings
from typing import Any

from tensorrt_lite import _root as trt

from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: sets `name` to g * v / |v| of the parameters <name>_g and <name>_v."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight for the present parameters."""
        return trt._weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split the weight and register the hook. RuntimeError when the name has one, ValueError for a lazy parameter."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(trt.norm_except_dim(weight.detach(), 2, made.dim)))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """The weight is a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into magnitude <name>_g (one per index of dim, or one for dim=None) and direction <name>_v. Deprecated: `parametrizations.weight_norm`.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter
        dim (int or None, default 0): the dimension whose slices have a norm each; None is one norm for all

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> linear.weight.shape
        torch.Size([2, 3])
    """
    warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.", FutureWarning, stacklevel=2)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Take the hook away; the weight keeps its value. ValueError when there is none.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.remove_weight_norm(trt.nn.utils.weight_norm(trt.nn.Linear(3, 2)))
        >>> linear
        Linear(in_features=3, out_features=2, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")

"""Spectral normalisation by a hook before each call; `parametrizations.spectral_norm` is its successor."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.autograd.grad_mode import no_grad

from .. import functional as F
from ..modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: sets `name` to <name>_orig / its largest singular value, which the vectors <name>_u and <name>_v follow in training."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """`dim` by all other dimensions."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight for the present parameters, after steps of the power method if asked for."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(trt.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(trt.mv(matrix, v), dim=0, eps=self.eps))
                # the backward pass needs them as they are now
                u, v = u.clone(), v.clone()
        return weight / trt.dot(u, trt.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """The weight is a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Register parameter, vectors and hook. RuntimeError when the name has one, ValueError for a lazy parameter."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying spectral normalization"
            )
        with no_grad():
            matrix = made.reshape_weight_to_matrix(weight)
            u = F.normalize(weight.new_empty(matrix.size(0)).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(matrix.size(1)).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # an attribute of that name has to be there, and is no parameter
        setattr(module, name, weight.detach())
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made

    def _solve_v(self, matrix: Any, u: Any, sigma: Any) -> Any:
        """The v for which u' matrix v is sigma, by least squares: state dicts of version 0 lack it."""
        v = trt.mv(linalg.pinv(matrix), u)
        return v * (sigma / trt.dot(u, trt.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Writes the version of the normalisation into a state dict's metadata. RuntimeError when it is there already."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Brings state dicts of version 0, with the normalised weight and without the vector v, to version 1."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        if version is None and key not in state_dict and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")):
            return  # of version 1, without metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            state_dict[key + "_v"] = fn._solve_v(fn.reshape_weight_to_matrix(original), u, sigma)


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divide a weight by its largest singular value, estimated by n_power_iterations steps of the power method in each training pass. Returns the module.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter
        n_power_iterations (int, default 1): how many iterations approach the largest singular value each time
        eps (float, default 1e-12): added for stability
        dim (int or None, default None): the dimension of the outputs; None is that of the layer's kind

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.spectral_norm(trt.nn.Linear(3, 2))
        >>> linear(trt.ones(1, 3)).shape
        torch.Size([1, 2])
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Take the hook away; the weight keeps its value. ValueError when there is none.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.remove_spectral_norm(trt.nn.utils.spectral_norm(trt.nn.Linear(3, 2)))
        >>> linear
        Linear(in_features=3, out_features=2, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, hook in table.items():
            made = getattr(getattr(hook, "hook", hook), "fn", None)  # PyTorch's files have the second one wrapped
            if isinstance(made, SpectralNorm) and made.name == name:
                del table[key]
                break
    return module

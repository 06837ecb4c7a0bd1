"""Pruning: parameters whose entries, or slices, a mask keeps at zero.

Pruning `weight` makes it <name>_orig * <name>_mask, computed by a hook before each call; `remove` makes the product the parameter.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule

_nn = LazyModule("tensorrt_lite.nn")

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A hook before a module's call. A subclass defines compute_mask and PRUNING_TYPE: what its mask may look at (unstructured, structured, global)."""

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of zeros and ones for the scores t, at most default_mask."""

    def apply_mask(self, module: Any) -> Any:
        """The parameter's values, zero where it is pruned."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune module.<name> by cls(*args, **kwargs), on top of what was pruned before. importance_scores: of the parameter's shape, instead of its values."""
        found = [(key, hook) for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(found) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer.")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if found:
            key, old = found[0]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            del module._forward_pre_hooks[key]
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if found:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=trt.contiguous_format)
        else:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = trt.ones_like(original)
        try:
            with no_grad():
                mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not found:
                module.register_parameter(name, original)
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """t with what the method prunes set to zero; no module takes part."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(importance_scores, default_mask=trt.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """The parameter is an ordinary one again, with its pruned values."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = pruned.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter; the last one chooses among what the others left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        elif args:
            methods = args[0] if len(args) == 1 else args
            for method in methods:
                self._tensor_name = method._tensor_name
                self.add_pruning_method(method)
        else:
            self._tensor_name = None  # type: ignore[assignment]

    def add_pruning_method(self, method: Any) -> None:
        """Append a method for the same parameter. TypeError when it is none, ValueError for another name."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            left: Any = mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(f"Pruning methods of PRUNING_TYPE \"structured\" need to have the attribute `dim` defined: {method}")
            dim = method.dim + t.dim() if method.dim < 0 else method.dim
            kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
            left = (slice(None),) * dim + (kept,)
        elif kind == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        combined = mask.clone()
        combined[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return combined


class Identity(BasePruningMethod):
    """Prunes nothing, and makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes `amount` entries: a number of them, or a part between 0 and 1."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def choose_entries(self, t: Any, count: int) -> Any:
        """Positions of the entries to prune, in the flattened scores."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = t.nelement()
        count = _count_of(self.amount, size)
        _check_enough(count, size)
        mask = default_mask.clone(memory_format=trt.contiguous_format)
        if count:
            mask.view(-1)[self.choose_entries(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes entries at random. amount: a number of them, or a part between 0 and 1."""

    def choose_entries(self, t: Any, count: int) -> Any:
        return trt.topk(trt.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the entries of smallest absolute value. amount: a number of them, or a part between 0 and 1."""

    def choose_entries(self, t: Any, count: int) -> Any:
        return trt.topk(trt.abs(t).reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Prunes slices along a dimension at random. amount: a number of them, or a part between 0 and 1."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_structured(t)
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _count_of(self.amount, size)
        _check_enough(count, size)
        if not count:
            return default_mask
        drawn = trt.rand(size)
        mask = _slices_kept(t, self.dim, drawn > trt.kthvalue(drawn, k=count).values)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension with the smallest norm. amount: a number of them, or a part between 0 and 1; n: as `p` of trt.norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_structured(t)
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _count_of(self.amount, size)
        _check_enough(count, size)
        if not count:
            return default_mask
        dim = self.dim + t.dim() if self.dim < 0 else self.dim
        norms = trt.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])
        mask = _slices_kept(t, self.dim, trt.topk(norms, k=size - count, largest=True).indices)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"mask shape {self.mask.shape} does not match default_mask shape {default_mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def identity(module: Any, name: str) -> Any:
    """Make mask and hook for a parameter without pruning anything. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.identity(trt.nn.Linear(2, 1), "weight")
        >>> linear.weight_mask
        tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune `amount` entries (int), or that part of them (float), at random. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter
        amount (int or float): how many, or which part of all

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.random_unstructured(trt.nn.Linear(4, 1), "weight", amount=3)
        >>> (linear.weight == 0).sum()
        tensor(3)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the `amount` entries (int, or a part as float) of smallest absolute value or score. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter
        amount (int or float): how many, or which part of all
        importance_scores (Tensor or None, default None): what counts as the size of each entry; None is the parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.l1_unstructured(trt.nn.Linear(4, 1), "weight", amount=3)
        >>> (linear.weight == 0).sum()
        tensor(3)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune `amount` slices (int, or a part as float) along dim at random. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter
        amount (int or float): how many, or which part of all
        dim (int or None): the dimension

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.random_structured(trt.nn.Linear(4, 2), "weight", amount=1, dim=0)
        >>> (linear.weight == 0).sum()
        tensor(4)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the `amount` slices (int, or a part as float) along dim with the smallest n-norm. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter
        amount (int or float): how many, or which part of all
        n (number): the exponent of the norm
        dim (int or None): the dimension
        importance_scores (Tensor or None, default None): what counts as the size of each entry; None is the parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.ln_structured(trt.nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
        >>> (linear.weight == 0).sum()
        tensor(4)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters [(module, name), ...] as if they were one, by an unstructured method with keywords `kwargs`.

    importance_scores: {(module, name): scores} for some or all.

    Parameters:
        parameters (iterable): pairs of a module and the name of its parameter
        pruning_method (type): such as L1Unstructured
        importance_scores (dict or None, default None): what counts as the size of each entry, by pair
        **kwargs: what the method takes, such as amount

    Example:
        >>> import tensorrt_lite as trt
        >>> layers = [trt.nn.Linear(2, 2), trt.nn.Linear(2, 2)]
        >>> prune = trt.nn.utils.prune
        >>> prune.global_unstructured([(m, "weight") for m in layers], prune.L1Unstructured, amount=4)
        >>> sum((m.weight == 0).sum() for m in layers)
        tensor(4)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevant = _nn.utils.parameters_to_vector([scores.get((module, name), getattr(module, name)) for module, name in pairs])
    masks = _nn.utils.parameters_to_vector([getattr(module, name + "_mask", trt.ones_like(getattr(module, name))) for module, name in pairs])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}')
    with no_grad():
        final = container.compute_mask(relevant, masks)
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=final[start : start + param.numel()].view_as(param))
        start += param.numel()


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune a parameter where the mask, of its shape, is 0. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter
        mask (Tensor): the mask, of the parameter's shape; 0 prunes

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.custom_from_mask(trt.nn.Linear(2, 1), "weight", trt.tensor([[1, 0]]))
        >>> linear.weight[0, 1] == 0
        tensor(True)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one with its pruned values. ValueError when it is not pruned. Returns the module.

    Parameters:
        module (Module): the layer
        name (str): the name of its parameter

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.prune.l1_unstructured(trt.nn.Linear(4, 1), "weight", amount=3)
        >>> linear = trt.nn.utils.prune.remove(linear, "weight")
        >>> list(linear.state_dict())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module or of one below it is pruned.

    Parameters:
        module (Module): the layer

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.prune.is_pruned(trt.nn.Linear(2, 1))
        False
    """
    return any(isinstance(hook, BasePruningMethod) for _, below in module.named_modules() for hook in below._forward_pre_hooks.values())


def _slices_kept(t: Any, dim: int, kept: Any) -> Any:
    mask = trt.zeros_like(t)
    mask[(slice(None),) * (dim + t.dim() if dim < 0 else dim) + (kept,)] = 1
    return mask


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _check_enough(count: int, size: int) -> None:
    if count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")


def _check_structured(t: Any) -> None:
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims"
        )


def _check_dim(t: Any, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _count_of(amount: Any, size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * size)

"""The same values on both sides, and comparison of what comes out. Used by every nn test."""

from __future__ import annotations

import numpy as np
import torch

import tensorrt_lite as trt


def ours(value, requires_grad=False):
    """A tensor of this package with the values of a torch tensor; containers element by element."""
    if isinstance(value, torch.Tensor):
        result = trt.from_numpy(value.detach().numpy().copy())
        return result.requires_grad_() if requires_grad and result.is_floating_point() else result
    if isinstance(value, (tuple, list)):
        return type(value)(ours(item, requires_grad) for item in value)
    return value


def theirs(value, requires_grad=False):
    """A fresh torch leaf with the same values."""
    if isinstance(value, torch.Tensor):
        result = value.detach().clone()
        return result.requires_grad_() if requires_grad and result.is_floating_point() else result
    if isinstance(value, (tuple, list)):
        return type(value)(theirs(item, requires_grad) for item in value)
    return value


def array(value):
    """The values of a tensor of either side as a NumPy array."""
    return value.detach().numpy()


def assert_same(actual, expected, rtol=1e-4, atol=1e-5, what="value"):
    """Equal structure, shapes and dtypes, and values within tolerance."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for position, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, e, rtol, atol, f"{what}[{position}]")
    elif expected is None:
        assert actual is None, what
    elif isinstance(expected, torch.Tensor):
        assert tuple(actual.shape) == tuple(expected.shape), what
        assert array(actual).dtype == array(expected).dtype, what
        np.testing.assert_allclose(array(actual), array(expected), rtol=rtol, atol=atol, err_msg=what)
    else:
        assert actual == expected, what


def leaves(value):
    """All floating-point tensors inside a result."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value] if hasattr(value, "is_floating_point") and value.is_floating_point() else []


def loss_of(output):
    """A scalar that weighs every element of the output differently, so that gradients cannot cancel."""
    total = 0
    for leaf in leaves(output):
        if leaf.requires_grad:
            size = leaf.numel()
            ramp = torch.arange(1, size + 1, dtype=torch.float32).reshape(tuple(leaf.shape)) / size
            weights = ramp if isinstance(leaf, torch.Tensor) else ours(ramp)
            total = total + (leaf * weights.to(leaf.dtype)).sum()
    return total


def copy_state(target, source):
    """Loads the torch module's state into ours."""
    target.load_state_dict({name: ours(value) for name, value in source.state_dict().items()})

"""Selective checkpointing: operators whose results are kept, while others are computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tensorrt_lite import library as _library
from tensorrt_lite import _root as trt
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode
from tensorrt_lite.utils._pytree import tree_map


if TYPE_CHECKING:
    from collections.abc import Callable


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result. PREFER_... is taken as MUST_..., and an offload as a save: results stay where they are."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told beside the operator: whether this is the recomputation."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


# What asks or passes on, and is done again at no cost.
SAC_IGNORED_OPS = {_library.ops.aten.detach.default}


class _Kept:
    """A result, and its version when it was kept."""

    def __init__(self, value: Any, any_version: bool) -> None:
        self.value = tree_map(lambda x: x.detach() if isinstance(x, trt.Tensor) else x, value)
        self.versions = None if any_version else [t._version for t in _tensors(self.value)]

    def take(self) -> Any:
        if self.versions is not None and self.versions != [t._version for t in _tensors(self.value)]:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated; pass allow_cache_entry_mutation=True to take it as it is now"
            )
        return self.value


def _tensors(value: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(lambda x: found.append(x) if isinstance(x, trt.Tensor) else None, value)
    return found


class _Mode(TorchDispatchMode):
    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[_Kept]], recompute: bool, allow_mutation: bool) -> None:
        super().__init__()
        self.policy, self.kept, self.recompute, self.allow_mutation = policy, kept, recompute, allow_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        policy = self.policy(SelectiveCheckpointContext(is_recompute=self.recompute), func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        if policy not in _KEPT:
            return func(*args, **kwargs)
        if not self.recompute:
            result = func(*args, **kwargs)
            self.kept[func].append(_Kept(result, self.allow_mutation))
            return result
        if not self.kept[func]:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        return self.kept[func].pop(0).take()


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """For `checkpoint(..., use_reentrant=False, context_fn=...)`: contexts of the run and of the recomputation, between which results of operators are kept.

    policy_fn_or_list: operators whose results are kept (`trt.ops.aten.mm.default`), or a function of (SelectiveCheckpointContext, operator, *args, **kwargs) that
    returns a CheckpointPolicy. It has to answer the same both times. RuntimeError in backward when a kept result was written to, unless
    allow_cache_entry_mutation. TypeError for anything else.

    >>> import functools
    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> products = functools.partial(create_selective_checkpoint_contexts, [trt.ops.aten.mm.default])
    >>> x = trt.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=products).sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not hasattr(op, "overloadpacket"):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. Please name the overload, as in `torch.ops.aten.mm.default`."
                )
        chosen = set(policy_fn_or_list)

        def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[_Kept]] = defaultdict(list)
    return _Mode(policy, kept, False, allow_cache_entry_mutation), _Mode(policy, kept, True, allow_cache_entry_mutation)

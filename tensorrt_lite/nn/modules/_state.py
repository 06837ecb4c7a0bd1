"""State dicts of modules: writing, reading, their hooks and their error messages.

The format is PyTorch's: an ordered mapping from dotted names to tensors, with the version of every module in
`_metadata`. Mixed into Module, which supplies the registries.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping as _MappingType
from collections import OrderedDict, namedtuple
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from weakref import ref

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core.hints import hinted

from ..parameter import Parameter, is_lazy
import tensorrt_lite.nn.modules._conversion as _conversion
from ._hooks import RemovableHandle

_utils = LazyModule("tensorrt_lite.utils")

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns: the names that did not match."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateDictMixin:
    """The state-dict half of Module."""

    if TYPE_CHECKING:
        _version: int
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        _modules: dict[str, Any]
        _non_persistent_buffers_set: set[str]
        _state_dict_hooks: OrderedDict[int, Any]
        _state_dict_pre_hooks: OrderedDict[int, Any]
        _load_state_dict_pre_hooks: OrderedDict[int, Any]
        _load_state_dict_post_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        """What to store beside parameters and buffers; overriding it puts "_extra_state" in the state dict."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # -- writing ------------------------------------------------------------------------------------------------

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """An OrderedDict of all parameters and persistent buffers, detached unless keep_vars, sharing their storage."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        state = self.__dict__
        for hook in state.get("_state_dict_pre_hooks", {}).values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in state.get("_state_dict_hooks", {}).values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Writes this module's own entries; modules that store more override it."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not StateDictMixin.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata) -> None, after this module's state_dict()."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._register_state_dict_hook(hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like register_state_dict_post_hook; the hook may return another state dict."""
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, prefix, keep_vars) -> None, before this module's state_dict()."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    # -- reading ------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies the tensors of `state_dict` into this module and its descendants; with `assign` takes them over.

        Returns (missing_keys, unexpected_keys). Raises RuntimeError that lists every shape mismatch and, with
        `strict`, every missing and unexpected key; TypeError when `state_dict` is not a mapping.
        """
        if not isinstance(state_dict, _MappingType):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]

        def load(module: Any, local_state_dict: Any, prefix: str = "") -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                local_state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    child_state = {k: v for k, v in local_state_dict.items() if k.startswith(child_prefix)}
                    load(child, child_state, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module.__dict__.get("_load_state_dict_post_hooks", {}).values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict)
        if strict:
            if unexpected_keys:
                names = ", ".join(f'"{k}"' for k in unexpected_keys)
                error_msgs.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing_keys:
                names = ", ".join(f'"{k}"' for k in missing_keys)
                error_msgs.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if error_msgs:
            listing = "\n\t".join(error_msgs)
            error = RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listing}")
            raise _explained(error, self, missing_keys, unexpected_keys, error_msgs, state_dict)
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Reads this module's own entries; modules whose format changed between versions override it."""
        for hook in self.__dict__.get("_load_state_dict_pre_hooks", {}).values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        transient = self._non_persistent_buffers_set
        own = {k: v for k, v in self._parameters.items() if v is not None}
        own.update((k, v) for k, v in self._buffers.items() if v is not None and k not in transient)
        for name, param in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_entry(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE
        has_extra = type(self).set_extra_state is not StateDictMixin.set_extra_state
        if has_extra and extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif has_extra and strict:
            missing_keys.append(extra_key)
        elif not has_extra and strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if not strict:
            return
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                first, *rest = key[len(prefix) :].split(".", 1)
                if first not in (self._modules if rest else own):
                    unexpected_keys.append(key)

    def _load_entry(self, name: str, param: Any, key: str, value: Any, assign: bool, error_msgs: list[str]) -> None:
        """Copies `value` into `param` (or puts it in its place) and reports what does not fit."""
        if not isinstance(value, trt.Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
            return
        if is_lazy(param):
            # the hook gave it a shape if the checkpoint has one
            return
        if param.dim() == 0 and not is_lazy(value) and value.dim() == 1 and value.numel() == 1:
            # Checkpoints from before zero-dimensional tensors hold scalars as one-element vectors.
            value = value[0]
        if value.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {param.shape}."
            )
            return
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                f"model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state "
                f"dictionary to their corresponding key in the module instead?)",
                stacklevel=4,
            )
        try:
            with no_grad():
                if _conversion.swaps:
                    _utils.swap_tensors(param, _taken_over(param, value) if assign else _like_parameter(param, param.detach().clone().copy_(value)))
                elif not assign:
                    param.copy_(value)
                elif isinstance(param, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=param.requires_grad)
                    else:
                        value.requires_grad_(param.requires_grad)
                    setattr(self, name, value)
                else:
                    setattr(self, name, value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) -> None,
        before this module reads its entries."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Like the public method; without with_module the hook does not receive the module."""
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self) if with_module else hook
        return handle

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, incompatible_keys) -> None, after this module and its descendants were read."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle


def _like_parameter(param: Any, value: Any) -> Any:
    """A tensor as what swap_tensors puts in the place of `param`."""
    return Parameter(value, param.requires_grad) if isinstance(param, Parameter) else value.requires_grad_(param.requires_grad)


def _taken_over(param: Any, value: Any) -> Any:
    return value.requires_grad_(param.requires_grad) if isinstance(value, Parameter) else _like_parameter(param, value.detach())


class _WrappedHook:
    """A load hook; with a module, which it then gets as first argument, held weakly so that the table makes no cycle.

    PyTorch's name and state, since files of whole modules hold it.
    """

    __module__ = "tensorrt_lite.nn.modules.module"

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.__setstate__({"hook": hook, "with_module": module is not None, "module": module})

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args) if self.with_module else self.hook(*args)

    def __deepcopy__(self, memo: dict[int, Any]) -> _WrappedHook:
        # The copied module is in `memo` by the time its tables are copied.
        if not self.with_module:
            return _WrappedHook(deepcopy(self.hook, memo))
        return _WrappedHook(self.hook, memo.get(id(self.module()), self.module()))

    def __getstate__(self) -> dict[str, Any]:
        module = {"module": self.module()} if self.with_module else {}
        return {"hook": self.hook, "with_module": self.with_module, **module}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("the module of this hook is gone")
            self.module = ref(state["module"])


def _explained(error: RuntimeError, module: Any, missing: list[str], unexpected: list[str], messages: list[str], state: Any) -> BaseException:
    """The error of a state dict that does not fit, with the hint for the likeliest cause."""
    for key in ("state_dict", "model_state_dict", "model"):
        if key in unexpected and hasattr(state.get(key), "keys"):
            return hinted("nested", error, key)
    for prefix in ("module.", "_orig_mod.", "model."):
        if missing and ({k.removeprefix(prefix) for k in unexpected} == set(missing) or {k.removeprefix(prefix) for k in missing} == set(unexpected)):
            return hinted("prefix", error, prefix)
    return hinted("keys" if missing or unexpected else "sizes differ", error)

"""Base classes of the optimizers.

`Optimizer` holds parameter groups and per-parameter state in PyTorch's layout, so that state dicts travel both ways.
`FusedOptimizer` runs a whole group in one compiled multi-tensor call and keeps the work in Python to collecting
gradients; `PerTensorOptimizer` loops over parameters for the rules that have no fused operator.
Called by training loops, by `lr_scheduler` (wraps `step`) and by the gradient scaler (`grad_scale`, `found_inf`).
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.autograd.hooks import RemovableHandle
from tensorrt_lite._C.core import profiler as _profiler
from tensorrt_lite._C.core import python_key as _python_key
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_grad_mode = _LazyModule("tensorrt_lite.autograd.grad_mode")
_optim_differentiable = _LazyModule("tensorrt_lite.optim._differentiable")
_optim_single = _LazyModule("tensorrt_lite.optim._single")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorrt_lite import Tensor

    ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]


def _sparse_refusal(kind: type) -> str:
    """What PyTorch says of sparse gradients; of Adam and AdamW in one text."""
    if {"Adam", "AdamW"} & {c.__name__ for c in kind.__mro__}:
        return "Adam does not support sparse gradients, please consider SparseAdam instead"
    return f"{kind.__name__} does not support sparse gradients"


class _RequiredParameter:
    """Default of an option that every parameter group has to give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], first: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


_global_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return _register(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return _register(_global_step_post_hooks, hook)


class _State(defaultdict):
    """Per-parameter state that counts replaced entries, so that cached lists of state tensors know when they are stale.

    Tensors inside an entry may be replaced freely: the lists are read from the entries at each step.
    """

    version = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        self.version += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self.version += 1
        super().__delitem__(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_State, (self.default_factory,), None, None, iter(self.items()))

    def clear(self) -> None:
        self.version += 1
        super().clear()

    def pop(self, *args: Any) -> Any:
        self.version += 1
        return super().pop(*args)

    def popitem(self) -> tuple[Any, Any]:
        self.version += 1
        return super().popitem()

    def update(self, *args: Any, **kwargs: Any) -> None:
        self.version += 1
        super().update(*args, **kwargs)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self.version += 1
        return super().setdefault(key, default)


def _type_name(value: object) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _to_float(value: Any) -> float:
    """Number of a hyperparameter that may be given as a one-element tensor."""
    if type(value) is float or type(value) is int:
        return value
    return value.item() if isinstance(value, trt.Tensor) else value


def _scalar(value: Any) -> Any:
    """A hyperparameter to calculate with: a one-element tensor without dimensions, so that it broadcasts to no other shape."""
    return value.reshape(()) if isinstance(value, trt.Tensor) and value.dim() else value


def _check_lr(lr: Any) -> None:
    if isinstance(lr, trt.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not _to_float(lr) >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_non_negative(label: str, value: Any) -> None:
    if not _to_float(value) >= 0.0:
        raise ValueError(f"Invalid {label} value: {value}")


def _check_betas(betas: tuple[Any, Any]) -> None:
    for index, beta in enumerate(betas):
        if not 0.0 <= _to_float(beta) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def _check_moments(lr: Any, betas: tuple[float, float], eps: float, weight_decay: float) -> None:
    _check_lr(lr)
    _check_non_negative("epsilon", eps)
    _check_betas(betas)
    _check_non_negative("weight_decay", weight_decay)


def _new_step(p: Tensor | None = None, group: dict[str, Any] | None = None) -> Tensor:
    """Step counter of one parameter: a zero-dimensional float32 tensor, on the CPU unless the group is capturable or fused, as PyTorch stores it."""
    here = p is not None and group is not None and (group.get("capturable") or group.get("fused"))
    return trt.zeros((), dtype=trt.float32, device=p.device) if here else trt.tensor(0.0, dtype=trt.float32, device="cpu")  # type: ignore[union-attr]


def _value(number: Tensor, group: dict[str, Any]) -> Any:
    """A number of the state to calculate with: a float, or where a graph may record the step (capturable) a double on the device."""
    return number.double() if group.get("capturable") else number.item()


def _add(p: Tensor, x: Tensor, factor: Any) -> None:
    """p += factor x, for a factor that may be a tensor."""
    if isinstance(factor, trt.Tensor):
        p.add_(x * factor)
    else:
        p.add_(x, alpha=factor)


def _add_quotient(p: Tensor, x: Tensor, y: Tensor, factor: Any) -> None:
    """p += factor x / y."""
    if isinstance(factor, trt.Tensor):
        p.add_(x / y * factor)
    else:
        p.addcdiv_(x, y, value=factor)


def _check_capture(optimizer: Optimizer) -> None:
    """A step that reads its counters on the host cannot be recorded."""
    graphs = sys.modules.get("tensorrt_lite.cuda.graphs")
    if graphs is None or not graphs.captures or "capturable" not in optimizer.defaults:
        return
    for group in optimizer.param_groups:
        if not group.get("capturable") and not group.get("fused") and graphs.is_current_stream_capturing():
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {type(optimizer).__name__} but param_groups' capturable is False. Set capturable=True."
            )


class Optimizer:
    """Base of all optimizers: parameter groups, state, hooks, state dicts.

    params: tensors, `(name, tensor)` pairs, or dicts with a `params` entry and options; defaults: options of a group
    that does not give them. Raises TypeError for anything but tensors, ValueError for empty, repeated or non-leaf ones.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        defaults (dict): the options of groups that don't give them
    """

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, trt.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_type_name(params)}"
            )
        self.state: defaultdict[Tensor, Any] = _State(dict)
        self.param_groups: list[dict[str, Any]] = []
        try:
            self._add_groups(params)
        except TypeError as error:
            if callable(getattr(params, "parameters", None)):
                hinted("model for parameters", error)
            raise

    def _add_groups(self, params: ParamsT) -> None:
        groups: list[Any] = list(params)
        if not groups:
            raise hinted("no parameters", ValueError("optimizer got an empty parameter list"))
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": defaultdict(dict, self.state), "param_groups": self.param_groups}  # as PyTorch pickles it

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if type(self.__dict__.get("state")) is defaultdict:
            counted = _State(dict)
            counted.update(self.state)
            self.state = counted
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for index, group in enumerate(self.param_groups):
            options = "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            text += f"\nParameter Group {index}\n{options}"
        return text + ")"

    # -- the step and its hooks ---------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients; closure recomputes the loss and is returned from."""
        raise NotImplementedError(f"{type(self).__name__} does not implement step")

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a `step` function so that it runs the registered hooks, which costs some truth tests when there are none, and is a range in a profile."""

        @functools.wraps(func)
        def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_step_pre_hooks
                or _global_step_post_hooks
                or _profiler.is_recording()
            ):
                return func(self, *args, **kwargs)
            token = _profiler.begin_range(f"Optimizer.step#{type(self).__name__}.step")
            try:
                return step_with_hooks(self, args, kwargs)
            finally:
                _profiler.end_range(token)

        def step_with_hooks(self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            for hook in chain(_global_step_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            out = func(self, *args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_step_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        return step

    def _patch_step_function(self) -> None:
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            hooked = self.profile_hook_step(cls.step)
            hooked.hooked = True  # type: ignore[attr-defined]
            cls.step = hooked  # type: ignore[method-assign]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before a step; it may return new `(args, kwargs)`."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after a step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; what it returns, if not None, replaces the dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns, if not None, is loaded instead."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        if _profiler.is_recording():
            token = _profiler.begin_range(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad")
            try:
                return self._drop_gradients(set_to_none)
            finally:
                _profiler.end_range(token)
        return self._drop_gradients(set_to_none)

    def _drop_gradients(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            if set_to_none:
                for p in group["params"]:
                    p.grad = None
                continue
            for p in group["params"]:
                grad = p.grad
                if grad is not None:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # -- state dicts --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and options with parameters replaced by their position: the layout of PyTorch's optimizers."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        position: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [position.setdefault(id(p), len(position)) for p in group["params"]]
            groups.append(packed)
        state = {(position[id(k)] if isinstance(k, trt.Tensor) else k): v for k, v in self.state.items()}
        state_dict: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replaced = post_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state dict of the same optimizer, PyTorch's included.

        Raises ValueError when the number of groups, or of parameters in a group, differs.
        """
        state_dict = dict(state_dict)
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        param_of: dict[Any, tuple[Tensor, dict[str, Any]]] = {}
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            for p, key in zip(group["params"], saved["params"], strict=True):
                param_of[key] = (p, saved)
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        state = _State(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                p, saved = param_of[key]
                state[p] = _cast_state(p, value, saved, None)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with `params` and any options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, trt.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [entry[0] for entry in params if isinstance(entry, tuple)]
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in params]
        if names and len(names) != len(tensors):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        param_group["params"] = tensors
        if names:
            param_group["param_names"] = names
        for p in tensors:
            if not isinstance(p, trt.Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}")
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = {id(p) for p in tensors}
        if len(ids) != len(tensors):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                which = "with" if names else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {which} names to the optimizer"
                )
            if not ids.isdisjoint(id(p) for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _cast_state(p: Tensor, value: Any, group: dict[str, Any], key: Any) -> Any:
    """Bring loaded state to the parameter's dtype and device; step counters keep theirs unless they live with p."""
    if isinstance(value, trt.Tensor):
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=trt.float32, device=p.device)
            return value
        return value.to(dtype=p.dtype, device=p.device) if p.is_floating_point() else value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _cast_state(p, v, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast_state(p, v, group, None) for v in value)
    return value


def _steps_to_tensors(state: dict[Any, Any]) -> None:
    """State dicts of PyTorch before 1.12 hold the step as a number; the update rules count in a tensor."""
    for entry in state.values():
        if isinstance(entry, dict) and isinstance(entry.get("step"), (int, float)):
            entry["step"] = trt.tensor(float(entry["step"]), dtype=trt.float32)


def _check_flags(group: dict[str, Any]) -> None:
    if group.get("fused"):
        if group.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if group.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _step_recorded(optimizer: Optimizer) -> None:
    """A step with `differentiable=True`."""
    _optim_differentiable.step(optimizer)


def _step_singly(optimizer: FusedOptimizer, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> bool:
    """A step that a mode or a class with __torch_dispatch__ sees, unless it is to be fused."""
    return _optim_single.step(optimizer, group, params, grads)


class _Bucket:
    """Parameters of one group that share device and dtype: the operands of one fused call.

    `picks` are their positions among the parameters with a gradient, None when the bucket holds them all.
    """

    __slots__ = ("complex", "first", "params", "picks", "states")

    def __init__(
        self, params: list[Tensor], states: list[dict[str, Any]], picks: list[int] | None, first: bool
    ) -> None:
        self.params = params
        self.states = states
        self.picks = picks
        self.first = first
        self.complex = params[0].is_complex()


class _Plan:
    """Cached arguments of a group's fused calls, and what they depend on."""

    __slots__ = ("buckets", "key", "params", "state", "version")

    def __init__(self, params: list[Tensor], buckets: list[_Bucket], state: Any, key: bool) -> None:
        self.params = params
        self.key = key
        self.buckets = buckets
        self.state = state
        self.version = getattr(state, "version", None)

    def holds(self, params: list[Tensor], state: Any, key: bool) -> bool:
        return (
            self.state is state
            and self.key == key
            and self.version is not None
            and self.version == state.version
            and len(params) == len(self.params)
            and all(map(is_, params, self.params))
        )


class FusedOptimizer(Optimizer):
    """An optimizer whose whole update is one compiled call per group (and per device and dtype in it).

    The lists of parameters and states are cached between steps; a step only collects gradients. A cached list is
    rebuilt when parameters appear, vanish or change, or when entries of `state` are replaced.
    """

    # Set on the instance by the gradient scaler for the duration of a step.
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self._plans: dict[int, _Plan] = {}
        super().__init__(params, defaults)
        # What the gradient scaler asks before it hands over `grad_scale` and `found_inf` instead of unscaling itself.
        self._step_supports_amp_scaling = bool(defaults.get("fused"))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._plans = {}
        self._step_supports_amp_scaling = bool(self.defaults.get("fused"))
        _steps_to_tensors(self.state)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with `params` and any options that differ from the defaults."""
        super().add_param_group(param_group)
        _check_flags(param_group)
        self._plans.clear()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients; closure: recomputes and returns the loss, which is returned."""
        loss = None
        if closure is not None:
            with _grad_mode.enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            _step_recorded(self)
            return loss
        _check_capture(self)
        with _grad_mode.no_grad():
            for group in self.param_groups:
                params = group["params"]
                grads = [grad for p in params if (grad := p.grad) is not None]
                if len(grads) != len(params):
                    if not grads:
                        continue
                    params = [p for p in params if p.grad is not None]
                if _python_key.is_active(params[:1]) and not group.get("fused") and _step_singly(self, group, params, grads):
                    continue
                plan = self._plans.get(id(group))
                if plan is None or not plan.holds(params, self.state, self._plan_key(group)):
                    plan = self._make_plan(group, params, grads)
                for bucket in plan.buckets:
                    if bucket.picks is None:
                        chosen = grads
                    else:
                        chosen = [grads[i] for i in bucket.picks]
                    if bucket.complex:
                        self._update_complex(group, bucket, chosen)
                    else:
                        self._update_bucket(group, bucket.params, chosen, bucket.states, bucket.first)
                    if bucket.first:
                        self._plans.pop(id(group), None)
        return loss

    def _make_plan(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> _Plan:
        _check_flags(group)
        members: dict[Any, list[int]] = {}
        for index, (p, grad) in enumerate(zip(params, grads, strict=True)):
            if grad.is_sparse and not self._takes_sparse:
                raise RuntimeError(_sparse_refusal(type(self)))
            first = self._init_state(group, p, self.state)
            members.setdefault((p.device, p.dtype, grad.device, first), []).append(index)
        buckets = []
        for (_, _, _, first), picks in members.items():
            chosen = [params[i] for i in picks]
            states = [self.state[p] for p in chosen] if self._keeps_state(group) else []
            buckets.append(_Bucket(chosen, states, None if len(members) == 1 else picks, first))
        plan = _Plan(list(params), buckets, self.state, self._plan_key(group))
        self._plans[id(group)] = plan
        return plan

    def _update_complex(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        """A complex parameter is updated as the pair of its parts; state tensors are written through views."""
        real = trt.view_as_real
        states = []
        for state in bucket.states:
            # The step counter stays the tensor itself; a first buffer does not exist yet and is made by the update.
            states.append({k: real(v) if isinstance(v, trt.Tensor) and v.is_complex() else v for k, v in state.items()})
        self._update_bucket(group, [real(p) for p in bucket.params], [real(g) for g in grads], states, bucket.first)

    _takes_sparse = False  # whether the fused operator takes sparse gradients

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        """Whether the rule has state at all under the group's options."""
        return True

    def _plan_key(self, group: dict[str, Any]) -> bool:
        """The option that decides which state a parameter has; a plan is rebuilt when it is switched."""
        raise NotImplementedError

    def _init_state(self, group: dict[str, Any], p: Tensor, state: dict[Tensor, Any]) -> bool:
        """Create the state of p when it has none; True when the coming update is p's first and must say so."""
        raise NotImplementedError

    def _update_bucket(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        first: bool,
    ) -> None:
        """Run the fused operator over lists of equal length."""
        raise NotImplementedError


class PerTensorOptimizer(Optimizer):
    """An optimizer that updates one parameter after the other; a rule gives `_init_state` and `_update`.

    Complex parameters are updated as pairs of real numbers, gradients are negated for `maximize`, and weight decay is
    added to the gradient unless the rule decouples it, before `_update` sees them.
    """

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        for group in self.param_groups:
            _check_flags(group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        _steps_to_tensors(self.state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients; closure: recomputes and returns the loss, which is returned."""
        loss = None
        if closure is not None:
            with _grad_mode.enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            _step_recorded(self)
            return loss
        _check_capture(self)
        with _grad_mode.no_grad():
            for group in self.param_groups:
                _check_flags(group)
                lr = group["lr"] if group.get("capturable") else _to_float(group["lr"])
                for p in group["params"]:
                    if p.grad is not None:
                        self._update_parameter(p, p.grad, group, lr)
        return loss

    def _update_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any], lr: float) -> None:
        if grad.is_sparse and not self._takes_sparse:
            raise RuntimeError(_sparse_refusal(type(self)))
        state = self.state[p]
        if not state:
            state.update(self._init_state(p, group))
        if "step" in state:
            state["step"].add_(1)
        if group.get("maximize"):
            grad = -grad
        weight_decay = group.get("weight_decay", 0)
        if grad.is_sparse:
            if weight_decay != 0:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            self._update_sparse(p, grad.coalesce(), state, group, lr)
            return
        if p.is_complex():
            p, grad = trt.view_as_real(p), trt.view_as_real(grad)
            state = {
                k: trt.view_as_real(v) if isinstance(v, trt.Tensor) and v.is_complex() else v for k, v in state.items()
            }
        if weight_decay != 0 and not self._decays_itself(group):
            if group.get("decoupled_weight_decay"):
                p.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(p, alpha=weight_decay)
        self._update(p, grad, state, group, lr)

    _takes_sparse = False  # whether there is an `_update_sparse`

    def _update_sparse(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        """`_update` for a coalesced sparse_coo gradient."""
        raise NotImplementedError

    def _decays_itself(self, group: dict[str, Any]) -> bool:
        """Whether `_update` applies the weight decay in its own place."""
        return False

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """State of p before its first update."""
        raise NotImplementedError

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        """Write p and its state in place; `state["step"]`, where kept, already counts this update. lr: a number, or of capturable groups also a tensor."""
        raise NotImplementedError

"""Loss scaling: gradients that float16 would round to zero are computed of a scaled loss and divided by the scale before the optimizer's step."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite import _ops

_cuda = LazyModule("tensorrt_lite.cuda")

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come since the last ``update()``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _MultiDeviceReplicator:
    """Copies of a tensor, one per device, made when they are asked for."""

    def __init__(self, master_tensor: Any) -> None:
        self.master = master_tensor
        self._per_device_tensors: dict[Any, Any] = {}

    def get(self, device: Any) -> Any:
        if device not in self._per_device_tensors:
            self._per_device_tensors[device] = self.master.to(device=device, non_blocking=True, copy=True)
        return self._per_device_tensors[device]


def _values_to_unscale(param: Any) -> Any:
    """The values of a sparse gradient, whose memory it has. Those of halves are added first where indices repeat, since the sum may overflow."""
    if param.grad.layout is not trt.sparse_coo:
        return param.grad.detach().values()
    if param.grad.dtype is trt.float16:
        param.grad = param.grad.coalesce()
    return param.grad._values()


class GradScaler:
    """Scales the loss, unscales gradients before the optimizer's step, skips steps whose gradients are not finite and adapts the scale.

    device: "cuda" or "cpu". The scale starts at `init_scale`; `update()` multiplies it by `backoff_factor` (below 1) when a step was skipped, and by
    `growth_factor` (above 1) after `growth_interval` steps in a row that were not. enabled: False makes `step` the optimizer's own and the rest
    no-ops; so does a device "cuda" without a GPU, with a warning.

    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Linear(2, 1)
    >>> optimizer, scaler = trt.optim.SGD(model.parameters(), lr=0.1), trt.amp.GradScaler("cpu")
    >>> loss = model(trt.ones(3, 2)).square().sum()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> scaler.get_scale()
    65536.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda" and not _cuda.is_available():
            warnings.warn("GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # made on the device of the first outputs
        self._scale: Any = None
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {funcname} but {name} is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                    "earlier in the iteration."
                )
        return self._scale, self._growth_tracker

    def _scale_on(self, device: Any) -> Any:
        if self._scale is None:
            self._scale = trt.full((), self._init_scale, dtype=trt.float32, device=device)
            self._growth_tracker = trt.full((), self._init_growth_tracker, dtype=trt.int32, device=device)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale: a tensor, or an iterable of tensors and iterables (lists and tuples stay what they are)."""
        if not self._enabled:
            return outputs
        copies: list[_MultiDeviceReplicator] = []

        def scaled(value: Any) -> Any:
            if isinstance(value, trt.Tensor):
                if not copies:
                    copies.append(_MultiDeviceReplicator(self._scale_on(value.device)))
                return value * copies[0].get(value.device)
            if isinstance(value, Iterable):
                values = map(scaled, value)
                return type(value)(values) if isinstance(value, (list, tuple)) else values  # type: ignore[call-arg]
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")

        if isinstance(outputs, trt.Tensor):
            return outputs * self._scale_on(outputs.device).to(device=outputs.device, non_blocking=True)
        return scaled(outputs)

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        scales, found = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        by_device: dict[Any, list[Any]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, trt.Tensor):
                    raise AssertionError(f"expected param to be tensorrt_lite.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype is trt.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[param.grad.device].append(param.grad if param.grad.layout is trt.strided else _values_to_unscale(param))
        for device, grads in by_device.items():
            _ops._amp_foreach_non_finite_check_and_unscale_(grads, found.get(device), scales.get(device))
        return found._per_device_tensors

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for what looks at them before `step`: clipping, say.

        Once per optimizer between two `update()`s, after all gradients have accumulated; RuntimeError otherwise. ValueError for gradients of float16.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # the reciprocal of a float32 rounds once when it is taken in float64
        inv_scale = self._scale.double().reciprocal().float()
        found_inf = trt.full((), 0.0, dtype=trt.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if sum(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`unscale_` where it has not run, then ``optimizer.step(*args, **kwargs)`` unless a gradient is infinite or NaN; returns what that returns.

        RuntimeError for a closure, and for a second call before `update()`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_unscales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that reads the scale itself, from attributes or, in the older manner, from this object."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._scale
        given = getattr(optimizer, "grad_scale", None)
        optimizer.grad_scale = given if state["stage"] is OptState.UNSCALED else scale if given is None else scale * given
        optimizer.found_inf = sum(t.to(scale.device, non_blocking=True) for t in state["found_inf_per_device"].values())
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = trt.full((), 1.0, dtype=trt.float32, device=scale.device)
        found_inf = trt.full((), 0.0, dtype=trt.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]  # type: ignore[no-any-return]

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale, after the last `step` of an iteration; or set it: a float, or a tensor with one element on the scaler's device."""
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if new_scale is None:
            found = [
                found_inf.to(device=scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for found_inf in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _ops._amp_update_scale_(scale, growth_tracker, sum(found[1:], found[0]), self._growth_factor, self._backoff_factor, self._growth_interval)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element float tensor of the scaler's device with requires_grad=False.")
            scale.copy_(new_scale)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The scale as a number (waits for the device); 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()  # type: ignore[no-any-return]

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()  # type: ignore[no-any-return]

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """scale, growth_factor, backoff_factor, growth_interval and _growth_tracker as numbers; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, PyTorch's too. RuntimeError for the empty one of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
                )
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(), _scale=None, _growth_tracker=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

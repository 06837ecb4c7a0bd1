"""Hooks of modules: the tables, the handles, and the call path that runs them.

Hook tables of a module are made on first access (Module.__getattr__), which also routes its calls through
call_with_hooks. Full backward hooks are two identity autograd functions around the forward: one sees the gradients
of the outputs, the other those of the inputs.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.autograd.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

    from .module import Module

# Tables whose use means that a call has something to run.
CALL_TABLES = frozenset(
    (
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_backward_hooks",
        "_backward_pre_hooks",
    )
)
TABLES: dict[str, Callable[[], Any]] = dict.fromkeys(
    (
        *CALL_TABLES,
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    ),
    OrderedDict,
)

global_hooks: dict[str, OrderedDict[int, Any]] = {
    kind: OrderedDict() for kind in ("forward_pre", "forward", "backward_pre", "backward", "non_full_backward")
}
global_registration: dict[str, OrderedDict[int, Any]] = {
    kind: OrderedDict() for kind in ("parameter", "buffer", "module")
}
_global_with_kwargs: dict[int, bool] = {}
_global_always_called: dict[int, bool] = {}


def global_registrar(kind: str, module_class: type) -> Callable[..., RemovableHandle]:
    """register_module_<kind>_hook: a hook that runs for every module."""

    opposite = {"backward": "non_full_backward", "non_full_backward": "backward"}.get(kind)

    def register(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
        if opposite and global_hooks[opposite]:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
        handle = RemovableHandle(global_hooks[kind], extra_dict=[_global_with_kwargs, _global_always_called])
        global_hooks[kind][handle.id] = hook
        if with_kwargs:
            _global_with_kwargs[handle.id] = True
        if always_call:
            _global_always_called[handle.id] = True
        module_class._has_hooks = True  # type: ignore[attr-defined]
        return handle

    public = {"backward": "full_backward", "backward_pre": "full_backward_pre", "non_full_backward": "backward"}.get(kind, kind)
    register.__name__ = register.__qualname__ = f"register_module_{public}_hook"
    register.__doc__ = f"Registers a {public.replace('_', ' ')} hook that runs for every module, before the module's own."
    return register


def registration_registrar(kind: str) -> Callable[[Callable[..., Any]], RemovableHandle]:
    """register_module_<kind>_registration_hook: hook(module, name, value) -> None or a value in its place."""

    def register(hook: Callable[..., Any]) -> RemovableHandle:
        handle = RemovableHandle(global_registration[kind])
        global_registration[kind][handle.id] = hook
        return handle

    register.__name__ = register.__qualname__ = f"register_module_{kind}_registration_hook"
    register.__doc__ = f"Registers hook(module, name, {kind}) -> None or replacement, run at every {kind} registration."
    return register


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """forward with every hook around it, in PyTorch's order: pre-hooks, forward, forward hooks."""
    state = module.__dict__
    called: set[int] = set()
    try:
        return _call(module, state, args, kwargs, called)
    except Exception:
        # Hooks registered with always_call see the failed call too; their own failures do not hide the first.
        _call_always(module, state, args, kwargs, called)
        raise


def _call(
    module: Module, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
) -> Any:
    pre_with_kwargs = state.get("_forward_pre_hooks_with_kwargs", ())
    for hook_id, hook in (*global_hooks["forward_pre"].items(), *state.get("_forward_pre_hooks", {}).items()):
        if hook_id in pre_with_kwargs:
            result = hook(module, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)

    full = state.get("_is_full_backward_hook") is not False
    own = state.get("_backward_hooks", {}).values()
    backward = [*global_hooks["backward"].values(), *(own if full else ())]
    non_full = [*global_hooks["non_full_backward"].values(), *(() if full else own)]
    backward_pre = [*global_hooks["backward_pre"].values(), *state.get("_backward_pre_hooks", {}).values()]
    gate = None
    if (backward or backward_pre) and trt.is_grad_enabled():
        gate = _BackwardGate(module, backward, backward_pre)
        args = gate.wrap_inputs(args)

    output = module.forward(*args, **kwargs)

    with_kwargs = state.get("_forward_hooks_with_kwargs", ())
    for hook_id, hook in (*global_hooks["forward"].items(), *state.get("_forward_hooks", {}).items()):
        called.add(hook_id)
        if hook_id in with_kwargs or hook_id in _global_with_kwargs:
            result = hook(module, args, kwargs, output)
        else:
            result = hook(module, args, output)
        if result is not None:
            output = result
    if gate is not None:
        output = gate.wrap_outputs(output)
    if non_full:
        _hook_last_node(module, non_full, args, output)
    return output


def _hook_last_node(module: Module, hooks: list[Any], args: tuple[Any, ...], output: Any) -> None:
    """Non-full backward hooks: at the Node that made the first tensor of the result."""
    first = output
    while not isinstance(first, trt.Tensor):
        first = next((value for value in first.values() if isinstance(value, trt.Tensor)), None) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(partial(hook, module))
    reason = _why_not_full(args, output, node)
    if reason:
        warnings.warn(
            f"Using {reason} is deprecated and will be removed in future versions. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )


def _why_not_full(args: tuple[Any, ...], output: Any, node: Any) -> str:
    """Where a non-full hook's gradients are not those of the module's arguments and results; "" where they are."""

    def all_tensors(value: Any) -> bool:
        return isinstance(value, trt.Tensor) or isinstance(value, tuple) and all(isinstance(part, trt.Tensor) for part in value)

    if not all_tensors(output):
        return "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors"
    if not all_tensors(args):
        return "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors"
    outputs = output if isinstance(output, tuple) else (output,)
    if len({id(part.grad_fn) for part in outputs if part.grad_fn is not None}) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes"
    arguments = args if isinstance(args, tuple) else (args,)
    if {part.grad_fn for part in arguments if part.grad_fn is not None} != {edge[0] for edge in node.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes"
    return ""


def _call_always(
    module: Module, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
) -> None:
    always = state.get("_forward_hooks_always_called", ())
    with_kwargs = state.get("_forward_hooks_with_kwargs", ())
    for hook_id, hook in (*global_hooks["forward"].items(), *state.get("_forward_hooks", {}).items()):
        if hook_id in called or not (hook_id in always or hook_id in _global_always_called):
            continue
        try:
            if hook_id in with_kwargs or hook_id in _global_with_kwargs:
                hook(module, args, kwargs, None)
            else:
                hook(module, args, None)
        except Exception as error:
            warnings.warn(
                f"module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                f"error was raised in forward: {error}",
                stacklevel=2,
            )


class _BackwardGate:
    """The full backward hooks of one call: collects the outputs' gradients, then hands both sides to the hooks."""

    def __init__(self, module: Module, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.inputs_wrapped = False
        self.input_count = 0
        self.input_positions: list[int] = []
        self.output_count = 0
        self.output_positions: list[int] = []
        self.grad_output: tuple[Any, ...] | None = None

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.input_count = len(args)
        positions = [i for i, arg in enumerate(args) if isinstance(arg, trt.Tensor)]
        if not any(args[i].requires_grad for i in positions):
            return args
        self.inputs_wrapped = True
        self.input_positions = positions
        return _replaced(args, positions, _functions()[0].apply(self, *(args[i] for i in positions)))

    def wrap_outputs(self, output: Any) -> Any:
        if not isinstance(output, (trt.Tensor, tuple)):
            warnings.warn(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(output)}", stacklevel=4
            )
            return output
        items = output if isinstance(output, tuple) else (output,)
        positions = [i for i, item in enumerate(items) if isinstance(item, trt.Tensor)]
        if not any(items[i].requires_grad for i in positions):
            return output
        self.output_count, self.output_positions = len(items), positions
        items = _replaced(items, positions, _functions()[1].apply(self, *(items[i] for i in positions)))
        if not isinstance(output, tuple):
            return items[0]
        return type(output)(*items) if hasattr(output, "_fields") else items

    def on_grad_output(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = _scattered(grads, self.output_positions, self.output_count)
        for hook in self.pre_hooks:
            result = hook(self.module, full)
            if result is not None:
                full = self._checked(result, full, "grad_outputs")
        self.grad_output = full
        if not self.inputs_wrapped:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients: "
                "grad_input holds None for each input.",
                stacklevel=2,
            )
            self._run_hooks((None,) * self.input_count)
        return tuple(full[i] for i in self.output_positions)

    def on_grad_input(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:
            return grads  # they came past the module's outputs: double backward, outputs inside of other objects
        full = self._run_hooks(_scattered(grads, self.input_positions, self.input_count))
        self.grad_output = None
        return tuple(full[i] for i in self.input_positions)

    def _run_hooks(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            result = hook(self.module, grad_input, self.grad_output)
            if result is None:
                continue
            if not self.inputs_wrapped:
                if isinstance(result, tuple) and all(grad is None for grad in result):
                    continue
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                )
            grad_input = self._checked(result, grad_input, "grad_input")
        return grad_input

    @staticmethod
    def _checked(result: Any, expected: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(expected):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {name}, got {len(result)}, but expected {len(expected)}"
            )
        return result


def _replaced(items: tuple[Any, ...], positions: list[int], values: Any) -> tuple[Any, ...]:
    values = values if isinstance(values, tuple) else (values,)
    result = list(items)
    for position, value in zip(positions, values, strict=True):
        result[position] = value
    return tuple(result)


def _scattered(values: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...]:
    result: list[Any] = [None] * count
    for position, value in zip(positions, values, strict=True):
        result[position] = value
    return tuple(result)


_function_classes: tuple[Any, Any] | None = None


def _functions() -> tuple[Any, Any]:
    """The two identity autograd functions, made once: most programs have no backward hook."""
    global _function_classes
    if _function_classes is None:

        class ModuleInputs(autograd.Function):
            @staticmethod
            def forward(ctx: Any, gate: _BackwardGate, *tensors: Any) -> Any:
                ctx.gate = gate
                ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
                ctx.set_materialize_grads(False)
                return tensors

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, *ctx.gate.on_grad_input(grads))

        class ModuleOutputs(autograd.Function):
            @staticmethod
            def forward(ctx: Any, gate: _BackwardGate, *tensors: Any) -> Any:
                ctx.gate = gate
                ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
                ctx.set_materialize_grads(False)
                return tensors

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, *ctx.gate.on_grad_output(grads))

        _function_classes = (ModuleInputs, ModuleOutputs)
    return _function_classes

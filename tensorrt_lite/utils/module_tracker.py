"""torch.utils.module_tracker: which modules are running, forward or backward."""

from __future__ import annotations

import weakref
from typing import Any

from tensorrt_lite._C.autograd import engine as _engine
from tensorrt_lite.autograd.graph import register_multi_grad_hook
from tensorrt_lite.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.utils._pytree import tree_flatten
from tensorrt_lite.autograd import Variable as _Variable

__all__ = ["ModuleTracker"]


def _differentiable(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, Tensor) and leaf.requires_grad]


class ModuleTracker:
    """Inside `with ModuleTracker() as tracker`, `tracker.parents` is the set of names of the modules that are running: "Global", and for each its class's
    name or the path from the outermost one ("Net.layers.0"). In a backward pass, those whose gradients are being computed; `is_bw` tells."""

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._hooks: list[Any] = []
        self._will_clear = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running in this thread."""
        return bool(_engine.current_task_id() != -1)

    def _name(self, module: Any) -> str:
        if module not in self._names:
            own = type(module).__name__
            for path, part in module.named_modules():
                self._names[part] = f"{own}.{path}" if path else own
        return self._names[module]

    def _enter(self, name: str, backward: bool = False) -> None:
        if backward and not self._will_clear:
            _Variable._execution_engine.queue_callback(self._clear)
            self._will_clear = True
        self.parents.add(name)

    def _clear(self) -> None:
        self.parents = {"Global"}
        self._will_clear = False

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self._enter(name)
        if tensors := _differentiable(args):
            self._hooks.append(register_multi_grad_hook(tensors, lambda *grads: self.parents.discard(name)))

    def _after(self, module: Any, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        if tensors := _differentiable(output):
            self._hooks.append(register_multi_grad_hook(tensors, lambda *grads: self._enter(name, backward=True)))

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *details: object) -> None:
        for handle in [*self._handles, *self._hooks]:
            handle.remove()
        self._handles, self._hooks = [], []

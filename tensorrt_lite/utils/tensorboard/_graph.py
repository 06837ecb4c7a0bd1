"""The graph of a model: its operators as they run once, by a dispatch mode, under the names of the modules that call them."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode
from tensorrt_lite.utils._pytree import tree_leaves
from tensorrt_lite.utils.tensorboard._protobuf import data, integer


def _node(name: str, op: str, inputs: list[str], shapes: list[Any] | None = None) -> bytes:
    message = data(1, name) + data(2, op) + b"".join(data(3, i) for i in inputs)
    if shapes:
        listed = b"".join(data(7, b"".join(data(2, integer(1, n)) for n in shape)) for shape in shapes)
        message += data(5, data(1, "_output_shapes") + data(2, data(1, listed)))
    return data(1, message)


class _Recorder(TorchDispatchMode):
    def __init__(self, root: str) -> None:
        super().__init__()
        self.scopes = [root]
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []  # an id is a tensor's as long as it lives
        self.counts: dict[str, int] = {}
        self.nodes: list[bytes] = []

    def add(self, name: str, op: str, inputs: list[str], outputs: list[Any]) -> None:
        self.nodes.append(_node(name, op, inputs, [t.shape for t in outputs]))
        for t in outputs:
            self.names[id(t)] = name
            self.kept.append(t)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        path = str(func).rpartition("::")[2].split(".")
        op = path[1] if path[0] == "aten" else path[0]
        stem = "/".join([*self.scopes, op])
        number = self.counts[stem] = self.counts.get(stem, -1) + 1
        inputs = [self.names[id(t)] for t in tree_leaves((args, kwargs or {})) if isinstance(t, trt.Tensor) and id(t) in self.names]
        self.add(f"{stem}_{number}" if number else stem, f"aten::{op}", inputs, [t for t in tree_leaves(result) if isinstance(t, trt.Tensor)])
        return result


def graph_of(model: Any, inputs: Any, verbose: bool = False) -> bytes:
    """A GraphDef: parameters, inputs, operators, outputs, named by the path of modules."""
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    recorder = _Recorder(type(model).__name__)
    hooks = []
    paths = {module: path for path, module in model.named_modules() if path}
    for module, path in paths.items():
        hooks.append(module.register_forward_pre_hook(lambda m, a, path=path: recorder.scopes.append(path.rpartition(".")[2])))
        hooks.append(module.register_forward_hook(lambda m, a, out: recorder.scopes.pop() and None))
    for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
        recorder.add("/".join([recorder.scopes[0], *name.split(".")]), "Parameter", [], [parameter])
    for i, x in enumerate(t for t in tree_leaves(inputs) if isinstance(t, trt.Tensor)):
        recorder.add(f"input/input_{i}", "IO Node", [], [x])
    training = model.training
    try:
        with no_grad(), recorder:
            results = model(*inputs)
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    for i, t in enumerate(t for t in tree_leaves(results) if isinstance(t, trt.Tensor)):
        recorder.nodes.append(_node(f"output/output_{i}", "IO Node", [recorder.names[id(t)]] if id(t) in recorder.names else [], [t.shape]))
    if verbose:
        print(model)
    return b"".join(recorder.nodes) + data(4, integer(1, 22))

"""Recurrent functions: layers, directions and dropout around `_recurrent_layer`, the operator of one direction; cells are a layer of one step.

Gates are stacked in PyTorch's order: LSTM input, forget, cell, output; GRU reset, update, new.
"""

from __future__ import annotations

from tensorrt_lite._C.autograd.autocast import policy
from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.support import tensor_argument, tensor_list_argument
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_autograd = _LazyModule("tensorrt_lite.autograd")
_autocast = _LazyModule("tensorrt_lite.amp._state")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()

_TANH, _RELU, _LSTM, _GRU = range(4)  # RECURRENT_* in cysrc/ops/recurrent/steps.yaml
_MODES = {"rnn_tanh": _TANH, "rnn_relu": _RELU, "lstm": _LSTM, "gru": _GRU}
_GATES = {_TANH: 1, _RELU: 1, _LSTM: 4, _GRU: 3}
_INPUT = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_DATA = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


# ---- one direction by recorded operators --------------------------------------------------------------------------------


def _composed_step(mode: int, x: Any, state: tuple[Any, ...], w_hh: Any, b_hh: Any, w_hr: Any = None) -> tuple[Any, ...]:
    """One step: x is the projected input (N, gates * H), the result the next (hidden,) or (hidden, cell)."""
    projected = _ops.linear(state[0], w_hh, b_hh)
    if mode == _LSTM:
        i, f, g, o = (x + projected).chunk(4, -1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        return (hidden if w_hr is None else _ops.linear(hidden, w_hr), cell)
    if mode == _GRU:
        x_r, x_z, x_n = x.chunk(3, -1)
        h_r, h_z, h_n = projected.chunk(3, -1)
        new = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
        return ((state[0] - new) * (x_z + h_z).sigmoid() + new,)
    total = x + projected
    return (total.tanh() if mode == _TANH else total.relu(),)


def _parts(tensors: Sequence[Any], mode: int, biases: bool) -> tuple[Any, ...]:
    """(input, state, w_ih, w_hh, b_ih, b_hh, w_hr) of an operator's list."""
    n = 3 if mode == _LSTM else 2
    rest = list(tensors[n + 2 :])
    b_ih, b_hh = (rest.pop(0), rest.pop(0)) if biases else (None, None)
    return tensors[0], tuple(tensors[1:n]), tensors[n], tensors[n + 1], b_ih, b_hh, rest[0] if rest else None


def _composed_layer(tensors: Sequence[Any], batch_sizes: Sequence[int] | None, mode: int, reverse: bool, biases: bool) -> tuple[Any, ...]:
    """(output, last hidden state[, last cell]) as `_recurrent_layer` computes them."""
    sequence, state, w_ih, w_hh, b_ih, b_hh, w_hr = _parts(tensors, mode, biases)
    projected = _ops.linear(sequence, w_ih, b_ih)
    steps = projected.unbind(0) if batch_sizes is None else projected.split(list(batch_sizes))
    whole = state
    finished: list[tuple[Any, ...]] = []
    outputs = []
    if batch_sizes is not None and reverse:
        # the backward direction starts with the longest sequences alone; others join at their last element
        state = tuple(part[: batch_sizes[-1]] for part in whole)
    for x in reversed(steps) if reverse else steps:
        active, size = state[0].size(0), x.size(0)
        if size < active:
            finished.append(tuple(part[size:] for part in state))
            state = tuple(part[:size] for part in state)
        elif size > active:
            state = tuple(_ops.cat([part, all_[active:size]]) for part, all_ in zip(state, whole))
        state = _composed_step(mode, x, state, w_hh, b_hh, w_hr)
        outputs.append(state[0])
    if finished:
        # sequences ended shortest first, which are the last rows
        state = tuple(_ops.cat(list(parts)) for parts in zip(state, *reversed(finished)))
    if reverse:
        outputs.reverse()
    return (_ops.stack(outputs) if batch_sizes is None else _ops.cat(outputs), *state)


def _recurrent_layer_gradient(grads: Sequence[Any], tensors: Sequence[Any], wanted: Sequence[bool], batch_sizes: Any, mode: int, reverse: bool, biases: bool) -> list[Any]:
    """The gradients of `_recurrent_layer` as recorded operators, for derivatives of them: the layer composed once more, and differentiated."""
    recorded = is_grad_enabled()
    with _autograd.enable_grad():
        # views cut the layer off from what connects its operands above it
        inputs = [t.view_as(t) if w else t for t, w in zip(tensors, wanted)]
        results = _composed_layer(inputs, batch_sizes, mode, reverse, biases)
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None]
        found = iter(_autograd.grad([r for r, _ in pairs], [x for x, w in zip(inputs, wanted) if w], [g for _, g in pairs], create_graph=recorded, allow_unused=True))
    return [next(found) if w else None for w in wanted]


@policy(cpu="lower", cuda="lower")
def _lowered(*tensors: Any) -> tuple[Any, ...]:
    """What PyTorch's fused layers have under autocast."""
    return tensors


@policy(cuda="lower")
def _lowered_on_cuda(*tensors: Any) -> tuple[Any, ...]:
    """What PyTorch fuses on CUDA alone: on the CPU its products are in the lower precision, the rest is not."""
    return tensors


def _layer(tensors: Sequence[Any], batch_sizes: Any, mode: int, reverse: bool, biases: bool, by_parts: bool) -> tuple[Any, ...]:
    """(output, last hidden state[, last cell]) of one direction."""
    if by_parts:
        return _composed_layer(tensors, batch_sizes, mode, reverse, biases)
    return _ops._recurrent_layer(list(tensors), batch_sizes, mode, reverse, biases)[: 3 if mode == _LSTM else 2]


def _products_alone(x: Any) -> bool:
    """Whether autocast lowers the products of what is not fused there."""
    return x.device.type == "cpu" and _autocast.is_autocast_enabled("cpu")


# ---- layers -----------------------------------------------------------------------------------------------------------------


def _bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name: of the overload that its keywords name, or whose second argument fits."""
    packed = not kwargs.keys().isdisjoint(("data", "batch_sizes")) or (
        len(args) > 2 and isinstance(args[1], TensorBase) and (name == "lstm" or isinstance(args[2], TensorBase))
    )
    names = _DATA if packed else _INPUT
    if len(args) > len(names):
        raise TypeError(f"{name}() takes {len(names)} positional arguments but {len(args)} were given")
    given = dict(zip(names, args))
    for key, value in kwargs.items():
        if key not in names or key in given:
            raise TypeError(f"{name}() got {'multiple values for' if key in given else 'an unexpected keyword'} argument '{key}'")
        given[key] = value
    for key in names:
        if key not in given:
            raise TypeError(f"{name}() missing required argument: '{key}'")
    return given


def _cells(name: str, params: Any, has_biases: bool, projected: bool, count: int) -> list[list[Any]]:
    """The parameters of each layer and direction."""
    params = tensor_list_argument(params, name, "params")
    each = 2 + 2 * bool(has_biases) + projected
    if len(params) != each * count:
        raise RuntimeError("got an incorrect number of RNN parameters")
    return [params[i : i + each] for i in range(0, len(params), each)]


def _run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    mode = _MODES[name]
    given = _bound(name, args, kwargs)
    packed = "data" in given
    x = tensor_argument(given["data" if packed else "input"], name, "data" if packed else "input")
    if mode == _LSTM:
        states = tensor_list_argument(given["hx"], name, "hx")
        if len(states) != 2:
            raise RuntimeError("lstm expects two hidden states")
    else:
        states = [tensor_argument(given["hx"], name, "hx")]
    layers, directions = given["num_layers"], 2 if given["bidirectional"] else 1
    projected = mode == _LSTM and states[0].dim() == 3 and states[1].dim() == 3 and states[0].size(2) != states[1].size(2)
    cells = _cells(name, given["params"], given["has_biases"], projected, layers * directions)
    if any(s.dim() != 3 or s.size(0) != layers * directions for s in states):
        raise RuntimeError(f"{name}: expected states of 3 dimensions, the first of size {layers * directions}, got {[list(s.shape) for s in states]}")
    sizes = None
    if packed:
        sizes = [int(n) for n in tensor_argument(given["batch_sizes"], name, "batch_sizes").tolist()]
    elif x.dim() != 3:
        raise RuntimeError(f"{name}: expected an input of 3 dimensions, got {x.dim()}")
    last = not packed and given["batch_first"]
    if last:
        x = x.transpose(0, 1)
    if not packed and x.size(0) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    by_parts = mode != _LSTM and _products_alone(x)
    lowered = _lowered if mode == _LSTM else _lowered_on_cuda
    states = list(lowered(*states))
    final: list[Any] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            position = layer * directions + direction
            tensors = [x, *(s[position] for s in states), *cells[position]]
            output, *ends = _layer(tensors if by_parts else lowered(*tensors), sizes, mode, direction == 1, bool(given["has_biases"]), by_parts)
            outputs.append(output)
            final.append(ends)
        x = outputs[0] if directions == 1 else _ops.cat(outputs, -1)
        if given["dropout"] and given["train"] and layer < layers - 1:
            x = _ops.dropout(x, given["dropout"], True)
    if last:
        x = x.transpose(0, 1)
    return (x, *(_ops.stack(list(parts)) for parts in zip(*final)))


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(output, hidden states, cells)."""
    return _run("lstm", args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(output, hidden states)."""
    return _run("gru", args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(output, hidden states)."""
    return _run("rnn_tanh", args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(output, hidden states)."""
    return _run("rnn_relu", args, kwargs)


# ---- cells ------------------------------------------------------------------------------------------------------------------


def _cell(name: str, input: Any, states: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, ...]:
    mode = _MODES[name.removesuffix("_cell")]
    x = tensor_argument(input, name, "input")
    tensors = [x, *states, tensor_argument(w_ih, name, "w_ih"), tensor_argument(w_hh, name, "w_hh")]
    if x.dim() != 2 or any(s.dim() != 2 for s in states):
        raise RuntimeError(f"{name}: expected an input and states of 2 dimensions, got {[list(t.shape) for t in (x, *states)]}")
    hidden = w_hh.size(1)
    if x.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {w_ih.size(1)}")
    for i, s in enumerate(states):
        if s.size(0) != x.size(0):
            raise RuntimeError(f"Input batch size {x.size(0)} doesn't match hidden{i} batch size {s.size(0)}")
        if s.size(1) != hidden:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {s.size(1)}, expected {hidden}")
    for what, w in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if w.size(0) != _GATES[mode] * hidden:
            raise RuntimeError(f"{what} first dim must be {_GATES[mode]} * hidden_size = {_GATES[mode] * hidden}, but got {w.size(0)}")
    biases = b_ih is not None or b_hh is not None
    if biases:
        zero = None
        if b_ih is None or b_hh is None:
            zero = _ops.zeros(_GATES[mode] * hidden, dtype=w_hh.dtype, device=w_hh.device)
        tensors += [zero if b_ih is None else tensor_argument(b_ih, name, "b_ih"), zero if b_hh is None else tensor_argument(b_hh, name, "b_hh")]
    by_parts = _products_alone(x)
    tensors = list(_lowered_on_cuda(*tensors))
    tensors[0] = tensors[0].unsqueeze(0)
    return _layer(tensors, None, mode, False, biases, by_parts)[1:]


def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Tensor, Tensor]:
    """(hidden state, cell) after one step."""
    states = tensor_list_argument(hx, "lstm_cell", "hx")
    if len(states) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm_cell", input, states, w_ih, w_hh, b_ih, b_hh)


def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """The hidden state after one step."""
    return _cell("gru_cell", input, [tensor_argument(hx, "gru_cell", "hx")], w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """The hidden state after one step."""
    return _cell("rnn_tanh_cell", input, [tensor_argument(hx, "rnn_tanh_cell", "hx")], w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """The hidden state after one step."""
    return _cell("rnn_relu_cell", input, [tensor_argument(hx, "rnn_relu_cell", "hx")], w_ih, w_hh, b_ih, b_hh)[0]


EXPORTS = {"_recurrent_layer_gradient": ""}

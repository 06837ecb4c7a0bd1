"""Recurrent layers, composed from linear maps and elementwise operators.

A layer projects its whole input sequence in one product; only the product with the hidden state runs step by step.
Gates are stacked in PyTorch's order: LSTM input, forget, cell, output; GRU reset, update, new.
"""

from __future__ import annotations

import math
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite._C.autograd.autocast import policy as autocast_policy

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _rnn_step(mode: str, x: Any, state: tuple[Any, ...], w_hh: Any, b_hh: Any, w_hr: Any = None) -> tuple[Any, ...]:
    """One step: x is the projected input (N, gates * H), the result the next (hidden,) or (hidden, cell)."""
    projected = F.linear(state[0], w_hh, b_hh)
    if mode == "LSTM":
        i, f, g, o = (x + projected).chunk(4, -1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        return (hidden if w_hr is None else F.linear(hidden, w_hr), cell)
    if mode == "GRU":
        x_r, x_z, x_n = x.chunk(3, -1)
        h_r, h_z, h_n = projected.chunk(3, -1)
        reset = (x_r + h_r).sigmoid()
        update = (x_z + h_z).sigmoid()
        new = (x_n + reset * h_n).tanh()
        return ((state[0] - new) * update + new,)
    total = x + projected
    return (total.tanh() if mode == "RNN_TANH" else total.relu(),)


@autocast_policy(cpu="lower", cuda="lower")
def _lower_state(*state: Any) -> tuple[Any, ...]:
    """The initial state as PyTorch's fused LSTM has it under autocast: the lower precision, in which the loop then stays."""
    return state


@autocast_policy(cuda="lower")
def _lower_state_on_cuda(*state: Any) -> tuple[Any, ...]:
    """The same for layers that are fused on CUDA alone."""
    return state


class RNNBase(Module):
    """Parameters, checks and the layer loop of RNN, LSTM and GRU.

    input: (L, N, input_size), (N, L, input_size) with batch_first, or (L, input_size); the output has
    hidden_size (or proj_size) features per direction. The hidden state is (layers * directions, N, hidden_size).
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            import warnings

            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _GATES[mode] * hidden_size
        width = proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            fan = input_size if layer == 0 else width * self._directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, fan), "weight_hh": (rows, width)}
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (rows,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(trt.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Kept for PyTorch programs: weights need no packing here."""

    def reset_parameters(self) -> None:
        """Draws every parameter from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Any, batch_sizes: Any = None) -> None:
        """Raises when the input's rank or width is wrong."""
        if input.dim() not in (2, 3):
            raise ValueError(f"{self.mode}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def check_hidden_size(
        self, hx: Any, expected: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises RuntimeError unless hx has the expected shape."""
        if tuple(hx.shape) != expected:
            raise RuntimeError(msg.format(expected, list(hx.shape)))

    def _initial_state(self, input: Any, hx: Any, batched: bool, batch: int) -> tuple[Any, ...]:
        """The given state checked, or zeros: (hidden,) or (hidden, cell), each (layers * directions, N, width)."""
        widths = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            widths.append(self.hidden_size)
        count = self.num_layers * self._directions
        if hx is None:
            return tuple(trt.zeros(count, batch, w, dtype=input.dtype, device=input.device) for w in widths)
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        rank = 3 if batched else 2
        kind = f"batched {rank}-D" if batched else f"unbatched {rank}-D"
        if any(state.dim() != rank for state in states):
            if self.mode == "LSTM":
                raise RuntimeError(
                    f"For {kind} input, hx and cx should also be {rank}-D but got ({states[0].dim()}-D, "
                    f"{states[1].dim()}-D) tensors"
                )
            raise RuntimeError(f"For {kind} input, hx should also be {rank}-D but got {states[0].dim()}-D tensor")
        if not batched:
            states = tuple(state.unsqueeze(1) for state in states)
        names = ("hidden[0]", "hidden[1]") if self.mode == "LSTM" else ("hidden",)
        for name, state, width in zip(names, states, widths, strict=True):
            self.check_hidden_size(state, (count, batch, width), f"Expected {name} size {{}}, got {{}}")
        return states

    def _run_direction(
        self, sequence: Any, sizes: list[int] | None, state: tuple[Any, ...], weights: list[Any], reverse: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """The outputs of one layer in one direction, laid out like its input, and its last state.

        sequence: (L, N, features), or packed (sum of lengths, features) with the batch size of each step in `sizes`.
        """
        w_ih, w_hh = weights[0], weights[1]
        b_ih, b_hh = (weights[2], weights[3]) if self.bias else (None, None)
        w_hr = weights[-1] if self.proj_size else None
        projected = F.linear(sequence, w_ih, b_ih)
        steps = projected.unbind(0) if sizes is None else projected.split(sizes)
        whole = state
        finished: list[tuple[Any, ...]] = []
        outputs = []
        if sizes is not None and reverse:
            # The backward direction starts with the longest sequences alone; others join at their last element.
            state = tuple(part[: sizes[-1]] for part in whole)
        for x in reversed(steps) if reverse else steps:
            active, size = state[0].size(0), x.size(0)
            if size < active:
                finished.append(tuple(part[size:] for part in state))
                state = tuple(part[:size] for part in state)
            elif size > active:
                state = tuple(trt.cat([part, all_[active:size]]) for part, all_ in zip(state, whole, strict=True))
            state = _rnn_step(self.mode, x, state, w_hh, b_hh, w_hr)
            outputs.append(state[0])
        if finished:
            # Sequences ended shortest first, which are the last rows.
            state = tuple(trt.cat(parts) for parts in zip(state, *reversed(finished), strict=True))
        if reverse:
            outputs.reverse()
        return trt.stack(outputs) if sizes is None else trt.cat(outputs), state

    def _run_layers(
        self, sequence: Any, sizes: list[int] | None, initial: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """The outputs of the last layer and the last states of all layers and directions, stacked."""
        weights = self.all_weights
        final: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                position = layer * self._directions + direction
                state = tuple(part[position] for part in initial)
                output, state = self._run_direction(sequence, sizes, state, weights[position], direction == 1)
                outputs.append(output)
                final.append(state)
            sequence = outputs[0] if len(outputs) == 1 else trt.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                sequence = F.dropout(sequence, self.dropout, True)
        return sequence, tuple(trt.stack(parts) for parts in zip(*final, strict=True))

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(output, last hidden state); the hidden state of an LSTM is the pair (hidden, cell).

        A PackedSequence yields a PackedSequence.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self.check_input(input)
        batched = input.dim() == 3
        sequence = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            sequence = sequence.transpose(0, 1)
        if sequence.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        initial = self._initial_state(sequence, hx, batched, sequence.size(1))
        initial = (_lower_state if self.mode == "LSTM" else _lower_state_on_cuda)(*initial)
        sequence, last = self._run_layers(sequence, None, initial)
        if not batched:
            sequence = sequence.squeeze(1)
            last = tuple(part.squeeze(1) for part in last)
        elif self.batch_first:
            sequence = sequence.transpose(0, 1)
        return sequence, last if self.mode == "LSTM" else last[0]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, inverse = packed
        if data.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.size(-1)}"
            )
        sizes = [int(size) for size in batch_sizes.tolist()]
        initial = self._initial_state(data, hx, True, sizes[0])
        if hx is not None and order is not None:
            initial = tuple(part.index_select(1, order) for part in initial)
        initial = _lower_state_on_cuda(*initial)
        output, last = self._run_layers(data, sizes, initial)
        if inverse is not None:
            last = tuple(part.index_select(1, inverse) for part in last)
        return PackedSequence(output, batch_sizes, order, inverse), last if self.mode == "LSTM" else last[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with optional projection of the hidden state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


class GRU(RNNBase):
    """Gated recurrent unit (Cho et al. 2014), reset gate after the hidden product."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )


class RNNCellBase(Module):
    """One step of a recurrent layer: weights (gates * H, input_size) and (gates * H, H)."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(trt.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(trt.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(trt.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every parameter from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text + (f", nonlinearity={nonlinearity}" if nonlinearity != "tanh" else "")

    def _step(self, mode: str, input: Any, state: tuple[Any, ...] | None) -> tuple[Any, ...]:
        """One step for input (N, input_size) or (input_size); a missing state is zero."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for position, part in enumerate(state or ()):
            if part.dim() not in (1, 2):
                which = f"hx[{position}]" if mode == "LSTM" else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {part.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if x.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}")
        if state is None:
            count = 2 if mode == "LSTM" else 1
            zeros = trt.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
            state = (zeros,) * count
        elif not batched:
            state = tuple(part.unsqueeze(0) for part in state)
        for part in state:
            if part.size(0) != x.size(0):
                raise RuntimeError(f"Input batch size {x.size(0)} doesn't match hidden batch size {part.size(0)}")
            if part.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden has inconsistent hidden_size: got {part.size(1)}, expected {self.hidden_size}"
                )
        projected = F.linear(x, self.weight_ih, self.bias_ih)
        result = _rnn_step(mode, projected, state, self.weight_hh, self.bias_hh)
        return result if batched else tuple(part.squeeze(0) for part in result)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu. input: (N, input_size), hidden: (N, hidden_size)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One LSTM step. input: (N, input_size), hx: (hidden, cell), each (N, hidden_size)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step("LSTM", input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One GRU step. input: (N, input_size), hidden: (N, hidden_size)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step("GRU", input, None if hx is None else (hx,))[0]

"""Recurrent layers and cells: parameters and checks around the operators lstm, gru, rnn_tanh and rnn_relu.

Gates are stacked in PyTorch's order: LSTM input, forget, cell, output; GRU reset, update, new.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core.hints import hinted

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

_amp_state = LazyModule("tensorrt_lite.amp._state")

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """Parameters, checks and the layer loop of RNN, LSTM and GRU.

    input: (L, N, input_size), (N, L, input_size) with batch_first, or (L, input_size); the output has
    hidden_size (or proj_size) features per direction. The hidden state is (layers * directions, N, hidden_size).

    Parameters:
        mode (str): 'LSTM', 'GRU', 'RNN_TANH' or 'RNN_RELU'
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        num_layers (int, default 1): how many layers; each but the first takes the output of the one before
        bias (bool, default True): whether there is a bias, which is learned
        batch_first (bool, default False): whether input and output are (N, L, features), not (L, N, features); the
            hidden state is the same
        dropout (float, default 0.0): the probability that an element between two layers is dropped in training
        bidirectional (bool, default False): whether a second direction runs from the end; the output has the features
            of both
        proj_size (int, default 0): the number of features of the projected hidden state; 0 has no projection
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> gru = trt.nn.RNNBase("GRU", input_size=10, hidden_size=20)
    >>> [(name, tuple(p.shape)) for name, p in gru.named_parameters()]
    [('weight_ih_l0', (60, 10)), ('weight_hh_l0', (60, 20)), ('bias_ih_l0', (60,)), ('bias_hh_l0', (60,))]
    >>> isinstance(trt.nn.LSTM(10, 20), trt.nn.RNNBase)
    True
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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # PyTorch's instances hold their weights twice
        for name in ("_flat_weights", "_flat_weights_names"):
            self.__dict__.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        given = self.__dict__.get("_given_weights")
        if given is not None and name in self._flat_weights_names:
            given[self._flat_weights_names.index(name)] = value
        super().__setattr__(name, value)

    @property
    def _flat_weights_names(self) -> list[str]:
        """The parameters' names in the order of `_flat_weights`."""
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """The tensors that `forward` computes with, None for one that was deleted. Assigning a list replaces them until one of the parameters is set."""
        given = self.__dict__.get("_given_weights")
        return list(given) if given is not None else [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: Any) -> None:
        self.__dict__["_given_weights"] = list(weights)

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
        """Raises when the input's dtype, rank or width is wrong."""
        self._check_dtype(input)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self.mode}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise hinted(
                "recurrent size", RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")
            )

    def _check_dtype(self, input: Any) -> None:
        """Raises ValueError unless the input has the weights' dtype, or autocast casts both."""
        if input.is_nested:
            raise RuntimeError(f"{self.mode}: expected a dense or packed sequence, got a nested tensor: pad it (input.to_padded_tensor(0)), or nn.utils.rnn.pack_sequence")
        kind = self.weight_ih_l0.dtype
        if input.dtype != kind and not any(map(_amp_state.is_autocast_enabled, ("cpu", "cuda"))):
            raise hinted("dtypes", ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert input: input.to({kind}), or convert model: model.to({input.dtype})"
            ))

    def check_hidden_size(
        self, hx: Any, expected: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises RuntimeError unless hx has the expected shape."""
        if tuple(hx.shape) != expected:
            raise RuntimeError(msg.format(expected, list(hx.shape)))

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the hidden state for a batch: (layers * directions, N, width). input: as in `forward`, or a packed sequence's data with its batch_sizes."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def _expected_size(self, input: Any, batch_sizes: Any, width: int) -> tuple[int, int, int]:
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * self._directions, batch, width

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raises unless input and hidden state have the shapes that `forward` takes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The hidden state with its sequences in the order of a permutation; itself for None."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _initial_state(self, input: Any, hx: Any, batched: bool, batch: int) -> tuple[Any, ...]:
        """The given state checked, or zeros: (hidden,) or (hidden, cell), each (layers * directions, N, width)."""
        widths = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            widths.append(self.hidden_size)
        count = self.num_layers * self._directions
        if hx is None:
            return tuple(trt.zeros(count, batch, w, dtype=input.dtype, device=input.device) for w in widths)
        if self.mode == "LSTM":
            hx = (hx[0], hx[1], *hx[2:])  # IndexError for a single state
        states = hx if self.mode == "LSTM" else (hx,)
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

    def _operator(self) -> Any:
        return getattr(trt, self.mode.lower())

    def _arguments(self, states: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the operator takes behind its input, as far as batch_first."""
        hx = list(states) if self.mode == "LSTM" else states[0]
        given = self.__dict__.get("_given_weights")
        weights = [weight for weights in self.all_weights for weight in weights] if given is None else given
        return hx, weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(output, last hidden state); the hidden state of an LSTM is the pair (hidden, cell).

        A PackedSequence yields a PackedSequence.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self.check_input(input)
        batched = input.dim() == 3
        sequence = input if batched else input.unsqueeze(1)
        batch_first = batched and self.batch_first
        states = self._initial_state(sequence, hx, batched, sequence.size(0 if batch_first else 1))
        output, *last = self._operator()(sequence, *self._arguments(states), batch_first)
        if not batched:
            output = output.squeeze(1)
            last = [part.squeeze(1) for part in last]
        return output, tuple(last) if self.mode == "LSTM" else last[0]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, inverse = packed
        if self.mode != "LSTM":  # whose operator refuses it
            self._check_dtype(data)
        if data.size(-1) != self.input_size:
            raise hinted(
                "recurrent size", RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.size(-1)}")
            )
        states = self._initial_state(data, hx, True, int(batch_sizes[0]))
        if hx is not None and order is not None:
            states = tuple(part.index_select(1, order) for part in states)
        output, *last = self._operator()(data, batch_sizes, *self._arguments(states))
        if inverse is not None:
            last = [part.index_select(1, inverse) for part in last]
        return PackedSequence(output, batch_sizes, order, inverse), tuple(last) if self.mode == "LSTM" else last[0]

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
    """Runs h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, over sequences.

    input: (L, N, D), (N, L, D) with batch_first, (L, D) for one sequence, or a PackedSequence.
    hx: the first hidden state, (layers * directions, N, H); zeros without it; without N for one sequence.
    Returns (output, h): output: (L, N, directions * H), (N, L, directions * H) with batch_first, of the last layer; h: as hx, behind the last step.

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        num_layers (int, default 1): how many layers; each but the first takes the output of the one before
        nonlinearity (str, default 'tanh'): 'tanh' or 'relu'
        bias (bool, default True): whether there is a bias, which is learned
        batch_first (bool, default False): whether input and output are (N, L, features), not (L, N, features); the
            hidden state is the same
        dropout (float, default 0.0): the probability that an element between two layers is dropped in training
        bidirectional (bool, default False): whether a second direction runs from the end; the output has the features
            of both
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        proj_size (int or None, default None): not supported; must be None

    >>> import tensorrt_lite as trt
    >>> rnn = trt.nn.RNN(input_size=10, hidden_size=20, nonlinearity="relu", batch_first=True)
    >>> output, hidden = rnn(trt.randn(3, 7, 10))
    >>> output.shape, hidden.shape
    (torch.Size([3, 7, 20]), torch.Size([1, 3, 20]))
    >>> trt.equal(output[:, -1], hidden[0])
    True
    """

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
        *,
        proj_size: int | None = None,
    ) -> None:
        if proj_size is not None:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
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
    """Runs a long short-term memory (Hochreiter and Schmidhuber 1997) over sequences.

    input: (L, N, D), (N, L, D) with batch_first, (L, D) for one sequence, or a PackedSequence.
    hx: the first hidden and cell state, (h, c); zeros without it. h: (layers * directions, N, P), c: (layers * directions, N, H); without N for one sequence.
    Returns (output, (h, c)): output: (L, N, directions * P), (N, L, directions * P) with batch_first, of the last layer; h and c behind the last step.
    Weights of each layer: weight_ih_l0: (4 H, D), weight_hh_l0: (4 H, P), bias_ih_l0 and bias_hh_l0: (4 H), weight_hr_l0: (P, H) with proj_size; gates in the
    order input, forget, cell, output.

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        num_layers (int, default 1): how many layers; each but the first takes the output of the one before
        bias (bool, default True): whether there is a bias, which is learned
        batch_first (bool, default False): whether input and output are (N, L, features), not (L, N, features); the
            hidden state is the same
        dropout (float, default 0.0): the probability that an element between two layers is dropped in training
        bidirectional (bool, default False): whether a second direction runs from the end; the output has the features
            of both
        proj_size (int, default 0): P, the number of features of the projected hidden state, less than H; 0 has no
            projection, and P is H
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> lstm = trt.nn.LSTM(input_size=10, hidden_size=20, num_layers=2, batch_first=True)
    >>> output, (hidden, cell) = lstm(trt.randn(3, 7, 10))  # three sequences of seven steps
    >>> output.shape, hidden.shape, cell.shape
    (torch.Size([3, 7, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))
    """

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

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the cell state for a batch: (layers * directions, N, hidden_size)."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raises unless input, hidden and cell state have the shapes that `forward` takes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Hidden and cell state with their sequences in the order of a permutation; themselves for None."""
        return hx if permutation is None else tuple(t.index_select(1, permutation) for t in hx)


class GRU(RNNBase):
    """Runs a gated recurrent unit (Cho et al. 2014) over sequences; the reset gate acts behind the hidden product.

    input: (L, N, D), (N, L, D) with batch_first, (L, D) for one sequence, or a PackedSequence.
    hx: the first hidden state, (layers * directions, N, H); zeros without it; without N for one sequence.
    Returns (output, h): output: (L, N, directions * H), (N, L, directions * H) with batch_first, of the last layer; h: as hx, behind the last step.
    Weights of each layer: weight_ih_l0: (3 H, D), weight_hh_l0: (3 H, H), bias_ih_l0 and bias_hh_l0: (3 H); gates in the order reset, update, new.

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        num_layers (int, default 1): how many layers; each but the first takes the output of the one before
        bias (bool, default True): whether there is a bias, which is learned
        batch_first (bool, default False): whether input and output are (N, L, features), not (L, N, features); the
            hidden state is the same
        dropout (float, default 0.0): the probability that an element between two layers is dropped in training
        bidirectional (bool, default False): whether a second direction runs from the end; the output has the features
            of both
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        proj_size (int or None, default None): not supported; must be None

    >>> import tensorrt_lite as trt
    >>> gru = trt.nn.GRU(input_size=10, hidden_size=20, bidirectional=True)
    >>> output, hidden = gru(trt.randn(7, 3, 10))  # seven steps of three sequences
    >>> output.shape, hidden.shape
    (torch.Size([7, 3, 40]), torch.Size([2, 3, 20]))
    """

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
        *,
        proj_size: int | None = None,
    ) -> None:
        if proj_size is not None:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
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
    """One step of a recurrent layer: weights (gates * H, input_size) and (gates * H, H).

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        bias (bool): whether there is a bias, which is learned
        num_chunks (int): how many gates
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> cell = trt.nn.RNNCellBase(input_size=10, hidden_size=20, bias=True, num_chunks=4)
    >>> [(name, tuple(p.shape)) for name, p in cell.named_parameters()]
    [('weight_ih', (80, 10)), ('weight_hh', (80, 20)), ('bias_ih', (80,)), ('bias_hh', (80,))]
    """

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
        hx = list(state) if mode == "LSTM" else state[0]
        cell = getattr(trt, f"{mode.lower()}_cell")
        result = cell(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        result = result if mode == "LSTM" else (result,)
        return result if batched else tuple(part.squeeze(0) for part in result)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu. input: (N, input_size), hidden: (N, hidden_size).

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        bias (bool, default True): whether there is a bias, which is learned
        nonlinearity (str, default 'tanh'): 'tanh' or 'relu'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> cell = trt.nn.RNNCell(input_size=10, hidden_size=20)
    >>> hidden = cell(trt.randn(3, 10))
    >>> cell(trt.randn(3, 10), hidden).shape
    torch.Size([3, 20])
    """

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
    """One LSTM step. input: (N, input_size), hx: (hidden, cell), each (N, hidden_size).

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        bias (bool, default True): whether there is a bias, which is learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> lstm, state = trt.nn.LSTMCell(input_size=10, hidden_size=20), None
    >>> for x in trt.randn(7, 3, 10):
    ...     state = lstm(x, state)
    >>> hidden, cell = state
    >>> hidden.shape, cell.shape
    (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step("LSTM", input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One GRU step. input: (N, input_size), hidden: (N, hidden_size).

    Parameters:
        input_size (int): D, the number of features of the input
        hidden_size (int): H, the number of features of the hidden state
        bias (bool, default True): whether there is a bias, which is learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> cell, hidden = trt.nn.GRUCell(input_size=10, hidden_size=20), trt.zeros(3, 20)
    >>> for x in trt.randn(7, 3, 10):
    ...     hidden = cell(x, hidden)
    >>> hidden.shape
    torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step("GRU", input, None if hx is None else (hx,))[0]

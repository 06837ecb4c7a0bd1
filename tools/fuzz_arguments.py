"""What tools/fuzz.py hands to operators: tensors of every layout, numbers at the edges, whatever does not belong.

A program (one to four calls) draws everything from one random state and shares a pool of tensors: an argument may be an
earlier one, a view of it or of its storage. Half of the programs take all sizes from one or two numbers, so that
shapes fit each other; otherwise most calls would end at the first check.
"""

from __future__ import annotations

import random
import re
import warnings
from typing import Any, Callable

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "float8_e4m3fn", "float8_e8m0fnu", "complex32", "uint16", "uint64"]
SHAPES: list[tuple[int, ...]] = [
    (), (0,), (1,), (2,), (3,), (17,), (2, 3), (3, 2), (3, 3), (1, 3), (3, 1), (2, 0), (0, 3), (4, 4), (2, 3, 4), (2, 4, 3), (3, 1, 5), (2, 0, 3),
    (1, 2, 5, 5), (2, 3, 5, 5), (2, 2, 3, 3), (2, 1, 4, 6), (1, 2, 4, 4, 4), (2, 2, 3, 3, 3), (1, 1, 1, 1, 1, 1), (300,), (40, 30), (1, 1, 70, 9),
    (1, 2, 1, 2, 1, 2, 1, 2, 1, 2), (4099,), (3, 5, 300), (300, 33),
]  # fmt: skip
HUGE_EMPTY = [(0, 2**62), (2**31, 0, 2**33), (0, 2**40, 2**40), (2**62, 2**62, 0), (2**63 - 1, 0)]
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 4, 5, 7, 16, -7, 100, 1000, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 0.1, 2.5, -3.7, 1e-8, 1e8, 1e38, 1e300, -1e300, 1e-320, float("inf"), float("-inf"), float("nan")]
LAYOUTS = ["plain", "plain", "plain", "transposed", "strided", "offset", "expanded", "channels_last"]


class Number:
    """A number by protocol; what it answers with changes from one question to the next."""

    def __init__(self) -> None:
        self.asked = 0

    def __index__(self) -> int:
        self.asked += 1
        return self.asked

    def __float__(self) -> float:
        return 1.5


class Lying:
    """Compares and calculates as suits it; where a check believes that, the kernel gets what was not checked."""

    def __lt__(self, other: Any) -> bool:
        return False

    def __add__(self, other: Any) -> int:
        return -(1 << 40)

    __le__ = __gt__ = __ge__ = __lt__
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __neg__ = __abs__ = __add__  # type: ignore[assignment]


class LyingIndex(Lying):
    def __index__(self) -> int:
        return 3


class LyingInt(int):
    """An int whose value is not what its comparisons say."""

    __lt__ = __le__ = __gt__ = __ge__ = Lying.__lt__  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __mod__ = __floordiv__ = __neg__ = Lying.__add__  # type: ignore[assignment]


class Meddling:
    """A number that changes a tensor of the program while an operator converts its arguments."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments, self.answer = arguments, arguments.draw.choice([0, 1, 2, -1])

    def __index__(self) -> int:
        self.arguments.meddle()
        return self.answer

    def __float__(self) -> float:
        return float(self.__index__())


class Refusing:
    """Every protocol that an argument's conversion may ask for raises."""

    def __index__(self) -> int:
        raise ValueError("no index")

    __float__ = __int__ = __bool__ = __len__ = __iter__ = __array__ = __dlpack__ = __index__

    @property
    def __array_interface__(self) -> Any:
        raise ValueError("no interface")


class Overriding:
    """An object with a __torch_function__ that does not do what it should."""

    def __init__(self, what: int) -> None:
        self.what = what

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [a.what for a in args if isinstance(a, cls)] or [0]
        if found[0] == 0:
            return NotImplemented
        if found[0] == 1:
            raise RuntimeError("refused")
        return {"not": "a tensor"} if found[0] == 2 else function


def failing(*values: object) -> None:
    """A function for an operator that takes one."""
    raise RuntimeError("the function that was passed failed")


class Arguments:
    """Draws arguments from one random state."""

    always: frozenset[str] = frozenset()  # optional arguments that every call is given
    meddling = 0.25  # how many warnings change a tensor

    def __init__(self, trt: Any, draw: random.Random) -> None:
        self.trt, self.draw = trt, draw
        self.pool: list[Any] = []
        kind = draw.random()
        self.sizes = [] if kind < 0.3 else draw.sample([1, 2, 3, 4, 5, 8, 0], 1 if kind < 0.7 else 2)
        self.dtype_of_most = draw.choice(["float32", "float32", "float64", "int64", draw.choice(DTYPES)])

    # ---- tensors

    def tensor(self, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Any:
        draw = self.draw
        if self.pool and shape is None and (dtype is None or draw.random() < 0.1) and draw.random() < 0.2:
            return self.related(draw.choice(self.pool))
        made = self.fresh(dtype or (self.dtype_of_most if draw.random() < 0.8 else draw.choice(DTYPES)), self.shape() if shape is None else shape)
        self.pool.append(made)
        return made

    def shape(self) -> tuple[int, ...]:
        draw = self.draw
        if self.sizes and draw.random() < 0.9:
            return tuple(draw.choice(self.sizes) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5])))
        return draw.choice(HUGE_EMPTY) if draw.random() < 0.03 else draw.choice(SHAPES)

    def fresh(self, dtype: str, shape: tuple[int, ...]) -> Any:
        draw = self.draw
        kind = draw.choice(LAYOUTS)
        made = self.laid_out(kind, self.values(dtype, self.storage_shape(kind, shape)), shape)
        what = draw.random()
        if what < 0.015:
            made = made.to("meta")
        elif what < 0.02:
            made.untyped_storage().resize_(draw.choice([0, 1, 7, 64]))
        elif what < 0.03 and made.is_complex():
            made = made.conj()
        elif what < 0.04:
            with self.trt.inference_mode():
                made = made.clone()
        if made.is_floating_point() and made.itemsize > 1 and not made.is_inference() and draw.random() < 0.3:
            made.requires_grad_()
            if draw.random() < 0.5:
                made = made * 1
        return made

    def storage_shape(self, kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        if max(shape, default=0) > 10**6:
            return shape
        if kind == "transposed":
            return shape[::-1]
        if kind == "strided" and shape:
            return (*shape[:-1], 2 * shape[-1])
        if kind == "offset" and shape:
            return (shape[0] + 1, *shape[1:])
        if kind == "expanded" and shape:
            return (1, *shape[1:])
        return shape

    def laid_out(self, kind: str, made: Any, shape: tuple[int, ...]) -> Any:
        if max(shape, default=0) > 10**6:
            return made
        if kind == "transposed":
            return made.permute(tuple(range(made.dim()))[::-1])
        if kind == "strided" and shape:
            return made[..., ::2]
        if kind == "offset" and shape:
            return made[1:]
        if kind == "expanded" and shape:
            return made.expand(shape)
        if kind == "channels_last" and len(shape) == 4:
            return made.contiguous(memory_format=self.trt.channels_last)
        return made

    def values(self, dtype: str, shape: tuple[int, ...]) -> Any:
        trt, draw = self.trt, self.draw
        wanted = getattr(trt, dtype)
        kind = draw.random()
        if dtype == "bool":
            return trt.rand(shape) > 0.5
        if "int" in dtype:
            top = max(1, *self.sizes) if self.sizes and draw.random() < 0.7 else 3
            low, high = (0, top) if kind < 0.6 else (0, 100) if dtype == "uint8" or kind < 0.7 else (-100, 100) if kind < 0.9 else (-(2**63), 2**63 - 1)
            return trt.randint(low, high, shape).to(wanted)
        made = trt.randn(shape, dtype=trt.float64)
        if kind > 0.7:
            made = made * draw.choice([0.0, 1e-30, 1e30, 1e200, float("inf"), float("nan")])
        elif kind > 0.5:
            made = made.abs()
        return made.to(wanted)

    def related(self, t: Any) -> Any:
        """A tensor of the pool, or one that shares its memory."""
        draw, trt = self.draw, self.trt
        kind = draw.random()
        try:
            if kind < 0.35:
                return t
            if kind < 0.5:
                return t[self.index()]
            if kind < 0.6:
                return t.detach().as_strided(self.shape(), [draw.choice([0, 1, 1, 2, 3]) for _ in self.shape()], draw.choice([None, 0, 1, 2]))
            if kind < 0.7:
                return t.detach().view(self.dtype())
            if kind < 0.8:
                return t.transpose(0, -1)
            if kind < 0.85:
                return t.detach().flatten()
            if kind < 0.9:
                return trt.from_numpy(t.detach().numpy()) if t.dtype is not trt.bfloat16 else t
            if kind < 0.95:
                return t.unfold(0, 1, 1)
            return t.expand(3, *t.shape)
        except Exception:
            return t

    def tensors(self) -> Any:
        draw = self.draw
        if draw.random() < 0.5:
            shape = self.shape()
            made = [self.tensor(self.dtype_of_most, shape) for _ in range(draw.choice([0, 1, 2, 2, 3]))]
        else:
            made = [self.tensor() for _ in range(draw.choice([0, 1, 2, 2, 3]))]
        return tuple(made) if draw.random() < 0.3 else made

    def meddle(self) -> None:
        """Give some tensor of the program another geometry or other memory."""
        draw, trt = self.draw, self.trt
        if not self.pool:
            return
        t = draw.choice(self.pool)
        try:
            with trt.no_grad():
                kind = draw.randrange(7)
                if kind == 0:
                    t.detach().set_()
                    t.data = trt.zeros(draw.choice([0, 1, 3]), dtype=t.dtype)
                elif kind == 1:
                    t.resize_(draw.choice([(0,), (1,), (2, 2), (5, 1, 1, 1, 1, 1, 1, 1, 1, 1), (3000,)]))
                elif kind == 2:
                    t.untyped_storage().resize_(draw.choice([0, 8, 4096]))
                elif kind == 3:
                    t.data = trt.zeros(2, 2, dtype=draw.choice([trt.float32, trt.complex128, trt.uint8]))
                elif kind == 4:
                    t.transpose_(0, -1)
                elif kind == 5:
                    t.data = t.data.expand(3, *t.shape) if draw.random() < 0.5 else trt.ones(t.shape, dtype=t.dtype) if t.is_meta else t.data.to("meta")
                else:
                    t.fill_(draw.choice([0, 1, 100, -1]))
        except Exception:
            pass

    # ---- numbers

    def integer(self) -> Any:
        draw = self.draw
        kind = draw.random()
        if kind < 0.01:
            return draw.choice([Meddling(self), Meddling(self), Lying(), LyingIndex(), LyingInt(draw.choice([3, 2**40, -(2**40)]))])
        if kind < 0.5:
            return draw.choice([0, 1, 1, 2, -1, *self.sizes])
        return draw.choice(INTEGERS[:10] if kind < 0.85 else INTEGERS)

    def number(self) -> Any:
        return self.draw.choice([self.integer, lambda: self.draw.choice(FLOATS), lambda: self.draw.choice([True, False, 1j, 2.0 - 1j])])()

    def integers(self) -> Any:
        draw = self.draw
        if draw.random() < 0.4:
            values: list[Any] = list(self.shape())
        else:
            values = [self.integer() for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7]))]
        return draw.choice([tuple, list, self.trt.Size if all(type(v) is int and abs(v) < 2**63 for v in values) else tuple])(values)

    def dtype(self) -> Any:
        return getattr(self.trt, self.draw.choice(DTYPES))

    def index(self) -> Any:
        draw = self.draw
        if draw.random() < 0.3:
            return tuple(self.index() for _ in range(draw.choice([0, 1, 2, 3])))
        return draw.choice(
            [
                self.integer,
                lambda: slice(*(draw.choice([None, self.integer()]) for _ in range(3))),
                lambda: None,
                lambda: Ellipsis,
                lambda: self.tensor("int64"),
                lambda: self.tensor("bool"),
                lambda: draw.choice([True, False]),
                lambda: [0, 1, -1],
            ]
        )()

    def anything(self) -> Any:
        """Whatever the operator does not expect."""
        trt, draw = self.trt, self.draw
        return draw.choice(
            [
                self.tensor, self.number, self.integers, self.dtype, self.index, lambda: None, lambda: "sum", lambda: "\x00\ud800", object, dict,
                self.tensors, lambda: [[1, 2], [3]], lambda: b"bytes", lambda: trt.device("cpu"), Number, Refusing, Lying, LyingIndex, lambda: [Number(), Refusing()], lambda: Meddling(self),
                lambda: [1, Meddling(self), Meddling(self)],
                lambda: trt.device("meta"), lambda: "cuda", lambda: trt.strided, lambda: trt.channels_last, lambda: {1: 2}, lambda: failing,
                lambda: range(3), lambda: trt.Generator(), lambda: type, lambda: self.tensor().to("meta"), lambda: float("nan"), lambda: 10**400,
                lambda: [None, 1], lambda: [1.5, "x"], lambda: trt.nn.Parameter(trt.ones(2)), lambda: Ellipsis, lambda: Overriding(draw.randrange(4)),
                lambda: trt.frombuffer(bytearray(65), dtype=trt.float32, offset=1), lambda: self.tensor().untyped_storage(),
                lambda: [[[]] * 3] * 2, lambda: iter([1, 2]), lambda: trt.Tensor.__new__(trt.Tensor),
            ]
        )()  # fmt: skip

    def named(self, name: str) -> Any:
        """A likely value of a parameter of this name; one in ten is of any kind."""
        draw = self.draw
        if draw.random() < 0.1:
            return self.anything()
        for pattern, make in RULES:
            if re.fullmatch(pattern, name):
                return make(self)
        return draw.choice([self.tensor, self.number, self.integers, self.anything])()


def _spatial(a: Arguments) -> Any:
    """A kernel size, a stride, a padding: mostly small."""
    small = a.draw.choice([0, 1, 1, 1, 2, 2, 3])
    return a.draw.choice([small, small, [small] * a.draw.choice([1, 2, 3]), a.integers(), a.integer()])


TENSOR_NAMES = (
    r"input\d?|self|other|x\d?|y|mat\d?|vec\d?|batch\d|grad.*|a|b|tensor\d?|src|source|values|sorted_sequence|query|key_|value_|anchor|positive|negative|abs|angle|"
    r"real|imag|log_probs|noise|var|grid|theta|boundaries|A|B|end_|q_|k_|v_|exp_avg.*|LU.*|pivots|tau|left|right_"
)
RULES: list[tuple[str, Callable[[Arguments], Any]]] = [
    (r"tensors?|arrays|operands|tensorlist|xs|grads|exp_avgs|exp_avg_sqs|max_exp_avg_sqs|state_steps|parameters|matrices|params", lambda a: a.tensors()),
    (r"indices|index|target|targets|offsets|sorter|.*_lengths", lambda a: a.index() if a.draw.random() < 0.15 else a.tensor(a.draw.choice(["int64"] * 5 + ["int32", "float32", "bool"]))),
    (r"condition|mask|attn_mask|key_padding_mask", lambda a: a.tensor("bool")),
    (r"kernel_size|stride|padding|dilation|output_padding|pad", _spatial),
    (r"size|shape|output_size|dims?|repeats|sizes|normalized_shape|shifts|split_sizes?.*|sections|tile|scale_factor|spatial_scale",
     lambda a: a.integer() if a.draw.random() < 0.4 else a.integers()),
    (r"groups?|num_groups|num_heads", lambda a: a.draw.choice([1, 1, 1, 2, 3, 0, -1, 2**40])),
    (r"dim\d|axis\d?|start_dim|end_dim|source_dim|destination|k|n|m|num_.*|reduction|diagonal|offset|storage_offset|step|start|end|length|chunks|"
     r"ignore_index|padding_idx|steps|ndim|N|C|HxW|ord|decimals|upscale_factor|downscale_factor|minlength|blank|bins",
     lambda a: a.integer() if a.draw.random() < 0.9 else a.number()),
    (r"niter", lambda a: a.draw.choice([None, 0, 1, 3, 20, -1, 1.5])),  # 2**40 is a request that is merely endless, in PyTorch too
    (r"dtype", lambda a: a.dtype() if a.draw.random() < 0.6 else None),
    (r"out", lambda a: a.tensor()),
    (r"generator", lambda a: a.trt.Generator() if a.draw.random() < 0.5 else None),
    (r"device", lambda a: a.draw.choice([None, "cpu", "meta", "cuda:0", "cpu:5"])),
    (r"layout", lambda a: a.trt.strided),
    (r"memory_format", lambda a: a.draw.choice([a.trt.contiguous_format, a.trt.channels_last, a.trt.preserve_format])),
    (r"mode", lambda a: a.draw.choice(["constant", "reflect", "replicate", "circular", "sum", "mean", "max", "nearest", "bilinear", "bicubic", "linear", "trilinear", "area", "nearest-exact", "reduced", "complete", "r"])),
    (r".*mode|approximate|rounding_mode|reduce|equation|align|reduction_|UPLO|side|interpolation|driver", lambda a: a.draw.choice(
        ["none", "tanh", "trunc", "floor", "zeros", "border", "reflection", "sum", "mean", "amax", "prod", "ij,jk->ik", "i->", "bij,bjk", "...i,i", "", "left", "right", "L", "U", "linear", "nearest"])),
    (r"keepdim|train|training|inplace|unbiased|descending|stable|sorted|largest|ceil_mode|count_include_pad|sparse|scale_grad_by_freq|right|accumulate|"
     r"requires_grad|pin_memory|as_tuple|equal_nan|replacement|.*_input_stats|log_target|full|zero_infinity|return_.*|is_causal|non_blocking|copy|"
     r"align_corners|upper|left_|unitriangular|transpose|hermitian|include_self|out_int32|amsgrad|maximize|full_matrices|compute_uv|antialias",
     lambda a: a.draw.choice([True, False])),
    (r"p|alpha|beta\d?|eps|momentum|value|negative_slope|lower|threshold|min|max|exponent|std|mean|weight_decay|lr|fill_value|rtol|atol|margin|delta|"
     r"label_smoothing|correction|lambd|sigma|nan|posinf|neginf|scale|base|q|low|high|from_|to|probability|median|weight\d?",
     lambda a: a.number() if a.draw.random() < 0.6 else a.tensor()),
    (r"bias|weight|running_mean|running_var|per_sample_weights|pos_weight", lambda a: a.tensor() if a.draw.random() < 0.6 else None),
    (TENSOR_NAMES, lambda a: a.tensor()),
]  # fmt: skip


def quiet(current: Callable[[], Arguments | None]) -> None:
    """Warnings are not printed; some meddle with the program's tensors, as a filter of a user's could."""

    def show(*_: Any, **__: Any) -> None:
        arguments = current()
        if arguments is not None and arguments.draw.random() < arguments.meddling:
            arguments.meddle()

    warnings.simplefilter("always")
    warnings.showwarning = show

"""The fuzzer's mode `indices`: what an operator reads as an index changes between its forward and its backward pass.

A program makes one valid call of an operator that takes or returns indices, bins, lengths, offsets or masks, writes other numbers to them through
NumPy, which no version counter sees, and differentiates: once, twice, or with tangents. The end is a result or an exception; memory has to stay
inside (tools/guard.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NUMBERS = [10**9, -(10**9), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**31, 2**32, 1000, 64, -1, 0, 1]


class Case:
    """What the calls of one program are made of."""

    def __init__(self, trt: Any, draw: random.Random) -> None:
        self.trt, self.draw, self.F = trt, draw, trt.nn.functional
        self.leaves: list[Any] = []
        self.changed: list[Any] = []
        self.large = draw.random() < 0.15  # kernels take other ways, and give up the GIL

    def n(self, small: int) -> int:
        return small * 40 if self.large else small

    def x(self, *shape: int, dtype: str = "") -> Any:
        dtype = dtype or self.draw.choice(["float32"] * 4 + ["float64", "bfloat16"])
        made = self.trt.rand(shape).to(getattr(self.trt, dtype)).requires_grad_()
        if len(shape) == 4 and self.draw.random() < 0.3:
            made = made.detach().contiguous(memory_format=self.trt.channels_last).requires_grad_()
        self.leaves.append(made)
        return made

    def i(self, high: int, *shape: int, dtype: str = "int64", low: int = 0) -> Any:
        made = self.trt.randint(low, high, shape).to(getattr(self.trt, dtype))
        self.changed.append(made)
        return made

    def given(self, values: list[int], dtype: str = "int64") -> Any:
        made = self.trt.tensor(values).to(getattr(self.trt, dtype))
        self.changed.append(made)
        return made

    def mask(self, *shape: int) -> Any:
        made = self.trt.rand(shape) > 0.5
        self.changed.append(made)
        return made

    def returned(self, result: Any) -> Any:
        """(values, indices): the indices that the operator kept are changed."""
        self.changed.append(result[1])
        return result[0]

    # ---- rows, lines, places

    def op_gather(self) -> Any:
        n = self.n(6)
        return self.x(n, 5).gather(0, self.i(n, n, 5, dtype=self.draw.choice(["int64", "int32"])))

    def op_gather_expanded(self) -> Any:
        n = self.n(6)
        index = self.i(n, n, 1)
        return self.x(n, 5).gather(0, index.expand(n, 5))

    def op_take_along_dim(self) -> Any:
        return self.x(5, 6).take_along_dim(self.i(6, 5, 3), 1)

    def op_scatter(self) -> Any:
        n = self.n(6)
        return self.x(n, 5).scatter(0, self.i(n, n, 5), self.x(n, 5, dtype=str(self.leaves[0].dtype).split(".")[1]))

    def op_scatter_value(self) -> Any:
        return self.x(6, 5).scatter(0, self.i(6, 6, 5), 2.0)

    def op_scatter_add(self) -> Any:
        n = self.n(6)
        return self.x(n, 5, dtype="float32").scatter_add(0, self.i(n, n, 5), self.x(n, 5, dtype="float32"))

    def op_scatter_reduce(self) -> Any:
        return self.x(6, 5, dtype="float32").scatter_reduce(
            0, self.i(6, 6, 5), self.x(6, 5, dtype="float32"), self.draw.choice(["sum", "prod", "mean", "amin", "amax"]), include_self=self.draw.random() < 0.5
        )

    def op_index_select(self) -> Any:
        n = self.n(6)
        return self.x(n, 5).index_select(0, self.i(n, n, dtype=self.draw.choice(["int64", "int32"])))

    def op_index_add(self) -> Any:
        n = self.n(6)
        return self.x(n, 5, dtype="float32").index_add(0, self.i(n, n), self.x(n, 5, dtype="float32"), alpha=self.draw.choice([1, 2]))

    def op_index_copy(self) -> Any:
        return self.x(6, 5, dtype="float32").index_copy(0, self.i(6, 6), self.x(6, 5, dtype="float32"))

    def op_index_fill(self) -> Any:
        return self.x(6, 5, dtype="float32").index_fill(0, self.i(6, 3), self.x(dtype="float32"))

    def op_index_reduce(self) -> Any:
        return self.x(6, 5, dtype="float32").index_reduce(0, self.i(6, 6), self.x(6, 5, dtype="float32"), self.draw.choice(["prod", "mean", "amin", "amax"]))

    def op_index_put(self) -> Any:
        return self.x(6, 5, dtype="float32").index_put((self.i(6, 4), self.i(5, 4)), self.x(4, dtype="float32"), accumulate=self.draw.random() < 0.5)

    def op_getitem(self) -> Any:
        n = self.n(6)
        return self.x(n, 5)[self.i(n, n)] if self.draw.random() < 0.5 else self.x(n, 5)[self.i(n, n), self.i(5, n)]

    def op_setitem(self) -> Any:
        y = self.x(6, 5, dtype="float32") * 1
        y[self.i(6, 3)] = self.x(3, 5, dtype="float32")
        return y

    def op_take(self) -> Any:
        return self.x(6, 5).take(self.i(30, 7))

    def op_put(self) -> Any:
        return self.x(6, 5, dtype="float32").put(self.i(30, 7), self.x(7, dtype="float32"), accumulate=self.draw.random() < 0.5)

    def op_repeat_interleave(self) -> Any:
        return self.x(6, 5).repeat_interleave(self.i(4, 6), 0)

    def op_segment_reduce(self) -> Any:
        reduce = self.draw.choice(["sum", "mean", "max", "min", "prod"])
        if self.draw.random() < 0.5:
            return self.trt.segment_reduce(self.x(6, 3), reduce, lengths=self.given([2, 1, 3]), axis=0, unsafe=self.draw.random() < 0.5)
        return self.trt.segment_reduce(self.x(6, 3), reduce, offsets=self.given([0, 2, 3, 6]), axis=0)

    # ---- embeddings, losses

    def op_embedding(self) -> Any:
        n = self.n(6)
        return self.F.embedding(
            self.i(n, n, 3, dtype=self.draw.choice(["int64", "int32"])), self.x(n, 4), padding_idx=self.draw.choice([None, 0, 2]), scale_grad_by_freq=self.draw.random() < 0.2,
            sparse=self.draw.random() < 0.2,
        )  # fmt: skip

    def op_embedding_bag(self) -> Any:
        mode = self.draw.choice(["sum", "mean", "max"])
        weights = self.x(7, dtype="float32") if mode == "sum" and self.draw.random() < 0.5 else None
        last = self.draw.random() < 0.3
        return self.F.embedding_bag(
            self.i(6, 7), self.x(6, 4, dtype="float32"), self.given([0, 2, 2, 5] + [7] * last), mode=mode, per_sample_weights=weights, include_last_offset=last,
            padding_idx=self.draw.choice([None, 1]), sparse=mode != "max" and self.draw.random() < 0.2,
        )  # fmt: skip

    def op_nll_loss(self) -> Any:
        n, reduction = self.n(6), self.draw.choice(["none", "mean", "sum"])
        weight = self.trt.rand(5) if self.draw.random() < 0.4 else None
        if self.draw.random() < 0.5:
            return self.F.nll_loss(self.x(n, 5, dtype="float32"), self.i(5, n), weight, reduction=reduction)
        return self.F.nll_loss(self.x(2, 5, n, 3, dtype="float32"), self.i(5, 2, n, 3), weight, reduction=reduction)

    def op_cross_entropy(self) -> Any:
        n, reduction = self.n(6), self.draw.choice(["none", "mean", "sum"])
        weight = self.trt.rand(5) if self.draw.random() < 0.4 else None
        smoothing = self.draw.choice([0.0, 0.0, 0.1])
        if self.draw.random() < 0.5:
            return self.F.cross_entropy(self.x(n, 5, dtype="float32"), self.i(5, n), weight, reduction=reduction, label_smoothing=smoothing)
        return self.F.cross_entropy(self.x(2, 5, n, 3, dtype="float32"), self.i(5, 2, n, 3), weight, reduction=reduction, label_smoothing=smoothing)

    def op_ctc_loss(self) -> Any:
        t, n, c, reduction = 9, self.draw.choice([1, 3]), 5, self.draw.choice(["none", "mean", "sum"])
        logs = self.x(t, n, c, dtype=self.draw.choice(["float32", "float64"])).log_softmax(2)
        targets = self.i(c, n, 4, low=1) if self.draw.random() < 0.5 else self.i(c, 2 * n, low=1)
        return self.F.ctc_loss(logs, targets, self.given([t] * n), self.given([2] * n), reduction=reduction, zero_infinity=self.draw.random() < 0.5)

    def op_multi_margin_loss(self) -> Any:
        return self.F.multi_margin_loss(self.x(6, 5, dtype="float32"), self.i(5, 6), p=self.draw.choice([1, 2]), weight=self.trt.rand(5) if self.draw.random() < 0.5 else None)

    def op_multilabel_margin_loss(self) -> Any:
        return self.F.multilabel_margin_loss(self.x(6, 5, dtype="float32"), self.i(5, 6, 5, low=-1))

    def op_adaptive_log_softmax(self) -> Any:
        module = self.trt.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6])
        return module(self.x(6, 4, dtype="float32"), self.i(10, 6)).output

    # ---- pools, orders

    def op_max_pool(self) -> Any:
        n = self.draw.choice([1, 2, 3])
        pool = getattr(self.F, self.draw.choice([f"max_pool{n}d", f"adaptive_max_pool{n}d"]))
        return self.returned(pool(self.x(2, 3, *[self.n(4) if n == 1 else 4] * n), 2, return_indices=True))

    def op_fractional_max_pool(self) -> Any:
        n = self.draw.choice([2, 3])
        return self.returned(getattr(self.F, f"fractional_max_pool{n}d")(self.x(2, 3, *[5] * n), 2, output_size=[3] * n, return_indices=True))

    def op_max_unpool(self) -> Any:
        n = self.draw.choice([1, 2, 3])
        return getattr(self.F, f"max_unpool{n}d")(self.x(2, 3, *[2] * n), self.i(4**n, 2, 3, *[2] * n), 2)

    def op_order(self) -> Any:
        x, n = self.x(self.n(6), 5), self.n(6)
        what = self.draw.choice(["sort", "topk", "median", "nanmedian", "kthvalue", "mode", "max", "min", "cummax", "cummin"])
        return self.returned(getattr(x, what)(*([min(3, n)] if what in ("topk", "kthvalue") else []), dim=0))

    # ---- masks

    def op_masked(self) -> Any:
        n = self.n(6)
        x, mask = self.x(n, 5, dtype="float32"), self.mask(n, 5)
        match self.draw.randrange(6):
            case 0:
                return x.masked_fill(mask, 1.0)
            case 1:
                return x.masked_select(mask)
            case 2:
                return x.masked_scatter(mask, self.x(n, 5, dtype="float32"))
            case 3:
                return x[mask]
            case 4:
                return self.trt.where(mask, x, self.x(n, 5, dtype="float32"))
            case _:
                y = x * 1
                y[mask] = self.x(dtype="float32")
                return y

    def op_attention_mask(self) -> Any:
        return self.F.scaled_dot_product_attention(*[self.x(2, 2, 6, 4, dtype="float32") for _ in range(3)], attn_mask=self.mask(6, 6))

    # ---- sparse, nested, packed

    def op_coo(self) -> Any:
        sparse = self.trt.sparse_coo_tensor(self.i(6, 2, 7), self.x(7, dtype="float32"), (6, 6))
        match self.draw.randrange(4):
            case 0:
                return sparse.to_dense()
            case 1:
                return self.trt.sparse.mm(sparse, self.x(6, 3, dtype="float32"))
            case 2:
                return self.trt.sparse.sum(sparse, 0).to_dense()
            case _:
                return sparse.coalesce().values()

    def op_csr(self) -> Any:
        sparse = self.trt.sparse_csr_tensor(self.given([0, 2, 3, 5]), self.given([0, 2, 1, 0, 3]), self.x(5, dtype="float32"), (3, 4))
        if self.draw.random() < 0.5:
            return sparse.to_dense()
        return self.trt.sparse.mm(sparse, self.x(4, 3, dtype="float32"))

    def op_csr_reduce(self) -> Any:
        sparse = self.trt.sparse_csr_tensor(self.given([0, 2, 3, 5]), self.given([0, 2, 1, 0, 3]), self.x(5, dtype="float32"), (3, 4))
        return self.trt.sparse.mm(sparse, self.x(4, 3, dtype="float32"), self.draw.choice(["sum", "mean", "amax", "amin"]))

    def op_jagged(self) -> Any:
        nested = self.trt.nested.nested_tensor_from_jagged(self.x(7, 4, dtype="float32"), offsets=self.given([0, 2, 3, 7]))
        match self.draw.randrange(4):
            case 0:
                return nested.to_padded_tensor(0.0)
            case 1:
                return nested.sum(1)
            case 2:
                return nested.softmax(1).values()
            case _:
                return self.trt.cat([t.sum(0) for t in nested.unbind()])

    def op_packed(self) -> Any:
        rnn = self.trt.nn.utils.rnn
        packed = rnn.pack_padded_sequence(self.x(5, 3, 4, dtype="float32"), self.given([5, 3, 2]), enforce_sorted=self.draw.random() < 0.5)
        self.changed += [t for t in (packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices) if t is not None]
        module = getattr(self.trt.nn, self.draw.choice(["LSTM", "GRU", "RNN"]))(4, 3)
        return rnn.pad_packed_sequence(module(packed)[0])[0]

    # ---- factorisations

    def op_pivots(self) -> Any:
        a = self.x(5, 5, dtype="float64")
        lu, pivots = self.trt.linalg.lu_factor(a + 5 * self.trt.eye(5, dtype=self.trt.float64))
        self.changed.append(pivots)
        if self.draw.random() < 0.5:
            return self.trt.linalg.lu_solve(lu, pivots, self.x(5, 2, dtype="float64"))
        return self.trt.lu_unpack(lu, pivots)[2]

    def op_grid_sample(self) -> Any:
        grid = self.trt.rand(2, 3, 3, 2) * 2 - 1
        self.changed.append(grid)
        return self.F.grid_sample(self.x(2, 3, 5, 5, dtype="float32"), grid, mode=self.draw.choice(["bilinear", "nearest", "bicubic"]), align_corners=False)

    # ---- the change

    def change(self) -> str:
        """Other numbers in some or all places of one of the tensors, or in all tensors."""
        chosen = self.changed if self.draw.random() < 0.3 else [self.draw.choice(self.changed)]
        shown = []
        for t in chosen:
            array = t.detach().numpy()
            if array.dtype == bool:
                array = array.view("uint8")
                value: Any = self.draw.choice([0, 1, 255])
            elif array.dtype.kind == "f":
                value = self.draw.choice([1e30, -1e30, float("nan"), float("inf"), 2.0**31, 2.0**63])
            else:
                value = self.draw.choice([*NUMBERS, t.numel(), -t.numel() - 1])
                value = max(min(value, 2**31 - 1), -(2**31)) if array.dtype.itemsize == 4 else value
            flat = array.reshape(-1)
            if self.draw.random() < 0.5 or flat.size < 2:
                array[...] = value
            else:
                array[tuple(self.draw.randrange(n) for n in array.shape)] = value
            shown.append(f"{tuple(t.shape)}: {value}")
        return "; ".join(shown)


OPERATORS = sorted(name[3:] for name in dir(Case) if name.startswith("op_"))


def name_of(seed: int, number: int) -> str:
    """The operator that a program calls."""
    return random.Random(f"{seed}:{number}").choice(OPERATORS)


def run_program(trt: Any, table: Any, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    """One program; what is wrong with it, or None. The table of operators is not used."""
    from tools.fuzz import ALLOWED

    draw = random.Random(f"{seed}:{number}")
    show = show or (lambda text: None)
    name = draw.choice(OPERATORS)
    trt.manual_seed(draw.getrandbits(32))
    case = Case(trt, draw)
    try:
        result = getattr(case, f"op_{name}")()
    except Exception as error:
        return f"{name}: a valid call failed: {type(error).__name__}: {error}"
    try:
        show(f"{name} -> {tuple(result.shape)}, change {case.change()}")
        weight = trt.rand(tuple(result.shape)).to(result.dtype)
        twice = draw.random() < 0.4
        leaves = [t for t in case.leaves if t.requires_grad]
        found = trt.autograd.grad(result, leaves, weight, create_graph=twice, allow_unused=True)
        for g in found:
            if g is not None:
                g.detach().to_dense().sum() if g.is_sparse else g.detach().clone()
        if twice:
            case.change()
            sum((g.to_dense() if g.is_sparse else g).float().sum() for g in found if g is not None).backward()
    except ALLOWED as error:
        show(f"    {type(error).__name__}: {str(error)[:300]}")
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"
    return None

"""The fuzzer's mode `layouts`: operators on sparse, nested and masked tensors, whose parts are hostile and change while they are used.

Of the tensors of a program about half are of one such kind: sparse ones of five layouts, made with and without their checks, whose indices may be
out of range, out of order or doubled, and whose compressed indices may fall or lead beyond the entries; jagged ones over offsets and lengths of the same
sort; masked ones. Their parts are in the pool of the program, too, so that warnings and arguments that meddle resize, refill and retype them. Every second
program has large operands and a thread that does so while kernels run without the GIL. Values may be any then; memory has to stay inside (docs/safety.md).
"""

from __future__ import annotations

import math
import random
import re
from typing import Any, Callable

from tools.fuzz_arguments import RULES, Arguments

FLAVORS = ["sparse", "sparse", "sparse", "nested", "masked"]
LAYOUTS = ["coo", "coo", "csr", "csr", "csc", "bsr", "bsc"]
OF_LAYOUTS = re.compile(  # what has forms of its own for such tensors: drawn as often as all others together
    r"sparse|nested|masked|csr_|\bmm$|addmm|addmv|\bmv$|bmm|matmul|linear$|coalesce|ccol|crow|indices|values|softmax|index_select|narrow|unbind|\bcat$|stack|"
    r"select|transpose|permute|\bsum$|mean|norm$|amax|amin|embedding|attention|padded|jagged|\bmul$|\badd$|\bsub$|\bdiv$|to_dense|copy_|pow|squeeze|__getitem__|clone"
)
PARTS = ("_indices", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices", "values", "offsets", "lengths")


class LayoutArguments(Arguments):
    """Tensors of one kind of layout beside strided ones of sizes that fit."""

    extent = [1, 2, 3, 4, 5, 8]
    entries = [0, 1, 2, 3, 5, 9]

    def __init__(self, trt: Any, draw: random.Random) -> None:
        super().__init__(trt, draw)
        self.flavor = draw.choice(FLAVORS)
        self.dtype_of_most = draw.choice(["float32", "float32", "float64", "complex64", "int64", "bfloat16"])
        self.sizes = draw.sample(self.extent, 1 if draw.random() < 0.6 else 2)
        self.count = draw.choice(self.entries)
        self.jagged: list[tuple[Any, Any, int]] = []  # (offsets, lengths, elements) of the program so far

    def shape(self) -> tuple[int, ...]:
        if self.draw.random() < 0.15:
            return super().shape()
        return tuple(self.draw.choice(self.sizes) for _ in range(self.draw.choice([1, 2, 2, 2, 2, 2, 3, 3])))

    def fresh(self, dtype: str, shape: tuple[int, ...]) -> Any:
        if self.draw.random() < 0.5 and max(shape, default=0) < 10**4:
            try:
                return getattr(self, f"{self.flavor}_tensor")(dtype, shape)
            except Exception:  # refused, or what the program changed meanwhile
                pass
        return super().fresh(dtype, shape)

    def keep(self, t: Any) -> Any:
        """The tensor; some of its parts go into the pool."""
        for name in PARTS:
            if self.draw.random() < 0.4:
                try:
                    self.pool.append(getattr(t, name)())
                except Exception:
                    continue
        if t.dtype.is_floating_point and t.is_leaf and self.draw.random() < 0.3:
            t.requires_grad_()
        return t

    def part(self, t: Any) -> Any:
        self.pool.append(t)
        return t

    def places(self, count: int, extent: int) -> Any:
        """`count` indices into a dimension, one in four times some that are outside."""
        trt, draw = self.trt, self.draw
        at = trt.randint(0, max(1, extent), (count,))
        if draw.random() < 0.6:
            at = at.sort()[0]
        if draw.random() < 0.25 and count:
            at[draw.randrange(count)] = draw.choice([-1, extent, extent + 7, 2**31, 2**40, -(2**62), 2**63 - 1])
        return at

    def compressed(self, lines: int, count: int) -> Any:
        """lines + 1 numbers that lead from 0 to count, one in four times not quite."""
        trt, draw = self.trt, self.draw
        made = trt.randint(0, count + 1, (lines + 1,)).sort()[0]
        if draw.random() < 0.9:
            made[0], made[lines] = 0, count
        if draw.random() < 0.25:
            made[draw.randrange(lines + 1)] = draw.choice([-1, count + 1, count + 100, 2**31, 2**40, -(2**62), 2**63 - 1, 0])
        return made if draw.random() < 0.9 else made.flip(0)

    def sparse_tensor(self, dtype: str, shape: tuple[int, ...]) -> Any:
        trt, draw = self.trt, self.draw
        layout = draw.choice(LAYOUTS)
        checked = draw.choice([None, False, False, True])
        kind = draw.random()
        if kind < 0.2:
            dense = self.values(dtype, shape)
            dense = dense * (trt.rand(shape) > 0.5) if draw.random() < 0.8 else dense
            if layout == "coo":
                return self.keep(dense.to_sparse(draw.choice([None, 1, len(shape)])))
            return self.keep(getattr(dense, f"to_sparse_{layout}")(*([(draw.choice([1, 2]), draw.choice([1, 2]))] if layout[0] == "b" else [])))
        count = draw.choice(self.entries)
        if layout == "coo":
            sparse_dim = len(shape) if draw.random() < 0.7 else draw.randint(0, len(shape))
            rows = [self.places(count, extent) for extent in shape[:sparse_dim]]
            at = self.part(trt.stack(rows) if rows else trt.zeros(0, count, dtype=trt.int64))
            v = self.part(self.values(dtype, (count, *shape[sparse_dim:])))
            return self.keep(trt.sparse_coo_tensor(at, v, shape, check_invariants=checked, is_coalesced=draw.choice([None, None, False, True])))
        if len(shape) < 2:
            shape = (*shape, draw.choice(self.sizes), draw.choice(self.sizes))[:2]
        n = len(shape) - 2 if draw.random() < 0.5 else 0
        batch, (rows_, columns), dense_shape = shape[:n], shape[n : n + 2], shape[n + 2 :]
        height, width = (draw.choice([1, 2]), draw.choice([1, 2])) if layout[0] == "b" else (1, 1)
        lines, across = (rows_ // height, columns // width) if layout[2] == "r" else (columns // width, rows_ // height)
        outer = 1
        for extent in batch:
            outer *= extent
        compressed = trt.stack([self.compressed(lines, count) for _ in range(outer)]).reshape(*batch, lines + 1) if outer else trt.zeros(*batch, lines + 1, dtype=trt.int64)
        plain = trt.stack([self.places(count, across) for _ in range(outer)]).reshape(*batch, count) if outer else trt.zeros(*batch, count, dtype=trt.int64)
        if draw.random() < 0.2:
            compressed, plain = compressed.to(trt.int32), plain.to(trt.int32)
        block = (height, width) if layout[0] == "b" else ()
        v = self.values(dtype, (*batch, count, *block, *dense_shape))
        made = trt.sparse_compressed_tensor(self.part(compressed), self.part(plain), self.part(v), shape, layout=getattr(trt, f"sparse_{layout}"), check_invariants=checked)
        return self.keep(made)

    def nested_tensor(self, dtype: str, shape: tuple[int, ...]) -> Any:
        trt, draw = self.trt, self.draw
        rest = shape[1:] or (draw.choice(self.sizes),)
        if self.jagged and draw.random() < 0.6:  # tensors of one raggedness are what operators take together
            offsets, lengths, total = draw.choice(self.jagged)
        else:
            batch, total = draw.choice([1, 2, 3, 5]), draw.choice(self.entries) + 1
            offsets = self.part(self.compressed(batch, total))
            lengths = self.part(trt.randint(0, 3, (batch,))) if draw.random() < 0.25 else None
            if lengths is not None and draw.random() < 0.3:
                lengths[0] = draw.choice([-1, 100, 2**40, -(2**62)])
            self.jagged.append((offsets, lengths, total))
        if draw.random() < 0.3:
            return self.keep(trt.nested.nested_tensor([self.values(dtype, (draw.choice(self.extent), *rest)) for _ in range(draw.choice([1, 2, 3]))], layout=trt.jagged))
        v = self.part(self.values(dtype, (total, *rest)))
        return self.keep(trt.nested.nested_tensor_from_jagged(v, offsets, lengths))

    def masked_tensor(self, dtype: str, shape: tuple[int, ...]) -> Any:
        data, mask = self.part(self.values(dtype, shape)), self.part(self.trt.rand(shape) > 0.4)
        make = self.trt.masked.masked_tensor if self.draw.random() < 0.5 else self.trt.masked.as_masked_tensor
        return self.keep(make(data, mask))

    def named(self, name: str) -> Any:
        draw, extent = self.draw, self.sizes[0]
        count = self.count if draw.random() < 0.9 else draw.choice(self.entries)
        if draw.random() < 0.05:
            return self.anything()
        if name in ("crow", "crow_indices", "ccol_indices", "compressed_indices", "offsets", "row"):
            return self.part(self.compressed(extent, count))
        if name in ("col", "col_indices", "row_indices", "plain_indices"):
            return self.part(self.places(count, extent))
        if name == "indices" and draw.random() < 0.5:
            return self.part(self.trt.stack([self.places(count, extent) for _ in range(2)]))
        if name == "weights":
            return self.part(self.values(self.dtype_of_most, (count,)))
        if name == "matrix":
            return self.part(self.values(self.dtype_of_most, (extent, draw.choice([1, 2, 3, 7, 16, 33]))))
        if name == "layout":
            return getattr(self.trt, draw.choice(["strided", "jagged", *(f"sparse_{kind}" for kind in LAYOUTS)]))
        if name == "blocksize":
            return (draw.choice([1, 2, 0, -1]), draw.choice([1, 2, 3]))
        if name in ("check_invariants", "is_coalesced", "masked_grad", "coalesced"):
            return draw.choice([None, True, False])
        if name in ("sparse_dim", "dense_dim"):
            return draw.choice([0, 1, 2, 3, self.integer()])
        if name in ("dense", "mat", "sparse", "t", "data", "tensor_list", "jagged", "padded") or not any(re.fullmatch(pattern, name) for pattern, _ in RULES):
            return self.tensor()
        return super().named(name)

    def meddle(self) -> None:
        if self.pool and self.draw.random() < 0.5:
            refill(self.draw.choice(self.pool), self.trt, self.draw)
        else:
            super().meddle()


class LargeLayoutArguments(LayoutArguments):
    """Operands whose kernels release the GIL and are split."""

    extent = [64, 130, 300]
    entries = [300, 3000, 9000]

    def shape(self) -> tuple[int, ...]:
        found = super().shape()
        while math.prod(found) > 10**5:
            found = found[1:]
        return found


def refill(t: Any, trt: Any, draw: random.Random) -> None:
    """Put other numbers into indices or sizes, or other memory behind them."""
    try:
        with trt.no_grad():
            if t.dtype not in (trt.int64, trt.int32) or t.layout is not trt.strided:
                t.untyped_storage().resize_(draw.choice([0, 64, 4096, 10**6]))
            elif draw.random() < 0.7:
                t.fill_(draw.choice([0, 1, 299, 3000, 2**31, 2**40, -(2**40), 2**63 - 1]))
            elif draw.random() < 0.5:
                t.random_(0, max(2, t.numel()))
            else:
                t.data = trt.zeros(draw.choice([0, 1, t.numel(), 9001]), dtype=t.dtype)
    except Exception:
        pass


def kernels() -> list[tuple[str, Callable]]:
    """The kernels of compressed rows, with parameters that are drawn to fit each other."""
    from tensorrt_lite._ops import _namespace as ops

    def multiply(crow: Any, col: Any, weights: Any, matrix: Any) -> Any:
        return ops._csr_mm(crow, col, weights, matrix)

    def sample(crow: Any, col: Any, matrix: Any) -> Any:
        return ops._csr_sampled(crow, col, matrix, matrix)

    def extremes(crow: Any, col: Any, weights: Any, matrix: Any) -> Any:
        return ops._csr_extreme(crow, col, weights, matrix, True)

    return [("kernel:_csr_mm", multiply), ("kernel:_csr_sampled", sample), ("kernel:_csr_extreme", extremes)]


def weighted(table: list[tuple[str, Callable]]) -> list[tuple[str, Callable]]:
    """The rows, those that know such tensors as often as all others together, and their kernels in one of twelve calls."""
    known = [row for row in table if OF_LAYOUTS.search(row[0])]
    found = table + known * (max(1, len(table) // len(known)) if known else 0)
    return found + kernels() * (len(found) // 33) if len(table) > 100 else found

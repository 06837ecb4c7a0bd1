"""torch.quasirandom: Sobol' sequences, with PyTorch's points and, for a seed, PyTorch's scrambling.

The direction numbers are those of S. Joe and F. Y. Kuo ("Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30,
2008; their table of 21,201 dimensions). `_sobol_directions.bin` holds, dimension after dimension from the second on, the primitive polynomial with all its
coefficients in three bytes, and its initial numbers m_1 ... m_s (odd, m_i < 2**i) in as many bytes as the bits of their upper parts take: 0, 1, ..., s - 1
bits, the lowest first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SobolEngine"]

_BITS = 30  # of a point's coordinate
_DIMENSIONS = 21201


def _table(dimensions: int) -> Iterator[tuple[int, list[int]]]:
    """(polynomial, initial numbers) of the second dimension and those behind it."""
    data = memoryview((Path(__file__).parent / "_sobol_directions.bin").read_bytes())
    place = 0
    for _ in range(dimensions - 1):
        polynomial = int.from_bytes(data[place : place + 3], "little")
        degree = polynomial.bit_length() - 1
        size = (degree * (degree - 1) // 2 + 7) // 8
        packed = int.from_bytes(data[place + 3 : place + 3 + size], "little")
        initial = []
        for bits in range(degree):
            initial.append((packed & ((1 << bits) - 1)) << 1 | 1)
            packed >>= bits
        place += 3 + size
        yield polynomial, initial


def _directions(dimensions: int) -> Any:
    """The direction numbers, scaled to `_BITS` bits. Result: (dimensions, _BITS), int64."""
    groups: dict[int, list[tuple[int, int, list[int]]]] = {}
    for dimension, (polynomial, initial) in enumerate(_table(dimensions), 1):
        groups.setdefault(len(initial), []).append((dimension, polynomial, initial))
    state = trt.ones(dimensions, _BITS, dtype=trt.int64)
    for degree, rows in groups.items():
        polynomials = trt.tensor([polynomial for _, polynomial, _ in rows])
        columns = list(trt.tensor([initial for _, _, initial in rows]).unbind(1))
        # all dimensions of a degree at once: m_j = m_{j-s} ^ 2**s m_{j-s} ^ (2**k a_k m_{j-k} for 0 < k < s)
        coefficients = [(polynomials >> (degree - k)) & 1 for k in range(degree)]
        for j in range(degree, _BITS):
            number = columns[j - degree] ^ (columns[j - degree] << degree)
            for k in range(1, degree):
                number = number ^ (coefficients[k] * columns[j - k] << k)
            columns.append(number)
        state[trt.tensor([dimension for dimension, _, _ in rows])] = trt.stack(columns[:_BITS], 1)
    return state << trt.arange(_BITS - 1, -1, -1)


def _scrambled(state: Any, triangles: Any) -> Any:
    """Direction numbers with their bits mixed by lower triangular matrices over GF(2). state: (d, bits); triangles: (d, bits, bits) of 0 and 1, whose
    diagonal counts as 1."""
    powers = 2 ** trt.arange(_BITS - 1, -1, -1)
    rows = ((triangles | trt.eye(_BITS, dtype=trt.int64)) * powers).sum(-1)  # a row's bits as a number
    mixed = trt.zeros_like(state)
    for bit in range(_BITS):
        common = state & rows[:, _BITS - 1 - bit, None]
        for shift in (16, 8, 4, 2, 1):  # the parity of the bits in common
            common = common ^ (common >> shift)
        mixed |= (common & 1) << bit
    return mixed


class SobolEngine:
    """A Sobol' sequence in [0, 1)**dimension, of low discrepancy.

    dimension: 1 to 21,201 (ValueError otherwise). scramble: random linear scrambling and a digital shift, by `seed`, or by the default generator without
    one. (Owen, "Scrambling Sobol' and Niederreiter-Xing points", J. Complexity 14, 1998.)

    >>> SobolEngine(2).draw(4).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """

    MAXBIT = _BITS
    MAXDIM = _DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = _directions(dimension)
        if scramble:
            self._scramble()
        else:
            self.shift = trt.zeros(dimension, dtype=trt.int64)
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        digits = trt.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (digits * 2 ** trt.arange(_BITS)).sum(-1)
        triangles = trt.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril()
        self.sobolstate = _scrambled(self.sobolstate, triangles)

    def _points(self, first: int, n: int) -> Any:
        """The integer coordinates of n points from the one of this index on. Result: (n, dimension)."""
        index = trt.arange(first, first + n)
        gray = index ^ (index >> 1)
        points = self.shift.expand(n, self.dimension).clone()
        for bit in range((first + n).bit_length()):
            points ^= ((gray >> bit) & 1).unsqueeze(1) * self.sobolstate[:, bit]
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next n points. Result: (n, dimension) of the dtype, by default the default one; out is resized to it."""
        if self.num_generated + n > 1 << _BITS:
            raise ValueError(f"SobolEngine.draw(): the sequence has 2**{_BITS} points, of which {self.num_generated} are drawn (got n = {n})")
        points = self._points(self.num_generated, n)
        self.num_generated += n
        if n:
            self.quasi = points[-1].clone()
        dtype = trt.get_default_dtype() if dtype is None else dtype
        result = points.to(dtype) * 2.0**-_BITS
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next 2**m points. ValueError where the number of all drawn would not be a power of two, which the sequence's balance rests on."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again at the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Go on as if n points had been drawn."""
        self.num_generated += n
        self.quasi = self._points(self.num_generated - 1, 1)[0] if self.num_generated else self.shift.clone()
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"

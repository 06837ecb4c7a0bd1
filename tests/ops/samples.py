"""Sample inputs of declared pointwise operators, by the word that a row gives under `samples`.

A sample is (tensors as nested lists, number arguments). Values stay inside the operator's domain and away from kinks, so
that finite differences see the derivative; test_declared.py draws dtypes, layouts and broadcast shapes from them.
"""

from __future__ import annotations

import random

SHAPES = [(), (3,), (2, 3), (4, 1, 5), (0, 3)]


def values(rng: random.Random, shape: tuple[int, ...], low: float, high: float, avoid: float = 0.0) -> list | float:
    """Numbers between low and high, none closer to 0 than `avoid`."""
    if shape:
        return [values(rng, shape[1:], low, high, avoid) for _ in range(shape[0])]
    while True:
        x = rng.uniform(low, high)
        if abs(x) >= avoid:
            return x


# name: (low, high, avoid) of each tensor, number arguments
RANGES: dict[str, tuple[list[tuple[float, float, float]], tuple]] = {
    "unary": ([(-4, 4, 0.1)], ()),
    "unary_float": ([(-2.2, 2.2, 0.1)], ()),
    "unary_positive": ([(0.2, 5, 0)], ()),
    "unary_nonzero": ([(-4, 4, 0.5)], ()),
    "unary_unit": ([(-0.9, 0.9, 0.05)], ()),
    "unary_unit_positive": ([(0.1, 0.9, 0)], ()),
    "unary_above_one": ([(1.2, 6, 0)], ()),
    "binary": ([(-4, 4, 0.1), (-4, 4, 0.1)], ()),
    "binary_positive": ([(0.3, 3, 0), (0.3, 3, 0)], ()),
    "binary_nonzero": ([(-4, 4, 0.1), (-2, 2, 0.7)], ()),
    "ternary": ([(-2, 2, 0), (-2, 2, 0), (-2, 2, 0)], ()),
    "ternary_nonzero": ([(-2, 2, 0), (-2, 2, 0), (-2, 2, 0.5)], ()),
    "clamp": ([(-3, 3, 0.1)], (-1.05, 1.55)),
    "lerp": ([(-2, 2, 0), (-2, 2, 0)], (0.3,)),
    "threshold": ([(-2, 2, 0.1)], (0.05, -1.5)),
    "nan_to_num": ([(-2, 2, 0)], (0.5,)),
    "polygamma": ([(0.4, 4, 0)], ()),
    "degree": ([(-1.2, 1.2, 0.1), (0, 6, 0)], ()),
    "where": ([(-2, 2, 0), (-2, 2, 0)], ()),
}


def draw(kind: str, seed: int = 0) -> list[tuple[list, tuple]]:
    """Samples of every shape, and one whose operands broadcast."""
    if kind not in RANGES:
        raise KeyError(f"unknown samples: {kind!r}; add it to RANGES in {__name__}")
    rng = random.Random(f"{kind}{seed}")
    ranges, numbers = RANGES[kind]
    drawn = [([values(rng, shape, *r) for r in ranges], numbers) for shape in SHAPES]
    if len(ranges) > 1:
        shapes = [(3, 1, 4), (2, 1), (3, 2, 4)]
        drawn.append(([values(rng, shapes[i], *r) for i, r in enumerate(ranges)], numbers))
    return drawn

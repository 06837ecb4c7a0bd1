"""Random sizes, types and strides of arguments, from a seed; PyTorch's numbers, since NumPy draws them in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import log2, prod
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import manual_seed

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_DISTRIBUTIONS = ("loguniform", "uniform")
_ATTEMPTS = 1000


class FuzzedParameter:
    """A random number: "uniform" or "loguniform" in [minval, maxval], or {value: probability}.

    strict: drawn once where constraints refuse other parameters. AssertionError for other distributions.
    """

    def __init__(
        self, name: str, minval: int | float | None = None, maxval: int | float | None = None, distribution: str | dict[Any, float] | None = None, strict: bool = False
    ) -> None:
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            if minval is not None or maxval is not None:
                raise AssertionError("When passing a custom distribution, 'minval' and 'maxval' must be None")
        elif distribution not in _DISTRIBUTIONS:
            raise AssertionError(f"Unknown distribution: {distribution}")
        self._name, self._minval, self._maxval, self._distribution, self.strict = name, minval, maxval, distribution, strict

    @property
    def name(self) -> str:
        return self._name

    def sample(self, state: Any) -> Any:
        """A number from a RandomState of NumPy's."""
        if isinstance(self._distribution, dict):
            return list(self._distribution)[state.choice(len(self._distribution), p=tuple(self._distribution.values()))]
        low: Any = self._minval
        high: Any = self._maxval
        if self._distribution == "loguniform":
            return min(max(int(2 ** state.uniform(low=log2(low), high=log2(high))), low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """A value of a distribution that stands for another parameter's."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A random tensor. size, steps (of slices): numbers or names of parameters, of as many dimensions as dim_parameter says (all by default).

    With a probability of probability_contiguous its dimensions are in the order of memory. Sizes that break the limits of elements and bytes are
    drawn again. tensor_constructor(size, dtype, **parameters) makes it; `rand`, or integers from 1 to 126, by default.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = trt.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        self._name, self._size, self._steps, self._dim_parameter, self._dtype, self._cuda = name, size, steps or (), dim_parameter, dtype, cuda
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements, self._max_allocation_bytes = min_elements, max_elements, max_allocation_bytes
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: Any, **kwargs: Any) -> Any:
        """Uniform numbers in [0, 1), or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return trt.rand(size=size, dtype=dtype, device="cpu")
        return trt.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _sizes(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(size, steps, what is allocated)."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolved(values: tuple[str | int, ...]) -> tuple[int, ...]:
            found = tuple(params.get(v, v) for v in values)[:dim]  # type: ignore[arg-type]
            return found + (1,) * (dim - len(found))

        size, steps = resolved(self._size), resolved(self._steps)
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether a tensor of these parameters is within the limits."""
        size, _, allocated = self._sizes(params)
        elements, nbytes = prod(map(int, size)), prod(map(int, allocated)) * self._dtype.itemsize
        return not (
            (self._max_elements is not None and elements > self._max_elements)
            or (self._min_elements is not None and elements < self._min_elements)
            or (self._max_allocation_bytes is not None and nbytes > self._max_allocation_bytes)
        )

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        import numpy as np

        size, steps, allocated = self._sizes(params)
        raw = (self._tensor_constructor or self.default_tensor_constructor)(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            raw = raw.cuda()
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == np.arange(len(size))):
                order = state.permutation(raw.dim())
            raw = raw.permute(tuple(map(int, order))).contiguous().permute(tuple(map(int, np.argsort(order))))
        tensor = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        return tensor, {"numel": int(tensor.numel()), "order": order, "steps": steps, "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}


def _unpacked(values: Iterable[Any], kind: type[Any]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable([value] if isinstance(value, kind) else value for value in values))


class Fuzzer:
    """Random arguments: `take(n)` yields n of (tensors, their properties, parameters). constraints: functions of the parameters that must be true.

    ValueError for a name that is both a parameter's and a tensor's, and where a thousand draws satisfy no constraints.
    """

    def __init__(
        self, parameters: list[Any], tensors: list[Any], constraints: list[Callable[..., bool]] | None = None, seed: int | None = None
    ) -> None:
        import numpy as np

        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters, self._tensors = _unpacked(parameters, FuzzedParameter), _unpacked(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        if common := {p.name for p in self._parameters} & {t.name for t in self._tensors}:
            raise ValueError(f"Duplicate names in parameters and tensors: {common}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """n arguments; the global generator is seeded."""
        import numpy as np

        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {tensor.name: tensor._make_tensor(params, state) for tensor in self._tensors}
            yield {name: tensor for name, (tensor, _) in made.items()}, {name: properties for name, (_, properties) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The share of draws that constraints have refused."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: Any) -> dict[str, Any]:
        strict: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            drawn: dict[str, Any] = {}
            for parameter in self._parameters:
                drawn[parameter.name] = strict[parameter.name] if parameter.name in strict else parameter.sample(state)
                if parameter.strict:
                    strict[parameter.name] = drawn[parameter.name]
            params = self._resolve_aliases(drawn)
            self._total_generated += 1
            if all(f(params) for f in self._constraints) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(params: dict[str, Any]) -> dict[str, Any]:
        resolved = {}
        for name, value in params.items():
            seen = {name}
            while isinstance(value, ParameterAlias):
                if value.alias_to in seen:
                    raise ValueError(f"ParameterAlias cycle detected\n{params}")
                seen.add(value.alias_to)
                value = params[value.alias_to]
            resolved[name] = value
        return resolved

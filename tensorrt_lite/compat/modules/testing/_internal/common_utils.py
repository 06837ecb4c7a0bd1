"""torch.testing._internal.common_utils: what test suites of packages take from PyTorch's own tests."""

from __future__ import annotations

import itertools
import random
import sys
import unittest
from collections.abc import Callable, Iterable
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite.testing import assert_close, make_tensor

__all__ = ["TestCase", "freeze_rng_state", "instantiate_parametrized_tests", "make_tensor", "parametrize", "run_tests", "set_rng_seed", "subtest"]

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_LINUX = sys.platform == "linux"
IS_FBCODE = IS_SANDCASTLE = TEST_WITH_ROCM = TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_SLOW = TEST_XPU = TEST_MPS = False
TEST_CUDA = trt.cuda.is_available()
SEED = 1234
freeze_rng_state = trt.random.fork_rng


def set_rng_seed(seed: int = SEED) -> None:
    """Seed this package, Python and NumPy."""
    trt.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


class TestCase(unittest.TestCase):
    """A test case whose `assertEqual` compares tensors, and containers of them, within the tolerances of their types."""

    precision, rel_tol = 0.0, 0.0

    def setUp(self) -> None:
        set_rng_seed(SEED)

    def assertEqual(self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True, **kwargs: Any) -> None:  # noqa: N802
        if not any(isinstance(value, trt.Tensor) for value in _leaves((x, y))):
            if atol is None:
                super().assertEqual(x, y, msg)
            else:
                self.assertLessEqual(abs(x - y), atol + (rtol or 0.0) * abs(y), msg)
            return
        assert_close(x, y, atol=atol, rtol=rtol, equal_nan=equal_nan, check_dtype=exact_dtype, msg=msg)


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    return itertools.chain.from_iterable(map(_leaves, value)) if isinstance(value, (list, tuple)) else (value,)


class subtest:  # noqa: N801 (PyTorch's name)
    """The arguments of one case of `parametrize`, with a name."""

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Iterable[Any] | None = None) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, tuple(decorators or ())


def parametrize(arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None) -> Callable[[Any], Any]:
    """Mark a test to run with each of the values; `instantiate_parametrized_tests` makes the tests."""
    names = [name.strip() for name in arg_str.split(",")]

    def mark(fn: Any) -> Any:
        fn.parameters = [*getattr(fn, "parameters", []), (names, list(arg_values), name_fn)]
        return fn

    return mark


def instantiate_parametrized_tests(cls: Any) -> Any:
    """Put a test into the class for each combination of the values that `parametrize` gave."""
    for name, fn in list(vars(cls).items()):
        marks = getattr(fn, "parameters", None)
        if not marks:
            continue
        delattr(cls, name)
        for combination in itertools.product(*(values for _, values, _ in reversed(marks))):
            arguments: dict[str, Any] = {}
            label = name
            for (names, _, name_fn), case in zip(reversed(marks), combination, strict=True):
                values = case.arg_values if isinstance(case, subtest) else case
                row = dict(zip(names, values if len(names) > 1 else (values,), strict=True))
                own = case.name if isinstance(case, subtest) else None
                label += "_" + (own or (name_fn(*row.values()) if name_fn else "_".join(f"{key}_{value}" for key, value in row.items())))
                arguments |= row
            setattr(cls, label, _with_arguments(fn, arguments))
    return cls


def _with_arguments(fn: Any, arguments: dict[str, Any]) -> Any:
    def test(self: Any) -> Any:
        return fn(self, **arguments)

    return test


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the main module, and end the process with their status."""
    unittest.main(argv=argv or sys.argv)

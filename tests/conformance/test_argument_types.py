"""What dispatch modes are given has the types of the operator's schema, in all operators that samples call, forward and backward."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the samples are PyTorch's (extra `conformance`)")

import tensorrt_lite as trt  # noqa: E402
from tensorrt_lite._C.core import python_key  # noqa: E402
from tensorrt_lite._declared import declarations, schema  # noqa: E402
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from . import kinds, opinfo  # noqa: E402
from .library import Library  # noqa: E402

_FOREIGN = ("Any", "Generator", "MemoryFormat", "Layout", "Storage")
GROUPS = 4


def schemas_of(func: Any) -> list[Any]:
    """The operator's schema; of a factory, which is one object for its overloads, those of all."""
    if not isinstance(func, python_key.Factory):
        return [func._schema]
    row = declarations.find(func._name)[0]
    return [schema.parse(f"aten::{text}") for text in row.overloads or (row.schema,)]


class Typed(TorchDispatchMode):
    """Collects the arguments whose type is not the schema's. A number may be given for a Tensor, as in PyTorch."""

    def __init__(self) -> None:
        self.wrong: set[str] = set()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        found = [self.differences(func, schema.arguments, args, kwargs) for schema in schemas_of(func)]
        if all(found):
            self.wrong |= found[0]
        return func(*args, **(kwargs or {}))

    @staticmethod
    def differences(func: Any, declared: Any, args: Any, kwargs: Any) -> set[str]:
        named, wrong = {a.name: a for a in declared}, set()
        for argument, value in [*zip(declared, args), *((named[k], v) for k, v in (kwargs or {}).items() if k in named)]:
            kind = argument.type
            number = kind.base == "Tensor" and not kind.is_list and isinstance(value, (int, float, complex))
            if kind.base not in _FOREIGN and value is not argument.default and not number and not kind.accepts(value):
                wrong.add(f"{func}: {argument} got {type(value).__name__}")
        return wrong


@pytest.mark.parametrize("group", range(GROUPS))
def test_modes_get_arguments_of_the_schemas_types(group: int) -> None:
    mode, library = Typed(), Library(trt)
    for op in list(opinfo.entries(["database"]).values())[group::GROUPS]:
        cases: Any = itertools.islice(kinds.forward(op, [torch.float64]), 4) if op.supports_dtype(torch.float64, "cpu") else ()
        if kinds.applies(op, "grad"):
            cases = itertools.chain(cases, itertools.islice(kinds.grad(op), 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case in cases:
                with mode:
                    case.run(library)
    assert mode.calls > 1000
    assert not mode.wrong, sorted(mode.wrong)


def test_a_number_for_a_list_is_noticed() -> None:
    mode = Typed()
    mode.__torch_dispatch__(trt.ops.aten.new_zeros.default, (), (trt.ones(2), 3))
    assert mode.wrong == {"aten.new_zeros.default: SymInt[] size got int"}

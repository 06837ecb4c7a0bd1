"""Rows' rules of sizes and dtypes compared with the kernels for meta tensors: over ints, and over symbols, which nothing can make an int of.

    python -m tests.dispatch.shape_rules 1000 [operators]     # random sizes of each operator
    python -m tests.dispatch.shape_rules refusals 40          # what kernels refuse and rules answer, or refuse in other words
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite._declared import declarations
from tensorrt_lite._C.core import python_key
from tensorrt_lite._C.core.row_schema import schema
from tensorrt_lite._declared.shapes import Spec, infer, rules
from tensorrt_lite._transforms.batching import call_row

from tests.dispatch.shape_samples import SAMPLES, Draw

OPERATORS = sorted(rules())


class Truth:
    """The outcome of a comparison: asked for, it is a guard."""

    def __init__(self, text: str, value: bool, guards: list[str]) -> None:
        self.text, self.value, self.guards = text, value, guards

    def __bool__(self) -> bool:
        self.guards.append(self.text if self.value else f"not ({self.text})")
        return self.value


class Symbol:
    """A size that is not known: it has the arithmetic of an int, and no `__int__`, `__index__` or hash."""

    def __init__(self, text: str, hint: int, guards: list[str]) -> None:
        self.text, self.hint, self.guards = text, hint, guards

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.text


def _arithmetic(name: str, sign: str) -> None:
    function = getattr(operator, name)

    def forward(self: Symbol, other: Any) -> Any:
        return Symbol(f"({self} {sign} {other})", function(self.hint, getattr(other, "hint", other)), self.guards)

    def backward(self: Symbol, other: Any) -> Any:
        return Symbol(f"({other} {sign} {self})", function(getattr(other, "hint", other), self.hint), self.guards)

    setattr(Symbol, f"__{name}__", forward)
    setattr(Symbol, f"__r{name}__", backward)


def _comparison(name: str, sign: str) -> None:
    function = getattr(operator, name)

    def compare(self: Symbol, other: Any) -> Any:
        return Truth(f"{self} {sign} {other}", function(self.hint, getattr(other, "hint", other)), self.guards)

    setattr(Symbol, f"__{name}__", compare)


for _name, _sign in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    _arithmetic(_name, _sign)
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    _comparison(_name, _sign)
Symbol.__neg__ = lambda self: Symbol(f"(-{self})", -self.hint, self.guards)  # type: ignore[attr-defined]


def symbolic(x: Any, guards: list[str], names: list[int]) -> Any:
    """The argument with a symbol for every size of a tensor."""
    if isinstance(x, trt.Tensor):
        names.append(0)
        return Spec([Symbol(f"s{len(names)}_{i}", n, guards) for i, n in enumerate(x.shape)], x.dtype)
    return [symbolic(y, guards, names) for y in x] if isinstance(x, list) else x


def symbolic_arguments(arguments: tuple[Any, ...], guards: list[str]) -> list[Any]:
    names: list[int] = []
    return [symbolic(x, guards, names) for x in arguments]


def pointwise_sample(name: str, d: Draw) -> tuple[Any, ...]:
    """Tensors that broadcast, of types the row takes, and the defaults of its parameters."""
    row, kernel = row_of(name), schema(python_key.row_schema(name))
    kinds = {"f32": trt.float32, "f64": trt.float64, "i32": trt.int32, "i64": trt.int64, "b8": trt.bool, "c64": trt.complex64, "f16": trt.float16, "u8": trt.uint8}
    usable = [kinds[t] for t in row.dtypes if t in kinds] + ([trt.int64] if "float" in row.promote and d.below(3) == 0 else [])
    kind = d.pick(*usable)

    def argument(name: str, type: str) -> Any:
        if not type.startswith("Tensor"):
            return 1
        return d.t(d.pick("a b c", "b c", "1 c", "c", "a 1 1", ""), trt.bool if name == "condition" else kind if d.below(4) else d.pick(*usable))

    return tuple(map(argument, kernel.names, kernel.types))


def row_of(name: str) -> declarations.Declaration:
    return declarations.of(name if name in declarations.names() else name + "_")


def sample(name: str, seed: int) -> tuple[Any, ...] | None:
    d = Draw(seed)
    return pointwise_sample(name, d) if row_of(name).kind == "pointwise" else SAMPLES[name](d)


def specs(result: Any) -> Any:
    """What a kernel returned, as Specs."""
    if result is None:
        return ()
    if isinstance(result, trt.Tensor):
        return (Spec(result.shape, result.dtype),)
    return [Spec(x.shape, x.dtype) for x in result] if isinstance(result, list) else tuple(None if x is None else Spec(x.shape, x.dtype) for x in result)


def known(found: Any) -> Any:
    """Specs with the hints in place of symbols."""
    return type(found)(None if s is None else Spec([getattr(n, "hint", n) for n in s.shape], s.dtype) for s in found)


def compare(name: str, seeds: range) -> tuple[int, list[str]]:
    """(calls that the kernel answered, where a rule differs from it)."""
    answered, wrong = 0, []
    for seed in seeds:
        arguments = sample(name, seed)
        if arguments is None:
            continue
        text = ", ".join(f"{x.dtype}{tuple(x.shape)}" if isinstance(x, trt.Tensor) else str(x) for x in arguments)
        try:
            expected = specs(call_row(name, *arguments))
        except (RuntimeError, IndexError, TypeError, NotImplementedError, ValueError) as error:
            wrong.append(f"refused: {name}({text}): {error}")
            continue
        answered += 1
        guards: list[str] = []
        for given in (arguments, symbolic_arguments(arguments, guards)):
            try:
                found = known(infer(name, *given))
            except Exception as error:
                wrong.append(f"{name}({text}): {type(error).__name__}: {error}, kernel {expected}")
                break
            if list(found) != list(expected):
                wrong.append(f"{name}({text}): {found}, kernel {expected}")
                break
    return answered, wrong


def spoiled(arguments: tuple[Any, ...], d: Draw) -> tuple[Any, ...]:
    """The arguments with one size of one tensor changed, or a dimension more."""
    places = [i for i, x in enumerate(arguments) if isinstance(x, trt.Tensor)]
    i = d.pick(*places)
    shape = list(arguments[i].shape)
    if shape and d.truth():
        shape[d.below(len(shape))] += 1
    else:
        shape.insert(0, 2)
    return (*arguments[:i], trt.empty(shape, dtype=arguments[i].dtype, device="meta"), *arguments[i + 1 :])


def refusals(name: str, seeds: range) -> list[str]:
    """Calls that the kernel refuses and the rule answers, or the rule refuses in other words."""
    found = []
    for seed in seeds:
        arguments = sample(name, seed)
        if not any(isinstance(x, trt.Tensor) for x in arguments):
            continue
        arguments = spoiled(arguments, Draw(seed))
        text = ", ".join(f"{x.dtype}{tuple(x.shape)}" if isinstance(x, trt.Tensor) else str(x) for x in arguments)
        expected = result = refused = other = None
        try:
            expected = specs(call_row(name, *arguments))
        except Exception as error:
            refused = error
        try:
            result = infer(name, *arguments)
        except Exception as error:
            other = error
        if refused is not None and other is None:
            found.append(f"lenient: {name}({text}): kernel says {type(refused).__name__}: {refused}; rule {result}")
        elif refused is None and other is not None:
            found.append(f"strict: {name}({text}): rule says {type(other).__name__}: {other}; kernel {expected}")
        elif refused is None and list(expected) != list(result):
            found.append(f"differs: {name}({text}): {result}; kernel {expected}")
        elif refused is not None and (type(refused) is not type(other) or str(refused) != str(other)):
            found.append(f"words: {name}({text}): rule says {type(other).__name__}: {other}; kernel {type(refused).__name__}: {refused}")
    return found


def main(count: int, wanted: list[str]) -> None:
    total: Counter[str] = Counter()
    for name in wanted or OPERATORS:
        if row_of(name).kind != "pointwise" and name not in SAMPLES:
            print("no sample", name)
            total["no sample"] += 1
            continue
        answered, wrong = compare(name, range(count))
        refused = [w for w in wrong if w.startswith("refused")]
        if len(wrong) > len(refused) or not answered:
            total["differ"] += 1
            print(f"{name}: {answered} answered, {len(refused)} refused, {len(wrong) - len(refused)} differ")
            for line in [w for w in wrong if not w.startswith("refused")][:2] or refused[:2]:
                print("   ", line[:300])
        else:
            total["equal"] += 1
            if len(refused) > count // 2:
                print(f"{name}: {answered} answered only", refused[0][:200])
    print(dict(total))


def print_refusals(count: int) -> None:
    total: Counter[str] = Counter()
    for name in OPERATORS:
        kinds = {line.partition(":")[0]: line for line in reversed(refusals(name, range(count)))}
        total.update(kinds.keys())
        print(*(line[:300] for line in kinds.values()), sep="\n", end="\n" if kinds else "")
    print({kind: total[kind] for kind in ("lenient", "words", "strict", "differs")}, "operators")


if __name__ == "__main__" and sys.argv[1] == "refusals":
    print_refusals(int(sys.argv[2]))
elif __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

"""The rows of cysrc/ops as the package knows them at run time: every public name has one, it says how the function is called, and that is PyTorch's way."""

from __future__ import annotations

import inspect
import re
import types
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite._declared import declarations as declarations
from tensorrt_lite._C.core.overrides import BY_NAME, PublicFunction
from tensorrt_lite._declared.declarations import find
from tools import census
from tools.codegen import schema as codegen_schema
from tools.codegen.schema import load
from tools.codegen.stubs import documentation

PUBLIC = {path: f for path, f in census.public_functions().items() if isinstance(f, PublicFunction) and find(path) is not None}
COMPOSED = [row for name in declarations.names() if (row := declarations.of(name)).kind in ("composed", "factory")]
Parameter = inspect.Parameter
ROWS = Path(__file__).resolve().parent.parent / "cysrc" / "ops"


def paths(row: declarations.Declaration) -> list[str]:
    """Where a composed row says that the function is."""
    if "." in row.name:
        return [row.name]
    short = row.name.partition("_")[2]
    spaces = {"function": row.name, "method": f"Tensor.{row.name}", "nn": f"nn.functional.{row.name}", "linalg": f"linalg.{short}", "fft": f"fft.{short}", "special": f"special.{short}"}
    found = [spaces[v] for v in row.variants if v in spaces]
    return [p if p != "linalg.power" else "linalg.matrix_power" for p in found]


def test_composed_rows_are_where_they_say() -> None:
    everything = census.public_functions()
    wrong = [(row.name, path) for row in COMPOSED for path in paths(row) if path not in everything and path != "linalg." and not shared(path)]
    assert not [(name, path) for name, path in wrong if not (path.startswith("_") and hasattr(trt, path))]


def shared(path: str) -> bool:
    """`linalg.matmul` is the package's function."""
    space, _, name = path.rpartition(".")
    return space == "linalg" and not hasattr(trt.linalg, name) and any(hasattr(trt.linalg, n) for n in ("matmul", "matrix_power"))


def test_rows_say_what_calls_do() -> None:
    """The manner of handing over, other spellings and factories come from the row."""
    wrong = []
    for path, function in PUBLIC.items():
        row, form = find(path)
        by_name = row.by_name is True or row.by_name == form
        if (function.manner == BY_NAME, function.spellings or {}, bool(function.factory)) != (by_name, row.spellings, row.kind == "factory"):
            wrong.append(path)
    assert not wrong


def bare(function: object) -> object:
    """What runs in the end."""
    while isinstance(function, PublicFunction):
        function = function.impl
    return function


def test_bodies_take_the_arguments_that_rows_name() -> None:
    wrong = []
    for path, function in PUBLIC.items():
        row, form = find(path)
        if row.kind not in ("composed", "factory"):
            continue
        taken = inspect.signature(bare(function)).parameters
        if any(p.kind is Parameter.VAR_KEYWORD for p in taken.values()):
            continue
        declared = [p for p in declarations_of(function) if p.name not in ("self", "input")]
        for p in declared:
            name = (function.spellings or {}).get(p.name, p.name)
            if name not in taken and name != "*" and p.kind is not Parameter.VAR_POSITIONAL:
                wrong.append(f"{path}: {p.name}")
    assert not wrong


def declarations_of(function: PublicFunction) -> list[Parameter]:
    return list(inspect.signature(function).parameters.values())


def test_compositions_are_public_as_their_rows_say() -> None:
    """`EXPORTS` of a composition's module and `WITHOUT_ROW` of a family's are for functions without a row."""
    from importlib import import_module

    from tensorrt_lite import _C, _compositions

    for family in _compositions.FAMILIES:
        module = import_module(f"tensorrt_lite._compositions.{family}")
        assert [name for name in getattr(module, "EXPORTS", {}) if find(name) is not None] == [], family
    for family in _C.FAMILIES:
        module = import_module(f"tensorrt_lite._C.ops.{family}")
        assert [name for name in getattr(module, "WITHOUT_ROW", {}) if find(name) is not None] == [], family


def test_composed_rows_have_a_body() -> None:
    bodies = {row.name: row.body for row in COMPOSED}
    assert [name for name, body in bodies.items() if not body.startswith("tensorrt_lite.")] == []
    assert bodies["hstack"] == "tensorrt_lite._compositions.joining.hstack" and bodies["linalg_cond"] == "tensorrt_lite._compositions.linear_algebra.linalg_cond"


def test_docstrings_say_something() -> None:
    wrong = []
    for path, function in census.public_functions().items():
        text = (function.__doc__ or "").strip()
        first = text.splitlines()[0] if text else ""
        if len(first) < 8 or len(text) > 9000:
            wrong.append((path, first))
    assert not wrong


def test_rows_with_kernels_have_their_docstring() -> None:
    assert [op.name for op in load(ROWS) if op.kind not in ("composed", "factory") and not op.row.get("doc")] == []


def test_functions_beside_the_operators_keep_their_own() -> None:
    assert "fan" in trt.nn.init.kaiming_uniform_.__doc__ and trt.nn.init.normal_.__doc__ != trt.Tensor.normal_.__doc__
    assert find("nn.init.normal_") is None and find("cross_entropy") is None and find("linalg.matmul")[0].name == "matmul"


def test_in_place_forms_and_methods_speak_of_self() -> None:
    assert trt.Tensor.add_.__doc__.startswith("In-place form of add()")
    assert "self + alpha * other" in trt.Tensor.add.__doc__ and "input + alpha * other" in trt.add.__doc__
    assert trt.absolute.__doc__.startswith("The same as abs().")
    assert trt.permute_copy.__doc__.startswith("permute() with copies")
    assert "add()" in trt.Tensor.__radd__.__doc__


def test_the_table_of_operators_has_every_row() -> None:
    operators = load(ROWS)
    table = documentation(operators)
    assert [op.public_name for op in operators if f"| `{op.public_name}` |" not in table] == []
    assert set(declarations.names()) == {op.public_name for op in operators}


def test_composed_rows_are_operators() -> None:
    """`ops.aten.<name>` and its overloads exist, and a call is the public function's."""
    import pickle

    wrong = []
    for row in COMPOSED:
        if "." not in row.name:
            packet = getattr(trt.ops.aten, row.name)
            wrong += [f"{row.name}.{o}" for o in packet.overloads() if getattr(packet, o, None) is None]
    assert not wrong
    x = trt.arange(6.0)
    op = trt.ops.aten.chunk.default
    assert [part.tolist() for part in op(x, 2)] == [[0, 1, 2], [3, 4, 5]] and trt.ops.aten.linalg_norm(x).item() == trt.linalg.norm(x).item()
    assert (op.name(), str(op), repr(op)) == ("aten::chunk", "aten.chunk.default", "<OpOverload(op='aten.chunk', overload='default')>")
    assert pickle.loads(pickle.dumps(op)).overload == "default" and op.overloadpacket is trt.ops.aten.chunk
    assert trt.ops.aten.to.overloads()[:3] == ["device", "dtype", "other"] and trt.ops.aten.max.other(x, x).tolist() == x.tolist()
    assert set(trt.ops.aten.sum.overloads()) == {"default", "dim_IntList", "out", "IntList_out"} and trt.ops.aten.sum.dim_IntList(x, [0]).item() == 15
    with pytest.raises(AttributeError):
        trt.ops.aten.chunk.other


# ---- beside PyTorch ------------------------------------------------------------------------------------------------

# Signatures that differ on purpose. At most 1 % of all.
_OUT_DTYPE = "products of CUDA into another dtype (docs/gaps.md)"
_FROM = "PyTorch's `from` is a keyword of Python"
DIFFERENT = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "Tensor.mm", "Tensor.bmm", "Tensor.addmm", "Tensor.baddbmm"), _OUT_DTYPE),
    **dict.fromkeys(("nn.functional.scaled_mm", "nn.functional.scaled_grouped_mm"), "the default of output_dtype is bfloat16, which no schema can say"),
    **dict.fromkeys(("Tensor.random_", "Tensor.uniform_"), _FROM),
}


def signatures_beside_torch() -> tuple[list[str], int]:
    torch = pytest.importorskip("torch")
    spaces = {"": torch, "Tensor": torch.Tensor, "nn.functional": torch.nn.functional, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special}
    differ, compared = [], 0
    for path, function in PUBLIC.items():
        space, _, name = path.rpartition(".")
        theirs = getattr(spaces[space], name, None)
        theirs = getattr(theirs, "__wrapped__", theirs)
        if theirs is None:
            continue
        ours = [p for p in declarations_of(function)]
        if isinstance(theirs, types.FunctionType):
            wanted = list(inspect.signature(theirs).parameters.values())
            if any(p.kind is Parameter.VAR_KEYWORD for p in wanted):
                continue  # a dispatcher of TorchScript's
            compared += 1
            if described(ours) != described(wanted):
                differ.append(f"{path}: {described(ours)}, PyTorch {described(wanted)}")
        else:
            flat = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}.get(space, "") + name
            overloads = [s for s in torch._C._jit_get_schemas_for_operator(f"aten::{flat}") if callable_from_python(torch, flat, s)]
            if not overloads:
                continue
            compared += 1
            known = {p.name for p in ours} | set(function.spellings or {})
            for schema in overloads:
                unknown = {a.name for a in schema.arguments if a.name not in ("self", "layout", "pin_memory")} - known - {"input"}
                if unknown:
                    differ.append(f"{path}: {schema} has {sorted(unknown)}")
            if len(overloads) == 1 and not function.factory and "*" not in (function.spellings or {}).values():
                wanted = [a for a in overloads[0].arguments if a.name not in ("self", "input")]
                named = {a.name for a in wanted}
                have = [p for p in ours if p.name not in ("self", "input") and (p.name in named or p.kind is not p.KEYWORD_ONLY)]
                if [p.name for p in have] != [a.name for a in wanted]:
                    differ.append(f"{path}: {have}, PyTorch {wanted}")
                elif any(not same_default(p, a) for p, a in zip(have, wanted)):
                    differ.append(f"{path}: defaults {described(ours)}, PyTorch {overloads[0]}")
    return differ, compared


def same_default(ours: Parameter, theirs: object) -> bool:
    if ours.default is Parameter.empty:
        return not theirs.has_default_value()
    if not theirs.has_default_value():
        return False
    if theirs.name == "memory_format":
        return True  # an enum's number there
    value = theirs.default_value
    value = tuple(value) if isinstance(value, list) else value
    if isinstance(ours.default, int) and isinstance(value, tuple) and set(value) == {ours.default}:
        return True
    if theirs.name == "pin_memory":
        return not ours.default and not value
    return ours.default == value or {ours.default, value} == {None, ()}  # no dimensions: all


def described(parameters: list[Parameter]) -> list[tuple]:
    """Names, kinds and defaults, but for the name of the first tensor."""
    found = []
    for p in parameters:
        default = repr(p.default).replace("tensorrt_lite.", "torch.") if p.default is not p.empty else None
        found.append(("*" * (p.kind is p.VAR_POSITIONAL) + ("input" if p.name in ("self", "input") else p.name), p.kind is p.KEYWORD_ONLY, default))
    return found


def callable_from_python(torch, flat: str, schema) -> bool:
    try:
        known = getattr(torch.ops.aten, flat).overloads()
    except AttributeError:
        return False
    full = f"aten::{flat}.{schema.overload_name}".rstrip(".")
    eager = torch._C._dispatch_has_kernel(full)  # TorchScript's own are not in the dispatcher
    return (schema.overload_name or "default") in known and (eager or flat in ("size", "stride")) and "Dimname" not in str(schema) and not any(a.is_out for a in schema.arguments)


def test_signatures_are_pytorchs() -> None:
    differ, compared = signatures_beside_torch()
    wrong = [d for d in differ if d.partition(":")[0] not in DIFFERENT]
    assert not wrong
    assert set(DIFFERENT) == {d.partition(":")[0] for d in differ}
    assert compared > 1000 and len(DIFFERENT) <= compared // 100


# ---- what the comparison found -------------------------------------------------------------------------------------


def test_copies_take_the_arguments_of_their_views() -> None:
    x = trt.arange(6.0)
    assert trt.slice_copy(x).tolist() == x.tolist() and trt.slice_copy(x, 0, 1, None, 2).tolist() == [1, 3, 5]
    assert [part.tolist() for part in trt.split_copy(x, split_size=4)] == [[0, 1, 2, 3], [4, 5]]
    assert trt.isin(element=2, test_elements=x).item() and trt.nan_to_num(trt.tensor([float("nan")]), nan=None).item() == 0
    assert trt.fft.fftfreq(4, pin_memory=False).shape == (4,) and trt.flip(x, dims=(0,)).tolist() == x.tolist()[::-1]


@pytest.mark.parametrize("name", ["tensorrt_lite", "torch"])
def test_dim_order_refuses_what_is_not_determined(name: str) -> None:
    library = pytest.importorskip(name)
    x, formats = library.empty(2, 3, 5, 7), [library.contiguous_format, library.channels_last]
    assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    single = library.empty(1, 2, 3, 4)
    assert single.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="unique dim order"):
        single.dim_order(ambiguity_check=True)
    with pytest.raises(TypeError, match="must be a bool or a list"):
        single.dim_order(ambiguity_check="any")


def test_the_table_of_row_keys_has_every_key() -> None:
    rows = {word.strip() for row in re.findall(r"^\| ([\w, ]+) \|", codegen_schema.__doc__ or "", re.M) for word in row.split(",")} - {"key"}
    assert rows == codegen_schema.KNOWN_KEYS | codegen_schema.COMPOSED_KEYS

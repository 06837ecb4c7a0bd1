"""The CUDA C++ of declared pointwise operators, rendered at first use: a functor that holds the operator's expression, and three entry
points over the bodies of iteration.cuh (`contiguous`, `strided`, `any`)."""

from tensorrt_lite._C.core.dtype cimport category, CAT_INT
from tensorrt_lite._C.core.dtype import table

_ROWS = table()
# suffix, storage type and compute type by dtype code (core/dtype_table.h); integers of every width compute in themselves here
TYPES = tuple((suffix, cuda, cuda if category[code] <= CAT_INT else _ROWS[compute][2]) for code, (suffix, _, cuda, compute, *_) in enumerate(_ROWS))
_OWN_TYPES = frozenset(cuda for suffix, cuda, _ in TYPES if cuda == suffix)
LOOPS = [code for code, row in enumerate(_ROWS) if row[5]]
BOOL = 0


def pointwise_source(name: str, dtype: int) -> str:
    """The kernels of loop `name` (an operator, or the fused gradient of one) computing in the dtype of this code. KeyError without one."""
    from tensorrt_lite._C.declared_loops import LOOPS as declared
    from tensorrt_lite._C.expression import to_cuda

    operands, parameters, conditions, texts, output = declared[name]
    suffix = TYPES[dtype][0]
    expression = next((text for dtypes, text in texts.items() if suffix in dtypes), None)
    if expression is None:
        raise KeyError(f"{name}: no expression for {suffix}")
    inputs = [(f"v_{operand}", BOOL if operand in conditions else dtype) for operand in operands]
    out = BOOL if output == "bool" else _ROWS[dtype][4] if output == "real" else dtype
    return _render(name, dtype, out, inputs, [f"v_{p}" for p in parameters], to_cuda(expression, suffix))


def copy_source(source: int, destination: int) -> str:
    """The kernels that move elements from one dtype to another."""
    return _render("copy", source, destination, [("x", source)], [], "x")


def _render(name: str, dtype: int, out: int, inputs: list[tuple[str, int]], parameters: list[str], expression: str) -> str:
    t = TYPES[dtype][2]
    # what becomes bool by an operator's definition is "not zero"; the kernel's conversion to the output's type does the rest
    result, value = ("bool", f"truth({expression})") if out == BOOL and name != "copy" else (TYPES[out if name != "copy" else dtype][2], expression)
    members = "".join(f"    {t} {p};\n" for p in parameters)
    arguments = ", ".join(f"{TYPES[code][2]} {v}" for v, code in inputs)
    sources = "".join(f", trt::Source<{storage_type(code)}> {v}" for v, code in inputs)
    given = "".join(f", {_qualified(t)} {p}" for p in parameters)
    passed = "".join(f", {v}" for v, _ in inputs)
    made = f"trt::Functor{{{', '.join(parameters)}}}"
    n = len(inputs) + 1
    special = '#include "special_math.cuh"\n' if "special_" in expression else ""
    text = f"""// {name}, {TYPES[dtype][0]}
#include "iteration.cuh"
{special}
namespace trt {{
struct Functor {{
    using T = {t};
{members}    __device__ __forceinline__ {result} operator()({arguments}) const {{ return static_cast<{result}>({value}); }}
}};
}}  // namespace trt
"""
    for form, extent in (("contiguous", "unsigned long long"), ("strided", f"trt::StridedLayout<{n}>"), ("any", f"trt::AnyLayout<{n}>")):
        text += f"""
extern "C" __global__ void __launch_bounds__(256) {form}({storage_type(out)}* out{sources}{given}, const {extent} extent) {{
    trt::iterate_{form}(extent, {made}, out{passed});
}}
"""
    return text


def _qualified(text: str) -> str:
    return f"trt::{text}" if text.startswith("complex") or text in _OWN_TYPES else text


def storage_type(code: int) -> str:
    """The C++ type of a dtype's elements, for use outside namespace trt."""
    return _qualified(TYPES[code][1])

"""The functions of the language of `shape`, `dtype` and `require`, over ints and symbols. Sizes are lists."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core import dtype as dtypes
from tensorrt_lite.tensor import Tensor as _Tensor
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_transform = _LazyModule("tensorrt_lite._C.core.transform")

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLOAT_OF_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_COMPLEX_OF_FLOAT = {"float16": "complex32", "float32": "complex64", "float64": "complex128", "bfloat16": "complex64"}


def named(name: str) -> Any:
    """A dtype by its name."""
    return dtypes._dtype_by_name(name)


def _name(kind: Any) -> str:
    return str(kind).rpartition(".")[2]


# ---- sizes -----------------------------------------------------------------------------------------------------------


def sizes(x: Any) -> list[Any]:
    """The sizes of a tensor."""
    return list(x.shape) if hasattr(x, "shape") else list(x) if isinstance(x, (list, tuple)) else []


def ndim(x: Any) -> int:
    """The number of dimensions."""
    return len(sizes(x))


def wrap(dim: int, rank: int) -> int:
    """A dimension counted from the front. IndexError outside of the rank; a tensor without dimensions has one."""
    most = max(rank, 1)
    if not -most <= dim < most:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {dim})")
    return dim % most


def size(x: Any, dim: int) -> Any:
    """The size along a dimension, one of a tensor without dimensions."""
    given = sizes(x)
    d = wrap(dim, len(given))
    return given[d] if given else 1


def prod(values: Sequence[Any]) -> Any:
    """The product of numbers."""
    found: Any = 1
    for n in values:
        found = found * n
    return found


def numel(x: Any) -> Any:
    """The number of elements."""
    return prod(sizes(x))


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers."""
    return a if a >= b else b


def broadcast(*operands: Any) -> list[Any]:
    """The common sizes of operands. RuntimeError where they have none."""
    given = [sizes(x) for x in operands if x is not None]
    rank = max(map(len, given), default=0)
    found: list[Any] = [1] * rank
    for own in given:
        for i, n in enumerate(own, rank - len(own)):
            if isinstance(found[i], int) and found[i] == 1:
                found[i] = n
            elif found[i] is n or (isinstance(n, int) and n == 1) or found[i] == n:
                pass
            elif found[i] == 1:
                found[i] = n
            elif n != 1:
                raise RuntimeError(f"The size of tensor a ({found[i]}) must match the size of tensor b ({n}) at non-singleton dimension {i}")
    return found


def broadcast_operands(operator: str, *operands: Any) -> list[Any]:
    """`broadcast` whose error names a pointwise operator and its operands' sizes."""
    try:
        return broadcast(*operands)
    except RuntimeError as error:
        raise RuntimeError(f"{error} ({operator}: shapes {', '.join(str(sizes(x)) for x in operands)})") from None


def dims_of(dim: Any, rank: int) -> list[int]:
    """The dimensions that an argument names, sorted; None or an empty list names all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(rank))
    found = [wrap(d, rank) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    if not rank:
        return []
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return sorted(found)


def without(given: list[Any], dim: Any, keepdim: bool = False) -> list[Any]:
    """Sizes after a reduction over dimensions."""
    gone = dims_of(dim, len(given))
    return [1 if i in gone else n for i, n in enumerate(given) if keepdim or i not in gone]


def replace(given: list[Any], dim: int, n: Any) -> list[Any]:
    """Sizes with another one along a dimension."""
    d = wrap(dim, len(given))
    return [*given[:d], n, *given[d + 1 :]] if given else []


def insert(given: list[Any], dim: int, n: Any) -> list[Any]:
    """Sizes with one more dimension, which then is at `dim`."""
    d = wrap(dim, len(given) + 1)
    return [*given[:d], n, *given[d:]]


def swap(given: list[Any], a: int, b: int) -> list[Any]:
    """Sizes with two dimensions exchanged."""
    a, b, found = wrap(a, len(given)), wrap(b, len(given)), list(given)
    if found:
        found[a], found[b] = found[b], found[a]
    return found


def permuted(given: list[Any], dims: Sequence[int]) -> list[Any]:
    """Sizes in another order."""
    if len(dims) != len(given):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {len(given)} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap(d, len(given)) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return [given[d] for d in order]


def inferred(size: Sequence[Any], count: Any) -> list[Any]:
    """Sizes for `count` elements, in which one may be -1. RuntimeError where they do not fit."""
    unknown = [i for i, n in enumerate(size) if isinstance(n, int) and n == -1]
    known = prod([n for i, n in enumerate(size) if i not in unknown])
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if not unknown:
        if known != count:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
        return list(size)
    if known == 0:
        if count == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension size -1 can be any value and is ambiguous")
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    if count % known != 0:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    return [count // known if i in unknown else n for i, n in enumerate(size)]


def expanded(given: list[Any], size: Sequence[Any]) -> list[Any]:
    """The sizes of a view that repeats dimensions of size one. -1 keeps a size."""
    more = len(size) - len(given)
    if more < 0:
        raise RuntimeError(f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(given)})")
    found = list(size[:more])
    for n in found:
        if n < 0:
            raise RuntimeError(f"expand: the expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension")
    for own, n in zip(given, size[more:]):
        if isinstance(n, int) and n == -1 or own is n or own == n:
            found.append(own)
        elif own == 1:
            found.append(n)
        else:
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({own})")
    return found


def at(values: Any, i: int) -> Any:
    """An argument for each dimension, where one number may stand for all."""
    return values if not isinstance(values, (list, tuple)) else values[i] if len(values) > 1 else values[0]


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    return (a + b - 1) // b


def conv(n: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """The number of windows along a dimension. RuntimeError for a kernel larger than the padded input."""
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    if span < 0:
        raise RuntimeError(f"Calculated padded input size per channel: ({n + 2 * padding}). Kernel size: ({dilation * (kernel - 1) + 1}). Kernel size can't be greater than actual input size")
    return span // stride + 1


def conv_sizes(x: Any, weight: Any, stride: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any]) -> list[Any]:
    """The spatial sizes of a convolution's result."""
    return [conv(n, k, at(stride, i), at(padding, i), at(dilation, i)) for i, (n, k) in enumerate(zip(sizes(x)[2:], sizes(weight)[2:]))]


def convolution_sizes(
    x: Any, weight: Any, stride: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any], transposed: bool, output_padding: Sequence[Any], groups: int
) -> list[Any]:
    """The sizes of a convolution's result, or of its adjoint's."""
    if not transposed:
        return [size(x, 0), size(weight, 0), *conv_sizes(x, weight, stride, padding, dilation)]
    spatial = [
        (n - 1) * at(stride, i) - 2 * at(padding, i) + at(dilation, i) * (k - 1) + at(output_padding, i) + 1
        for i, (n, k) in enumerate(zip(sizes(x)[2:], sizes(weight)[2:]))
    ]
    return [size(x, 0), size(weight, 1) * groups, *spatial]


def pool(n: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Any:
    """The number of windows of a pooling; with `ceil` one that begins within the input or its left padding counts."""
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    found = (ceil_div(span, stride) if ceil else span // stride) + 1
    if ceil and (found - 1) * stride >= n + padding:
        found = found - 1
    return found


def pool_sizes(given: list[Any], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, spatial: int = 2) -> list[Any]:
    """The sizes of a pooling's result over the last dimensions."""
    found = [pool(n, at(kernel, i), at(stride, i) if stride else at(kernel, i), at(padding, i), at(dilation, i), ceil) for i, n in enumerate(given[-spatial:])]
    for n in found:
        if n < 1:
            raise RuntimeError(f"Given input size: ({'x'.join(map(str, given[-spatial - 1 :]))}). Calculated output size: ({'x'.join(map(str, found))}). Output size is too small")
    return [*given[:-spatial], *found]


def padded(given: list[Any], pad: Sequence[Any]) -> list[Any]:
    """Sizes after padding: (before, after) by dimension, the last one first."""
    found = list(given)
    for i in range(len(pad) // 2):
        found[len(given) - 1 - i] = found[len(given) - 1 - i] + pad[2 * i] + pad[2 * i + 1]
    return found


def sliced(n: Any, start: Any, end: Any, step: Any) -> Any:
    """The number of elements of start:end:step among n. None: from the first, to the last."""
    start = 0 if start is None else start
    end = n if end is None or (isinstance(end, int) and end >= 2**63 - 1) else end
    if start < 0:
        start = start + n
    if end is not n and end < 0:
        end = end + n
    start = 0 if start < 0 else n if start > n else start
    end = end if end is n else start if end < start else n if end > n else end
    return ceil_div(end - start, step)


def split(given: list[Any], lengths: Sequence[Any], dim: int) -> list[list[Any]]:
    """Sizes of consecutive slices along a dimension."""
    return [replace(given, dim, n) for n in lengths]


def times(n: Any) -> int:
    """A size as a plain number, for results that are as many tensors: of a symbol what its guards fix."""
    found = 0
    while not isinstance(n, int) and n != found:
        found += 1
    return n if isinstance(n, int) else found


def chunks(n: Any, most: Any) -> list[Any]:
    """Lengths of n elements in runs of `most`, the last one shorter."""
    if most < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={most}")
    if most == 0:
        if n != 0:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        return [n]
    count = times((n + most - 1) // most)
    return [*[most] * (count - 1), n - most * (count - 1)] if count else [n]


def joined(tensors: Sequence[Any], dim: int) -> list[Any]:
    """Sizes of tensors side by side; an empty vector joins anything."""
    given = [sizes(t) for t in tensors]
    counted = [s for s in given if not (len(s) == 1 and isinstance(s[0], int) and s[0] == 0)] or given[:1]
    d = wrap(dim, len(counted[0]))
    for own in counted[1:]:
        if len(own) != len(counted[0]):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(counted[0])} and {len(own)}")
        for i, (a, b) in enumerate(zip(counted[0], own)):
            if i != d and a is not b and a != b:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected {a} in dimension {i} but got {b}")
    total: Any = counted[0][d]
    for own in counted[1:]:
        total = total + own[d]
    return replace(counted[0], d, total)


def indexed(x: Any, indices: Sequence[Any]) -> list[Any]:
    """Sizes of x[indices], where None takes a dimension whole. Masks are refused: what they select depends on their elements."""
    given = sizes(x)
    for i in indices:
        if i is not None and i.dtype in (named("bool"), named("uint8")):
            raise NotImplementedError("index: the sizes of what a mask selects depend on its elements")
    used = [k for k, i in enumerate(indices) if i is not None]
    if len(indices) > len(given):
        raise IndexError(f"too many indices for tensor of dimension {len(given)}")
    if not used:
        return given
    common = broadcast(*[i for i in indices if i is not None])
    rest = [n for k, n in enumerate(given) if k not in used]
    first = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    return [*rest[:first], *common, *rest[first:]]


def squeezed(given: list[Any], dim: Any) -> list[Any]:
    """Sizes without those of one among the dimensions, None for all."""
    named_dims = dims_of(dim, len(given)) if dim is None or dim != [] and dim != () else []
    return [n for i, n in enumerate(given) if i not in named_dims or n != 1]


def diagonal_of(given: list[Any], offset: Any, a: int, b: int) -> list[Any]:
    """Sizes of the diagonals of two dimensions, whose length comes last."""
    a, b = wrap(a, len(given)), wrap(b, len(given))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {a}, {b}")
    rows, columns = (given[a], given[b] - offset) if offset >= 0 else (given[a] + offset, given[b])
    length = rows if rows <= columns else columns
    return [*[n for i, n in enumerate(given) if i not in (a, b)], length if length > 0 else 0]


def viewed_as(given: list[Any], old: int, new: int) -> list[Any]:
    """Sizes of the same bytes as elements of another size."""
    if old == new:
        return given
    if not given:
        raise RuntimeError(f"self.dim() cannot be 0 to view a tensor whose elements have {old} bytes as elements of {new}")
    last = given[-1] * old
    if last % new != 0:
        raise RuntimeError(f"self.size(-1) must be divisible by {new // old} to view elements of {old} bytes as elements of {new}, but got {given[-1]}")
    return [*given[:-1], last // new]


def is_vector_batch(a: Any, b: Any) -> bool:
    """Whether the right side of a linear system is a batch of vectors."""
    left, right = sizes(a), sizes(b)
    return len(right) == 1 or (len(right) == len(left) - 1 and same(right, left[:-1]))


def segments(data: Any, lengths: Any, offsets: Any, axis: int) -> list[Any]:
    """Sizes of a reduction over segments along an axis."""
    bounds = sizes(lengths) if lengths is not None else sizes(offsets)
    count = bounds[axis] if lengths is not None else bounds[axis] - 1
    return [*sizes(data)[:axis], count, *sizes(data)[axis + 1 :]]


def longest(lengths: Any) -> Any:
    """The largest of some lengths, which are numbers."""
    if hasattr(lengths, "shape"):
        raise NotImplementedError("the sizes of the result depend on the elements of the lengths")
    return max(lengths, default=0)


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two lists of sizes are equal."""
    return len(a) == len(b) and all(m is n or m == n for m, n in zip(a, b))


# ---- dtypes ----------------------------------------------------------------------------------------------------------


def dtype(x: Any) -> Any:
    """The dtype of a tensor; of a Python number what a tensor of it would have."""
    found = getattr(x, "dtype", None)
    if found is not None:
        return found
    if isinstance(x, bool):
        return named("bool")
    if isinstance(x, int):
        return named("int64")
    return complex_of(dtypes.get_default_dtype()) if isinstance(x, complex) else dtypes.get_default_dtype()


def label(kind: Any) -> str:
    """A dtype's name in messages."""
    return str(dtypes.labels()[kind])


def is_float(kind: Any) -> bool:
    """Of real floating-point numbers."""
    return bool(kind.is_floating_point)


def is_complex(kind: Any) -> bool:
    """Of complex numbers."""
    return bool(kind.is_complex)


def is_integral(kind: Any) -> bool:
    """Of integers or bool."""
    return not kind.is_floating_point and not kind.is_complex


def _category(kind: Any) -> int:
    return 3 if kind.is_complex else 2 if kind.is_floating_point else 0 if _name(kind) == "bool" else 1


def promote(*operands: Any) -> Any:
    """The dtype in which operands are combined: tensors before those without dimensions, these before Python numbers, unless the latter are of a higher category."""
    ranked: list[list[Any]] = [[], [], []]
    for x in operands:
        if x is None:
            continue
        number = not hasattr(x, "shape") or getattr(x, "number", False) or _is_number(x)
        ranked[2 if number else 1 if ndim(x) == 0 else 0].append(dtype(x))
    found: Any = None
    for kinds in ranked:
        if not kinds:
            continue
        here = reduce(dtypes.promote_types, kinds)
        if found is None:
            found = here
        elif _category(here) > _category(found):
            if is_float(found):
                found = complex_of(found)
            elif kinds is ranked[2] and not is_integral(here):
                found = complex_of(dtypes.get_default_dtype()) if is_complex(here) else dtypes.get_default_dtype()
            else:
                found = dtypes.promote_types(found, here)
    return found


def _is_number(x: Any) -> bool:
    return isinstance(x, _Tensor) and _transform.is_number(x)


def float_of(kind: Any) -> Any:
    """The dtype of functions with values in real or complex numbers: integers in the default one."""
    return dtypes.get_default_dtype() if is_integral(kind) else kind


def real_of(kind: Any) -> Any:
    """Of the parts of complex numbers; other types as they are."""
    return named(_FLOAT_OF_COMPLEX[_name(kind)]) if kind.is_complex else kind


def complex_of(kind: Any) -> Any:
    """Of complex numbers with parts of that type."""
    return kind if kind.is_complex else named(_COMPLEX_OF_FLOAT[_name(kind)])


def compute(kind: Any) -> Any:
    """The type in which halves are computed; other types as they are."""
    return named("float32") if _name(kind) in ("float16", "bfloat16") else kind


def total(kind: Any) -> Any:
    """The dtype of a sum: int64 of integers."""
    return named("int64") if is_integral(kind) else kind


def given(*kinds: Any) -> Any:
    """The first dtype that is not None."""
    return next(kind for kind in kinds if kind is not None)


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that has the numbers of both."""
    return dtypes.promote_types(a, b)


def promote_all(tensors: Sequence[Any]) -> Any:
    """The dtype in which tensors are joined."""
    return promote(*tensors)


def itemsize(kind: Any) -> int:
    """Bytes of an element."""
    return int(kind.itemsize)

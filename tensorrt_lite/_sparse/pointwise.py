"""Elementwise operators of sparse tensors: those that keep zeros run on the values; sums join entries, products look indices up."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.autograd.attributes import data
from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._functions.promotion import result_type
from tensorrt_lite._sparse.parts import (
    COO,
    LAYOUTS,
    NAMES,
    Parts,
    assign,
    coalesce,
    compressed_of,
    coo_of,
    dense_at,
    has_rows,
    int64,
    is_blocked,
    is_sparse,
    layout_number,
    linear_keys,
    make_compressed,
    make_coo,
    merged,
    number_of,
    ops,
    parts,
    recorded,
    values_of,
    with_values,
)
from tensorrt_lite._sparse.table import operator, public
from tensorrt_lite._sparse.tensor import copy_of
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_convert = _LazyModule("tensorrt_lite._sparse.convert")
_tensor = _LazyModule("tensorrt_lite.tensor")

# f(0) is 0, so that it is enough to compute with the values
_KEEPS_ZERO = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "log1p", "neg", "rad2deg", "round", "sgn", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "relu", "isinf", "isnan", "isposinf", "isneginf", "signbit", "nan_to_num", "square", "angle",
)  # fmt: skip
_LINEAR = {"neg", "deg2rad", "rad2deg", "conj_physical"}


def summed(t: Any) -> Any:
    """The tensor with one entry for each index: what functions that are not linear need."""
    return coalesce(t) if number_of(t) == COO else t


def _on_values(name: str) -> Any:
    f = getattr(ops, name)

    def run(t: Any, *others: Any) -> Any:
        if not is_sparse(t) or any(is_sparse(x) for x in others):
            return NotImplemented
        t = t if name in _LINEAR else summed(t)
        return with_values(t, f(values_of(t), *others))

    return run


for _name in _KEEPS_ZERO:
    operator(_name)(_on_values(_name))


@public("positive")
def positive(t: Any) -> Any:
    return t


@public("conj", "resolve_conj", "resolve_neg")
def conj(t: Any) -> Any:
    return with_values(t, ops.conj_physical(values_of(t))) if t.is_complex() else t


@public("real", "imag", "multinomial", "bernoulli", "bernoulli_", "normal")
def refused(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


@operator("clone")
def clone(t: Any, memory_format: Any = None) -> Any:
    return recorded(lambda x: copy_of(x), lambda grad, needs, x: (grad,), t)


@operator("alias")
def alias(t: Any) -> Any:
    return recorded(data, lambda grad, needs, x: (grad,), t)


@operator("detach")
@public("detach")
def detach(t: Any) -> Any:
    return data(t)


@public("contiguous")
def contiguous(t: Any, memory_format: Any = None) -> Any:
    return t


# ---- types and devices ----------------------------------------------------------------------------------------------


def converting(name: str) -> Any:
    """A method that converts: its effect on the values says what becomes of the tensor."""
    method = getattr(_tensor.Tensor, name)

    def run(t: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("memory_format", None)
        if not is_sparse(t):  # type_as(sparse)
            return t.to(args[0].dtype) if name == "type_as" or isinstance(args[0], type(t)) else NotImplemented
        given = tuple(parts(x).values if is_sparse(x) else x for x in args)
        v = values_of(t)
        changed = method(v, *given, **kwargs)
        if changed is v:
            return t
        if changed.device != v.device:
            p = parts(t)
            found = tuple(x.to(changed.device) for x in (p.indices, p.compressed, p.plain) if x is not None)
            moved = _core.make(p.layout, tuple(t.shape), (*found, changed.detach()), p.sparse_dim, p.dense_dim, p.coalesced)
            return with_values(moved, changed)
        return with_values(t, changed)

    return run


for _name in "to type_as cpu cuda float double half bfloat16 int long short char byte bool cfloat cdouble chalf".split():
    public(_name)(converting(_name))


@operator("_to_copy", "to_copy")
def to_copy(t: Any, *args: Any, **kwargs: Any) -> Any:
    return NotImplemented


# ---- sums -----------------------------------------------------------------------------------------------------------


def _scaled(t: Any, alpha: Any) -> Any:
    return t if alpha == 1 and not isinstance(alpha, bool) else t * alpha


@operator("add")
def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    return _add("add", a, b, alpha)


@operator("sub")
def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    return _add("sub", a, b, -alpha)


@operator("rsub")
def rsub(a: Any, b: Any, alpha: Any = 1) -> Any:
    return _add("sub", b, a, -alpha)


def _add(name: str, a: Any, b: Any, alpha: Any) -> Any:
    if not is_sparse(b):
        if not is_sparse(a):
            return NotImplemented  # the target is what is sparse
        if not isinstance(b, type(a)) and not hasattr(b, "layout") or number_of(a) == COO:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _add(name, b if alpha == 1 else b * alpha, a, 1)
    if not is_sparse(a):
        if not hasattr(a, "layout"):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return add_to_dense(a, b, alpha)
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}")
    if a.layout is not b.layout:
        raise RuntimeError(f"{name}(sparse, sparse): expected both to have the same layout, got {a.layout} and {b.layout}")
    dtype = result_type(parts(a).values, parts(b).values) if a.dtype is not b.dtype else a.dtype

    def derive(grad: Any, needs: Any, x: Any, y: Any) -> Any:
        gx = grad if x.dtype is grad.dtype else grad.to(x.dtype)
        gy = _scaled(grad, alpha if not isinstance(alpha, complex) else alpha.conjugate())
        return gx if needs[0] else None, (gy if y.dtype is gy.dtype else gy.to(y.dtype)) if needs[1] else None

    return recorded(lambda x, y: _joined(x, y, alpha, dtype), derive, a, b)


def _joined(a: Any, b: Any, alpha: Any, dtype: Any) -> Any:
    """The entries of both, without history."""
    p, q = parts(a), parts(b)
    if p.sparse_dim == q.sparse_dim and (p.layout != COO or p.coalesced and q.coalesced):
        found = merged(p, q, a.shape, False)
        if found is not None:
            return _merged_sum(p, q, a.shape, found, alpha, dtype)
    if p.layout != COO:
        blocks = tuple(p.values.shape[p.compressed.dim() : p.compressed.dim() + 2]) if p.layout > 3 else None
        if p.compressed.dim() > 1:
            return _convert.to_layout((a.detach().to_dense() + b.detach().to_dense() * alpha), NAMES[p.layout][6:].lower(), blocks, p.dense_dim or None)
        return _convert.to_layout(coalesce(_joined(_convert.to_sparse(a.detach()), _convert.to_sparse(b.detach()), alpha, dtype)), NAMES[p.layout][6:].lower(), blocks, None)
    if p.sparse_dim != q.sparse_dim:
        raise RuntimeError(f"add: expected 'self' and 'other' to have same sparse/dense dims, but got {p.sparse_dim} and {q.sparse_dim} sparse ones")
    values = q.values.to(dtype)
    values = values if alpha == 1 and not isinstance(alpha, bool) else values * alpha
    both = ops.cat([p.values.to(dtype), values.to(dtype)])
    made = coo_of(ops.cat([p.indices, q.indices], 1), both, a.shape)
    return coalesce(made) if p.coalesced and q.coalesced else made


def _merged_sum(p: Parts, q: Parts, size: Any, places: Any, alpha: Any, dtype: Any) -> Any:
    """The sum of two tensors from where their entries go."""
    starts, left, right = places

    def spread(x: Any, y: Any, dim: int) -> Any:
        made = x.new_empty((*x.shape[:dim], count, *x.shape[dim + 1 :]))
        return made.index_copy_(dim, left, x).index_copy_(dim, right, y.to(x.dtype))

    count = int(starts[-1])
    more = q.values.to(dtype)
    more = more if alpha == 1 and not isinstance(alpha, bool) else more * alpha
    values = p.values.new_zeros((count, *p.values.shape[1:]), dtype=dtype).index_copy_(0, left, p.values.to(dtype)).index_add_(0, right, more)
    if p.layout == COO:
        return make_coo(spread(p.indices, q.indices, 1), values, size, True)
    return make_compressed(p.layout, starts.to(p.compressed.dtype), spread(p.plain, q.plain, 0), values, size)


def broadcasts(shape: Any, wanted: Any) -> bool:
    """Whether a tensor of a shape can be expanded to another one."""
    return len(shape) <= len(wanted) and all(m in (1, n) for m, n in zip(reversed(shape), reversed(wanted)))


def add_to_dense(a: Any, b: Any, alpha: Any) -> Any:
    """A strided tensor plus alpha times a sparse one of its shape, or of one that it broadcasts from."""
    if tuple(a.shape) != tuple(b.shape):
        if not broadcasts(a.shape, b.shape):
            raise RuntimeError(f"add: expected 'self' to be broadcastable to the shape of 'other', but {list(a.shape)} is not to {list(b.shape)}")
        a = a.expand(b.shape)
    p = parts(b)
    if p.layout == COO and p.sparse_dim and p.dense_dim == 0 or p.layout != COO or not p.sparse_dim:
        return a + _scaled(_convert.to_dense(b), alpha)
    v = values_of(b)
    if not v.numel():
        return a + v.sum() * 0 if v.requires_grad else a.clone()
    dtype = result_type(a, v)
    return a.to(dtype).index_put(tuple(p.indices), _scaled(v, alpha).to(dtype), accumulate=True)


# ---- products -------------------------------------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return not hasattr(x, "layout")


@operator("mul")
def mul(a: Any, b: Any) -> Any:
    if not is_sparse(a):
        a, b = b, a
    if not is_sparse(a):
        return NotImplemented
    if _is_number(b) or not is_sparse(b) and b.dim() == 0:
        return with_values(a, values_of(a) * b)
    if not is_sparse(b):
        return _times_dense(a, b)
    if a.dim() == 0 or b.dim() == 0:
        t, number = (b, a) if a.dim() == 0 else (a, b)
        return with_values(t, values_of(t) * number.to_dense())
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(f"mul(sparse, sparse): expected 'self' and 'other' sizes to match, but {list(a.shape)} != {list(b.shape)}")
    if number_of(a) != number_of(b):
        raise RuntimeError(f"mul(sparse, sparse): expected both to have the same layout, got {a.layout} and {b.layout}")
    if number_of(a) != COO:
        p = parts(a)
        found = merged(p, parts(b), a.shape, True)
        if found is not None:
            starts, left, right = found
            values = values_of(a).index_select(0, left) * values_of(b).index_select(0, right)
            return compressed_of(p.layout, starts.to(p.compressed.dtype), p.plain.index_select(0, left), values, a.shape)
        blocks = tuple(p.values.shape[p.compressed.dim() : p.compressed.dim() + 2]) if p.layout > 3 else None
        # columns may be in any order, which _common sorts
        coordinates = [coo_of(parts(x).indices, values_of(x), x.shape) for x in (_convert.to_sparse(a), _convert.to_sparse(b))]
        return _convert.to_layout(_common(*coordinates), NAMES[p.layout][6:].lower(), blocks, None)
    return _common(a, b)


def _common(a: Any, b: Any) -> Any:
    """The products of the entries whose indices both have."""
    a, b = coalesce(a), coalesce(b)
    p, q = parts(a), parts(b)
    if p.sparse_dim != q.sparse_dim:
        raise RuntimeError(f"mul(sparse, sparse): expected both to have the same number of sparse dimensions, got {p.sparse_dim} and {q.sparse_dim}")
    size = tuple(a.shape[: p.sparse_dim])
    if not p.values.size(0) or not q.values.size(0):
        kept = p.indices.new_empty((0,))
        return coo_of(p.indices.index_select(1, kept), values_of(a).index_select(0, kept) * values_of(b).index_select(0, kept), a.shape, True)
    both = merged(p, q, size, True)
    if both is not None:
        _, kept, at = both
    else:
        keys, others = linear_keys(p.indices, size), linear_keys(q.indices, size)
        at = ops.searchsorted(others, keys).clamp_max(others.size(0) - 1)
        kept = ops.eq(others.index_select(0, at), keys).nonzero().reshape(-1)
        at = at.index_select(0, kept)
    found = values_of(a).index_select(0, kept) * values_of(b).index_select(0, at)
    return coo_of(p.indices.index_select(1, kept), found, a.shape, True)


def _times_dense(a: Any, b: Any) -> Any:
    """A sparse tensor times a strided one that broadcasts to its shape."""
    if not broadcasts(b.shape, a.shape):
        raise RuntimeError(f"mul(sparse, dense): the dense operand of shape {list(b.shape)} must broadcast to the sparse one's, {list(a.shape)}")
    t = a
    v = values_of(t)
    pattern = t.detach() if t.requires_grad else t
    return with_values(t, v * dense_at(b.expand(a.shape), pattern).reshape(v.shape))


@operator("div")
def div(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    if not is_sparse(a) or is_sparse(b) and b.dim():
        if is_sparse(b):
            raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(b.shape)} for divisor)")
        return NotImplemented
    if is_sparse(b) or hasattr(b, "dim") and b.dim():
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(b.shape)} for divisor)")
    t = summed(a) if rounding_mode is not None else a
    v = values_of(t)
    return with_values(t, ops.div(v, b) if rounding_mode is None else ops.div(v, b, rounding_mode=rounding_mode))


@operator("floor_divide")
def floor_divide(a: Any, b: Any) -> Any:
    if not is_sparse(a) or is_sparse(b) or hasattr(b, "dim") and b.dim():
        return NotImplemented
    t = summed(a)
    return with_values(t, ops.floor_divide(values_of(t), b))


@operator("pow", "_pow_number")
def power(a: Any, b: Any) -> Any:
    if not is_sparse(a) or not _is_number(b) and b.dim():
        return NotImplemented
    if (b if _is_number(b) else b.item()) == 0:
        raise RuntimeError("pow: a sparse tensor to the power of zero is all ones: use to_dense()")
    t = summed(a)
    return with_values(t, ops.pow(values_of(t), b))


# ---- comparisons of whole tensors -----------------------------------------------------------------------------------


@public("equal")
def equal(a: Any, b: Any) -> bool:
    if not (is_sparse(a) and is_sparse(b)):
        return NotImplemented
    if tuple(a.shape) != tuple(b.shape) or a.layout is not b.layout or a.dtype is not b.dtype:
        return False
    p, q = parts(summed(a.detach())), parts(summed(b.detach()))
    return all(
        x is None or x.shape == y.shape and ops.equal(x, y)
        for x, y in ((p.indices, q.indices), (p.compressed, q.compressed), (p.plain, q.plain), (p.values, q.values))
    )


@public("isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    return NotImplemented


@public("allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    return NotImplemented


# ---- writes ---------------------------------------------------------------------------------------------------------


@operator("zero")
def zero(t: Any) -> Any:
    return empty_like(t)


@public("zero_")
def zero_(t: Any) -> Any:
    return assign(t, empty_like(t.detach()), "zero_", from_target=False)


@operator("copy_")
@public("copy_")
def copy_(target: Any, source: Any, non_blocking: bool = False) -> Any:
    if not (is_sparse(target) and is_sparse(source)):
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self type = {target.layout} and src type = {source.layout}"
        )
    if tuple(target.shape) != tuple(source.shape) and parts(target).layout != COO:
        raise RuntimeError(f"copy_(): expected shapes of self and src to match, but got {list(target.shape)} and {list(source.shape)}")
    source = converting("to")(source, device=target.device)
    copied = copy_of(source.detach())
    if source.requires_grad and is_grad_enabled():
        copied = with_values(copied, values_of(source))
    return assign(target, copied, "copy_", from_target=False)


def empty_like(t: Any, dtype: Any = None, device: Any = None) -> Any:
    """No entries, in the size and layout of `t`."""
    p = parts(t)
    kind = {"dtype": dtype or t.dtype, "device": device or t.device}
    if p.layout == COO:
        return coo_of(p.indices.new_empty((p.sparse_dim, 0), device=kind["device"]), ops.empty((0, *t.shape[p.sparse_dim :]), **kind), t.shape, True)
    n = p.compressed.dim() - 1
    values = ops.empty((*p.values.shape[:n], 0, *p.values.shape[n + 1 :]), **kind)
    plain = p.plain.new_empty((*p.plain.shape[:-1], 0), device=kind["device"])
    return _core.make(p.layout, tuple(t.shape), (ops.zeros_like(p.compressed).to(kind["device"]), plain, values), p.sparse_dim, p.dense_dim, False)


def empty_in(t: Any, layout: int, dtype: Any, device: Any) -> Any:
    """No entries, in the size of a sparse tensor and another layout, with as many dense dimensions."""
    p = parts(t)
    n = t.dim() - 2 - p.dense_dim
    size, dense = tuple(t.shape), tuple(t.shape[t.dim() - p.dense_dim :])
    kind = {"dtype": dtype or t.dtype, "device": device or t.device}
    index = {"dtype": int64 if p.layout == COO else p.plain.dtype, "device": kind["device"]}
    if layout == COO:
        sparse_dim = t.dim() - p.dense_dim
        return coo_of(ops.zeros((sparse_dim, 0), dtype=int64, device=kind["device"]), ops.empty((0, *dense), **kind), size, True)
    if n < 0:
        raise RuntimeError(f"zeros_like: a tensor of shape {list(size)} with {p.dense_dim} dense dimensions has no matrices for {LAYOUTS[layout]}")
    block: tuple[int, ...] = ()
    if is_blocked(layout):
        block = tuple(p.values.shape[n + 1 : n + 3]) if is_blocked(p.layout) else (1, 1)
    lines = size[n] // (block[0] if block else 1) if has_rows(layout) else size[n + 1] // (block[1] if block else 1)
    batch = size[:n]
    found = (ops.zeros((*batch, lines + 1), **index), ops.zeros((*batch, 0), **index), ops.empty((*batch, 0, *block, *dense), **kind))
    return _core.make(layout, size, found, 2, p.dense_dim, False)


@public("empty_like")
def like_undefined(t: Any, *, memory_format: Any = None, **options: Any) -> Any:
    """`empty_like`: no entries in coordinates, the pattern in compressed layouts."""
    made = zeros_like(t, **options)
    if not is_sparse(t) or memory_format is None:
        pass
    elif number_of(t) == COO:
        raise RuntimeError("memory format option is only supported by strided tensors")
    elif memory_format is not contiguous_format:
        raise RuntimeError(f"unsupported memory format {str(memory_format).rpartition('.')[2].removesuffix('_format').capitalize()}")
    if made is NotImplemented or not is_sparse(made) or number_of(made) == COO or made.layout is not t.layout:
        return made
    p = parts(t)
    kind = {"dtype": made.dtype, "device": made.device}
    found = make_compressed(p.layout, p.compressed.to(made.device, copy=True), p.plain.to(made.device, copy=True), ops.empty_like(p.values, **kind), t.shape)
    return found.requires_grad_() if made.requires_grad else found


@public("zeros_like")
def zeros_like(
    t: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: Any = False,
) -> Any:
    if layout is not None and layout_number(layout, "zeros_like") == 0:
        return ops.zeros(tuple(t.shape), dtype=dtype or t.dtype, device=device or t.device, requires_grad=requires_grad)
    if not is_sparse(t):
        return NotImplemented
    made = empty_like(t, dtype, device) if layout is None or layout is t.layout else empty_in(t, layout_number(layout, "zeros_like"), dtype, device)
    return made.requires_grad_() if requires_grad else made


def _filled(name: str) -> Any:
    def run(t: Any, *args: Any, **kwargs: Any) -> Any:
        layout = kwargs.pop("layout", None)
        if layout is not None and layout is not t.layout or name in ("ones_like", "full_like") and number_of(t) == COO:  # PyTorch refuses these of COO
            return NotImplemented
        requires_grad = kwargs.pop("requires_grad", False)
        made = with_values(t.detach(), getattr(ops, name)(parts(t).values, *args, **kwargs))
        return made.requires_grad_() if requires_grad else made

    return run


for _name in ("randn_like", "rand_like", "ones_like", "full_like"):
    public(_name)(_filled(_name))


# ---- optimizers -----------------------------------------------------------------------------------------------------


@operator("_fused_sgd_")
def fused_sgd(
    params: Any,
    grads: Any,
    buffers: Any,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
    *scale: Any,
) -> None:
    """SGD over lists of which some gradients are sparse; with momentum a sparse gradient is added to a strided buffer."""
    if any(x is not None for x in scale):
        raise RuntimeError("SGD: sparse gradients are not scaled (grad_scale, found_inf)")
    rest = [i for i, g in enumerate(grads) if not is_sparse(g)]
    if rest:
        options = {
            "weight_decay": weight_decay,
            "momentum": momentum,
            "lr": lr,
            "dampening": dampening,
            "nesterov": nesterov,
            "maximize": maximize,
            "is_first_step": first,
        }
        ops._fused_sgd_([params[i] for i in rest], [grads[i] for i in rest], [buffers[i] for i in rest] if buffers else [], **options)
    rate = lr.item() if hasattr(lr, "item") else lr
    for i, (p, g) in enumerate(zip(params, grads)):
        if not is_sparse(g):
            continue
        if weight_decay:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        g = -g if maximize else g
        if momentum:
            buffer = buffers[i]
            buffer.copy_(add_to_dense(buffer.zero_() if first else buffer.mul_(momentum), g, 1 if first else 1 - dampening))
            step = add_to_dense(buffer * momentum, g, 1) if nesterov else buffer
            p.add_(step, alpha=-rate)
        else:
            at = parts(g := coalesce(g))
            if at.values.numel():
                p.index_put_(tuple(at.indices), at.values * -rate, accumulate=True)

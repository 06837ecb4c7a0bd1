"""MaskedTensor: data and a mask of the same shape, whose operators leave out the elements that the mask does not let in."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._subclasses.composite_tensor import _SYMBOLS, CompositeTensor, dense_part, name_of, writes_in_place
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_masked_functions = _LazyModule("tensorrt_lite.masked._functions")
_masked_sparse = _LazyModule("tensorrt_lite.masked._sparse")
_parts = _LazyModule("tensorrt_lite._sparse.parts")

_DTYPES = {"float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"}
LAYOUTS = (trt.strided, trt.sparse_coo, trt.sparse_csr)


def sparse_layouts() -> Any:
    """The functions of sparse layouts; strided masks never import them, nor the package of sparse tensors."""
    return _masked_sparse


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether obj is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies of `data` and of `mask`, a bool tensor of the same shape (True: the element counts); a leaf.

    TypeError for what is no tensor, dtypes other than bool, int8 to int64 and float16 to float64, and another mask's; ValueError for other shapes.
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A masked tensor over `data`, into which gradients flow back, and `mask`. Errors as for `masked_tensor`."""
    _check(data, mask)
    if data.requires_grad:
        data = _guarded(data, mask)
    return MaskedTensor._over(data, mask) if data.layout == trt.strided else MaskedTensor._over(*sparse_layouts().fitted(data, mask))


def _guarded(value: Any, mask: Any) -> Any:
    """A strided tensor, broadcast to the mask, whose gradient is 0 where the mask is False: derivatives there may be nan, which a product with 0 leaves."""
    if not isinstance(value, trt.Tensor) or not value.requires_grad or value.layout != trt.strided:
        return value
    alias = value.expand(trt.broadcast_shapes(value.shape, mask.shape))
    alias.register_hook(lambda grad: grad.masked_fill(~mask, 0))
    return alias


def _check(data: Any, mask: Any) -> None:
    for value, name in ((data, "data"), (mask, "mask")):
        if not isinstance(value, trt.Tensor) or is_masked_tensor(value):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype != trt.bool:
        raise TypeError("mask must have dtype bool.")
    if str(data.dtype).rpartition(".")[2] not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


class MaskedTensor(CompositeTensor):
    """data: any shape; mask: bool, the same shape, True where the element counts. Both are copied; `as_masked_tensor` is differentiable.

    Pointwise operators run on the data and keep the mask; of two masked tensors the masks must be equal (ValueError). Reductions leave
    masked-out elements out; a result behind which no element counts is masked out itself. Views apply to data and mask.
    """

    _masked_data: Any
    _masked_mask: Any
    _noun = "masked tensors"

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        if data.layout != trt.strided:
            data, mask = sparse_layouts().fitted(data.detach(), mask)
        return cls._over(data.detach().clone().requires_grad_(requires_grad), mask.clone())

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def _over(cls, data: Any, mask: Any) -> MaskedTensor:
        """Around these very tensors, unchecked."""
        made = trt.Tensor._make_wrapper_subclass(cls, tuple(data.shape), dtype=data.dtype, device=data.device)
        made._masked_data, made._masked_mask = data, mask
        return made  # type: ignore[no-any-return]

    @property
    def _part(self) -> Any:
        return self._masked_data

    def _with_part(self, part: Any) -> MaskedTensor:
        return MaskedTensor._over(part, self._masked_mask)

    def get_data(self) -> Any:
        """The data, masked-out elements included; gradients flow back through it."""
        data = self._masked_data
        if data.layout != trt.strided:
            return sparse_layouts().alias(data)
        return data.view_as(data) if data.requires_grad else data.detach()

    def get_mask(self) -> Any:
        """The mask: bool, True where the element counts."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Any:
        """A dense tensor with `value` in place of masked-out elements."""
        data, mask = self._masked_data, self._masked_mask
        if data.layout != trt.strided:
            data, mask = data.to_dense(), mask.to_dense()
        return data.masked_fill(~mask, value)

    @property
    def shape(self) -> Any:
        return self._masked_data.shape

    @property
    def ndim(self) -> int:
        return int(self._masked_data.ndim)

    @property
    def layout(self) -> Any:
        return self._masked_data.layout

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are sparse_coo tensors."""
        return bool(self._masked_data.layout == trt.sparse_coo)

    def is_sparse_csr(self) -> bool:
        """Whether data and mask are sparse_csr tensors."""
        return bool(self._masked_data.layout == trt.sparse_csr)

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are sparse, of either layout."""
        return bool(self._masked_data.layout != trt.strided)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        data, mask = self._masked_data.detach(), self._masked_mask
        if data.layout != trt.strided:
            data, mask = data.to_dense(), mask.to_dense()
        if data.dim() == 0:
            return f"MaskedTensor({_element(data.item()) if mask.item() else '--'}, {bool(mask.item())})"
        return f"MaskedTensor(\n{_indented(_rows(data, mask))}\n)"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._masked_data.detach(), self._masked_mask, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment")
            memo[id(self)] = _rebuild(self._masked_data.detach().clone(), self._masked_mask.clone(), self.requires_grad)
        return memo[id(self)]


def _rebuild(data: Any, mask: Any, requires_grad: bool) -> MaskedTensor:
    return MaskedTensor._over(data.requires_grad_(requires_grad), mask)


def _element(x: Any) -> str:
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _rows(data: Any, mask: Any) -> str:
    if data.dim() > 1:
        return "[\n" + ",\n".join(_indented(_rows(d, m)) for d, m in zip(data, mask, strict=True)) + "\n]"
    texts = [_element(x) for x in data.tolist()]
    width = max((len(t) if m else 8 for t, m in zip(texts, mask.tolist(), strict=True)), default=0)
    return "[" + ", ".join(t if m else "--".rjust(width) for t, m in zip(texts, mask.tolist(), strict=True)) + "]"


# ---- operators -----------------------------------------------------------------------------------------------------


def _map(value: Any, of: Any) -> Any:
    """`of` the masked tensors in an argument, which may be a list of them."""
    if isinstance(value, MaskedTensor):
        return of(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, MaskedTensor) for v in value):
        return type(value)([_map(v, of) for v in value])
    return value


def _on_data(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*(_map(a, dense_part) for a in args), **{k: _map(v, dense_part) for k, v in kwargs.items()})


def _wrapped(data: Any, mask: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return type(data)([_wrapped(d, m) for d, m in zip(data, mask, strict=True)])
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    return MaskedTensor._over(data, mask)


def _same_masks(masked: list[Any]) -> None:
    first = masked[0]._masked_mask
    for other in masked[1:]:
        mask = other._masked_mask
        if mask is not first and not (mask.shape == first.shape and mask.layout == first.layout and trt.equal(mask, first)):
            raise ValueError("Input masks must match.")


def _pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """On the data; the mask is that of the masked operands. ValueError where theirs differ."""
    masked = [a for a in (*args, *kwargs.values()) if isinstance(a, MaskedTensor)]
    _same_masks(masked)
    if masked[0]._masked_data.layout != trt.strided:
        return _on_values(func, masked[0], args, kwargs)
    mask = masked[0]._masked_mask
    if writes_in_place(name_of(func)):
        _on_data(func, (args[0], *(_guarded(_map(a, dense_part), mask) for a in args[1:])), {k: _guarded(_map(v, dense_part), mask) for k, v in kwargs.items()})
        return args[0]
    data = func(*(_guarded(_map(a, dense_part), mask) for a in args), **{k: _guarded(_map(v, dense_part), mask) for k, v in kwargs.items()})
    if isinstance(data, tuple):
        return tuple(MaskedTensor._over(d, mask) for d in data)
    return MaskedTensor._over(data, mask if mask.shape == data.shape else mask.expand_as(data))


def _on_values(func: Any, first: MaskedTensor, args: Any, kwargs: Any) -> Any:
    """A pointwise operator of sparse data: on the values, in place on them where the operator is."""
    pattern = first._masked_data
    name = name_of(func)
    in_place = writes_in_place(name)
    if in_place and pattern.requires_grad:
        raise NotImplementedError(f"{name}(): writes to sparse masked tensors that require a gradient are not implemented (docs/gaps.md)")

    def given(x: Any) -> Any:
        if isinstance(x, MaskedTensor):
            return _parts.parts(x._masked_data).values if in_place else _parts.values_of(x._masked_data)
        return sparse_layouts().operand(x, pattern)

    values = func(*(given(a) for a in args), **{k: given(v) for k, v in kwargs.items()})
    if in_place:
        return args[0]
    if isinstance(values, tuple):
        return tuple(MaskedTensor._over(sparse_layouts().of_values(pattern, v), first._masked_mask) for v in values)
    return MaskedTensor._over(sparse_layouts().of_values(pattern, values), first._masked_mask)


def _on_both(func: Any, args: Any, kwargs: Any) -> Any:
    """The same on data and mask: views, selections, joins. Dense tensors among those joined count wholly."""
    if args and isinstance(args[0], (list, tuple)):
        args = ([t if is_masked_tensor(t) else MaskedTensor._over(t, trt.ones_like(t, dtype=trt.bool)) for t in args[0]], *args[1:])
    data = _on_data(func, args, kwargs)
    mask = func(*(_map(a, MaskedTensor.get_mask) for a in args), **{k: _map(v, MaskedTensor.get_mask) for k, v in kwargs.items()})
    return _wrapped(data, mask)


def _reduction(func: Any, args: Any, kwargs: Any) -> Any:
    name = name_of(func)
    names = ("input", "p", "dim", "keepdim", "dtype") if name == "norm" else ("input", "dim", "keepdim")
    given = dict(zip(names, args, strict=False)) | kwargs
    input = given.pop("input")
    for numpy_name, ours in (("axis", "dim"), ("keepdims", "keepdim")):
        if numpy_name in given:
            given[ours] = given.pop(numpy_name)
    dim, keepdim = given.pop("dim", None), given.pop("keepdim", False)
    if name in ("var", "std") and isinstance(dim, bool):
        dim, given["unbiased"] = None, dim
    if name == "norm":
        p = given.pop("p", None)
        given["ord"] = 2.0 if p in (None, "fro") else float(p)
    mask = input._masked_mask
    if input._masked_data.layout != trt.strided:
        if dim is not None or keepdim:
            raise NotImplementedError(f"{name}(): reductions of sparse masked tensors over dimensions are not implemented: use masked.{name}() (docs/gaps.md)")

        counted = _parts.parts(mask).values
        input = MaskedTensor._over(_parts.values_of(input._masked_data), counted)
        mask = counted
    if name in ("all", "any"):
        filled = input.to_tensor(name == "all")
        data = getattr(filled, name)() if dim is None else getattr(filled, name)(dim, keepdim)
    else:
        function = getattr(_masked_functions, name)
        data = function(input._masked_data, **({} if dim is None else {"dim": dim}), keepdim=keepdim, mask=mask, **given)
    return MaskedTensor._over(data, mask.any(_masked_functions._canonical_dim(dim, mask.ndim), keepdim))


def _softmax(func: Any, args: Any, kwargs: Any) -> Any:
    """Along dim over the elements that count; 0 where none does."""
    given = dict(zip(("input", "dim"), args, strict=False)) | kwargs
    input = given["input"]
    name = name_of(func)
    filled = _masked_functions._filled(input, None, name, _masked_functions._lowest)
    data = getattr(filled, name)(given["dim"], dtype=given.get("dtype"))
    return MaskedTensor._over(data.masked_fill(~input._masked_mask, 0), input._masked_mask)


def _to_dense(func: Any, args: Any, kwargs: Any) -> Any:
    data, mask = args[0]._masked_data, args[0]._masked_mask
    return MaskedTensor._over(data, mask) if data.layout == trt.strided else MaskedTensor._over(data.to_dense(), mask.to_dense())


def _to_sparse(func: Any, args: Any, kwargs: Any) -> Any:
    """In coordinates, or in compressed rows: what the mask lets in is stored, zeros included."""
    if len(args) > 1 or kwargs:
        raise NotImplementedError(f"{name_of(func)}(): masked tensors take no further arguments (docs/gaps.md)")
    data, mask = args[0]._masked_data, args[0]._masked_mask
    mask = mask.to_sparse() if name_of(func) != "to_sparse_csr" else mask.to_sparse_csr()
    return MaskedTensor._over(data.sparse_mask(mask), mask)


def _where(func: Any, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("condition", "input", "other"), args, strict=False)) | kwargs
    condition, a, b = given["condition"], given["input"], given["other"]
    if is_masked_tensor(condition):
        raise ValueError("where: expected condition to be a tensor without a mask")
    data = func(condition, dense_part(a), dense_part(b))
    masks = [t._masked_mask if is_masked_tensor(t) else trt.ones((), dtype=trt.bool, device=data.device) for t in (a, b)]
    return MaskedTensor._over(data, trt.where(condition, *masks).expand_as(data))


def _to(func: Any, args: Any, kwargs: Any) -> Any:
    """Another dtype or device of the data; the mask goes along to the device."""
    data = args[0]._masked_data
    data = func(data, *args[1:], **kwargs) if data.layout == trt.strided or name_of(func) != "bool" else _on_values(func, args[0], args, kwargs)._masked_data
    return MaskedTensor._over(data, args[0]._masked_mask.to(data.device))


def _copied(func: Any, args: Any, kwargs: Any) -> Any:
    if args[0]._masked_data.layout != trt.strided:
        return _on_values(func, args[0], args, kwargs)
    return MaskedTensor._over(func(args[0]._masked_data, *args[1:], **kwargs), args[0]._masked_mask)


def _copy_(func: Any, args: Any, kwargs: Any) -> Any:
    _same_masks([t for t in args[:2] if is_masked_tensor(t)])
    _on_data(func, args, kwargs)
    return args[0]


def _item(func: Any, args: Any, kwargs: Any) -> Any:
    input = args[0]
    if input.numel() == 1 and not input._masked_mask.item():
        raise ValueError(f"{name_of(func)}(): the element is masked out")
    return func(input._masked_data)


def _geometry(func: Any, args: Any, kwargs: Any) -> Any:
    return func(args[0]._masked_data, *args[1:], **kwargs)


def _unsupported(func: Any, args: Any, kwargs: Any) -> Any:
    raise RuntimeError(f".{name_of(func)}() is not supported for tensor subclasses, got MaskedTensor")


@cache
def pointwise_names() -> frozenset[str]:
    """The names of all pointwise operators, their aliases, forms in place and symbols."""
    names: set[str] = set()
    for name in _declarations.names():
        row = _declarations.of(name)
        if row.kind != "pointwise":
            continue
        for public in (row.name, *row.aliases):
            short = public.rpartition(".")[2]
            names.update((short, short + "_", short.removeprefix("special_")))
    names |= {
        "abs",
        "conj",
        "conj_physical",
        "angle",
        "nan_to_num",
        "clamp",
        "clip",
        "logit",
        "sinc",
        "positive",
        "frexp",
        "true_divide",
        "isclose",
        "real",
        "imag",
    }
    return frozenset(names | {symbol for symbol, name in _SYMBOLS.items() if name in names})


_VIEWS = (
    "__getitem__", "select", "transpose", "swapaxes", "swapdims", "t", "T", "mT", "T.__get__", "mT.__get__", "H.__get__", "mH.__get__", "adjoint", "permute", "movedim",
    "moveaxis", "split", "split_with_sizes", "chunk", "tensor_split", "narrow", "expand", "expand_as", "broadcast_to", "view", "view_as", "reshape", "reshape_as", "flatten",
    "ravel", "unflatten", "squeeze", "unsqueeze", "unbind", "unfold", "cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "index_select", "gather",
    "take_along_dim", "diagonal", "flip", "roll", "repeat", "tile", "contiguous", "clone",
)  # fmt: skip
_REDUCED = ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "any", "norm", "var", "std", "logsumexp")
_CONVERSIONS = ("to", "type", "float", "double", "half", "int", "long", "short", "char", "bool", "cpu", "cuda")
_GEOMETRY = (
    "size",
    "dim",
    "ndimension",
    "numel",
    "nelement",
    "stride",
    "is_contiguous",
    "storage_offset",
    "__len__",
    "nbytes.__get__",
    "is_same_size",
)

MaskedTensor._table = {
    **dict.fromkeys(pointwise_names(), _pointwise), **dict.fromkeys(_VIEWS, _on_both), **dict.fromkeys(_REDUCED, _reduction), **dict.fromkeys(_CONVERSIONS, _to),
    **dict.fromkeys(_GEOMETRY, _geometry), **dict.fromkeys(("softmax", "log_softmax"), _softmax), **dict.fromkeys(("item", "__bool__", "__float__", "__int__", "__index__"), _item),
    **dict.fromkeys(("ones_like", "zeros_like", "full_like", "empty_like", "rand_like", "randn_like", "dropout", "fill_", "zero_"), _copied),
    **dict.fromkeys(("tolist", "numpy", "__array__"), _unsupported), "where": _where, "copy_": _copy_,
    "to_dense": _to_dense, **dict.fromkeys(("to_sparse", "to_sparse_coo", "to_sparse_csr"), _to_sparse),
}  # fmt: skip

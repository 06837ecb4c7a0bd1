"""`func.functionalize`: a function's writes in place become new values.

Inside, tensors are FunctionalTensors: each views a base's value through a chain of views. A write computes the written tensor's new value by the operator's functional form and
carries it back through the chain to a new value of the base, from which all other views are made anew when they are read. At the end the inputs that were
written to get their new values by one copy. A dispatch mode does all that, so what lies below (other modes, autograd, other transforms' values) sees functional operators alone.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core import python_key
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._functions.package_facts import Tag
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode
from tensorrt_lite.utils._pytree import tree_flatten, tree_map, tree_unflatten

_library = LazyModule("tensorrt_lite.library")

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor

__all__ = ["FunctionalTensor", "functionalize"]

_CHOICES = """
     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their out-of-place equivalents.
     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced with their non-aliasing counterparts, {view}_copy.
"""


class _Base:
    """The value that views share, and how often it was replaced."""

    __slots__ = ("generation", "value")

    def __init__(self, value: Tensor) -> None:
        self.value, self.generation = value, 0


class _Step:
    """A view: how it is made of its parent's value, and how a new value of it makes one of the parent's."""

    __slots__ = ("args", "function", "index", "kwargs", "layout", "name")

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None, of: Tensor) -> None:
        self.name, self.function, self.args, self.kwargs, self.index = name, function, args, kwargs, index
        self.layout = (of.stride(), of.storage_offset()) if name == "as_strided" else None

    def __call__(self, parent: Tensor) -> Tensor:
        if self.layout is not None:  # memory is addressed: the value must lie as what it stands for, and may begin elsewhere
            strides, begin = self.layout
            size, stride, start = (*self.args, self.kwargs.get("storage_offset"))[:3]
            moved = parent.storage_offset() - begin
            return self.function(_lying(parent, strides), size, stride, None if start is None else start + moved)
        made = self.function(parent, *self.args, **self.kwargs)
        return made if self.index is None else made[self.index]

    def put_back(self, parent: Tensor, value: Tensor) -> Tensor:
        """The parent with its part replaced."""
        name, args = self.name, self.args
        aten = _library.ops.aten
        if name == "view" and args and isinstance(args[0], trt.dtype):
            return value.contiguous().view(parent.dtype)
        if "reshapes" in _declarations.tags(name):
            return self._like(value, "view", "view_copy", tuple(parent.shape))
        if name == "t":
            return self._like(value, "t", "t_copy")
        if name == "transpose":
            return self._like(value, "transpose", "transpose_copy", *args)
        if name == "permute":
            dims = [d % parent.dim() for d in args[0]]
            return self._like(value, "permute", "permute_copy", [dims.index(d) for d in range(len(dims))])
        if name in ("select", "slice"):
            dim, begin, end, stride = (*args, args[1] + 1, 1) if name == "select" else (*args, *(0, None, None, 1)[len(args) :])
            begin = (begin or 0) % max(parent.shape[dim], 1)
            places = trt.arange(parent.shape[dim], device=parent.device)[begin : begin + 1 if name == "select" else end : stride]
            return parent.index_copy(dim, places, value.unsqueeze(dim) if name == "select" else value)
        if name == "view_as_real":
            return aten.view_as_complex(value.contiguous())
        if name == "view_as_complex":
            return aten.view_as_real(value)
        if name in ("real", "imag"):
            return trt.complex(value, parent.imag) if name == "real" else trt.complex(parent.real, value)
        if value.numel() > parent.numel() or name == "expand" and value.numel() != parent.numel():
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )
        places = self(trt.arange(parent.numel(), device=parent.device).reshape(parent.shape))
        return parent.reshape(-1).index_put((places.reshape(-1),), value.reshape(-1)).reshape(parent.shape)

    def _like(self, value: Tensor, view: str, copy: str, *args: Any) -> Tensor:
        if view == "view":
            value = value.contiguous()
        return getattr(_library.ops.aten, copy if self.function is not None and getattr(self.function, "_opname", "").endswith("_copy") else view)(
            value, *args
        )


class FunctionalTensor(trt.Tensor):
    """What stands for a tensor inside of `functionalize`."""

    _base_value: _Base
    _chain: tuple[_Step, ...]
    _read_value: Tensor
    _generation: int
    _geometry: tuple[Any, ...]

    @staticmethod
    def make(base: _Base, chain: tuple[_Step, ...], value: Tensor, like: Tensor | None = None) -> FunctionalTensor:
        """One that views `base` through `chain`, whose value is now `value`; with the strides and the offset of `like`, else of the value."""
        like = value if like is None else like
        modes = python_key.mode_stack()  # which are not asked for a tensor without memory
        python_key.set_modes(())
        try:
            made: FunctionalTensor = trt.Tensor._make_wrapper_subclass(  # type: ignore[assignment]
                FunctionalTensor, tuple(value.shape), like.stride(), like.storage_offset(), dtype=value.dtype, device=value.device
            )
        finally:
            python_key.set_modes(modes)
        made._base_value, made._chain, made._read_value, made._generation = base, chain, value, base.generation
        made._geometry = (made.shape, made.stride())
        return made

    def read(self) -> Tensor:
        """Its value."""
        base = self._base_value
        if self._geometry != (self.shape, self.stride()):
            raise NotImplementedError("functionalize(): an operator changed the shape or the strides of a tensor in place, which is not implemented (docs/gaps.md)")
        if self._generation != base.generation:
            value = base.value
            for step in self._chain:
                value = step(value)
            self._read_value, self._generation = value, base.generation
        return self._read_value

    def write(self, value: Tensor) -> None:
        """Give it, and with it its base, another value of the same shape."""
        base, chain = self._base_value, self._chain
        parents = [base.value]
        for step in chain[:-1]:
            parents.append(step(parents[-1]))
        own = value
        for step, parent in zip(reversed(chain), reversed(parents)):
            value = step.put_back(parent, value)
        base.value = value
        base.generation += 1
        self._read_value, self._generation = own, base.generation

    # what leaves the world of tensors

    def item(self) -> Any:
        return self.read().item()

    def tolist(self) -> Any:
        return self.read().tolist()

    def __bool__(self) -> bool:
        return bool(self.read())

    def __int__(self) -> int:
        return int(self.read())

    def __float__(self) -> float:
        return float(self.read())

    def __index__(self) -> int:
        return self.read().__index__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FunctionalTensor({self.read()!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a tensor of a call of functionalize() was kept beyond its end")


def _name(func: Any) -> str:
    """The operator's name, with an underscore where it writes in place; nothing of those that Python defined."""
    return getattr(func, "_opname", "")


def _lying(t: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The tensor with these strides, which are those of all elements in some order."""
    lies = lambda x: all(n == 1 or step == wanted for n, step, wanted in zip(x.shape, x.stride(), strides))
    if lies(t):
        return t
    order = sorted(range(t.dim()), key=lambda d: -strides[d])
    made = t.permute(order).contiguous().permute([order.index(d) for d in range(t.dim())])
    if not lies(made):
        raise NotImplementedError("functionalize(): as_strided() of a tensor with gaps that was written to is not implemented (docs/gaps.md)")
    return made


def _on_meta(t: Tensor) -> Tensor:
    """A tensor without memory that lies as `t`."""
    end = t.storage_offset() + (sum((n - 1) * step for n, step in zip(t.shape, t.stride())) + 1 if t.numel() else 0)
    return trt.empty(end, dtype=t.dtype, device="meta").as_strided(t.shape, t.stride(), t.storage_offset())


def _value_of(x: Any) -> Any:
    return x.read() if isinstance(x, FunctionalTensor) else x


def _is_custom(func: Any) -> bool:
    """Whether a program defined the operator: its schema, not its name, says what it writes to, and its results are no views."""
    return not hasattr(func, "is_view")


class _Functionalize(TorchDispatchMode):
    def __init__(self, copy_views: bool) -> None:
        self.copy_views = copy_views
        excluded = _dispatch._exclude_keys(0)
        _dispatch._exclude_keys(excluded)
        self.excluded = excluded  # autograd, which stands above modes, records the values' operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = _dispatch._exclude_keys(self.excluded)
        try:
            return self._run(func, args, kwargs or {})
        finally:
            _dispatch._exclude_keys(before)

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        written = self._written(func, args, kwargs)
        given, shape = tree_flatten((args, kwargs))
        functional = [x for x in given if isinstance(x, FunctionalTensor)]
        if written and any(not isinstance(x, FunctionalTensor) for x in written):
            if functional:
                raise RuntimeError(f"functionalize(): {func} writes to a tensor from outside of the function a value that was computed inside")
            return func(*args, **kwargs)
        if written:
            return self._write(func, args, kwargs, written)
        known = {id(x.read()): x for x in functional}
        values, named = tree_unflatten([_value_of(x) for x in given], shape)
        is_view = not _is_custom(func) and func.is_view
        if is_view and isinstance(args[0], FunctionalTensor):
            return self._view(func, args[0], values, named)
        result = func(*values, **named)

        def wrap(x: Any) -> Any:
            if not isinstance(x, trt.Tensor) or isinstance(x, FunctionalTensor):
                return x
            return known[id(x)] if id(x) in known else FunctionalTensor.make(_Base(x), (), x)

        return result if is_view else tree_map(wrap, result)

    @staticmethod
    def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
        """The tensors that the call writes to."""
        if getattr(func, "mode", None) == 1:
            return [x for x in tree_flatten(_results_given(func, kwargs))[0] if isinstance(x, trt.Tensor)]
        if _name(func).endswith("_") and not _is_custom(func):
            return [args[0]]
        schema = func._schema
        places = getattr(schema, "written", ())
        if func.name() == "aten::native_batch_norm":
            places = (3, 4)  # the running statistics, which PyTorch's schema does not mark
        found = [args[i] if i < len(args) else kwargs.get(schema.arguments[i].name) for i in places]
        return [x for part in found for x in tree_flatten(part)[0] if isinstance(x, trt.Tensor)]

    def _view(self, func: Any, of: FunctionalTensor, values: Any, named: Any) -> Any:
        name = _name(func)
        function = func
        if self.copy_views and hasattr(_library.ops.aten, name + "_copy"):
            packet = getattr(_library.ops.aten, name + "_copy")
            function = getattr(packet, func._overloadname) if func._overloadname in packet.overloads() else packet.default
        step = _Step(name, function, tuple(values[1:]), named, None, of)
        made = step(values[0])
        several = not isinstance(made, trt.Tensor)
        like = [None] * (len(made) if several else 1)
        source = values[0]
        if function is not func or (source.stride(), source.storage_offset()) != (of.stride(), of.storage_offset()):
            # a copy, or a value that lies otherwise than what it stands for: the view is where it would be of the latter, as autograd at a level of grad takes it to be
            there = func(_on_meta(of), *values[1:], **named)
            like = list(there) if several else [there]
        views = [
            FunctionalTensor.make(of._base_value, (*of._chain, step if not several else _Step(name, function, tuple(values[1:]), named, i, of)), value, like[i])
            for i, value in enumerate(made if several else [made])
        ]
        return type(made)(views) if several else views[0]

    def _write(self, func: Any, args: Any, kwargs: Any, written: list[Any]) -> Any:
        given = _results_given(func, kwargs) if getattr(func, "mode", None) == 1 else None
        if given is not None:
            rest = {name: x for name, x in kwargs.items() if name != "out" and name not in func.out_names}
            results = tree_flatten(self._functional_form(func)(*tree_map(_value_of, args), **tree_map(_value_of, rest)))[0]
        elif _name(func).endswith("_") and not _is_custom(func):
            results = [self._in_place(func, args, kwargs)]
        else:  # of an operator that Python defined: on copies
            copies = {id(x): x.read().clone() for x in written}
            put = lambda x: copies[id(x)] if id(x) in copies else _value_of(x)
            result = func(*tree_map(put, args), **tree_map(put, kwargs))
            for x in written:
                x.write(copies[id(x)])
            return tree_map(lambda x: FunctionalTensor.make(_Base(x), (), x) if isinstance(x, trt.Tensor) else x, result)
        for x, value in zip(written, results):
            before = x.read()
            if value.shape != before.shape:
                if x.numel() or given is None:
                    raise RuntimeError(
                        f"functionalize(): {func} made a value of shape {list(value.shape)} for a tensor of shape {list(before.shape)}"
                    )
                raise NotImplementedError(f"functionalize(): {func} would resize out=, which is not implemented (docs/gaps.md)")
            x.write(value if value.dtype == before.dtype else value.to(before.dtype))
        return args[0] if given is None else given

    @staticmethod
    def _functional_form(func: Any) -> Any:
        return python_key.functional_form(func)

    def _in_place(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The new value of the first argument."""
        values, named = tree_map(_value_of, args), tree_map(_value_of, kwargs)
        target, name = values[0], _name(func)
        if name == "zero_":
            return trt.zeros_like(target)
        if name == "copy_":
            source = values[1].to(device=target.device, dtype=target.dtype)
            return source.expand(target.shape).clone() if source.shape != target.shape or source is values[1] else source
        if name == "fill_":
            value = values[1]
            return value.to(target.dtype).expand(target.shape).clone() if isinstance(value, trt.Tensor) else trt.full_like(target, value)
        form = self._functional_form(func)
        if form is None or Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            made = target.clone()
            func(made, *values[1:], **named)
            return made
        return form(*values, **named)


def _results_given(func: Any, kwargs: Any) -> Any:
    """What a call of an `out` overload writes to."""
    return kwargs["out"] if "out" in kwargs else tuple(kwargs[name] for name in func.out_names)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the results of `func` that writes to no tensor while it computes; at the end inputs that `func` writes to get their new values by a copy.

    remove: "mutations" replaces operators in place and with out= by their functional forms, "mutations_and_views" also views by copies (`view_copy` and its kin).
    The arguments' tensors may lie in tuples, lists and dicts. RuntimeError for another `remove`, and inside for a write of a computed value to a tensor from outside of
    the function; NotImplementedError for operators that change a shape in place, and inside of vmap, grad and jvp. Random numbers are drawn in place, into fresh copies.

    >>> import tensorrt_lite as trt
    >>> def double_first(x):
    ...     x[0].mul_(2)
    ...     return x + 1
    >>> x = trt.ones(2)
    >>> trt.func.functionalize(double_first)(x).tolist(), x.tolist()
    ([3.0, 2.0], [2.0, 1.0])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:{_CHOICES}")

    @wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        if python_key.innermost_transform() is not None:
            raise NotImplementedError("functionalize() inside of vmap, grad or jvp is not implemented (docs/gaps.md); around them it is")
        given, shape = tree_flatten((args, kwargs))
        inside: dict[int, FunctionalTensor] = {}
        for x in given:
            if isinstance(x, trt.Tensor) and id(x) not in inside:
                inside[id(x)] = FunctionalTensor.make(_Base(x), (), x)
        wrapped, named = tree_unflatten([inside.get(id(x), x) if isinstance(x, trt.Tensor) else x for x in given], shape)
        with _Functionalize(remove == "mutations_and_views"):
            result = func(*wrapped, **named)
        result = tree_map(_value_of, result)
        for x in given:
            made = inside.get(id(x)) if isinstance(x, trt.Tensor) else None
            if made is not None and made._base_value.generation:
                value = made.read()
                if value is not x:
                    x.copy_(value)
        return result

    return functional

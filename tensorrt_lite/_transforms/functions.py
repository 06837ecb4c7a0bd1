"""Custom Functions and operators under functional transforms: a call at a level, made of the same call below it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.core import transform
from tensorrt_lite._C.core.sparse import is_sparse, parts_of
from tensorrt_lite._transforms.batching import Resumed, fallbacks
from tensorrt_lite.utils import _pytree

if TYPE_CHECKING:
    pass


class VmapInfo(NamedTuple):
    """What a rule for vmap is told: the size of the batch, and vmap's randomness."""

    batch_size: int
    randomness: str


def _belongs(args: tuple[Any, ...], level: Any) -> bool:
    return any(transform.belongs(x, level) or is_sparse(x) and not transform.is_wrapper(x) and _sparse_belongs(x, level) for x in _pytree.tree_leaves(args))


def _sparse_belongs(t: Any, level: Any) -> bool:
    """Whether a sparse tensor that is no wrapper is made of parts of the level."""
    return any(transform.belongs(x, level) for x in parts_of(t))


def _needs_setup_context() -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod. For more "
        "details, please see https://pytorch.org/docs/main/notes/extending.func.html"
    )


def apply_function(cls: Any, args: tuple[Any, ...]) -> Any:
    """Function.apply while a transform is active."""
    level = transform.innermost()
    if not _belongs(args, level):
        with transform.lowered():
            result = cls.apply(*args)
        return result if level.kind == "vmap" else _pytree.tree_map_only(trt.Tensor, lambda x: transform.wrap(x, level), result)
    if level.kind == "vmap":
        return _apply_mapped(cls, level, args)
    if not cls._separate_context:
        raise _needs_setup_context()
    return _recorded_class(cls).apply(*[_constant(x, level) for x in args])


def _constant(x: Any, level: Any) -> Any:
    """A tensor from below a level as the level sees it."""
    return transform.wrap(x, level) if isinstance(x, trt.Tensor) and not transform.belongs(x, level) else x


# ---- grad and jvp ------------------------------------------------------------------------------------------------------


def _recorded_class(cls: Any) -> Any:
    """The Function of a level of grad or jvp: its forward is the call below, its derivatives are the given one's."""
    found = cls.__dict__.get("_recorded")
    if found is None:

        def forward(*operands: Any) -> Any:
            level = transform.all_levels()[-1]
            values = [transform.unwrap(x, level)[0] for x in operands]
            with transform.lowered():
                result = cls.apply(*values)

            def back(y: Any) -> Any:
                if not isinstance(y, trt.Tensor):
                    return y
                # what is returned as it came is the operand itself
                same = next((x for x, value in zip(operands, values) if value is y), None)
                return transform.wrap(y, level) if same is None else same

            return tuple(back(y) for y in result) if isinstance(result, tuple) else back(result)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            cls.setup_context(ctx, inputs, output)

        def backward(ctx: Any, *grads: Any) -> Any:
            return cls._backward_function()(ctx, *grads)

        def jvp(ctx: Any, *tangents: Any) -> Any:
            return cls.jvp(ctx, *tangents)

        parts = {"forward": forward, "setup_context": setup_context, "backward": backward, "jvp": jvp}
        found = type(cls.__name__, (autograd.Function,), {**{name: staticmethod(f) for name, f in parts.items()}, "_below_transform": True})
        cls._recorded = found
    return found


# ---- vmap ------------------------------------------------------------------------------------------------------------


def _apply_mapped(cls: Any, level: Any, args: tuple[Any, ...]) -> Any:
    own = cls.vmap is not autograd.Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
            "delete the overridden vmap staticmethod to avoid ambiguity. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if not own and not cls.generate_vmap_rule:
        if not cls._separate_context:
            raise _needs_setup_context()  # a vmap rule alone would not do for the other transforms
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap staticmethod or set "
            "generate_vmap_rule=True. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    values, dims = _unwrapped(args, level)
    with transform.lowered():
        if own:
            result = cls.vmap(VmapInfo(level.batch_size, level.randomness), dims, *values)
            return wrap_by_dims(result, level, cls.__name__)
        made = _generated_class(cls, level, dims)
        result = made.apply(*values)
        return wrap_by_dims((result, made.out_dims[0]), level, cls.__name__)


def _unwrapped(args: tuple[Any, ...], level: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(the values, their batch dimensions in trees like the arguments')."""

    def dims_of(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(dims_of(y) for y in x)
        return transform.unwrap(x, level)[1]

    values = _pytree.tree_map_only(trt.Tensor, lambda x: transform.unwrap(x, level)[0], args)
    return values, tuple(dims_of(x) for x in args)


def wrap_by_dims(result: Any, level: Any, who: str) -> Any:
    """What a rule for vmap returned, (outputs, their batch dimensions), as the level's tensors."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"Expected the vmap rule of {who} to have two returns: the output and out_dims, got {type(result)}")
    outputs, dims = result
    flat, spec = _pytree.tree_flatten(outputs)
    places = _pytree._broadcast_to_and_flatten(dims, spec, is_leaf=lambda x: x is None) if not (isinstance(outputs, trt.Tensor) and isinstance(dims, int)) else [dims]
    if places is None:
        raise RuntimeError(f"The vmap rule of {who} returned out_dims that do not have the structure of its outputs: {dims}")
    wrapped = [x if d is None or not isinstance(x, trt.Tensor) else transform.wrap(x, level, d % x.dim()) for x, d in zip(flat, places)]
    return _pytree.tree_unflatten(wrapped, spec)


class _MappedContext:
    """The ctx that a Function's methods see at a level of vmap: what they save is unwrapped, with its batch dimensions beside it."""

    def __init__(self, ctx: Any, level: Any) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_level", level)

    def __getattr__(self, name: str) -> Any:
        if name == "saved_tensors":
            return tuple(x if d is None else transform.wrap(x, self._level, d) for x, d in zip(self._ctx.saved_tensors, self._dims()))
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)

    def _dims(self) -> Any:
        return self._ctx._forward_dims if getattr(self._ctx, "_in_jvp", False) and hasattr(self._ctx, "_forward_dims") else self._ctx._saved_dims

    def _split(self, tensors: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        pairs = [transform.unwrap(x, self._level) for x in tensors]
        return [x for x, _ in pairs], [d for _, d in pairs]

    def save_for_backward(self, *tensors: Any) -> None:
        values, self._ctx._saved_dims = self._split(tensors)
        self._ctx.save_for_backward(*values)

    def save_for_forward(self, *tensors: Any) -> None:
        values, self._ctx._forward_dims = self._split(tensors)
        self._ctx.save_for_forward(*values)

    def mark_dirty(self, *tensors: Any) -> None:
        self._ctx.mark_dirty(*self._split(tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._ctx.mark_non_differentiable(*self._split(tensors)[0])


def _wrapped(values: Any, dims: Any, level: Any) -> list[Any]:
    return [x if d is None or x is None else transform.wrap(x, level, d) for x, d in zip(values, dims)]


def _generated_class(cls: Any, level: Any, dims: tuple[Any, ...]) -> Any:
    """A Function below a level of vmap whose methods are the given ones at the level. `out_dims[0]` are the outputs' batch dimensions, once it has run."""
    out_dims: list[Any] = [None]

    def as_tuple(x: Any) -> tuple[Any, ...]:
        return x if isinstance(x, tuple) else (x,)

    def forward(*values: Any) -> Any:
        given = _wrapped(values, dims, level)
        with Resumed(level):
            result = cls.forward(*given)
        found = [next((v for v, g in zip(values, given) if g is y), None) if any(g is y for g in given) else transform.unwrap(y, level)[0] for y in as_tuple(result)]
        places = tuple(transform.unwrap(y, level)[1] for y in as_tuple(result))
        out_dims[0] = places if isinstance(result, tuple) else places[0]
        return tuple(found) if isinstance(result, tuple) else found[0]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        given = _wrapped(inputs, dims, level)
        outputs = _wrapped(as_tuple(output), as_tuple(out_dims[0]), level)
        with Resumed(level):
            cls.setup_context(_MappedContext(ctx, level), tuple(given), tuple(outputs) if isinstance(output, tuple) else outputs[0])

    def fitted(g: Any, dim: Any, shape: Any) -> Any:
        """A gradient of an input, which sums over the batch where the input is the same for all of it."""
        if g is None or not isinstance(g, trt.Tensor):
            return g
        value, at = transform.unwrap(g, level)
        if dim is None:
            if at is None:
                return value
            if shape is not None and value.dim() - 1 > len(shape):
                value = value.movedim(at, 0).sum_to_size((level.batch_size, *shape))
                at = 0
            return value.sum(at)
        if at is None:
            return value.unsqueeze(dim).expand(*value.shape[:dim], level.batch_size, *value.shape[dim:])
        return value.movedim(at, dim)

    def backward(ctx: Any, *grads: Any) -> Any:
        with Resumed(level):
            result = cls._backward_function()(_MappedContext(ctx, level), *_wrapped(grads, as_tuple(out_dims[0]), level))
        return tuple(fitted(g, d, None) for g, d in zip(as_tuple(result), dims))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        ctx._in_jvp = True
        with Resumed(level):
            result = cls.jvp(_MappedContext(ctx, level), *_wrapped(tangents, dims, level))
        ctx._in_jvp = False
        found = tuple(fitted(g, d, None) for g, d in zip(as_tuple(result), as_tuple(out_dims[0])))
        return found if isinstance(result, tuple) else found[0]

    parts = {"forward": forward, "backward": backward, "jvp": jvp}
    if cls._separate_context:
        parts["setup_context"] = setup_context
    else:
        raise _needs_setup_context()
    return type(cls.__name__, (autograd.Function,), {**{name: staticmethod(f) for name, f in parts.items()}, "out_dims": out_dims})


# ---- custom operators ----------------------------------------------------------------------------------------------------


def run_operator(op: Any, values: list[Any]) -> Any:
    """A library's operator at the innermost level. op: a library's Operator, values: its arguments by schema."""
    level = transform.innermost()
    if level.kind != "vmap":
        return op._record_at(level, [_pytree.tree_map_only(trt.Tensor, lambda x: _constant(x, level), v) for v in values])
    args, kwargs = op._given(values)
    if not _belongs((args, kwargs), level):
        with transform.lowered():
            return op(*args, **kwargs)
    if op._vmap is not None:
        given, dims = _unwrapped(tuple(args), level)
        named = _pytree.tree_map_only(trt.Tensor, lambda x: transform.unwrap(x, level)[0], kwargs)
        with transform.lowered():
            result = op._vmap(VmapInfo(level.batch_size, level.randomness), dims, *given, **named)
            return wrap_by_dims(result, level, op.name()) if op._schema.returns else None
    composed = op._kernels.get("CompositeImplicitAutograd")
    if composed is not None and not op._opaque:
        return composed(*args, **kwargs)
    return _loop(op, level, args, kwargs)


def _loop(op: Any, level: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The operator for each element of the batch."""
    if not fallbacks[op.name()]:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {op.name()}. The operator is called once for each element of the "
            "batch; register_vmap gives it a rule.",
            UserWarning,
            stacklevel=2,
        )
    fallbacks[op.name()] += 1

    with transform.lowered():
        results = [op(*_pytree.tree_map_only(trt.Tensor, lambda x, i=i: transform.element(x, level, i), args),
                      **_pytree.tree_map_only(trt.Tensor, lambda x, i=i: transform.element(x, level, i), kwargs)) for i in range(level.batch_size)]
        if not op._schema.returns:
            return None
        flat = [_pytree.tree_flatten(r) for r in results]
        stacked = [transform.wrap(trt.stack(parts), level, 0) if isinstance(parts[0], trt.Tensor) else parts[0] for parts in map(list, zip(*(leaves for leaves, _ in flat)))]
        return _pytree.tree_unflatten(stacked, flat[0][1])


def run_below_level(op: Any, values: list[Any]) -> Any:
    """A library's operator on its way down from a level of grad or jvp."""
    level = transform.all_levels()[-1]
    given = _pytree.tree_map_only(trt.Tensor, lambda x: transform.unwrap(x, level)[0], values)
    args, kwargs = op._given(given)
    with transform.lowered():
        result = op(*args, **kwargs)
    return _pytree.tree_map_only(trt.Tensor, lambda x: transform.wrap(x, level), result)


transform.set_rule("function", apply_function)

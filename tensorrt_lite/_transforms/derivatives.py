"""grad, vjp, jvp and what is made of them: transforms whose levels autograd and forward mode know.

A call makes a level whose wrappers stand for the arguments; what it records is on those wrappers alone, and the operators of its backward pass run at the lower
levels, too, which may record them in turn.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite._C.autograd import forward as _forward
from tensorrt_lite._C.core import transform
from tensorrt_lite._transforms.batching import Resumed
from tensorrt_lite._transforms.mapping import vmap
from tensorrt_lite.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def _grad_level() -> Iterator[Any]:
    """A level of grad, with recording on."""
    level = transform.Level("grad")
    transform.push(level)
    try:
        with enable_grad():
            yield level
    finally:
        transform.pop()


@contextmanager
def _jvp_level() -> Iterator[Any]:
    """A level of jvp, with forward mode on. Tangents end with the outermost."""
    level = transform.Level("jvp")
    opened = _forward.current_level() < 0
    if opened:
        _forward.enter_level()
    enabled = _forward.is_enabled()
    transform.push(level)
    _forward.set_enabled(True)
    try:
        yield level
    finally:
        _forward.set_enabled(enabled)
        transform.pop()
        if opened:
            _forward.exit_level(0)


def _differentiable(x: Any, who: str) -> None:
    if not isinstance(x, trt.Tensor):
        raise ValueError(f"{who}: Thing passed to transform API must be Tensor, got {type(x)}")
    if not (x.is_floating_point() or x.is_complex()):
        if who in ("jvp", "jacfwd"):  # forward mode has an error of its own
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype} ({who})")
        raise RuntimeError(f"{who}: Expected a tensor of floating point or complex numbers, got {x.dtype}")


def _real(tree: Any, what: str, who: str) -> None:
    """Refuse complex tensors, of which a Jacobian would be two (RuntimeError)."""
    for i, x in enumerate(_pytree.tree_leaves(tree)):
        if isinstance(x, trt.Tensor) and x.is_complex():
            raise RuntimeError(f"{who}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def _wrap_tree(tree: Any, level: Any) -> Any:
    return _pytree.tree_map_only(trt.Tensor, lambda x: transform.wrap(x, level), tree)


def _unwrap_tree(tree: Any, level: Any) -> Any:
    return _pytree.tree_map_only(trt.Tensor, lambda x: transform.unwrap(x, level)[0], tree)


def _leaves_of(tree: Any, level: Any, who: str) -> tuple[Any, list[Any]]:
    """(a tree of the level's leaves, the leaves)."""
    flat, spec = _pytree.tree_flatten(tree)
    leaves = []
    for x in flat:
        if isinstance(x, trt.Tensor):
            _differentiable(x, who)
            leaf = transform.wrap(x, level)
            leaf.requires_grad = True  # requires_grad_() is refused inside transforms
            leaves.append(leaf)
        else:
            _differentiable(x, who)
    return _pytree.tree_unflatten(leaves, spec), leaves


def _argnums(argnums: int | tuple[int, ...], count: int, who: str) -> tuple[int, ...]:
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not wanted:
        raise RuntimeError(f"{who}: argnums must not be empty")
    for i in wanted:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    resolved = tuple(i % count for i in wanted)
    if len(set(resolved)) != len(resolved):
        raise RuntimeError(f"argnums elements must be unique, got: {argnums}")
    return resolved


def gradients(outputs: list[Any], inputs: list[Any], cotangents: list[Any] | None, retain_graph: bool) -> list[Any]:
    """The inputs' gradients, zeros where the outputs do not depend on them. Outputs without a history count as constants."""
    pairs = [(y, None if cotangents is None else cotangents[i]) for i, y in enumerate(outputs) if y.requires_grad]
    if not pairs:
        return [trt.zeros_like(x.detach()) for x in inputs]
    given = None if cotangents is None else [g for _, g in pairs]
    found = autograd.grad([y for y, _ in pairs], inputs, given, retain_graph=retain_graph, allow_unused=True)
    return [trt.zeros_like(x.detach()) if g is None else g for g, x in zip(found, inputs)]


def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns (gradient, value) of `func`, or (gradient, (value, aux)) with has_aux. The arguments are those of :func:`grad`.

    Parameters:
        func (function): takes tensors and returns tensors
        argnums (int or tuple of ints, default 0): which arguments
        has_aux (bool, default False): whether func returns (value, aux)

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.func.grad_and_value(lambda x: x ** 2)(trt.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _grad_level() as level:
            wanted = _argnums(argnums, len(args), "grad")
            given, leaves = [], []
            trees = []
            for i, x in enumerate(args):
                if i in wanted:
                    tree, flat = _leaves_of(x, level, "grad_and_value")
                    given.append(tree)
                    trees.append((i, _pytree.tree_structure(tree), flat))
                else:
                    given.append(_wrap_tree(x, level))
            trees.sort(key=lambda item: wanted.index(item[0]))
            for _, _, flat in trees:
                leaves += flat
            output = func(*given, **_wrap_tree(kwargs, level))
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True")
                output, aux = output
            if not isinstance(output, trt.Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim() != 0:
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?")
            found = gradients([output], leaves, None, False)
            parts, at = [], 0
            for _, spec, flat in trees:
                parts.append(_pytree.tree_unflatten(found[at : at + len(flat)], spec))
                at += len(flat)
            result = parts[0] if isinstance(argnums, int) else tuple(parts)
            result, output, aux = (_unwrap_tree(x, level) for x in (result, output, aux))
        return (result, (output, aux)) if has_aux else (result, output)

    return wrapped


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, which returns a tensor without dimensions.

    argnums: of which arguments, trees of tensors; a tuple gives a tuple. has_aux: func returns (value, aux), and the result is (gradient, aux). Transforms nest:
    `grad(grad(f))` is a second derivative, `vmap(grad(f))` a gradient for each element of a batch. RuntimeError where func returns anything else.

    >>> import tensorrt_lite as trt
    >>> trt.func.grad(trt.sin)(trt.tensor(0.0)).item()
    1.0
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = both(*args, **kwargs)
        return (result[0], result[1][1]) if has_aux else result[0]

    return wrapped


# ---- vjp -------------------------------------------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), function): the function takes cotangents shaped like the result and returns the products with the Jacobian, one for each of primals.

    has_aux: func returns (result, aux), and aux is returned as a third. The products are a tuple. The function may be called more than once,
    inside other transforms too. RuntimeError for arguments and results that are no tensors.

    >>> import tensorrt_lite as trt
    >>> y, pull_back = trt.func.vjp(lambda x: x * x, trt.tensor([1.0, 2.0]))
    >>> pull_back(trt.ones(2))[0].tolist()
    [2.0, 4.0]
    """
    return _vjp(func, primals, has_aux)


def _vjp(func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool = False) -> Any:
    with _grad_level() as level:
        given, leaves = _leaves_of(primals, level, "vjp")
        spec = _pytree.tree_structure(given)
        output = func(*given)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError("vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True")
            output, aux = output
            aux = _unwrap_tree(aux, level)
        flat, out_spec = _pytree.tree_flatten(output)
        for y in flat:
            if not isinstance(y, trt.Tensor):
                raise RuntimeError(f"vjp(f, *primals): Expected f(*primals) to return tensors, got unsupported type {type(y)}")
            if not (y.is_floating_point() or y.is_complex()):
                raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}")
        if not flat:
            raise RuntimeError("vjp(f, *primals): Expected f to be a function that has non-empty output")
        result = _unwrap_tree(output, level)

    def pull_back(*cotangents: Any, retain_graph: bool = True) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 and not isinstance(output, tuple) else cotangents
        if len(cotangents) == 1 and isinstance(output, tuple):
            tree = cotangents[0] if isinstance(cotangents[0], (tuple, list)) else cotangents
        grads = _pytree.tree_leaves(tree)
        if len(grads) != len(flat):
            given, wanted = (_pytree.treespec_pprint(s) for s in (_pytree.tree_structure(cotangents[0] if len(cotangents) == 1 else cotangents), out_spec))
            raise RuntimeError(f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: {given}, primal output: {wanted}")
        with Resumed(level):
            found = gradients(flat, leaves, [transform.wrap(g, level) for g in grads], retain_graph)
            values = [transform.unwrap(g, level)[0] for g in found]
        return _pytree.tree_unflatten(values, spec)

    return (result, pull_back, aux) if has_aux else (result, pull_back)


# ---- jvp -------------------------------------------------------------------------------------------------------------


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(func(*primals), its derivative along tangents), by forward mode.

    primals, tangents: tuples of trees of tensors of equal shapes. strict: a result that does not depend on primals is a RuntimeError instead of a zero tangent.
    has_aux: func returns (result, aux), and aux is returned as a third.

    >>> import tensorrt_lite as trt
    >>> trt.func.jvp(trt.sin, (trt.tensor(0.0),), (trt.tensor(2.0),))[1].item()
    2.0
    """
    return _jvp(func, primals, tangents, strict, has_aux)


def _jvp(func: Callable[..., Any], primals: Any, tangents: Any, strict: bool = False, has_aux: bool = False) -> Any:
    who = "jvp"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{who}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    if not isinstance(tangents, tuple):
        raise RuntimeError(f"{who}: Expected tangents to be a tuple")
    flat, spec = _pytree.tree_flatten(primals)
    flat_tangents, tangent_spec = _pytree.tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(f"{who}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be.")
    for x in (*flat, *flat_tangents):
        _differentiable(x, who)
    with _jvp_level() as level:
        duals = [_forward.make_dual(transform.wrap(x, level), transform.wrap(t, level)) for x, t in zip(flat, flat_tangents)]
        output = func(*_pytree.tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(f"{who}(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux is True")
            output, aux = output
            aux = _unwrap_tree(aux, level)
        results, out_spec = _pytree.tree_flatten(output)
        if not results:
            raise RuntimeError(f"{who}(f, primals, tangents): Expected f to be a function that has non-empty output")
        values, derivatives = [], []
        for y in results:
            if not isinstance(y, trt.Tensor):
                raise RuntimeError(f"{who}(f, primals, tangents): Expected f(*primals) to return tensors, got unsupported type {type(y)}")
            value, tangent = _forward.unpack_dual(y) if transform.belongs(y, level) else (y, None)
            if tangent is None:
                if strict:
                    raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True.")
                tangent = trt.zeros_like(value)
            values.append(transform.unwrap(value, level)[0])
            derivatives.append(transform.unwrap(tangent, level)[0])
    result = (_pytree.tree_unflatten(values, out_spec), _pytree.tree_unflatten(derivatives, out_spec))
    return (*result, aux) if has_aux else result


# ---- Jacobians -------------------------------------------------------------------------------------------------------


def _basis(tensors: list[Any]) -> list[Any]:
    """For tensors of N elements together, the N unit vectors as batches of tensors of their shapes."""
    total = sum(x.numel() for x in tensors)
    found, before = [], 0
    for x in tensors:
        n = x.numel()
        block = trt.zeros((total, n), dtype=x.dtype, device=x.device)
        if n:
            block[before : before + n] = trt.eye(n, dtype=x.dtype, device=x.device)
        found.append(block.view((total, *x.shape)))
        before += n
    return found


def _selected(func: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any], who: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """(func of the wanted arguments alone, those arguments)."""
    wanted = _argnums(argnums, len(args), who)

    def partial(*chosen: Any) -> Any:
        every = list(args)
        for i, x in zip(wanted, chosen):
            every[i] = x
        return func(*every, **kwargs)

    return partial, tuple(args[i] for i in wanted)


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by reverse mode: (*out, *in) for a result (*out) and an argument (*in).

    argnums: of which arguments; a tuple gives a tuple. Trees of results and arguments give trees of Jacobians, the results' outside. chunk_size: that many rows at a
    time. has_aux: func returns (result, aux), and so does this. RuntimeError for complex arguments and results.

    >>> import tensorrt_lite as trt
    >>> trt.func.jacrev(lambda x: x * x)(trt.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _real(args, "inputs", "jacrev")
        partial, primals = _selected(func, argnums, args, kwargs, "jacrev")
        found = _vjp(partial, primals, has_aux)
        output, pull_back = found[0], found[1]
        _real(output, "outputs", "jacrev")
        flat, spec = _pytree.tree_flatten(output)
        inputs, in_spec = _pytree.tree_flatten(primals)
        basis = _basis(flat)
        single = isinstance(output, trt.Tensor)

        def row(*cotangents: Any) -> Any:
            products = pull_back(cotangents[0] if single else _pytree.tree_unflatten(cotangents, spec))
            return tuple(_pytree.tree_leaves(products))

        if sum(x.numel() for x in flat):
            rows = vmap(row, chunk_size=chunk_size)(*basis)
        else:
            rows = tuple(x.new_zeros((0, *x.shape)) for x in inputs)
        parts = []
        for y, block in zip(flat, _split_rows(rows, flat)):
            jacobians = [g.reshape((*y.shape, *x.shape)) for g, x in zip(block, inputs)]
            tree = _pytree.tree_unflatten(jacobians, in_spec)
            parts.append(tree[0] if isinstance(argnums, int) else tree)
        result = _pytree.tree_unflatten(parts, spec)
        return (result, found[2]) if has_aux else result

    return wrapped


def _split_rows(rows: Any, outputs: list[Any]) -> list[list[Any]]:
    """The rows of each output, of each input."""
    sizes = [y.numel() for y in outputs]
    columns = [g.split(sizes) for g in rows]
    return [list(block) for block in zip(*columns)]


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by forward mode: (*out, *in) for a result (*out) and an argument (*in).

    The arguments are those of :func:`jacrev`; randomness is vmap's.

    >>> import tensorrt_lite as trt
    >>> trt.func.jacfwd(lambda x: x * x)(trt.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    return _jacfwd(func, argnums, has_aux, randomness, real=True)


def _jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool, randomness: str, real: bool) -> Callable[..., Any]:
    """jacfwd; real: refuse complex numbers."""

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if real:
            _real(args, "inputs", "jacfwd")
        partial, primals = _selected(func, argnums, args, kwargs, "jacfwd")
        inputs, in_spec = _pytree.tree_flatten(primals)
        for x in inputs:
            _differentiable(x, "jacfwd")
        specs: list[Any] = []

        def push_forward(*tangents: Any) -> Any:
            found = _jvp(partial, primals, _pytree.tree_unflatten(tangents, in_spec), has_aux=has_aux)
            flat, spec = _pytree.tree_flatten(found[1])
            if real:
                _real(flat, "outputs", "jacfwd")
            specs[:] = [spec]
            return (tuple(flat), found[2]) if has_aux else tuple(flat)

        basis = _basis(inputs)
        found = vmap(push_forward, out_dims=(0, None) if has_aux else 0, randomness=randomness)(*basis)
        columns, aux = found if has_aux else (found, None)
        sizes = [x.numel() for x in inputs]
        parts = []
        for y in columns:
            jacobians = [block.movedim(0, -1).reshape((*y.shape[1:], *x.shape)) for block, x in zip(y.split(sizes), inputs)]
            tree = _pytree.tree_unflatten(jacobians, in_spec)
            parts.append(tree[0] if isinstance(argnums, int) else tree)
        result = _pytree.tree_unflatten(parts, specs[0])
        return (result, aux) if has_aux else result

    return wrapped


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`, by forward mode over reverse mode.

    >>> import tensorrt_lite as trt
    >>> trt.func.hessian(lambda x: (x**3).sum())(trt.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), function): the function takes tangents shaped like primals and returns the derivative along them.

    func runs once: the derivative is that of its recorded graph's products with the Jacobian, which are linear in their cotangents. PyTorch's traces
    the tangents' operators instead; the numbers are the same.

    >>> import tensorrt_lite as trt
    >>> y, push_forward = trt.func.linearize(lambda x: x * x, trt.tensor([1.0, 2.0]))
    >>> push_forward(trt.ones(2)).tolist()
    [2.0, 4.0]
    """
    output, pull_back = _vjp(func, primals)
    flat, spec = _pytree.tree_flatten(output)
    inputs, in_spec = _pytree.tree_flatten(primals)
    single = isinstance(output, trt.Tensor)

    def push_forward(*tangents: Any) -> Any:
        given, tangent_spec = _pytree.tree_flatten(tangents)
        if tangent_spec != in_spec:
            raise RuntimeError("linearize: expected the tangents to have the structure of primals")
        for x, t in zip(inputs, given):
            if x.shape != t.shape:
                raise RuntimeError(f"linearize: expected a tangent of shape {tuple(x.shape)}, got {tuple(t.shape)}")
        zeros = tuple(trt.zeros_like(y) for y in flat)

        def products(*cotangents: Any) -> Any:
            return tuple(_pytree.tree_leaves(pull_back(cotangents[0] if single else _pytree.tree_unflatten(cotangents, spec))))

        _, transposed = _vjp(products, zeros)
        return _pytree.tree_unflatten(list(transposed(tuple(given))), spec)

    return output, push_forward

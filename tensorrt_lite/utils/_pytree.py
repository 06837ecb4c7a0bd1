"""torch.utils._pytree: nested containers as a list of leaves and a structure.

tuple, list, dict, OrderedDict, defaultdict, deque, named tuples and registered classes are nodes; everything else, None and
tensors included, is a leaf. `tree_unflatten(*tree_flatten(tree))` is the tree again. Structures compare, hash, print and
serialize as PyTorch's.

>>> leaves, spec = tree_flatten({"a": (1, 2), "b": [3]})
>>> leaves, tree_unflatten([x * 10 for x in leaves], spec)
([1, 2, 3], {'a': (10, 20), 'b': [30]})
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from tensorrt_lite._C.core.return_types import for_each_type

__all__ = [
    "PyTree",
    "Context",
    "FlattenFn",
    "UnflattenFn",
    "DumpableContext",
    "ToDumpableContextFn",
    "FromDumpableContextFn",
    "PyTreeSpec",
    "TreeSpec",
    "LeafSpec",
    "KeyEntry",
    "KeyPath",
    "SequenceKey",
    "MappingKey",
    "GetAttrKey",
    "keystr",
    "key_get",
    "register_pytree_node",
    "register_dataclass",
    "register_constant",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_unflatten",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_map",
    "tree_map_with_path",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "map_only",
    "arg_tree_leaves",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
    "treespec_leaf",
    "treespec_tuple",
    "treespec_dict",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "SUPPORTED_NODES",
    "BUILTIN_TYPES",
]

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool] | None


# ---- paths ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step from a sequence to its element `idx`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The step from a mapping to the value of `key`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step from an object to its attribute `name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """The path as Python writes it: `['a'][0].weight`."""
    return "".join(str(k) for k in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies at a path in obj."""
    for k in kp:
        obj = k.get(obj)
    return obj


# ---- kinds of nodes ------------------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How a class is taken apart and made."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None


class _Serializer(NamedTuple):
    name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _Serializer] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None = None,
) -> None:
    """Let instances of exactly this class be nodes.

    flatten_fn: tree -> (children, context), where contexts compare; unflatten_fn: (children, context) -> tree. The names and functions for
    contexts serve `treespec_dumps`. ValueError when the class is registered, or when one of both functions for contexts is missing.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serializer(name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    del SUPPORTED_NODES[cls]
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[SUPPORTED_SERIALIZED_TYPES.pop(cls).name]
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type[Any], *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, serialized_type_name: str | None = None
) -> None:
    """Let a dataclass be a node whose children are its fields. ValueError when it is none, or when fields are neither named nor dropped."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass.")
    made = {f.name for f in dataclasses.fields(cls) if f.init}
    dropped = set(drop_field_names or ())
    names = field_names if field_names is not None else [f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped]
    if made - dropped - set(names) or set(names) - made:
        raise ValueError(f"field_names of {cls.__name__} do not fit its fields {sorted(made)}: {names}")

    def flatten(value: Any) -> tuple[list[Any], Context]:
        children, left, absent = [], [], []
        for name in names:
            if (child := getattr(value, name)) is None:
                absent.append(name)
            else:
                left.append(name)
                children.append(child)
        return children, [left, absent]

    def unflatten(children: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], children, strict=True)), **dict.fromkeys(context[1]))

    def with_keys(value: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        children, context = flatten(value)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children, strict=True)], context

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys)


class ConstantNode(NamedTuple):
    """The context of a constant: it compares by value."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Let instances be nodes without children, which are part of the structure. They must be hashable and compare by value."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__eq__` implementation, {cls} has none")
    if cls.__hash__ is None or cls.__hash__ is object.__hash__:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__hash__` implementation, {cls} has none")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value, flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    return isinstance(cls, type) and cls in CONSTANT_NODES


def is_namedtuple(obj: object) -> bool:
    """Whether obj is an instance of a named tuple's class or such a class."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: Any) -> bool:
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all(type(name) is str for name in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether obj is an instance of a class such as os.stat_result or such a class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_sequence_fields", "n_fields", "n_unnamed_fields"))
        and not cls.__flags__ & (1 << 10)  # Py_TPFLAGS_BASETYPE: nobody can inherit from them
    )


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def _sequence(cls: type) -> NodeDef:
    return NodeDef(cls, lambda x: (list(x), None), lambda children, _: cls(children), lambda x: ([(SequenceKey(i), v) for i, v in enumerate(x)], None))


def _keyed(items: Mapping[Any, Any]) -> list[tuple[KeyEntry, Any]]:
    return [(MappingKey(k), v) for k, v in items.items()]


def _make_defaultdict(children: Iterable[Any], context: Context) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, children, strict=True))


def _dump_factory(context: Context) -> DumpableContext:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _load_factory(dumped: DumpableContext) -> Context:
    return [getattr(importlib.import_module(dumped["default_factory_module"]), dumped["default_factory_name"]), dumped["dict_context"]]


def _dump_namedtuple(context: Context) -> DumpableContext:
    return SUPPORTED_SERIALIZED_TYPES[context].name if context in SUPPORTED_SERIALIZED_TYPES else f"{context.__module__}.{context.__qualname__}"


def _load_namedtuple(name: DumpableContext) -> Context:
    if name in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    module, _, attribute = name.rpartition(".")
    found = getattr(sys.modules.get(module), attribute, None)
    if not is_namedtuple_class(found):
        raise NotImplementedError(f"the named tuple {name} is not known: register it with `register_pytree_node`")
    return found


def _register_builtins() -> None:
    def add(node: NodeDef, dump: ToDumpableContextFn | None = None, load: FromDumpableContextFn | None = None, name: str | None = None) -> None:
        register_pytree_node(
            node.type, node.flatten_fn, node.unflatten_fn, flatten_with_keys_fn=node.flatten_with_keys_fn, to_dumpable_context=dump,
            from_dumpable_context=load, serialized_type_name=name,
        )  # fmt: skip

    add(_sequence(tuple), name="builtins.tuple")
    add(_sequence(list), name="builtins.list")
    for cls, name in ((dict, "builtins.dict"), (OrderedDict, "collections.OrderedDict")):
        add(
            NodeDef(
                cls, lambda x: (list(x.values()), list(x)), lambda children, keys, cls=cls: cls(zip(keys, children, strict=True)), lambda x: (_keyed(x), list(x))
            ),
            name=name,
        )
    add(
        NodeDef(
            namedtuple,
            lambda x: (list(x), type(x)),
            lambda children, cls: cls(*children),
            lambda x: ([(GetAttrKey(name), v) for name, v in zip(x._fields, x, strict=True)], type(x)),
        ),
        _dump_namedtuple,
        _load_namedtuple,
        "collections.namedtuple",
    )
    add(
        NodeDef(
            defaultdict, lambda x: (list(x.values()), [x.default_factory, list(x)]), _make_defaultdict, lambda x: (_keyed(x), [x.default_factory, list(x)])
        ),
        _dump_factory,
        _load_factory,
        "collections.defaultdict",
    )
    for_each_type(lambda kind: add(_sequence(kind)))  # of operators' results: torch.return_types.sort
    add(
        NodeDef(
            deque,
            lambda x: (list(x), x.maxlen),
            lambda children, maxlen: deque(children, maxlen=maxlen),
            lambda x: ([(SequenceKey(i), v) for i, v in enumerate(x)], x.maxlen),
        ),
        name="collections.deque",
    )


_register_builtins()
STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def _get_node_type(tree: Any) -> Any:
    """The kind of node: a class, or `namedtuple` for those that nobody registered."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if issubclass(kind, dict):
        return dict if getattr(kind, "_pytree_dict", False) else kind  # a module's `_parameters`, a dict in PyTorch
    return namedtuple if is_namedtuple_class(kind) else kind


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the tree is no node, or is_leaf says so."""
    return is_leaf is not None and is_leaf(tree) or _get_node_type(tree) not in SUPPORTED_NODES


# ---- structures ----------------------------------------------------------------------------------------------------


class TreeSpec:
    """The structure of a tree. type: the node's class, None of a leaf; context: what its class keeps beside the children, as a dict its keys."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        if type is None and (context is not None or children_specs):
            raise AssertionError("leaf node should not have a context" if context is not None else "leaf node should not have children")
        values = {
            "type": type,
            "_context": context,
            "_children": children_specs,
            "num_nodes": 1 + sum(c.num_nodes for c in children_specs),
            "num_leaves": 1 if type is None else sum(c.num_leaves for c in children_specs),
            "num_children": len(children_specs),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __reduce__(self) -> Any:
        return TreeSpec, (self.type, self._context, self._children)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        gap = ",\n" + " " * (indent + 2)
        return f"TreeSpec({self.type.__name__}, {self._context}, [" + gap.join(c.__repr__(indent + 2) for c in self._children) + "])"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return str(self.type) == str(other.type) and self._context == other._context and self._children == other._children

    def __hash__(self) -> int:
        return hash((str(self.type), _hashable(self._context), tuple(self._children)))

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves. ValueError when they are not `num_leaves`."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return _built(self, iter(given))

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees where this structure has leaves. ValueError when the tree's upper part has another structure."""
        subtrees: list[PyTree] = []
        _split(self, tree, subtrees)
        return subtrees


PyTreeSpec = TreeSpec


def _hashable(context: Context) -> Hashable:
    if isinstance(context, (list, tuple)):
        return tuple(_hashable(c) for c in context)
    if isinstance(context, dict):
        return tuple((k, _hashable(v)) for k, v in context.items())
    return context  # type: ignore[no-any-return]


def _built(spec: TreeSpec, leaves: Any) -> PyTree:
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn([_built(c, leaves) for c in spec._children], spec._context)


def _split(spec: TreeSpec, tree: PyTree, subtrees: list[PyTree]) -> None:
    if spec.type is None:
        subtrees.append(tree)
        return
    kind = _get_node_type(tree)
    dicts = spec.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
    if kind != spec.type and not dicts:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {kind!r}.")
    if dicts:
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        missing, extra = set(keys).difference(tree), set(tree).difference(keys)
        if missing or extra:
            parts = [f"; missing key(s): {missing}"] * bool(missing) + [f"; extra key(s): {extra}"] * bool(extra)
            raise ValueError(f"Node keys mismatch{''.join(parts)}.")
        children = [tree[key] for key in keys]
    else:
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != spec.num_children:
            raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
        if kind is not deque and context != spec._context:
            raise ValueError(f"Node context mismatch for node type {spec.type!r}; expected {spec._context!r}, but got {context!r}.")
    for child, subspec in zip(children, spec._children, strict=True):
        _split(subspec, child, subtrees)


_LEAF = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:  # noqa: N802 (a class in PyTorch)
    """The structure of a leaf."""
    return _LEAF


treespec_leaf = LeafSpec


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """The structure of a tuple of such children."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of such values."""
    table = dict(mapping, **kwargs)
    return TreeSpec(dict, list(table), list(table.values()))


# ---- flatten, unflatten, map ---------------------------------------------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right and the structure."""
    leaves: list[Any] = []
    return leaves, _flattened(tree, leaves, is_leaf)


def _flattened(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flattened(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves. ValueError when their number is another; TypeError without a structure."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """The leaves one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves from left to right."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree of `func(leaf, *subtrees of the others at its place)`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(list(map(func, leaves, *[spec.flatten_up_to(r) for r in rests])))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func for its effect on each leaf; returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *[spec.flatten_up_to(r) for r in rests]), maxlen=0)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function leaves values alone that are not of these types (or that the predicate refuses)."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def chosen(x: Any) -> bool:
            return isinstance(x, type_or_types_or_pred)

    elif callable(type_or_types_or_pred):
        chosen = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrapper(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if chosen(x) else x

    return wrapper


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map over the leaves of some types, or those for which a predicate holds; the others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map_ over the leaves of some types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for all leaves of some types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for a leaf of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """[(path, leaf)] from left to right. ValueError for a node whose class was registered without `flatten_with_keys_fn`."""
    found: list[tuple[KeyPath, Any]] = []

    def walk(path: KeyPath, node: PyTree) -> None:
        if tree_is_leaf(node, is_leaf):
            found.append((path, node))
            return
        kind = _get_node_type(node)
        with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
        if with_keys is None:
            raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node.")
        for key, child in with_keys(node)[0]:
            walk((*path, key), child)

    walk((), tree)
    return found


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """[(path, leaf)] and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map whose function gets the path first."""
    keyed, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [p for p, _ in keyed], [leaf for _, leaf in keyed]
    return spec.unflatten(list(map(func, paths, leaves, *[spec.flatten_up_to(r) for r in rests])))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a tree that is a structure's upper part, each as often as the structure has leaves at its place; None when it is not."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is None or _get_node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec._context:
        return None
    leaves: list[Any] = []
    for child, subspec in zip(children, treespec._children, strict=True):
        found = _broadcast_to_and_flatten(child, subspec, is_leaf)
        if found is None:
            return None
        leaves += found
    return leaves


# ---- serialization -------------------------------------------------------------------------------------------------

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON. NotImplementedError for contexts that JSON cannot hold and whose class gave no functions for it."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _dumpable(treespec)))


def _dumpable(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    serializer = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if serializer.to_dumpable_context is not None:
        context = json.dumps(serializer.to_dumpable_context(spec._context))
    else:
        try:
            context = json.dumps(spec._context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using _register_pytree_node."
            ) from error
    return {"type": serializer.name, "context": context, "children_spec": [_dumpable(c) for c in spec._children]}


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure of `treespec_dumps`. NotImplementedError for classes that are not registered."""
    protocol, dumped = json.loads(serialized)
    if protocol != 1:
        raise NotImplementedError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _loaded(dumped)


def _loaded(dumped: dict[str, Any]) -> TreeSpec:
    if dumped["type"] is None and dumped["context"] is None and not dumped["children_spec"]:
        return _LEAF
    if dumped["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {dumped['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[dumped["type"]]
    load = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    context = json.loads(dumped["context"])
    return TreeSpec(kind, context if load is None else load(context), [_loaded(c) for c in dumped["children_spec"]])


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with a `*` for each leaf."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))

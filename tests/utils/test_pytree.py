"""utils._pytree beside torch.utils._pytree."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREES = [
    1,
    None,
    (),
    [],
    {},
    (1, (2, [3])),
    {"b": 1, "a": (2, {"c": 3})},
    OrderedDict(z=1, a=[2]),
    defaultdict(list, {"k": 1, "l": (2,)}),
    deque([1, [2]], maxlen=4),
    Point(1, {"q": 2}),
    [Point((1,), None), {"t": ()}],
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees_come_apart_as_in_pytorch(tree):
    theirs = pytest.importorskip("torch.utils._pytree")
    leaves, spec = pytree.tree_flatten(tree)
    expected, expected_spec = theirs.tree_flatten(tree)
    assert leaves == expected and pytree.tree_leaves(tree) == expected and repr(spec) == repr(expected_spec)
    assert (spec.num_nodes, spec.num_leaves, spec.num_children) == (expected_spec.num_nodes, expected_spec.num_leaves, expected_spec.num_children)
    assert spec.type == (expected_spec.type) and spec.context == expected_spec.context
    paths = [(pytree.keystr(p), leaf) for p, leaf in pytree.tree_leaves_with_path(tree)]
    assert paths == [(theirs.keystr(p), leaf) for p, leaf in theirs.tree_leaves_with_path(tree)]
    assert pytree.treespec_pprint(spec) == theirs.treespec_pprint(expected_spec)
    again = spec.unflatten(leaves)
    assert again == tree and type(again) is type(tree)
    assert pytree.tree_structure(again) == spec and hash(pytree.tree_structure(again)) == hash(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("tree", [t for t in TREES if not isinstance(t, defaultdict)], ids=str)
def test_structures_are_written_as_pytorch_writes_them(tree):
    theirs = pytest.importorskip("torch.utils._pytree")
    spec = pytree.tree_structure(tree)
    text = pytree.treespec_dumps(spec)
    if "namedtuple" not in text:
        assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
        assert repr(theirs.treespec_loads(text)) == repr(spec)
    assert pytree.treespec_loads(text) == spec


def test_maps():
    tree = {"a": [1, 2.5], "b": (3,)}
    assert pytree.tree_map(lambda x: x * 2, tree) == {"a": [2, 5.0], "b": (6,)}
    assert pytree.tree_map(lambda x, y: (x, y), tree, {"b": ("p",), "a": [{"q": 1}, None]}) == {"a": [(1, {"q": 1}), (2.5, None)], "b": ((3, "p"),)}
    assert pytree.tree_map_only(int, str, tree) == {"a": ["1", 2.5], "b": ("3",)}
    assert pytree.tree_map_only((int, float), str, tree)["a"] == ["1", "2.5"] and pytree.tree_map_only(lambda x: x > 2, str, tree)["a"] == [1, "2.5"]
    assert pytree.tree_map_only(int | str, lambda x: -x, [1, 2.0]) == [-1, 2.0]
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2.5, 3]
    assert pytree.tree_map_only_(int, seen.append, tree) is tree and seen[3:] == [1, 3]
    named = pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), tree)
    assert named == {"a": ["['a'][0]", "['a'][1]"], "b": ("['b'][0]",)}
    assert pytree.tree_all(bool, tree) and not pytree.tree_any(lambda x: x > 5, tree)
    assert pytree.tree_all_only(int, lambda x: x < 4, tree) and pytree.tree_any_only(float, lambda x: x > 2, tree)
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: isinstance(x, list) and x and isinstance(x[0], int)) == [2, 1]
    assert pytree.arg_tree_leaves(1, [2], k=(3,)) == [1, 2, 3]


def test_tensors_are_leaves():
    x = trt.ones(2, 3)
    assert pytree.tree_leaves([x, {"y": x}]) == [x, x] or pytree.tree_leaves([x])[0] is x
    doubled = pytree.tree_map_only(trt.Tensor, lambda t: t * 2, {"x": x, "n": 1})
    assert doubled["x"].sum() == 12 and doubled["n"] == 1


def test_other_structures_are_refused():
    spec = pytree.tree_structure((1, {"a": 2}))
    with pytest.raises(ValueError, match="`leaves` has length 3"):
        pytree.tree_unflatten([1, 2, 3], spec)
    with pytest.raises(ValueError, match="arity"):
        spec.flatten_up_to((1,))
    with pytest.raises(ValueError, match="type"):
        spec.flatten_up_to([1, {"a": 2}])
    with pytest.raises(ValueError, match="missing key"):
        spec.flatten_up_to((1, {"b": 2}))
    with pytest.raises(TypeError):
        pytree.tree_unflatten([1], (1,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.type = list
    assert spec != pytree.tree_structure((1, {"b": 2})) and spec != 1
    assert pytree.tree_structure(OrderedDict(a=1, b=2)).flatten_up_to({"b": 4, "a": 3}) == [3, 4]


def test_registered_classes_are_nodes():
    class Pair:
        def __init__(self, left, right):
            self.left, self.right = left, right

    assert pytree.tree_is_leaf(Pair(1, 2))
    pytree.register_pytree_node(Pair, lambda p: ([p.left, p.right], "context"), lambda children, _: Pair(*children))
    try:
        leaves, spec = pytree.tree_flatten([Pair(1, (2,)), 3])
        assert leaves == [1, 2, 3] and spec.child(0).context == "context" and spec.unflatten([4, 5, 6])[0].right == (5,)
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, None, None)
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            pytree.tree_leaves_with_path(Pair(1, 2))
    finally:
        pytree._deregister_pytree_node(Pair)
    assert pytree.tree_is_leaf(Pair(1, 2))


def test_dataclasses_and_constants():
    @dataclasses.dataclass
    class Batch:
        x: int
        y: list
        note: str | None = None

    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    pytree.register_dataclass(Batch)
    pytree.register_constant(Mode)
    try:
        tree = [Batch(1, [2, 3]), Mode("train")]
        leaves, spec = pytree.tree_flatten(tree)
        assert leaves == [1, 2, 3] and spec.unflatten(leaves) == tree
        assert [pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(tree)] == ["[0].x", "[0].y[0]", "[0].y[1]"]
        assert spec != pytree.tree_structure([Batch(1, [2, 3]), Mode("eval")]) and pytree.is_constant_class(Mode)
    finally:
        pytree._deregister_pytree_node(Batch)
        pytree._deregister_pytree_node(Mode)


def test_paths_and_kinds_of_tuples():
    tree = {"a": [Point(1, 2)]}
    (path, leaf), _ = pytree.tree_leaves_with_path(tree)
    assert path == (pytree.MappingKey("a"), pytree.SequenceKey(0), pytree.GetAttrKey("x")) and pytree.key_get(tree, path) == leaf == 1
    assert pytree.is_namedtuple(Point) and pytree.is_namedtuple_instance(Point(1, 2)) and not pytree.is_namedtuple_instance((1, 2))
    assert pytree.is_structseq(os.stat(".")) and pytree.is_structseq_class(os.stat_result) and not pytree.is_structseq(Point)
    assert pytree._broadcast_to_and_flatten((1, 2), pytree.tree_structure(([0, 0], 0))) == [1, 1, 2]
    assert pytree._broadcast_to_and_flatten((1,), pytree.tree_structure([0])) is None


def test_structures_are_made_by_hand():
    leaf = pytree.treespec_leaf()
    assert pytree.treespec_tuple([leaf, leaf]) == pytree.tree_structure((1, 2)) and leaf.is_leaf()
    assert pytree.treespec_dict(a=leaf) == pytree.tree_structure({"a": 1}) and pytree.LeafSpec() is leaf


def test_the_parameters_of_a_module_are_a_dict():
    layer = trt.nn.Linear(2, 3)
    leaves, spec = pytree.tree_flatten({"p": layer._parameters, "b": layer._buffers})
    assert leaves == [layer.weight, layer.bias] and spec == pytree.tree_structure({"p": {"weight": 0, "bias": 0}, "b": {}})
    shapes = pytree.tree_map(lambda p: tuple(p.shape), layer._parameters)
    assert shapes == {"weight": (3, 2), "bias": (3,)} and type(shapes) is dict and isinstance(layer.weight, trt.nn.Parameter)
    squares = trt.func.grad(lambda parameters: sum((p**2).sum() for p in parameters.values()))(layer._parameters)
    assert squares["weight"].tolist() == (2 * layer.weight).tolist()

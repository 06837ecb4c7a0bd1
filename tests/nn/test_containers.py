"""Containers behave like PyTorch's: the same operations leave the same names, order and printed form."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch

import tensorrt_lite as trt

SIDES = pytest.mark.parametrize("nn", [torch.nn, trt.nn], ids=["pytorch", "ours"])


def both(build):
    """The result of the same steps on PyTorch's nn and on ours."""
    return build(torch.nn), build(trt.nn)


def sizes(container):
    return [module.out_features for module in container]


def linears(nn, *widths):
    return [nn.Linear(2, width) for width in widths]


STEPS = {
    "append": lambda nn, c: c.append(nn.Linear(2, 9)),
    "extend": lambda nn, c: c.extend(linears(nn, 8, 9)),
    "insert": lambda nn, c: c.insert(1, nn.Linear(2, 9)),
    "insert at the end": lambda nn, c: c.insert(3, nn.Linear(2, 9)),
    "set": lambda nn, c: c.__setitem__(-1, nn.Linear(2, 9)),
    "delete": lambda nn, c: c.__delitem__(0),
    "delete a slice": lambda nn, c: c.__delitem__(slice(0, 2)),
    "pop": lambda nn, c: c.pop(1),
    "add in place": lambda nn, c: c.__iadd__(
        type(c)(*([linears(nn, 8)] if type(c) is nn.ModuleList else linears(nn, 8)))
    ),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", ["Sequential", "ModuleList"])
def test_list_operations_leave_the_same_children(kind, step):
    def build(nn):
        modules = linears(nn, 3, 4, 5)
        container = nn.Sequential(*modules) if kind == "Sequential" else nn.ModuleList(modules)
        step(nn, container)
        return container

    expected, actual = both(build)
    assert repr(actual) == repr(expected)
    assert list(actual._modules) == list(expected._modules)
    assert list(actual.state_dict()) == list(expected.state_dict())
    assert sizes(actual) == sizes(expected)
    assert [getattr(actual, name).out_features for name in actual._modules] == sizes(expected)


@SIDES
@pytest.mark.parametrize("kind", ["Sequential", "ModuleList"])
def test_indexing(nn, kind):
    modules = linears(nn, 3, 4, 5)
    container = nn.Sequential(*modules) if kind == "Sequential" else nn.ModuleList(modules)
    assert container[1] is modules[1]
    assert container[-1] is modules[2]
    assert type(container[1:]) is type(container)
    assert sizes(container[1:]) == [4, 5]
    assert len(container) == 3
    assert modules[1] in container
    for bad in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            container[bad]


def test_insert_counts_from_the_back():
    container = trt.nn.Sequential(*linears(trt.nn, 3, 4, 5)).insert(-1, trt.nn.Linear(2, 9))
    assert sizes(container) == [3, 4, 9, 5]
    modules = trt.nn.ModuleList(linears(trt.nn, 3, 4, 5))
    modules.insert(-1, trt.nn.Linear(2, 9))
    assert sizes(modules) == [3, 4, 9, 5]


@SIDES
def test_sequential_of_an_ordered_dict_keeps_names(nn):
    model = nn.Sequential(OrderedDict([("first", nn.Linear(2, 3)), ("second", nn.ReLU())]))
    assert list(model.state_dict()) == ["first.weight", "first.bias"]
    assert model.first is model[0]
    assert list(model[1:]._modules) == ["second"]


@SIDES
def test_sequential_arithmetic(nn):
    model = nn.Sequential(*linears(nn, 3)) + nn.Sequential(*linears(nn, 4))
    assert sizes(model) == [3, 4]
    assert sizes(model * 2) == [3, 4, 3, 4]
    assert (model * 2)[2] is model[0]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        model + [nn.ReLU()]


def test_sequential_runs_its_modules_in_order():
    model = trt.nn.Sequential(trt.nn.Flatten(), trt.nn.Identity(), trt.nn.Unflatten(1, (3, 2)))
    assert tuple(model(trt.zeros(5, 2, 3)).shape) == (5, 3, 2)


@SIDES
def test_module_list_is_not_callable(nn):
    with pytest.raises(NotImplementedError, match='Module \\[ModuleList\\] is missing the required "forward" function'):
        nn.ModuleList()(1)


def test_equal_neighbours_print_once():
    def build(nn):
        return nn.ModuleList([*linears(nn, 3, 3), nn.ReLU(), nn.Sequential(*linears(nn, 4)), *linears(nn, 3)])

    expected, actual = both(build)
    assert repr(actual) == repr(expected)


@SIDES
def test_module_dict_operations(nn):
    container = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    container["c"] = nn.Linear(2, 5)
    container.update([("d", nn.Tanh())])
    del container["b"]
    assert list(container) == list(container.keys()) == ["a", "c", "d"]
    assert list(container.state_dict()) == ["a.weight", "a.bias", "c.weight", "c.bias"]
    assert "b" not in container
    assert container.pop("c").out_features == 5
    assert [name for name, _ in container.items()] == ["a", "d"]
    container.clear()
    assert len(container) == 0
    with pytest.raises(KeyError):
        container["a"]
    with pytest.raises(TypeError, match="should be called with an iterable of key/value pairs"):
        container.update(3)


@SIDES
def test_module_dict_refuses_the_name_of_a_method(nn):
    with pytest.raises(KeyError, match="attribute 'keys' already exists"):
        nn.ModuleDict({"keys": nn.ReLU()})


def test_parameter_list_operations():
    def build(nn):
        tensor = torch.ones(2, 3) if nn is torch.nn else trt.ones(2, 3)
        container = nn.ParameterList([tensor, nn.Parameter(tensor)])
        container.append("text")
        container.extend([tensor, tensor])
        container[0] = tensor * 2
        return container

    expected, actual = both(build)
    assert len(actual) == len(expected) == 5
    assert list(actual.state_dict()) == list(expected.state_dict())
    assert actual[2] == "text"
    assert type(actual[1:3]) is trt.nn.ParameterList
    assert len(actual[1:3]) == 2
    assert all(isinstance(actual[i], trt.nn.Parameter) for i in (0, 1, 3, 4))
    assert len(list(actual.parameters())) == 4
    with pytest.raises(IndexError, match="out of range"):
        actual[5]
    with pytest.raises(RuntimeError, match="should not be called"):
        actual()


def test_parameter_dict_operations():
    def build(nn):
        tensor = torch.ones(2) if nn is torch.nn else trt.ones(2)
        container = nn.ParameterDict({"b": tensor, "a": tensor})
        container["text"] = "value"
        container.update(OrderedDict(z=tensor, y=tensor))
        container.setdefault("s", tensor)
        del container["a"]
        return container

    expected, actual = both(build)
    assert list(actual) == list(expected)
    assert list(actual.state_dict()) == list(expected.state_dict())
    assert actual.get("missing", 3) == 3
    assert actual["text"] == "value"
    assert actual.popitem()[0] == expected.popitem()[0] == "s"
    assert list(actual | {"k": trt.ones(1)}) == [*actual, "k"]
    assert list(reversed(actual)) == list(reversed(expected))
    with pytest.raises(KeyError):
        actual["a"]
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        actual[1] = trt.ones(1)


@pytest.mark.parametrize(
    "build",
    [
        lambda nn: nn.Sequential(nn.Linear(2, 2), nn.ReLU),
        lambda nn: nn.ModuleList([nn.ReLU]),
        lambda nn: nn.ModuleDict({"a": nn.ReLU}),
        lambda nn: nn.ModuleList([len]),
        lambda nn: nn.Module().add_module("a", int),
    ],
)
def test_a_class_in_place_of_a_module_is_named(build):
    with pytest.raises(TypeError) as theirs:
        build(torch.nn)
    with pytest.raises(TypeError) as ours:
        build(trt.nn)
    assert str(ours.value).replace("tensorrt_lite.", "torch.") == str(theirs.value)

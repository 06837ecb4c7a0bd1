"""Module: registration, attribute access, iteration, conversion, state dicts, hooks, copies.

Tests marked with SIDES state one behaviour and check it on PyTorch's Module and on ours alike.
"""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
import torch
from nn_compare import array, assert_same, copy_state, ours

import tensorrt_lite as trt

SIDES = pytest.mark.parametrize("lib", [torch, trt], ids=["pytorch", "ours"])


def model_of(lib):
    """A module with every kind of member: parameters, an absent one, buffers of both kinds, children, a shared one."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(lib.ones(3))
            self.register_parameter("absent", None)
            self.register_buffer("steps", lib.zeros(2))
            self.register_buffer("cache", lib.zeros(1), persistent=False)
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x) * self.scale

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Block()
            self.second = Block()
            self.second.linear = self.first.linear
            self.norm = nn.BatchNorm1d(3)
            self.none = None
            self.register_module("empty", None)

        def forward(self, x):
            return self.norm(self.second(self.first(x)))

    return Model()


class Pair(trt.nn.Module):
    """At module level, so that it can be pickled."""

    def __init__(self):
        super().__init__()
        self.a = trt.nn.Linear(2, 3)
        self.b = trt.nn.Linear(3, 2)
        self.b.weight = trt.nn.Parameter(trt.ones(2, 3))
        self.register_buffer("count", trt.zeros(1), persistent=False)

    def forward(self, x):
        return self.b(self.a(x))


# -- registration and attributes --------------------------------------------------------------------------------


@SIDES
def test_members_are_listed_in_registration_order(lib):
    model = model_of(lib)
    assert [name for name, _ in model.named_parameters()] == [
        "first.scale",
        "first.linear.weight",
        "first.linear.bias",
        "second.scale",
        "norm.weight",
        "norm.bias",
    ]
    assert len(list(model.named_parameters(remove_duplicate=False))) == 8
    assert [name for name, _ in model.named_buffers()] == [
        "first.steps",
        "first.cache",
        "second.steps",
        "second.cache",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [name for name, _ in model.named_modules()] == ["", "first", "first.linear", "second", "norm"]
    assert [name for name, _ in model.named_modules(prefix="m")][:2] == ["m", "m.first"]
    assert [name for name, _ in model.named_children()] == ["first", "second", "norm"]
    assert list(model.first.parameters(recurse=False)) == [model.first.scale]
    assert len(list(model.children())) == 3
    assert len(list(model.modules())) == 5
    assert len(list(model.buffers())) == 7


def test_printing_matches_pytorch():
    assert repr(model_of(trt)) == repr(model_of(torch))


@SIDES
def test_assigning_moves_a_name_between_kinds(lib):
    module = lib.nn.Module()
    module.x = 3
    module.x = lib.nn.Parameter(lib.zeros(2))
    assert list(module._parameters) == ["x"]
    module.x = None
    assert module.x is None
    assert list(module._parameters) == ["x"]
    del module.x
    assert not hasattr(module, "x")
    module.register_buffer("x", lib.zeros(1))
    module.x = lib.ones(1)
    assert module.x is module._buffers["x"]
    module.x = lib.nn.ReLU()
    assert list(module._modules) == ["x"]
    assert not module._buffers
    module.x = lib.nn.Parameter(lib.zeros(2))
    assert not module._modules
    assert list(dict(module.named_parameters())) == ["x"]


@SIDES
@pytest.mark.parametrize(
    ("prepare", "value", "message"),
    [
        (lambda lib, m: m.register_parameter("x", None), lambda lib: lib.zeros(1), "as parameter 'x'"),
        (lambda lib, m: m.register_parameter("x", None), lambda lib: 3, "as parameter 'x'"),
        (lambda lib, m: m.add_module("x", None), lambda lib: 3, "as child module 'x'"),
        (lambda lib, m: m.register_buffer("x", None), lambda lib: 3, "as buffer 'x'"),
    ],
)
def test_a_registered_name_refuses_other_values(lib, prepare, value, message):
    module = lib.nn.Module()
    prepare(lib, module)
    with pytest.raises(TypeError, match=message):
        module.x = value(lib)


@SIDES
def test_registration_errors(lib):
    module = lib.nn.Linear(2, 2)
    leaf = lib.nn.Parameter(lib.zeros(1))
    with pytest.raises(KeyError, match="attribute 'in_features' already exists"):
        module.register_parameter("in_features", leaf)
    with pytest.raises(KeyError, match="parameter name can.*t contain"):
        module.register_parameter("a.b", leaf)
    with pytest.raises(KeyError, match="name can.*t be empty string"):
        module.register_buffer("", lib.zeros(1))
    with pytest.raises(TypeError, match="buffer name should be a string"):
        module.register_buffer(3, lib.zeros(1))
    with pytest.raises(TypeError, match="or None required"):
        module.register_buffer("ok", "text")
    with pytest.raises(TypeError, match="or None required"):
        module.register_parameter("ok", lib.zeros(1))
    with pytest.raises(TypeError, match="is not a Module subclass"):
        module.add_module("ok", leaf)
    with pytest.raises(KeyError, match="module name can.*t contain"):
        module.add_module("a.b", lib.nn.ReLU())


@SIDES
def test_members_need_an_initialised_module(lib):
    class Late(lib.nn.Module):
        def __init__(self, value):
            self.value = value

    Late(3)
    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Late(lib.nn.Parameter(lib.zeros(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Late(lib.nn.ReLU())


@SIDES
def test_missing_attributes_are_named(lib):
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wieght'"):
        lib.nn.Linear(2, 2).wieght  # noqa: B018


@SIDES
def test_writing_to_the_registries_is_seen_by_attributes(lib):
    module = lib.nn.Linear(2, 2)
    weight = lib.nn.Parameter(lib.zeros(2, 2))
    module._parameters["weight"] = weight
    assert module.weight is weight
    del module._parameters["weight"]
    assert not hasattr(module, "weight")
    module.weight = 3
    assert module.weight == 3
    module._buffers.update(extra=lib.zeros(1))
    assert module.extra is module._buffers["extra"]
    module._buffers.pop("extra")
    assert not hasattr(module, "extra")
    module._modules["child"] = lib.nn.ReLU()
    assert module.child is module._modules["child"]
    module._modules.clear()
    assert not hasattr(module, "child")
    module._parameters = {"late": weight}
    assert module.late is weight
    assert module.bias if "bias" in module._parameters else not hasattr(module, "bias")


@SIDES
def test_a_subclass_can_fall_back_on_getattr(lib):
    class Wrapper(lib.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    wrapper = Wrapper(lib.nn.Linear(4, 2))
    assert wrapper.in_features == 4
    assert wrapper.weight is wrapper.inner.weight


@SIDES
def test_buffer_objects_register_themselves(lib):
    module = lib.nn.Module()
    module.kept = lib.nn.Buffer(lib.ones(2))
    module.passing = lib.nn.Buffer(lib.ones(2), persistent=False)
    assert list(module._buffers) == ["kept", "passing"]
    assert list(module.state_dict()) == ["kept"]
    assert isinstance(module.kept, lib.nn.Buffer)
    assert not isinstance(lib.ones(1), lib.nn.Buffer)


@SIDES
def test_parameter(lib):
    data = lib.ones(2)
    parameter = lib.nn.Parameter(data)
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert parameter.data_ptr() == data.data_ptr()
    assert not lib.nn.Parameter(data, requires_grad=False).requires_grad
    assert isinstance(parameter, lib.nn.Parameter)
    assert not isinstance(data, lib.nn.Parameter)
    assert type(parameter * 2) is lib.Tensor
    assert repr(parameter).startswith("Parameter containing:\ntensor([1., 1.]")
    twin = copy.deepcopy(parameter)
    assert type(twin) is lib.nn.Parameter
    assert twin.data_ptr() != data.data_ptr()
    assert lib.nn.Parameter().numel() == 0


@SIDES
def test_a_computed_tensor_cannot_become_a_parameter(lib):
    module = lib.nn.Module()
    leaf = lib.nn.Parameter(lib.ones(2))
    module.plain = leaf * 2
    assert "plain" not in module._parameters


@SIDES
def test_lookup_by_path(lib):
    model = model_of(lib)
    assert model.get_submodule("") is model
    assert model.get_submodule("first.linear") is model.first.linear
    assert model.get_parameter("first.linear.bias") is model.first.linear.bias
    assert model.get_buffer("norm.running_var") is model.norm.running_var
    model.set_submodule("second.linear", lib.nn.Identity())
    assert isinstance(model.second.linear, lib.nn.Identity)
    for call, target, message in [
        (model.get_submodule, "first.lin", "has no attribute `lin`"),
        (model.get_submodule, "first.scale", "`scale` is not an nn.Module"),
        (model.get_parameter, "first.linear", "`linear` is not an nn.Parameter"),
        (model.get_buffer, "first.scale", "`scale` is not a buffer"),
    ]:
        with pytest.raises(AttributeError, match=message):
            call(target)


@SIDES
def test_constructor_arguments_are_checked(lib):
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'size'"):
        lib.nn.Module(size=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        lib.nn.Module(3)


# -- modes and conversion ---------------------------------------------------------------------------------------


@SIDES
def test_train_and_eval_reach_every_module(lib):
    model = model_of(lib)
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        model.train(1)


@SIDES
def test_apply_visits_children_first(lib):
    seen = []
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.ReLU()))
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


@SIDES
def test_zero_grad(lib):
    layer = lib.nn.Linear(2, 2)
    layer(lib.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert float(layer.weight.grad.abs().sum()) == 0
    layer.zero_grad()
    assert layer.weight.grad is None
    assert not any(p.requires_grad for p in layer.requires_grad_(False).parameters())


@SIDES
@pytest.mark.parametrize("name", ["double", "half", "bfloat16", "float"])
def test_conversion_keeps_identity_and_integers(lib, name):
    dtype = {"double": lib.float64, "half": lib.float16, "bfloat16": lib.bfloat16, "float": lib.float32}[name]
    layer = lib.nn.BatchNorm1d(3)
    weight = layer.weight
    layer(lib.ones(2, 3)).sum().backward()
    assert getattr(layer, name)() is layer
    assert layer.weight is weight
    assert weight.dtype is dtype
    assert weight.grad.dtype is dtype
    assert layer.running_mean.dtype is dtype
    assert layer.running_mean is layer._buffers["running_mean"]
    assert layer.num_batches_tracked.dtype is lib.int64


@SIDES
def test_to(lib):
    layer = lib.nn.BatchNorm2d(3)
    assert layer.to(lib.float64).weight.dtype is lib.float64
    assert layer.to("cpu", lib.float32).weight.dtype is lib.float32
    assert layer.to(device="cpu", dtype=lib.float64).running_var.dtype is lib.float64
    assert layer.to(lib.zeros(1, dtype=lib.float32)).weight.dtype is lib.float32
    assert layer.cpu().weight.device.type == "cpu"
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        layer.to(lib.int64)
    conv = lib.nn.Conv2d(2, 2, 3).to(memory_format=lib.channels_last)
    assert conv.weight.is_contiguous(memory_format=lib.channels_last)


@SIDES
def test_to_empty_keeps_shapes(lib):
    layer = lib.nn.Linear(3, 2, device="meta")
    assert layer.weight.is_meta
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu"
    assert tuple(layer.weight.shape) == (2, 3)


# -- state dicts ------------------------------------------------------------------------------------------------


def test_state_dict_has_pytorchs_keys_and_metadata():
    actual, expected = model_of(trt).state_dict(), model_of(torch).state_dict()
    assert list(actual) == list(expected)
    assert dict(actual._metadata) == dict(expected._metadata)
    assert list(model_of(trt).state_dict(prefix="m.")) == list(model_of(torch).state_dict(prefix="m."))


@SIDES
def test_state_dict_shares_storage_and_is_detached(lib):
    layer = lib.nn.Linear(2, 2)
    saved = layer.state_dict()["weight"]
    assert not saved.requires_grad
    assert saved.data_ptr() == layer.weight.data_ptr()
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_a_pytorch_state_dict_loads():
    torch.manual_seed(0)
    reference, model = model_of(torch), model_of(trt)
    copy_state(model, reference)
    values = torch.randn(4, 3)
    assert_same(model(ours(values)), reference(values))


@SIDES
def test_loading_reports_keys(lib):
    layer = lib.nn.Linear(2, 2)
    good = layer.state_dict()
    assert repr(layer.load_state_dict(good)) == "<All keys matched successfully>"
    partial = {"weight": good["weight"], "other": good["bias"], "deep.er": good["bias"]}
    result = layer.load_state_dict(partial, strict=False)
    assert result.missing_keys == ["bias"]
    assert sorted(result.unexpected_keys) == ["deep.er", "other"]
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(partial)
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
        'Unexpected key(s) in state_dict: "other", "deep.er". '
    )


@SIDES
def test_loading_reports_shapes(lib):
    model = lib.nn.Sequential(lib.nn.Linear(2, 3))
    state = model.state_dict()
    state["0.weight"] = lib.zeros(4, 2)
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    shapes = "copying a param with shape {}([4, 2]) from checkpoint, the shape in current model is {}([3, 2])."
    name = "torch.Size" if lib is torch else str(model[0].weight.shape).split("(")[0]
    assert f"size mismatch for 0.weight: {shapes.format(name, name)}" in str(caught.value)


@SIDES
def test_loading_refuses_other_things(lib):
    layer = lib.nn.Linear(2, 2)
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        layer.load_state_dict([1])
    with pytest.raises(RuntimeError, match='While copying the parameter named "weight", expected'):
        layer.load_state_dict({"weight": 3, "bias": layer.bias.detach()})


@SIDES
def test_loading_with_assign_takes_the_tensors(lib):
    layer = lib.nn.Linear(2, 2, device="meta")
    state = {"weight": lib.ones(2, 2), "bias": lib.zeros(2)}
    layer.load_state_dict(state, assign=True)
    assert isinstance(layer.weight, lib.nn.Parameter)
    assert layer.weight.data_ptr() == state["weight"].data_ptr()
    assert layer.weight.requires_grad


@SIDES
def test_loading_copies_and_keeps_identity(lib):
    layer = lib.nn.Linear(2, 2)
    weight, state = layer.weight, {"weight": lib.ones(2, 2), "bias": lib.zeros(2)}
    layer.load_state_dict(state)
    assert layer.weight is weight
    assert layer.weight.data_ptr() != state["weight"].data_ptr()
    assert float(weight.sum()) == 4


@SIDES
def test_loading_into_meta_warns(lib):
    layer = lib.nn.Linear(2, 2, device="meta")
    with pytest.warns(UserWarning, match="copying from a non-meta parameter"):
        layer.load_state_dict({"weight": lib.ones(2, 2), "bias": lib.zeros(2)})


@SIDES
def test_old_batch_norm_checkpoints_lack_the_batch_count(lib):
    layer = lib.nn.BatchNorm1d(2)
    old = {name: value for name, value in layer.state_dict().items() if name != "num_batches_tracked"}
    assert repr(layer.load_state_dict(old)) == "<All keys matched successfully>"


@SIDES
def test_extra_state_travels(lib):
    class Counted(lib.nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    source, target = Counted(), Counted()
    source.count = 5
    state = source.state_dict()
    assert list(state) == ["_extra_state"]
    target.load_state_dict(state)
    assert target.count == 5
    with pytest.raises(RuntimeError, match='Missing key\\(s\\) in state_dict: "_extra_state"'):
        target.load_state_dict({})


@SIDES
def test_state_dict_hooks(lib):
    layer = lib.nn.Linear(2, 2, bias=False)
    seen = []
    handles = [
        layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(("pre", prefix, keep_vars))),
        layer.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({prefix + "note": 1})),
        layer.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.pop(prefix + "note")),
        layer.register_load_state_dict_post_hook(lambda module, keys: seen.append(("post", module is layer, keys[1]))),
    ]
    state = lib.nn.Sequential(layer).state_dict()
    assert list(state) == ["0.weight", "0.note"]
    layer.load_state_dict(layer.state_dict())
    assert seen == [("pre", "0.", False), ("pre", "", False), ("post", True, [])]
    for handle in handles:
        handle.remove()
    assert list(layer.state_dict()) == ["weight"]
    layer.register_state_dict_post_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        layer.state_dict()


# -- hooks ------------------------------------------------------------------------------------------------------


@SIDES
def test_forward_hooks_run_in_order_and_may_replace(lib):
    layer = lib.nn.Identity()
    order = []

    def pre(module, args):
        order.append("pre")
        return (args[0] + 1,)

    def post(module, args, output):
        order.append("post")
        return output * 10

    first = layer.register_forward_pre_hook(pre)
    second = layer.register_forward_hook(post)
    layer.register_forward_hook(lambda *args: order.append("first"), prepend=True)
    assert float(layer(lib.ones(1))) == 20
    assert order == ["pre", "first", "post"]
    first.remove()
    second.remove()
    assert float(layer(lib.ones(1))) == 1
    with layer.register_forward_hook(post):
        assert float(layer(lib.ones(1))) == 10
    assert float(layer(lib.ones(1))) == 1


@SIDES
def test_forward_hooks_with_kwargs(lib):
    class Scale(lib.nn.Module):
        def forward(self, x, by=1):
            return x * by

    layer, seen = Scale(), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    assert float(layer(lib.ones(1), by=2)) == 3
    assert seen == [{"by": 3}]
    layer.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        layer(lib.ones(1), by=2)


@SIDES
def test_always_called_hooks_see_a_failed_forward(lib):
    class Broken(lib.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    layer, seen = Broken(), []
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    layer.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(ValueError, match="broken"):
        layer(1)
    assert seen == [None]


@SIDES
def test_full_backward_hooks_see_both_sides(lib):
    layer, seen = lib.nn.Linear(3, 2), []
    pre = layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    x = lib.ones(4, 3).requires_grad_()
    layer(x).sum().backward()
    (grad_input,), (grad_output,) = seen[0]
    assert tuple(grad_input.shape) == (4, 3)
    assert grad_output.tolist() == [[2.0, 2.0]] * 4
    assert grad_input.tolist() == x.grad.tolist()
    pre.remove()
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 0,))
    x.grad = None
    layer(x).sum().backward()
    assert float(x.grad.abs().sum()) == 0


@SIDES
def test_full_backward_hooks_without_input_gradient(lib):
    layer, seen = lib.nn.Linear(3, 2), []
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    layer(lib.ones(4, 3)).sum().backward()
    assert len(seen) == 1
    assert seen[0][1][0].tolist() == [[1.0, 1.0]] * 4
    assert all(grad is None for grad in seen[0][0])


@SIDES
def test_global_hooks_run_for_every_module(lib):
    seen = []
    handle = lib.nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    try:
        lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())(lib.ones(1))
    finally:
        handle.remove()
    lib.nn.ReLU()(lib.ones(1))
    assert seen == ["ReLU", "Tanh", "Sequential"]


@SIDES
def test_registration_hooks_may_replace(lib):
    handle = lib.nn.modules.module.register_module_parameter_registration_hook(
        lambda module, name, value: lib.nn.Parameter(value.detach() * 0 + 7)
    )
    try:
        module = lib.nn.Module()
        module.x = lib.nn.Parameter(lib.ones(1))
    finally:
        handle.remove()
    assert float(module.x) == 7


def test_a_module_without_hooks_has_no_hook_tables():
    layer = trt.nn.Linear(2, 2)
    layer(trt.ones(1, 2))
    assert not any("hooks" in name for name in vars(layer))


@SIDES
def test_forward_is_required(lib):
    with pytest.raises(NotImplementedError, match='Module \\[Module\\] is missing the required "forward" function'):
        lib.nn.Module()(1)


# -- copies -----------------------------------------------------------------------------------------------------


def check_twin(twin, model):
    assert twin is not model
    assert list(twin.state_dict()) == list(model.state_dict())
    for (name, a), (_, b) in zip(twin.named_parameters(), model.named_parameters(), strict=True):
        assert a is not b
        assert array(a).tolist() == array(b).tolist(), name
        assert isinstance(a, trt.nn.Parameter)
    assert twin.a.weight is twin.a._parameters["weight"]
    twin.a.weight = trt.nn.Parameter(trt.zeros(3, 2))
    assert twin.a.weight is twin.a._parameters["weight"]
    assert twin.a.weight is not model.a.weight
    x = trt.ones(1, 2)
    assert twin(x).shape == model(x).shape


def test_deepcopy():
    model = Pair()
    model.a.register_forward_hook(lambda m, args, out: out * 2)
    twin = copy.deepcopy(model)
    assert array(twin(trt.ones(1, 2))).tolist() == array(model(trt.ones(1, 2))).tolist()
    check_twin(twin, model)


def test_pickle():
    model = Pair()
    check_twin(pickle.loads(pickle.dumps(model)), model)


def test_deepcopy_keeps_shared_parameters_shared():
    model = Pair()
    model.c = trt.nn.Linear(2, 3)
    model.c.weight = model.a.weight
    twin = copy.deepcopy(model)
    assert twin.c.weight is twin.a.weight
    assert twin.c.weight is not model.a.weight


def test_copy_shares_parameters_but_not_tables():
    model = trt.nn.Linear(2, 2)
    twin = copy.copy(model)
    assert twin.weight is model.weight
    twin.extra = trt.nn.Parameter(trt.zeros(1))
    assert not hasattr(model, "extra")
    del twin.weight
    assert model.weight is not None


def test_modules_are_freed_without_the_garbage_collector():
    gc.disable()
    try:
        model = Pair()
        model.a.register_forward_hook(lambda *args: None)
        model.register_load_state_dict_pre_hook(lambda *args: None)
        reference = weakref.ref(model.a)
        del model
        assert reference() is None
    finally:
        gc.enable()


def test_a_parameter_under_two_names_is_listed_once():
    layer = trt.nn.Linear(2, 2)
    layer.tied = layer.weight
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_an_overridden_getattr_is_asked_for_every_entry():
    """As pyro's and gpytorch's modules expect: entries are no plain attributes where a class has a `__getattr__` of its own, also one that is given later."""
    found = []
    for nn, tensor in ((trt.nn, trt.tensor), (torch.nn, torch.tensor)):
        asked = []

        class Asking(nn.Linear):
            def __getattr__(self, name):
                asked.append(name)
                return super().__getattr__(name)

        layer = Asking(2, 2)
        layer.child, layer.extra = nn.ReLU(), nn.Parameter(tensor([1.0]))
        layer.register_buffer("mean", tensor([2.0]))
        del asked[:]
        values = [layer.weight.shape, layer.child, layer.extra, layer.mean, hasattr(layer, "nothing")]
        del layer.extra
        late = nn.Linear(2, 2)
        late.__class__ = Asking
        late.weight, late.bias = nn.Parameter(tensor([[1.0, 2.0]])), None
        values += [late(tensor([1.0, 1.0])).tolist(), copy.deepcopy(late)(tensor([2.0, 1.0])).tolist()]
        late.__class__ = nn.Linear
        before = len(asked)
        values += [late(tensor([1.0, 1.0])).tolist(), len(asked) == before]
        found.append((sorted({name for name in asked if not name.startswith("_")}), [str(value) for value in values]))
    assert found[0] == found[1]

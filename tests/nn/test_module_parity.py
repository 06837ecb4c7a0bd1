"""Registration, conversion and old-style hooks of modules, stated once and checked on both libraries."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

import tensorrt_lite as trt

LIBRARIES = pytest.mark.parametrize("lib", [trt, torch], ids=["ours", "PyTorch"])


# ---- registration

@LIBRARIES
@pytest.mark.parametrize("before", [5, None, "text"])
def test_a_buffer_does_not_replace_a_plain_attribute(lib, before):
    module = lib.nn.Module()
    module.a = before
    with pytest.raises(KeyError, match="already exists"):
        module.a = lib.nn.Buffer(lib.ones(1))


@LIBRARIES
@pytest.mark.parametrize("make", [lambda lib: lib.nn.Linear(1, 1), lambda lib: lib.nn.Parameter(lib.ones(1))], ids=["module", "parameter"])
def test_what_a_parameter_or_module_replaced_does_not_come_back(lib, make):
    module = lib.nn.Module()
    module.a = None
    module.a = make(lib)
    del module.a
    assert not hasattr(module, "a")


@LIBRARIES
def test_errors_of_assignments_name_the_classes(lib):
    module = lib.nn.Module()
    module.p, module.m = lib.nn.Parameter(lib.ones(1)), lib.nn.Linear(1, 1)
    module.register_buffer("b", lib.ones(1))
    for name, value, text in (("p", lib.ones(1), "'torch.FloatTensor' as parameter 'p' (torch.nn.Parameter or None expected)"),
                              ("m", 5, "'int' as child module 'm' (torch.nn.Module or None expected)"),
                              ("b", 5, "'int' as buffer 'b' (torch.nn.Buffer, torch.Tensor or None expected)")):  # fmt: skip
        with pytest.raises(TypeError) as error:
            setattr(module, name, value)
        assert str(error.value) == f"cannot assign {text}"


@LIBRARIES
def test_register_buffer_overridden_without_persistent(lib):
    class Module(lib.nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor, True)

    module = Module()
    module.x = lib.nn.Buffer(lib.ones(1))
    assert list(module._buffers) == ["x"]
    with pytest.raises(RuntimeError, match="non-persistent buffer"):
        module.y = lib.nn.Buffer(lib.ones(1), persistent=False)


@LIBRARIES
def test_the_old_name_of_grad(lib):
    parameter = lib.nn.Parameter(lib.ones(1))
    parameter._grad = lib.ones(1)
    assert parameter.grad is parameter._grad
    del parameter._grad
    assert parameter.grad is None


# ---- conversion

@LIBRARIES
def test_writes_in_apply_count(lib):
    """A graph that saved the parameter notices that _apply wrote to it."""
    layer, x = lib.nn.Linear(1, 1), lib.ones(1, 1, requires_grad=True)
    layer.weight.grad = lib.ones(1, 1)
    y, version, of_gradient = layer(x), layer.weight._version, layer.weight.grad._version
    layer._apply(lambda t: t.add_(1.0))
    assert layer.weight._version == version + 1 and layer.weight.grad._version == of_gradient + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@LIBRARIES
@pytest.mark.parametrize("call", [
    lambda m, lib: m.to("cpu", copy=True), lambda m, lib: m.to(copy=False), lambda m, lib: m.to("cpu", lib.float64, True, True), lambda m, lib: m.to(lib.float64, True, True)])  # fmt: skip
def test_to_takes_no_copy(lib, call):
    with pytest.raises(RuntimeError, match="does not accept copy"):
        call(lib.nn.Linear(1, 1), lib)


@LIBRARIES
@pytest.mark.parametrize("call", [lambda m, lib: m.to(lib.float64, "cpu"), lambda m, lib: m.to(memory_format=3), lambda m, lib: m.to("cpu", non_blocking=3),
                                  lambda m, lib: m.to(unknown=3), lambda m, lib: m.to("cpu", device="cpu"), lambda m, lib: m.to(lib.int32)])  # fmt: skip
def test_to_refuses_wrong_arguments(lib, call):
    with pytest.raises(TypeError):
        call(lib.nn.Linear(1, 1), lib)


@LIBRARIES
def test_complex_modules_warn(lib):
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert lib.nn.Linear(1, 1).to(lib.complex64).weight.dtype == lib.complex64


@pytest.fixture
def flag(request):
    """Sets a flag of torch.__future__ on both sides for a test."""
    for lib in (trt, torch):
        getattr(lib.__future__, f"set_{request.param}_module_params_on_conversion")(True)
    yield request.param
    for lib in (trt, torch):
        getattr(lib.__future__, f"set_{request.param}_module_params_on_conversion")(False)


@LIBRARIES
@pytest.mark.parametrize("flag", ["overwrite"], indirect=True)
def test_overwriting_conversions_make_new_parameters(lib, flag):
    layer = lib.nn.Linear(1, 1)
    weight = layer.weight
    weight.grad = lib.ones(1, 1)
    layer.double()
    assert lib.__future__.get_overwrite_module_params_on_conversion()
    assert layer.weight is not weight and weight.dtype == lib.float32
    assert isinstance(layer.weight, lib.nn.Parameter) and layer.weight.grad.dtype == layer.weight.dtype == lib.float64


@LIBRARIES
@pytest.mark.parametrize("flag", ["swap"], indirect=True)
def test_swapping_conversions_keep_parameters_and_gradients(lib, flag):
    layer = lib.nn.Linear(1, 1)
    weight = layer.weight
    gradient = weight.grad = lib.ones(1, 1)
    layer.double()
    assert layer.weight is weight and weight.grad is gradient and isinstance(weight, lib.nn.Parameter)
    assert weight.dtype == gradient.dtype == lib.float64 and weight.requires_grad


@LIBRARIES
@pytest.mark.parametrize("flag", ["swap"], indirect=True)
def test_swapping_state_dicts_keep_parameters(lib, flag):
    layer, other = lib.nn.Linear(1, 1), lib.nn.Linear(1, 1).double()
    weight = layer.weight
    layer.load_state_dict(other.state_dict())
    assert layer.weight is weight and weight.dtype == lib.float32 and weight.item() == pytest.approx(other.weight.item())
    layer.load_state_dict(other.state_dict(), assign=True)
    assert layer.weight is weight and weight.dtype == lib.float64 and weight.requires_grad


# ---- hooks at the last Node

@LIBRARIES
@pytest.mark.parametrize("wrap", [lambda y: y, lambda y: (y, y * 2), lambda y: {"o": y}, lambda y: [y]], ids=["tensor", "tuple", "dict", "list"])
def test_non_full_backward_hooks_run_for_any_result(lib, wrap):
    class Model(lib.nn.Module):
        def forward(self, x):
            return wrap(x.exp().tanh())

    seen, model, x = [], Model(), lib.zeros(2, requires_grad=True)
    model.register_backward_hook(lambda module, grad_input, grad_output: seen.append((module is model, grad_input[0].tolist(), grad_output[0].tolist())))
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        y = model(x)
    while not isinstance(y, lib.Tensor):
        y = y["o"] if isinstance(y, dict) else y[0]
    y.sum().backward()
    assert seen == [(True, pytest.approx([0.41997434] * 2), [1.0, 1.0])]  # the gradient of tanh's input, 1 - tanh(1)**2


@LIBRARIES
def test_non_full_backward_hooks_of_one_node_do_not_warn(lib):
    layer, x = lib.nn.Tanh(), lib.zeros(2, requires_grad=True) * 1
    layer.register_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 3,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = layer(x)
    assert lib.autograd.grad(y.sum(), x)[0].tolist() == [3.0, 3.0]


@LIBRARIES
@pytest.mark.parametrize("names", [("register_backward_hook", "register_full_backward_hook"), ("register_full_backward_hook", "register_backward_hook")])
def test_full_and_non_full_hooks_do_not_mix(lib, names):
    layer = lib.nn.Tanh()
    getattr(layer, names[0])(lambda *args: None)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
        getattr(layer, names[1])(lambda *args: None)


@LIBRARIES
def test_global_non_full_backward_hooks(lib):
    seen = []
    handle = lib.nn.modules.module.register_module_backward_hook(lambda module, grad_input, grad_output: seen.append(type(module).__name__))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = lib.nn.Sequential(lib.nn.Tanh(), lib.nn.Sigmoid())
            model(lib.ones(1, requires_grad=True)).sum().backward()
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            lib.nn.modules.module.register_module_full_backward_hook(lambda *args: None)
    finally:
        handle.remove()
    assert sorted(seen) == ["Sequential", "Sigmoid", "Tanh"]


# ---- names that programs look for

@LIBRARIES
def test_flat_weights_of_recurrent_layers(lib):
    layer = lib.nn.LSTM(2, 3, 2, bidirectional=True)
    assert layer._flat_weights_names == [name for name, _ in layer.named_parameters()]
    assert all(weight is getattr(layer, name) for name, weight in zip(layer._flat_weights_names, layer._flat_weights, strict=True))
    layer.weight_ih_l0 = lib.nn.Parameter(lib.zeros(12, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0


@LIBRARIES
def test_forward_computes_with_assigned_flat_weights(lib):
    layer, x = lib.nn.RNN(2, 2), lib.ones(1, 1, 2)
    layer._flat_weights = [lib.zeros_like(weight) for weight in layer._flat_weights]
    assert layer(x)[0].abs().sum() == 0
    for name in layer._flat_weights_names:
        setattr(layer, name, lib.nn.Parameter(lib.ones_like(getattr(layer, name))))
    assert layer(x)[0].sum() > 1


@LIBRARIES
def test_prefixes_of_state_dicts(lib):
    state = lib.nn.Sequential(lib.nn.Linear(1, 1)).state_dict()
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"] and list(state._metadata) == [""]


@LIBRARIES
@pytest.mark.parametrize("make", [lambda lib: lib.nn.LazyLinear(2).weight, lambda lib: lib.nn.LazyBatchNorm1d().running_mean], ids=["parameter", "buffer"])
def test_shallow_copies_of_uninitialized_tensors(lib, make):
    lazy = make(lib)
    assert type(copy.copy(lazy)) is type(lazy) and copy.copy(lazy) is not lazy


@LIBRARIES
def test_lazy_modules_share_no_memory(lib):
    with pytest.raises(RuntimeError, match="share memory on an uninitialized parameter"):
        lib.nn.LazyLinear(2).share_memory()


@LIBRARIES
def test_checks(lib):
    for check, kind in (("_check", RuntimeError), ("_check_value", ValueError), ("_check_index", IndexError), ("_check_type", TypeError), ("_check_not_implemented", NotImplementedError)):
        getattr(lib, check)(True)
        with pytest.raises(kind, match="^reason$"):
            getattr(lib, check)(False, lambda: "reason")
    with pytest.raises(TypeError, match="cond must be a bool"):
        lib._check(1)
    with pytest.raises(RuntimeError, match="Expected cond to be True"), pytest.warns(FutureWarning):
        lib._check_is_size(-1)
    with pytest.raises(RuntimeError):
        lib._check_tensor_all(lib.tensor([True, False]))
    assert lib.FloatStorage in lib._storage_classes and lib.UntypedStorage in lib._storage_classes


@LIBRARIES
def test_functional_call_without_a_parameter(lib):
    model = lib.nn.Sequential(lib.nn.Linear(1, 1))
    assert lib.func.functional_call(model, {"0.bias": None, "0.weight": lib.ones(1, 1)}, (lib.ones(1, 1),)).item() == 1
    assert model[0].bias is not None


@LIBRARIES
def test_functional_call_of_a_module_that_contains_itself(lib):
    model = lib.nn.Module()
    model.layer, model.itself = lib.nn.Linear(1, 1), model
    model.forward = lambda x: model.itself.layer(x)
    weights = {"layer.weight": lib.ones(1, 1), "itself.layer.bias": lib.zeros(1)}
    assert lib.func.functional_call(model, weights, (lib.ones(1, 1),), tie_weights=False).item() == 1


# ---- kinds of errors

def _attention(lib, query, key, **masks):
    return lib.nn.MultiheadAttention(4, 2)(lib.ones(query), lib.ones(key), lib.ones(key), **masks)


@LIBRARIES
@pytest.mark.parametrize("call", [
    lambda lib: _attention(lib, (3, 1, 4), (3, 4)),
    lambda lib: _attention(lib, (3, 1, 1, 4), (3, 4)),
    lambda lib: _attention(lib, (3, 4), (3, 1, 4)),
    lambda lib: _attention(lib, (3, 1, 4), (3, 1, 4), key_padding_mask=lib.zeros(3, dtype=lib.bool)),
    lambda lib: _attention(lib, (3, 1, 4), (3, 1, 4), key_padding_mask=lib.zeros(2, 3, dtype=lib.bool)),
    lambda lib: _attention(lib, (3, 1, 4), (3, 1, 4), attn_mask=lib.zeros(3, dtype=lib.bool)),
    lambda lib: _attention(lib, (3, 4), (3, 4), attn_mask=lib.zeros(3, 3, 3, dtype=lib.bool)),
    lambda lib: _attention(lib, (3, 1, 4), (3, 1, 4), attn_mask=lib.zeros(3, 3, dtype=lib.int32)),
])  # fmt: skip
def test_shapes_and_masks_of_attention_are_asserted(lib, call):
    with pytest.raises(AssertionError):
        call(lib)


@LIBRARIES
@pytest.mark.parametrize("kind,call", [
    (RuntimeError, lambda lib, rnn: rnn.pack_padded_sequence(lib.ones(0, 0, 1), [])),
    (RuntimeError, lambda lib, rnn: rnn.pack_padded_sequence(lib.ones(0, 0, 1), lib.tensor([], dtype=lib.int64), enforce_sorted=False)),
    (RuntimeError, lambda lib, rnn: rnn.pad_sequence(5)),
    (RuntimeError, lambda lib, rnn: rnn.pad_sequence(None)),
    (TypeError, lambda lib, rnn: rnn.pad_sequence("ab")),
    (TypeError, lambda lib, rnn: rnn.pad_sequence([5])),
])  # fmt: skip
def test_sequences_that_are_none(lib, kind, call):
    with pytest.raises(kind):
        call(lib, lib.nn.utils.rnn)


@LIBRARIES
@pytest.mark.parametrize("n,kernel", [(2, (2,)), (3, (2,)), (3, (2, 2))])
def test_kernels_of_unpooling_have_a_size_for_each_dimension(lib, n, kernel):
    x = lib.ones((1, 1) + (2,) * n)
    with pytest.raises(RuntimeError):
        getattr(lib.nn.functional, f"max_unpool{n}d")(x, lib.zeros(tuple(x.shape), dtype=lib.int64), kernel)

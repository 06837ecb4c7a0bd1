"""Parametrized, normalised, pruned and fused layers, beside PyTorch's."""

from __future__ import annotations

import copy
import pickle
import warnings
from importlib import import_module

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import_module("torch.nn.utils.prune")  # which torch.nn.utils leaves to those who want it

LIBRARIES = (torch, trt)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    trt.manual_seed(0)


def close(ours, theirs, **tolerances):
    trt.testing.assert_close(ours.detach(), trt.from_numpy(theirs.detach().contiguous().numpy()), **{"rtol": 1e-4, "atol": 1e-5, **tolerances})


def same_state(ours, theirs, **tolerances):
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        close(value, theirs[name], **tolerances)


def pair(make, seed=0):
    """The same module in both libraries, with PyTorch's parameters."""
    made = []
    for lib in LIBRARIES:
        lib.manual_seed(seed)
        made.append(make(lib))
    return made


LAYERS = {
    "linear": (lambda lib: lib.nn.Linear(6, 4), (5, 6)),
    "tall": (lambda lib: lib.nn.Linear(3, 7), (5, 3)),
    "square": (lambda lib: lib.nn.Linear(4, 4), (5, 4)),
    "conv": (lambda lib: lib.nn.Conv2d(3, 4, 3), (2, 3, 6, 6)),
    "transposed": (lambda lib: lib.nn.ConvTranspose2d(3, 4, 3), (2, 3, 5, 5)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", ["weight_norm", "weight_norm_all", "spectral_norm"])
def test_norms_train_as_pytorchs(layer, kind):
    make, shape = LAYERS[layer]
    apply = {
        "weight_norm": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
        "weight_norm_all": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=None),
        "spectral_norm": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=2),
    }[kind]
    theirs, ours = pair(lambda lib: apply(lib, make(lib)))
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: trt.from_numpy(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    x = torch.randn(shape)
    for lib, module, given in ((torch, theirs, x), (trt, ours, trt.from_numpy(x.numpy()))):
        optimizer = lib.optim.SGD(module.parameters(), lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            module(given).square().mean().backward()
            optimizer.step()
    same_state(ours, theirs)
    theirs.eval(), ours.eval()
    close(ours(trt.from_numpy(x.numpy())), theirs(x))


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_hooks_of_old(kind):
    make, shape = LAYERS["conv"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = pair(lambda lib: getattr(lib.nn.utils, kind)(make(lib)))
        ours.load_state_dict({k: trt.from_numpy(v.detach().numpy()) for k, v in theirs.state_dict().items()})
        x = torch.randn(shape)
        for module, given in ((theirs, x), (ours, trt.from_numpy(x.numpy()))):
            module(given).square().mean().backward()
        same_state(ours, theirs)
        for p, q in zip(ours.parameters(), theirs.parameters()):
            close(p.grad, q.grad)
        with pytest.raises(RuntimeError, match=f"Cannot register two {kind} hooks"):
            getattr(trt.nn.utils, kind)(ours)
        for lib, module in ((torch, theirs), (trt, ours)):
            getattr(lib.nn.utils, f"remove_{kind}")(module)
        same_state(ours, theirs)
        with pytest.raises(ValueError, match="not found in"):
            getattr(trt.nn.utils, f"remove_{kind}")(ours)


def test_state_dicts_of_the_old_weight_norm_load():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = trt.nn.utils.weight_norm(trt.nn.Linear(3, 4))
    new = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 4))
    new.load_state_dict(old.state_dict())
    x = trt.randn(2, 3)
    trt.testing.assert_close(new(x), old(x))


@pytest.mark.parametrize("layer", ["linear", "tall", "square"])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights(layer, orthogonal_map, trivial):
    make, shape = LAYERS[layer]
    theirs, ours = pair(lambda lib: lib.nn.utils.parametrizations.orthogonal(make(lib), orthogonal_map=orthogonal_map, use_trivialization=trivial))
    ours.load_state_dict({k: trt.from_numpy(v.detach().contiguous().numpy()) for k, v in theirs.state_dict().items()})
    close(ours.weight, theirs.weight)
    weight = ours.weight if ours.weight.shape[0] <= ours.weight.shape[1] else ours.weight.T
    trt.testing.assert_close((weight @ weight.T).detach(), trt.eye(len(weight)), rtol=0, atol=1e-5)
    theirs.weight.sum().backward(), ours.weight.sum().backward()
    close(ours.parametrizations.weight.original.grad, theirs.parametrizations.weight.original.grad)
    if trivial:
        wanted = trt.linalg.qr(trt.randn(*ours.weight.shape) if ours.weight.shape[0] >= ours.weight.shape[1] else trt.randn(*ours.weight.shape).T)[0]
        wanted = wanted if ours.weight.shape[0] >= ours.weight.shape[1] else wanted.T
        ours.weight = wanted
        if ours.weight.shape[0] == ours.weight.shape[1]:
            trt.testing.assert_close(ours.weight.detach(), wanted, rtol=0, atol=1e-5)
    elif orthogonal_map != "householder":
        with pytest.raises(NotImplementedError, match="use_trivialization=False"):
            ours.weight = trt.eye(*ours.weight.shape)


class Symmetric(trt.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Doubled(trt.nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Halves(trt.nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 2, x / 2


def test_parametrizations_compose_and_are_removed():
    parametrize = trt.nn.utils.parametrize
    layer = trt.nn.Linear(3, 3)
    weight = layer.weight.detach().clone()
    optimizer = trt.optim.SGD(layer.parameters(), lr=0.1)
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert type(layer).__name__ == "ParametrizedLinear" and parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    trt.testing.assert_close(layer.weight.detach(), weight)
    trt.testing.assert_close(layer.parametrizations.weight.original.detach(), weight / 2)
    layer(trt.ones(1, 3)).sum().backward()
    optimizer.step()  # it holds the original
    assert not trt.equal(layer.weight.detach(), weight)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert trt.equal(layer.weight, layer.weight.T) and len(layer.parametrizations.weight) == 2
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    assert trt.equal(twin.weight, layer.weight) and twin.parametrizations.weight.original is not layer.parametrizations.weight.original
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    with pytest.raises(RuntimeError, match="Symmetric does not implement right_inverse"):
        layer.weight = weight
    value = layer.weight.detach().clone()
    assert parametrize.type_before_parametrizations(layer) is trt.nn.Linear
    moved = parametrize.transfer_parametrizations_and_params(layer, trt.nn.Linear(3, 3))
    trt.testing.assert_close(moved.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is trt.nn.Linear and isinstance(layer.weight, trt.nn.Parameter) and trt.equal(layer.weight.detach(), value)
    assert list(layer.state_dict()) == ["bias", "weight"]
    parametrize.register_parametrization(layer, "bias", Halves())
    assert list(layer.state_dict()) == ["weight", "parametrizations.bias.original0", "parametrizations.bias.original1"]
    layer.bias = trt.ones(3)
    assert layer.parametrizations.bias.original1.tolist() == [0.5] * 3
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)


def test_what_a_parametrization_must_not_change():
    parametrize = trt.nn.utils.parametrize

    class Cut(trt.nn.Module):
        def forward(self, x):
            return x[:1]

    class Wide(trt.nn.Module):
        def forward(self, x):
            return x.double()

    for module, message in ((Cut(), "may not change the shape"), (Wide(), "may not change the dtype")):
        with pytest.raises(ValueError, match=message):
            parametrize.register_parametrization(trt.nn.Linear(2, 2), "weight", module)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer"):
        parametrize.register_parametrization(trt.nn.Linear(2, 2), "weights", Doubled())
    layer = parametrize.register_parametrization(trt.nn.Linear(2, 2), "weight", Cut(), unsafe=True)
    assert tuple(layer.weight.shape) == (1, 2)


# ---- pruning ------------------------------------------------------------------------------------------------------------

PRUNED = {
    "l1": lambda lib, m: lib.nn.utils.prune.l1_unstructured(m, "weight", 0.4),
    "l1 of scores": lambda lib, m: lib.nn.utils.prune.l1_unstructured(m, "weight", 5, importance_scores=m.weight.flip(0)),
    "ln": lambda lib, m: lib.nn.utils.prune.ln_structured(m, "weight", 2, n=2, dim=0),
    "ln inf": lambda lib, m: lib.nn.utils.prune.ln_structured(m, "weight", 0.3, n=float("inf"), dim=1),
    "identity": lambda lib, m: lib.nn.utils.prune.identity(m, "bias"),
    "mask": lambda lib, m: lib.nn.utils.prune.custom_from_mask(m, "bias", lib.tensor([1, 0, 0, 1])),
    "twice": lambda lib, m: lib.nn.utils.prune.l1_unstructured(lib.nn.utils.prune.ln_structured(m, "weight", 1, n=1, dim=0), "weight", 3),
}


@pytest.mark.parametrize("name", PRUNED)
@pytest.mark.parametrize("layer", ["linear", "conv"])
def test_pruning_is_pytorchs(name, layer):
    make, shape = LAYERS[layer]
    theirs, ours = pair(make)
    for lib, module in ((torch, theirs), (trt, ours)):
        PRUNED[name](lib, module)
    same_state(ours, theirs)
    x = torch.randn(shape)
    for module, given in ((theirs, x), (ours, trt.from_numpy(x.numpy()))):
        module(given).square().sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        close(p.grad, q.grad)
    assert trt.nn.utils.prune.is_pruned(ours) and [b for b, _ in ours.named_buffers()] == [b for b, _ in theirs.named_buffers()]
    for lib, module in ((torch, theirs), (trt, ours)):
        lib.nn.utils.prune.remove(module, "bias" if name in ("identity", "mask") else "weight")
    same_state(ours, theirs)
    assert not trt.nn.utils.prune.is_pruned(ours) and all(isinstance(p, trt.nn.Parameter) for p in ours.parameters())


def test_pruning_at_random_and_of_several_layers():
    prune = trt.nn.utils.prune
    layer = prune.random_unstructured(trt.nn.Linear(10, 10), "weight", 0.3)
    assert int(layer.weight_mask.sum()) == 70 and int((layer.weight == 0).sum()) == 30
    layer = prune.random_structured(trt.nn.Linear(10, 10), "weight", 4, dim=1)
    assert sorted(layer.weight_mask.sum(0).tolist()) == [0.0] * 4 + [10.0] * 6
    theirs, ours = pair(lambda lib: lib.nn.Sequential(lib.nn.Linear(6, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2)))
    for lib, net in ((torch, theirs), (trt, ours)):
        lib.nn.utils.prune.global_unstructured([(net[0], "weight"), (net[2], "weight")], lib.nn.utils.prune.L1Unstructured, amount=0.5)
    same_state(ours, theirs)
    for amount, error in ((-1, ValueError), (1.5, ValueError), ("all", TypeError), (200, ValueError)):
        module = trt.nn.Linear(10, 10)
        with pytest.raises(error):
            prune.l1_unstructured(module, "weight", amount)
        assert list(dict(module.named_parameters())) in (["weight", "bias"], ["bias", "weight"])
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(trt.nn.Linear(2, 2), "weight")


# ---- fusion -------------------------------------------------------------------------------------------------------------


def test_normalisations_fold_into_the_layer_before():
    for make, shape, transpose in (
        (lambda lib: (lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4)), (2, 3, 6, 6), False),
        (lambda lib: (lib.nn.ConvTranspose1d(3, 4, 3, bias=False), lib.nn.BatchNorm1d(4)), (2, 3, 6), True),
        (lambda lib: (lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4)), (8, 3), None),
    ):
        theirs, ours = pair(make)
        x = torch.randn(shape)
        fused = []
        for lib, (layer, norm), given in ((torch, theirs, x), (trt, ours, trt.from_numpy(x.numpy()))):
            norm(layer(given))
            utils = lib.nn.utils
            with pytest.raises(AssertionError):
                utils.fuse_linear_bn_eval(layer, norm) if transpose is None else utils.fuse_conv_bn_eval(layer, norm, transpose)
            layer.eval(), norm.eval()
            fused.append(utils.fuse_linear_bn_eval(layer, norm) if transpose is None else utils.fuse_conv_bn_eval(layer, norm, transpose))
        same_state(fused[1], fused[0])
        given = trt.from_numpy(x.numpy())
        trt.testing.assert_close(fused[1](given).detach(), ours[1](ours[0](given)).detach(), rtol=1e-4, atol=1e-5)


def test_weights_of_convolutions_change_their_memory_format():
    net = trt.nn.Sequential(trt.nn.Conv2d(3, 4, 3), trt.nn.Linear(2, 2), trt.nn.ConvTranspose2d(4, 3, 2))
    x = trt.randn(1, 3, 5, 5)
    before = net[0](x)
    assert trt.nn.utils.convert_conv2d_weight_memory_format(net, trt.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=trt.channels_last) and net[2].weight.is_contiguous(memory_format=trt.channels_last)
    trt.testing.assert_close(net[0](x), before)


# ---- several devices ----------------------------------------------------------------------------------------------------


def test_sync_batch_norm_of_one_process():
    theirs, ours = pair(lambda lib: lib.nn.SyncBatchNorm.convert_sync_batchnorm(lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3))))
    assert repr(ours) == repr(theirs)
    x = torch.randn(4, 2, 6, 6)
    close(ours(trt.from_numpy(x.numpy())), theirs(x))
    same_state(ours, theirs)


def test_data_parallel_without_devices_is_its_module():
    net = trt.nn.Linear(3, 2)
    parallel = trt.nn.DataParallel(net)
    x = trt.randn(4, 3)
    assert trt.equal(parallel(x), net(x)) and list(parallel.state_dict()) == ["module.weight", "module.bias"]
    assert trt.equal(trt.nn.parallel.data_parallel(net, x), net(x))


def test_parts_of_data_parallel_on_the_cpu():
    """Copies on one device, called by threads: gradients come back to the one module."""
    from tensorrt_lite.nn.parallel import gather, parallel_apply, replicate, scatter_kwargs

    net = trt.nn.Sequential(trt.nn.Linear(3, 4), trt.nn.BatchNorm1d(4), trt.nn.Linear(4, 2)).eval()
    x, scale = trt.randn(5, 3), trt.tensor(2.0)
    args, kwargs = scatter_kwargs((x, [scale.expand(5)]), {"flag": True}, ["cpu", "cpu"])
    assert [tuple(a[0].shape) for a in args] == [(3, 3), (2, 3)] and [tuple(a[1][0].shape) for a in args] == [(3,), (2,)] and kwargs == ({"flag": True},) * 2
    replicas = replicate(net, ["cpu", "cpu"])
    assert [len(list(r.parameters())) for r in replicas] == [0, 0] and len(list(net.parameters())) == 6
    outputs = parallel_apply(replicas, [a[:1] for a in args])
    joined = gather(outputs, -1)
    trt.testing.assert_close(joined, net(x))
    joined.sum().backward()
    gradients = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    for mine, wanted in zip(gradients, (p.grad for p in net.parameters())):
        trt.testing.assert_close(mine, wanted)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        parallel_apply(replicas, [(trt.zeros(2, 7),), (trt.zeros(2, 3),)])


def test_muon_follows_pytorch():
    for options in ({}, {"nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw", "lr": 0.02}, {"ns_steps": 3, "momentum": 0.5}):
        ends = []
        start, target = torch.randn(6, 9), torch.randn(6, 9)
        for lib, a, b in ((torch, start, target), (trt, trt.from_numpy(start.numpy()), trt.from_numpy(target.numpy()))):
            tall, wide = (lib.nn.Parameter(m.clone()) for m in (a.T.contiguous(), a))
            optimizer = lib.optim.Muon([tall, wide], **options)
            for _ in range(10):
                optimizer.zero_grad()
                ((tall.T - b).square().sum() + (wide - b).abs().sum()).backward()
                optimizer.step()
            ends.append((tall, wide))
        for mine, wanted in zip(*reversed(ends)):
            close(mine, wanted, rtol=0, atol=2e-3)  # the iteration is in bfloat16
    with pytest.raises(ValueError, match="only supports 2D"):
        trt.optim.Muon([trt.zeros(3, requires_grad=True)])

"""Whole modules and optimizers of every class that both libraries have: saved by one, loaded and used by the other.

The constructors' arguments and the inputs are those of tests/names. Beside results, the instances are compared: what PyTorch's `forward` and `step` look into on
paths that no call here takes has to be there as well.
"""

from __future__ import annotations

import functools
import importlib
import io

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")

import tensorrt_lite as trt  # noqa: E402
from tensorrt_lite.compat import torch_alias  # noqa: E402

from tests.conformance.library import Library  # noqa: E402
from tests.names import compare, database, surface, written  # noqa: E402, F401 (compare registers the cases)
from tests.names.written import numbers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def public_classes(space, base):
    return sorted(n for n in dir(space) if not n.startswith("_") and isinstance(getattr(space, n), type) and issubclass(getattr(space, n), base))


MODULES = public_classes(torch.nn, torch.nn.Module)
OPTIMIZERS = public_classes(torch.optim, torch.optim.Optimizer)

# ---- moving


def file_of(library, objects):
    file = io.BytesIO()
    library.save(objects, file)
    file.seek(0)
    return file


def loaded(file):
    return torch.load(file, weights_only=False)


def moved(theirs, mine):
    """What PyTorch loads of this package's objects, what this package loads of PyTorch's, and what PyTorch loads of these when they are saved again."""
    file = file_of(torch, theirs)
    with torch_alias() as alias:
        here = alias.load(file, weights_only=False)
        files = file_of(alias, mine), file_of(alias, here)
    return loaded(files[0]), here, loaded(files[1])


def called(library, module, call):
    args, kwargs = call
    library.manual_seed(3)
    return surface.plain(module(*args, **kwargs))


def check_attributes(found, expected, where=""):
    """An instance that PyTorch loaded beside one that it made: every attribute is there, with the same value where it is plain, in all submodules."""
    assert type(found) is type(expected), where
    lacking = vars(expected).keys() - vars(found).keys()
    assert not lacking, f"{where or type(found).__name__}: {sorted(lacking)}"
    for name, value in vars(expected).items():
        if isinstance(value, (bool, int, float, str, type(None))) or isinstance(value, (tuple, list)) and all(isinstance(v, (int, float, str)) for v in value):
            assert (type(vars(found)[name]), vars(found)[name]) == (type(value), value), f"{where}.{name}"
    for name, child in expected._modules.items():
        if child is not None:
            check_attributes(found._modules[name], child, f"{where}.{name}")


def check_both_ways(theirs, their_call, mine, my_call):
    """Both are moved, in training and in evaluation, and give the same results."""
    for training in (True, False):
        for module in (theirs, mine):
            module.train(training)
        there, here, back = moved(theirs, mine)
        check_attributes(there, theirs)
        assert type(here) is type(mine)
        check_attributes(back, theirs)
        if their_call is None:
            continue
        expected = called(torch, theirs, their_call)
        for library, module, call in ((trt, mine, my_call), (torch, there, their_call), (trt, here, my_call), (torch, back, their_call)):
            assert not surface.difference(called(library, module, call), expected), f"{library.__name__}, training={training}"


# ---- every class of nn


def recorded(library, name):
    """The first module that the call of tests/names makes, and what it is called with."""
    if name == "Module":  # a class of its own there
        return library.nn.Module(), None
    cls, made, calls = getattr(library.nn, name), [], []

    @functools.wraps(cls, updated=())
    def make(*args, **kwargs):
        module = cls(*args, **kwargs)
        if not made:
            made.append(module)
            module.register_forward_hook(lambda m, given, named, out: calls.append((given, named)), with_kwargs=True)
        return module

    library.manual_seed(0)
    try:
        written.CASES["nn", name](library, make)
    except AttributeError:
        if not made:  # else it asked for an attribute of the class
            raise
    for table in (made[0]._forward_hooks, made[0]._forward_hooks_with_kwargs):
        table.clear()
    return made[0], calls[0] if calls else None


def from_database(name):
    library, info = Library(trt), database.modules()[name]
    # pickles of parameters without a shape do not say their dtype
    precision = "float32" if name.startswith("Lazy") else "float64"
    for sample in info.module_inputs_func(info, device="cpu", dtype=getattr(torch, precision), requires_grad=False, training=True):
        given, inputs = sample.constructor_input, sample.forward_input
        if name == "TransformerEncoder" or inputs is None:
            continue
        dtype = "dtype" if database._takes_dtype(info.module_cls) else None
        args, kwargs = library.arguments(list(given.args), dict(given.kwargs))
        theirs = info.module_cls(*given.args, **{dtype: getattr(torch, precision), **given.kwargs} if dtype else given.kwargs)
        mine = getattr(trt.nn, name)(*args, **{dtype: getattr(trt, precision), **kwargs} if dtype else kwargs)
        call, named = library.arguments(list(inputs.args), dict(inputs.kwargs))
        if dtype is None:
            theirs, mine = theirs.double(), mine.double()
        return (theirs, (inputs.args, inputs.kwargs)), (mine, (tuple(call), named))
    raise AssertionError(f"no sample of {name}")


def pair(name):
    if ("nn", name) in written.CASES:
        return recorded(torch, name), recorded(trt, name)
    return from_database(name)


@pytest.mark.parametrize("name", [n for n in MODULES if hasattr(trt.nn, n)])
def test_modules(name):
    (theirs, their_call), (mine, my_call) = pair(name)
    if not any("Uninitialized" in type(p).__name__ for p in theirs.parameters()):
        mine.load_state_dict({key: trt.from_numpy(value.detach().numpy()) for key, value in theirs.state_dict().items()})
    check_both_ways(theirs, their_call, mine, my_call)


# ---- options and utilities of nn whose instances differ


def with_numbers(library, module):
    module = module.double()
    with library.no_grad():
        for p in module.parameters():
            p.copy_(numbers(library, *p.shape) - 0.4)
    return module


def padded(m):
    mask = m.zeros(2, 5, dtype=m.bool)
    mask[0, 3:] = True
    return (numbers(m, 2, 5, 4) - 0.5,), {"src_key_padding_mask": mask}


def encoder(m, **options):
    layer = m.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, **options)
    return m.nn.TransformerEncoder(layer, 2)


def sequence(m):
    return (numbers(m, 3, 2, 4) - 0.4,), {}


def rows(m):
    return (numbers(m, 3, 4) - 0.4,), {}


def pruned(m):
    layer = with_numbers(m, m.nn.Linear(4, 6))  # what is pruned depends on them
    prune = importlib.import_module(f"{m.__name__}.nn.utils.prune")
    prune.identity(layer, "bias")
    prune.ln_structured(layer, "weight", 2, 2, 0)
    prune.l1_unstructured(layer, "weight", 0.3)
    return layer


def normed(m, name, layer, **options):
    made = with_numbers(m, layer)
    made = getattr(m.nn.utils, name)(made, **options)
    for key, buffer in made.named_buffers():
        buffer.copy_(numbers(m, *buffer.shape))
    return made


VARIANTS = {
    "LSTM-proj": (lambda m: m.nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2), sequence),
    "GRU-bidirectional": (lambda m: m.nn.GRU(4, 3, bidirectional=True, dropout=0.0), sequence),
    "RNN-relu": (lambda m: m.nn.RNN(4, 3, nonlinearity="relu", batch_first=True), sequence),
    "encoder-relu": (encoder, padded),
    "encoder-gelu": (lambda m: encoder(m, activation="gelu"), padded),
    "encoder-other": (lambda m: encoder(m, activation=m.nn.functional.silu), padded),
    "encoder-norm_first": (lambda m: encoder(m, norm_first=True, activation=m.nn.GELU()), padded),
    "encoder-no-bias": (lambda m: encoder(m, bias=False, activation=m.nn.ReLU()), padded),
    "pruned": (pruned, rows),
}
NORMED = {
    "spectral_norm": (lambda m: normed(m, "spectral_norm", m.nn.Linear(4, 3)), rows),
    "spectral_norm-conv": (lambda m: normed(m, "spectral_norm", m.nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2), sequence),
    "weight_norm": (lambda m: normed(m, "weight_norm", m.nn.Linear(4, 3)), rows),
    "weight_norm-all": (lambda m: normed(m, "weight_norm", m.nn.Linear(4, 3), dim=None), rows),
}


@pytest.mark.parametrize("name", [*VARIANTS, *NORMED])
def test_options_and_utilities(name):
    make, inputs = {**VARIANTS, **NORMED}[name]
    theirs, mine = make(torch), make(trt)
    if name in VARIANTS:
        theirs, mine = with_numbers(torch, theirs), with_numbers(trt, mine)
    check_both_ways(theirs, inputs(torch), mine, inputs(trt))


@pytest.mark.parametrize("name", NORMED)
def test_normalisations_can_be_removed_from_what_was_loaded(name):
    make, inputs = NORMED[name]
    remove = f"remove_{name.partition('-')[0]}"
    there, here, _ = moved(make(torch), make(trt))
    for library, module in ((torch, there), (trt, here)):
        getattr(library.nn.utils, remove)(module)
    assert sorted(here.state_dict()) == ["bias", "weight"] == sorted(there.state_dict())
    assert not surface.difference(called(trt, here, inputs(trt)), called(torch, there, inputs(torch)))
    assert not here._state_dict_hooks and not here._load_state_dict_pre_hooks


def test_state_dicts_of_spectral_norm_have_its_version_and_older_ones_load():
    theirs, mine = NORMED["spectral_norm"][0](torch), NORMED["spectral_norm"][0](trt)
    for m, module in ((torch, theirs), (trt, mine)):
        module(numbers(m, 3, 4))
        assert module.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
        old = module.state_dict()
        del old["weight_v"], old._metadata[""]["spectral_norm"]
        old["weight"] = module.weight.detach().clone()
        module.weight_v.zero_()
        module.load_state_dict(old)
        module.eval()
        old["weight"] = module.weight.detach().clone()
        del old["weight_u"]
        with pytest.raises(RuntimeError, match="weight_u"):
            module.load_state_dict(old)
    assert not surface.difference(mine.weight_v, theirs.weight_v)
    assert not surface.difference(called(trt, mine, rows(trt)), called(torch, theirs, rows(torch)))


def test_hooks_of_loaded_modules_run():
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_hook(SCALE)
    file = file_of(torch, layer)
    with torch_alias() as alias:
        here = alias.load(file, weights_only=False)
    plain = trt.nn.functional.linear(trt.ones(1, 2), here.weight, here.bias)
    assert trt.equal(here(trt.ones(1, 2)), plain * 3)


class _Scale:
    def __call__(self, module, inputs, output):
        return output * 3


SCALE = _Scale()

# ---- optimizers


def problem(m, name):
    model = m.nn.Linear(3, 2).double()
    with m.no_grad():
        for p in model.parameters():
            p.copy_(numbers(m, *p.shape) - 0.4)
    options = {"line_search_fn": "strong_wolfe", "max_iter": 3} if name == "LBFGS" else {"lr": 0.05}
    if name == "SparseAdam":
        model = m.nn.Embedding(3, 2, sparse=True, _weight=numbers(m, 3, 2) - 0.4)
    parameters = [model.weight] if name == "Muon" else list(model.parameters())
    return {"model": model, "optimizer": getattr(m.optim, name)(parameters, **options)}


def steps(m, objects, count=3):
    model, optimizer = objects["model"], objects["optimizer"]
    sparse = isinstance(model, m.nn.Embedding)
    x, y = m.tensor([0, 2, 0]) if sparse else numbers(m, 5, 3), numbers(m, 3 if sparse else 5, 2) ** 2

    def closure():
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss

    return [float(optimizer.step(closure)) for _ in range(count)], [p.detach().tolist() for p in model.parameters()]


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if hasattr(trt.optim, n) and n != "Optimizer"])  # which has no step
def test_optimizers(name):
    theirs, mine = problem(torch, name), problem(trt, name)
    for _ in range(2):  # with empty states, and in the middle of the work
        there, here, back = moved(theirs, mine)
        assert vars(loaded(file_of(torch, theirs))["optimizer"]).keys() <= vars(there["optimizer"]).keys()
        expected = steps(torch, theirs)
        for library, objects in ((trt, mine), (torch, there), (trt, here), (torch, back)):
            assert not surface.difference(steps(library, objects), expected), library.__name__


# ---- schedulers, with their optimizer


def halved(epoch):
    return 0.5**epoch


SCHEDULERS = {
    "StepLR": (2,), "MultiStepLR": ([1, 2],), "ConstantLR": (), "LinearLR": (), "ExponentialLR": (0.9,), "CosineAnnealingLR": (4,), "PolynomialLR": (),
    "ReduceLROnPlateau": (), "CosineAnnealingWarmRestarts": (3,), "OneCycleLR": (0.1, 10), "LambdaLR": (halved,), "MultiplicativeLR": (halved,),
    "SequentialLR": (), "ChainedScheduler": (),
}  # fmt: skip
WITHOUT = {"LRScheduler": "the base class", "CyclicLR": "PyTorch's instance holds a private method of its class"}


def scheduled(m, name):
    optimizer = m.optim.SGD([m.nn.Parameter(numbers(m, 2))], lr=0.1, momentum=0.9)
    schedules = m.optim.lr_scheduler
    parts = [schedules.StepLR(optimizer, 2), schedules.ExponentialLR(optimizer, 0.9)] if name in ("SequentialLR", "ChainedScheduler") else []
    if name == "ChainedScheduler":
        return optimizer, schedules.ChainedScheduler(parts)
    return optimizer, getattr(schedules, name)(optimizer, *([parts, [2]] if parts else SCHEDULERS[name]))


def rates(objects):
    optimizer, scheduler = objects
    found = []
    for _ in range(4):
        optimizer.step()
        scheduler.step(*[1.0] * (type(scheduler).__name__ == "ReduceLROnPlateau"))
        found.append(optimizer.param_groups[0]["lr"])
    return found


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name):
    theirs, mine = scheduled(torch, name), scheduled(trt, name)
    for _ in range(2):
        there, here, back = moved(theirs, mine)
        expected = rates(theirs)
        for objects in (mine, there, here, back):
            assert rates(objects) == pytest.approx(expected)


def test_every_class_is_compared():
    """What PyTorch has and this package has not."""
    assert [n for n in MODULES if not hasattr(trt.nn, n)] == []
    assert [n for n in OPTIMIZERS if not hasattr(trt.optim, n)] == []
    schedulers = public_classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler)
    assert set(schedulers) == SCHEDULERS.keys() | WITHOUT.keys()

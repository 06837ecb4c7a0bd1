"""help() of every public function lists its parameters, says what each means, and shows an example that prints what it says, in PyTorch too."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import warnings
from collections import defaultdict
from operator import attrgetter

import pytest

import tensorrt_lite as trt
import tensorrt_lite.optim.lr_scheduler
import tensorrt_lite.utils.data
from tensorrt_lite._declared import help as _help
from tensorrt_lite._C.core.overrides import PublicFunction
from tensorrt_lite._declared.declarations import find, path_of
from tools import census

GONE = {name for why in census.NO_ROW if "they raise" in why for name in census.NO_ROW[why].split()}
FUNCTIONS = {path: f for path, f in census.public_functions().items() if path not in GONE}
FAMILIES = defaultdict(list)
for _path, _function in FUNCTIONS.items():
    _found = find(_path) if isinstance(_function, PublicFunction) else None  # others have docstrings of Python
    FAMILIES[_found[0].family if _found else "others"].append(_path)


DOCUMENTED = (trt.optim.Optimizer, trt.optim.lr_scheduler.LRScheduler, trt.utils.data.DataLoader, trt.utils.data.Sampler, trt.utils.data.TensorDataset)
# Functions that raise on the CPU, as in PyTorch.
RAISE = {"nn.functional.scaled_grouped_mm"}
# Functions that raise in PyTorch for what the example shows, or have other results.
OURS = {"indices_copy"}
# A second call in a process raises.
ONCE = {"set_num_interop_threads"}


def failures(text: str, name: str) -> str:
    """What doctest has to say against the examples of a docstring."""
    report: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated functions warn
        doctest.DocTestRunner(verbose=False).run(doctest.DocTestParser().get_doctest(text, {}, name, None, 0), out=report.append)
    return "".join(report)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_is_described(family: str) -> None:
    missing = []
    for path in FAMILIES[family]:
        _, _, listed = inspect.cleandoc(FUNCTIONS[path].__doc__).partition("Parameters:\n")
        for p in inspect.signature(FUNCTIONS[path]).parameters.values():
            if p.name == "self" and path.startswith("Tensor."):
                continue
            line = re.search(rf"^    \**{p.name}(?: \((?P<facts>.*?)\))?: \S", re.sub(r"\n {8}", " ", listed), re.M)
            if line is None or p.default is not inspect.Parameter.empty and "default " not in (line["facts"] or ""):
                missing.append(f"{path}: {p.name}")
    assert missing == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_function_shows_an_example_of_its_form(family: str) -> None:
    wrong = []
    for path in FAMILIES[family]:
        examples = doctest.DocTestParser().get_examples(FUNCTIONS[path].__doc__)
        call = rf"\.{path.rpartition('.')[2]}\b"
        if path in RAISE:
            continue
        said = any(e.want for e in examples) or path in ONCE
        if not any(re.search(call, e.source) for e in examples[1:]) or not said or not 2 <= len(examples) <= 6:
            wrong.append(path)
    assert wrong == []


@pytest.mark.parametrize("family", FAMILIES)
def test_examples_print_what_they_say(family: str) -> None:
    assert "".join(failures(FUNCTIONS[path].__doc__, path) for path in FAMILIES[family] if path not in ONCE) == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_examples_print_the_same_in_pytorch(family: str) -> None:
    torch = pytest.importorskip("torch")
    said = ""
    for path in FAMILIES[family]:
        function = FUNCTIONS[path]
        space, _, name = (path_of(function) if isinstance(function, PublicFunction) else path).rpartition(".")
        if path not in OURS | ONCE and hasattr(attrgetter(space)(torch) if space else torch, name):
            said += failures(function.__doc__.replace(_help.IMPORT, ">>> import torch as trt\n"), path)
    assert said == ""


CLASSES = {c for space in (trt.optim, trt.optim.lr_scheduler, trt.utils.data) for c in vars(space).values() if isinstance(c, type) and issubclass(c, DOCUMENTED) and not c.__name__.startswith("_")}


@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda c: c.__name__), ids=lambda c: c.__name__)
def test_optimizers_schedules_and_loaders_list_their_parameters(kind: type) -> None:
    listed = re.sub(r"\n {8}", " ", inspect.cleandoc(kind.__doc__).partition("Parameters:\n")[2])
    missing = [p for p in inspect.signature(kind).parameters if not re.search(rf"^    \**{p}(?: \(.*?\))?: \S", listed, re.M)]
    assert missing == []


@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda c: c.__name__), ids=lambda c: c.__name__)
def test_their_examples_print_the_same_in_pytorch(kind: type) -> None:
    pytest.importorskip("torch")
    assert failures(inspect.cleandoc(kind.__doc__).replace(_help.IMPORT, ">>> import torch as trt\n"), kind.__name__) == ""


def test_classes_of_functions_speak_to_users() -> None:
    """IPython's `trt.Tensor.sum?` shows the docstring of the method's class, too."""
    assert type(trt.Tensor.sum).__doc__.startswith("A method of tensors: `x.sum(dim=1)`")
    assert type(trt.conv2d).__doc__.startswith("A function of the package.") and type(trt.Tensor.shape).__doc__.startswith("A property of tensors")


# Modules whose functions have examples, too.
MODULES = """
    autograd autograd.functional func masked nested nn.init nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn signal.windows sparse testing
"""
# Without one: older names, functions that always raise, and those for SciPy.
PLAIN = """
    nn.init.constant nn.init.dirac nn.init.eye nn.init.kaiming_normal nn.init.kaiming_uniform nn.init.normal nn.init.orthogonal nn.init.sparse nn.init.uniform nn.init.xavier_normal
    nn.init.xavier_uniform sparse.spsolve sparse.to_sparse_semi_structured sparse.from_scipy sparse.to_scipy masked.as_masked_tensor masked.is_masked_tensor masked.masked_tensor
"""


def functions_of(module: str) -> dict[str, object]:
    owner = importlib.import_module(f"tensorrt_lite.{module}")
    names = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    functions = {f"{module}.{name}": getattr(owner, name) for name in names}
    return {path: f for path, f in functions.items() if callable(f) and not isinstance(f, type) and f.__module__.startswith("tensorrt_lite") and path not in PLAIN.split()}


@pytest.mark.parametrize("module", MODULES.split())
def test_functions_of_modules_list_their_parameters(module: str) -> None:
    missing = []
    for path, function in functions_of(module).items():
        listed = re.sub(r"\n {8}", " ", inspect.cleandoc(function.__doc__).partition("Parameters:\n")[2])
        parameters = inspect.signature(function).parameters
        missing += [f"{path}: {p}" for p in parameters if module != "func" and not re.search(rf"^    \**{p}(?: \(.*?\))?: \S", listed, re.M)]
        missing += [path] * (">>> " not in function.__doc__)
    assert missing == []


@pytest.mark.parametrize("module", MODULES.split())
def test_their_examples_print_what_they_say_in_pytorch_too(module: str) -> None:
    pytest.importorskip("torch")
    importlib.import_module(f"torch.{module}")
    said = ""
    for path, function in functions_of(module).items():
        said += failures(function.__doc__, path) + failures(function.__doc__.replace(_help.IMPORT, ">>> import torch as trt\n"), path)
    assert said == ""


def test_every_description_is_shown_somewhere() -> None:
    """A parameter that was renamed or went leaves none behind."""
    texts, shown = _help._texts(), set()
    for path, function in FUNCTIONS.items():
        row = find(path)[0] if isinstance(function, PublicFunction) and find(path) else None
        for parameter in () if row is None else inspect.signature(function).parameters:
            shown.add(_help.source(row, *_help.names(function, parameter)))
    written = {("parameters", "", name) for name in texts["parameters"]}
    written |= {(kind, of, name) for kind in ("families", "functions") for of, said in texts[kind].items() for name in said if name != "example"}
    assert sorted(written - shown) == []

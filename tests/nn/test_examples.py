"""Every class of layers shows an example in its docstring, which prints what it says, in PyTorch too."""

from __future__ import annotations

import doctest
import inspect
import re

import pytest
import torch  # noqa: F401 (the examples import it)

import tensorrt_lite as trt

CLASSES = [name for name in dir(trt.nn) if isinstance(getattr(trt.nn, name), type) and issubclass(getattr(trt.nn, name), trt.nn.Module)]
IMPORT = "import tensorrt_lite as trt\n"


def run(text: str, name: str) -> str:
    """What doctest has to say against the examples of a docstring."""
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(doctest.DocTestParser().get_doctest(text, {}, name, None, 0), out=report.append)
    return "".join(report)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_shows_an_example_of_its_own(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(vars(getattr(trt.nn, name))["__doc__"])
    assert examples[0].source == IMPORT and 2 <= len(examples) <= 5
    assert any(re.search(rf"\btrt\.nn\.{name}\b", example.source) for example in examples)
    assert any(example.want for example in examples)


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.startswith("Lazy") and name not in ("Module", "Sequential", "Container")])
def test_a_class_lists_its_parameters(name: str) -> None:
    _, _, listed = inspect.cleandoc(getattr(trt.nn, name).__doc__).partition("Parameters:\n")
    listed = re.sub(r"\n {8}", " ", listed)
    parameters = inspect.signature(getattr(trt.nn, name)).parameters.values()
    missing = [p.name for p in parameters if not re.search(rf"^    \**{p.name}(?: \(.*?\))?: \S", listed, re.M)]
    assert missing == []


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_it_does_before_its_shapes(name: str) -> None:
    assert not getattr(trt.nn, name).__doc__.startswith("input")


@pytest.mark.filterwarnings("ignore:nn.Container is deprecated:FutureWarning")
@pytest.mark.parametrize("name", CLASSES)
def test_an_example_prints_what_it_says(name: str) -> None:
    assert run(getattr(trt.nn, name).__doc__, name) == ""


@pytest.mark.filterwarnings("ignore")  # PyTorch's of deprecated classes and of lazy modules
@pytest.mark.parametrize("name", CLASSES)
def test_an_example_prints_the_same_in_pytorch(name: str) -> None:
    assert run(getattr(trt.nn, name).__doc__.replace(IMPORT, "import torch as trt\n"), name) == ""

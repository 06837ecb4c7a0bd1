"""Names of PyTorch that are not here: the error says so, and `hasattr` and `from ... import` work as for any other missing name."""

from __future__ import annotations

import contextlib
import io
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import tensorrt_lite as trt
from tensorrt_lite._names import missing as _missing

NAMES = [(module, name) for module, names in _missing._NAMES.items() for name in names.split()]


def of(package: str, module: str) -> object:
    return import_module(f"{package}.{module}" if module else package)


def test_every_listed_name_is_missing_and_its_error_says_so():
    for module, name in NAMES:
        with pytest.raises(AttributeError, match=rf"'{name}': it is not implemented \(docs/gaps.md, or tensorrt-lite missing\)"):
            getattr(of("tensorrt_lite", module), name)


def test_every_listed_name_is_pytorchs():
    torch = pytest.importorskip("torch")
    import_module("torch.utils.benchmark")
    unknown = []
    for module, name in NAMES:
        if not hasattr(of("torch", module), name):
            try:
                import_module(".".join(part for part in ("torch", module, name) if part))
            except ImportError:
                unknown.append((module, name))
    # packages that only import where another package is installed, or that a build of PyTorch may leave out
    assert {name for _, name in unknown} <= {"tensorboard", "cpp_extension", "nccl", "bottleneck"}, unknown
    assert torch.__name__ == "torch"


def test_other_names_are_plain_errors():
    for module in _missing._NAMES:
        with pytest.raises(AttributeError, match="has no attribute 'no_such_name'$"):
            _ = of("tensorrt_lite", module).no_such_name


def test_hasattr_and_import_of_missing_packages():
    assert not hasattr(trt.cuda, "nccl")
    with pytest.raises(ImportError):
        from tensorrt_lite.cuda import nccl  # noqa: F401


def said(statement: str) -> str:
    """The last line of what the interpreter prints for a statement that fails."""
    try:
        exec(statement, {"trt": trt})
    except Exception as error:
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            sys.__excepthook__(type(error), error, error.__traceback__)
        return printed.getvalue().splitlines()[-1]
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("name", ["compile", "fx", "export", "quint8"])
def test_no_similar_name_is_suggested_for_a_known_one(name):
    assert said(f"trt.{name}").endswith("it is not implemented (docs/gaps.md, or tensorrt-lite missing)")


def test_similar_names_are_suggested_for_a_typing_error():
    assert said("trt.trilu").endswith("Did you mean: 'tril'?")


@pytest.mark.parametrize("module", ["export", "nn.quantized", "cuda.nccl", "distributed.rpc", "export.unflatten"])
def test_import_says_what_an_attribute_says(module):
    top = module.removesuffix(".unflatten")
    expected = f"ModuleNotFoundError: No module named 'tensorrt_lite.{top}': it is not implemented (docs/gaps.md, or tensorrt-lite missing)"
    assert said(f"import tensorrt_lite.{module}") == expected
    assert said(f"from tensorrt_lite.{module} import Anything") == expected


def test_other_modules_are_plain_errors():
    assert said("import tensorrt_lite.no_such_module") == "ModuleNotFoundError: No module named 'tensorrt_lite.no_such_module'"
    assert said("import tensorrt_lite.add") == "ModuleNotFoundError: No module named 'tensorrt_lite.add'"


def test_asking_for_a_missing_module_finds_none():
    assert find_spec("tensorrt_lite.export") is None

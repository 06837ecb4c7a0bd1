"""Names of PyTorch that are not here: the error says so, and `hasattr` and `from ... import` work as for any other missing name."""

from __future__ import annotations

from importlib import import_module

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _missing

NAMES = [(module, name) for module, names in _missing._NAMES.items() for name in names.split()]


def of(package: str, module: str) -> object:
    return import_module(f"{package}.{module}" if module else package)


def test_every_listed_name_is_missing_and_its_error_says_so():
    for module, name in NAMES:
        with pytest.raises(AttributeError, match=rf"'{name}': it is not implemented \(docs/gaps.md\)"):
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
    assert not hasattr(trt.cuda, "amp")
    with pytest.raises(ImportError):
        from tensorrt_lite.cuda import amp  # noqa: F401

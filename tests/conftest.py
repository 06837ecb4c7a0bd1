"""Fixtures of all tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import tensorrt_lite as trt

trt.manual_seed(0)  # for what is drawn while tests are collected

if find_spec("torch") is None:

    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        """Modules that compare with PyTorch throughout are left out where it is not installed; others skip test by test."""
        compares = collection_path.suffix == ".py" and re.search(r"^(?:import torch\b|from (?:torch\b|tests\.[\w.]*_against_torch\b))", collection_path.read_text(encoding="utf-8"), re.M)
        return True if compares else None


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same numbers in every run and order: the default generator begins with a seed of its own in each process."""
    trt.manual_seed(0)


@pytest.fixture
def split_small_work() -> Iterator[None]:
    """Work that is not worth a second thread is split, too, whoever has the cores: for tests of what threads may not change."""
    from tensorrt_lite._C.core import parallel

    parallel._split_small_work(64)
    yield
    parallel._split_small_work(0)

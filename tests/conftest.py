"""Fixtures of all tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:

    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        """Modules that compare with PyTorch throughout are left out where it is not installed; others skip test by test."""
        compares = collection_path.suffix == ".py" and re.search(r"^(?:import|from) torch\b", collection_path.read_text(encoding="utf-8"), re.M)
        return True if compares else None


@pytest.fixture
def split_small_work() -> Iterator[None]:
    """Work that is not worth a second thread is split, too, whoever has the cores: for tests of what threads may not change."""
    from tensorrt_lite._C.core import parallel

    parallel._split_small_work(64)
    yield
    parallel._split_small_work(0)

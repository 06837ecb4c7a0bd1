"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def split_small_work() -> Iterator[None]:
    """Work that is not worth a second thread is split, too, whoever has the cores: for tests of what threads may not change."""
    from tensorrt_lite._C.core import parallel

    parallel._split_small_work(64)
    yield
    parallel._split_small_work(0)

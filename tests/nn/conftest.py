"""Fixtures of the nn tests: the same values as tensors of this package and of PyTorch, and comparison of results."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the nn tests compare with PyTorch")

"""The nn tests state behaviour beside PyTorch's and need it installed (the conformance extra)."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

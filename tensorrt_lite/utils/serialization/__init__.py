"""Defaults of `save` and `load`: `utils.serialization.config`."""

from __future__ import annotations

from . import config

__all__ = ["config"]

"""What a module of a kind of device answers where there is none of the kind, as PyTorch's do in a build without it."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""


manual_seed_all = manual_seed

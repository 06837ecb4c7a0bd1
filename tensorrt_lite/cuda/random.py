"""Seeds of the devices' generators."""

from __future__ import annotations

_seed = 0


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device nothing happens, so that programs may seed before they look for one."""
    global _seed
    _seed = int(seed)


manual_seed_all = manual_seed

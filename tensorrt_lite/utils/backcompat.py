"""torch.utils.backcompat: switches of warnings about behaviour of PyTorch before 0.2. They are kept and reported; nothing here warns of it."""

from __future__ import annotations

__all__ = ["Warning", "broadcast_warning", "keepdim_warning"]


class Warning:
    """A switch: `enabled`."""

    def __init__(self) -> None:
        self.enabled = False

    def set_enabled(self, value: bool) -> None:
        """Switch it."""
        self.enabled = bool(value)

    def get_enabled(self) -> bool:
        """Whether it is on."""
        return self.enabled


broadcast_warning = Warning()
keepdim_warning = Warning()

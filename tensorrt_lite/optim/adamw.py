"""`optim.adamw`, the module name under which PyTorch programs import AdamW; the class lives beside Adam."""

from .adam import AdamW

__all__ = ["AdamW"]

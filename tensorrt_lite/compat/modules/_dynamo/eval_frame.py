"""torch._dynamo.eval_frame."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import nn

__all__ = ["OptimizedModule", "is_dynamo_supported"]


class OptimizedModule(nn.Module):
    """What `torch.compile` makes of a module: the module as `_orig_mod`, which its state dict's keys begin with, and whose attributes it has."""

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__.pop("training")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._modules["_orig_mod"](*args, **kwargs)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        original = self.__dict__["_modules"]["_orig_mod"]
        return original if name == "_orig_mod" else getattr(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            self.__dict__[name] = value
        elif "_orig_mod" in self.__dict__.get("_modules", ()):
            setattr(self._modules["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)

    def train(self, mode: bool = True) -> OptimizedModule:
        self._orig_mod.train(mode)
        return self


def is_dynamo_supported() -> bool:
    """False."""
    return False

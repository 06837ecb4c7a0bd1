"""An exception that is raised again in another thread or process. Imported where one is made."""

from __future__ import annotations

import sys
import traceback
from typing import Any

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


class KeyErrorMessage(str):
    """A message that KeyError prints as it is, with its line breaks."""

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """An exception with its traceback as text, so that another thread or process can raise it. where: words for the message."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        info: Any = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.exc_msg, self.where = info[0], "".join(traceback.format_exception(*info)), where

    def reraise(self) -> None:
        """Raise an exception of the type with the first one's traceback as its message; RuntimeError where the type cannot be made from a message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error

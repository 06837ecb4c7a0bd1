"""torch._logging: what a compiler would log. The settings are taken; loggers are Python's."""

from __future__ import annotations

import functools
import logging
import warnings
from typing import Any

__all__ = ["getArtifactLogger", "hide_warnings", "set_logs", "trace_structured", "warning_once"]


def set_logs(*, all: Any = None, modules: Any = None, **components: Any) -> None:  # noqa: A002 (PyTorch's name)
    """No effect but on the levels of loggers that `all` and `modules` name: an int sets one, None leaves it as it is."""
    for name, level in {"torch": all, **(modules or {})}.items():
        if level is not None:
            logging.getLogger(name).setLevel(level)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:  # noqa: N802 (PyTorch's name)
    """The logger of a module's kind of messages."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.lru_cache(None)
def warning_once(logger: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning that is logged once for each text."""
    logger.warning(*args, **kwargs)


def trace_structured(*args: Any, **kwargs: Any) -> None:
    """No effect: nothing is traced."""


def hide_warnings(fn: Any) -> Any:
    """The function, without the warnings that it gives."""

    @functools.wraps(fn)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs)

    return quiet

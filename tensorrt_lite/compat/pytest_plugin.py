"""A suite under the alias: `pytest -p tensorrt_lite.compat.pytest_plugin`, with `--torch-report` for what it asked of PyTorch.

The alias is in force from the import of this plugin on, before any conftest.py.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite.compat import VERSION, install, report
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_report = _LazyModule("tensorrt_lite.compat.report")

install()


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--torch-report", action="store_true", help="list what was asked of PyTorch and is missing in tensorrt_lite")


def pytest_report_header(config: Any) -> str:
    return f"torch: tensorrt_lite as PyTorch {VERSION}"


def pytest_configure(config: Any) -> None:
    if config.getoption("--torch-report"):
        _report.record()


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if config.getoption("--torch-report"):
        terminalreporter.section("torch under tensorrt_lite")
        terminalreporter.write(report())

"""The lists of what falls short: `lists/<kind>_<operators, models or modules>.txt`, a name a line with the first failure behind it.

A name with a `+` falls short on later samples than the suite takes. A test fails where a listed name no longer fails, so lists only shrink.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "lists"
SUITE = 1  # samples that the suite takes of an operator


def path_of(kind: str, what: str) -> Path:
    return FOLDER / f"{kind}_{what}.txt"


def read(kind: str, what: str) -> dict[str, bool]:
    """{name: whether the suite's samples show the failure}."""
    path = path_of(kind, what)
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition("#")[0].strip() for line in lines]
    return {name.lstrip("+"): not name.startswith("+") for name in names if name}


def update(kind: str, what: str, table: dict[str, Any]) -> None:
    """Write what falls short in the table; names outside of it keep their lines."""
    path = path_of(kind, what)
    path.parent.mkdir(exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in lines if line.partition("#")[0].strip().lstrip("+") not in table and line.strip()]
    for name, report in table.items():
        if not report.ok:
            reason = report.failures[0].replace("\n", " ")[:140].rstrip()
            kept.append(f"{'+' if report.late else ''}{name}  # {reason}")
    path.write_text("".join(line + "\n" for line in sorted(kept, key=lambda line: line.lstrip("+"))))

"""Steps: what a family does per device beneath its checks, declared in cysrc/ops/<family>/steps.yaml.

A row's kernel is the same for all devices: it checks, makes the result and calls `run_<step>(device_type, ...)`. A module of a device puts its own function
in the place by `set_<step>(DEV_CUDA, f)`, which Cython checks against the declared type. Meta tensors have no elements, so a step that returns nothing is
nothing there; a device without the step is an error that names both (core/dispatch.pyx).
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from .schema import DeclarationError

STEP_PLACES = 1021  # TRT_STEPS in core/dispatch.h is at least this
_KEYS = {"step", "arguments", "returns", "doc"}
_ARGUMENT = re.compile(r"^(?P<type>[\w ]+?[\s*]+)(?P<name>\w+)$")


@dataclass
class Step:
    """One typed function per device."""

    name: str
    arguments: list[tuple[str, str]]  # (Cython type, name)
    returns: str
    doc: str
    place: int = -1

    @property
    def parameters(self) -> str:
        return ", ".join(f"{t}{'' if t.endswith('*') else ' '}{n}" for t, n in self.arguments)


@dataclass
class Family:
    """The steps of one family, and the cimport lines of the types that they take."""

    name: str
    cimports: list[str]
    steps: list[Step]


def parse_step(row: dict[str, str], family: str) -> Step:
    name = row.get("step")
    if not name or set(row) - _KEYS or "arguments" not in row or not row.get("doc"):
        raise DeclarationError(f"{family}/steps.yaml: {name or row}: a step has 'step', 'arguments', 'doc' and may have 'returns'")
    arguments = []
    for part in row["arguments"].split(","):
        found = _ARGUMENT.match(part.strip())
        if not found:
            raise DeclarationError(f"{family}/steps.yaml: {name}: not an argument: {part.strip()!r}")
        arguments.append((found["type"].strip(), found["name"]))
    returns = row.get("returns", "int")
    if returns not in ("int", "object", "TensorBase"):
        raise DeclarationError(f"{family}/steps.yaml: {name} returns {returns!r}: choose from int, object, TensorBase")
    return Step(name, arguments, returns, " ".join(row["doc"].split()))


def load(folder: Path) -> list[Family]:
    """The steps of all families below `folder`, each with its place in the table: by name, so that a new one does not move the others."""
    import yaml

    families = []
    taken: set[int] = set()
    names: set[str] = set()
    for path in sorted(folder.glob("*/steps.yaml")):
        declared = yaml.safe_load(path.read_text())
        family = Family(path.parent.name, declared.get("cimport", []), [parse_step(row, path.parent.name) for row in declared["steps"]])
        for step in family.steps:
            if step.name in names:
                raise DeclarationError(f"{path.parent.name}/steps.yaml: the step {step.name} is declared twice")
            names.add(step.name)
            step.place = zlib.crc32(step.name.encode()) % STEP_PLACES
            while step.place in taken:
                step.place = (step.place + 1) % STEP_PLACES
            taken.add(step.place)
        families.append(family)
    return families


def pxd(family: Family) -> str:
    """Of each step its type, the function that puts a device's in its place, the one that calls it, and whether a device has one."""
    text = [f"# Generated from cysrc/ops/{family.name}/steps.yaml: the steps of the family, one typed function per device.", "from libc.stdint cimport int64_t, uint64_t",
            "from tensorrt_lite._C.core.tensor cimport TensorBase", "from tensorrt_lite._C.core.device cimport DEV_META",
            "from tensorrt_lite._C.core.dispatch cimport CORE, set_step, step_of", *family.cimports, ""]  # fmt: skip
    for step in family.steps:
        failing = " except -1" if step.returns == "int" else ""
        types = ", ".join(t for t, _ in step.arguments)
        passed = ", ".join(n for _, n in step.arguments)
        text += [f"# {step.doc}",
                 f"ctypedef {step.returns} (*{step.name}_step)({types}){failing}",
                 f"cdef inline void set_{step.name}(int device_type, {step.name}_step function) noexcept:",
                 f"    set_step({step.place}, b\"{step.name}\", device_type, <void*>function)",
                 f"cdef inline bint has_{step.name}(int device_type) noexcept:",
                 f"    return CORE.steps[{step.place}].functions[device_type] != NULL",
                 f"cdef inline {step.returns} run_{step.name}(int device_type, {step.parameters}){failing}:"]  # fmt: skip
        if step.returns == "int":
            text += ["    if device_type == DEV_META:", "        return 0"]
        text += [f"    return (<{step.name}_step>step_of({step.place}, b\"{step.name}\", device_type))({passed})", ""]
    return "\n".join(text)

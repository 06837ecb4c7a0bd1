"""docs/state.md is the inventory of what outlives a call: every variable of a module, process-wide or of a thread, with its guard.

A new one fails here until it has a row, because an interpreter without the GIL, a second interpreter or a fork meets each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for p in sorted((ROOT / "cysrc").rglob("*")) if p.suffix in {".pyx", ".pxi", ".pxd", ".h", ".c"}]
INVENTORY = ROOT / "docs" / "state.md"
pytestmark = pytest.mark.skipif(not SOURCES, reason="needs the sources")

GUARDS = {"import", "GIL", "thread", "atomic", "mutex", "once"}
_NOT_STATE = re.compile(r"cdef\s+(extern|class|enum|struct|packed|union|cppclass|const|inline|readonly|public|void(?!\s*\*)|tuple|str|bytes|frozenset)\b")


def declarators(text: str) -> list[str]:
    """The names that `type a[2] = x, b` declares; none of a function."""
    depth, parts, current = 0, [], ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    names = []
    for part in [*parts, current]:
        head = re.split(r"(?<![<>=!])=", part, maxsplit=1)[0].strip()
        if pointer := re.match(r"[^(]*\(\*(\w+)(?:\[[^]]*\])?\)\s*\(", head):
            names.append(pointer[1])
        elif "(" in head:
            return []
        else:
            names += re.findall(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", head)
    return names


def cython_variables(text: str) -> list[str]:
    """Module variables: what `cdef` declares at the left margin that isn't constant."""
    found = []
    for line in text.splitlines():
        if line.startswith("cdef ") and not _NOT_STATE.match(line):
            found += declarators(line[5:].split("#")[0].rstrip().rstrip(":"))
    return found


def c_variables(text: str) -> list[str]:
    """`static` and `static __thread` variables of C, also those of functions; constants and functions are none."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = re.findall(r"^\s*static struct \{.*?\n\s*\} (\w+)", text, flags=re.S | re.M)
    for line in text.splitlines():
        m = re.match(r"\s*static\s+(?!inline\b|const\b|struct \{|__attribute__)(.*)", line)
        if m and "##" not in line and not re.search(r"\*\s*const\b", m[1]):
            found += declarators(re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", "", m[1]).split(";")[0].rstrip("{ \\"))
    return found


def variables(path: Path) -> set[str]:
    text = path.read_text()
    if path.suffix in (".h", ".c"):
        return set(c_variables(text))
    declared = path.suffix == ".pxd"               # what another file defines
    blocks = re.findall(r'^cdef extern from \*[^\n]*:\n\s*"""(.*?)"""', text, flags=re.S | re.M)
    return set([] if declared else cython_variables(re.sub(r'""".*?"""', "", text, flags=re.S))) | {n for block in blocks for n in c_variables(block)}


def inventory() -> dict[str, dict[str, str]]:
    """{file: {name: guard}} of the rows `| file | names | guard | what |`."""
    rows: dict[str, dict[str, str]] = {}
    for file, names, guard in re.findall(r"^\| `([\w./]+)` \| ([^|]+) \| (\w+)[^|]* \| [^|]+ \|$", INVENTORY.read_text(), flags=re.M):
        assert guard in GUARDS, f"{file}: {guard} is none of {sorted(GUARDS)}"
        for name in re.findall(r"`(\w+)`", names):
            assert name not in rows.setdefault(file, {}), f"{file}: {name} is listed twice"
            rows[file][name] = guard
    return rows


def test_the_search_finds_what_outlives_a_call():
    assert cython_variables("cdef int* a = [1, 2], b\ncdef object f(int x):\ncdef list c = []   # x\ncdef int (*hook)(int a, int b) = NULL\ncdef dict _t[3][4]\n") == ["a", "b", "c", "hook", "_t"]
    assert cython_variables("cdef inline int f():\ncdef enum:\ncdef const int* t\ncdef int f(int a,\n    cdef int local = 0\ncdef tuple t = ()\n") == []
    assert c_variables("static int a = 0; /* x */\nstatic __thread void* b[64];\nstatic const int c[2] = {1};\nstatic inline int f(void) {\nstatic int g(int x) {\n  static char h[3];\n") == ["a", "b", "h"]
    assert c_variables("static trt_heap heaps[2] = {{.unit = 1}, {.unit = 2}};\nstatic PyObject *x[2], *y;\n") == ["heaps", "x", "y"]


def test_every_variable_has_a_row_and_every_row_a_variable():
    listed, missing, stale = inventory(), [], []
    for path in SOURCES:
        name = str(path.relative_to(ROOT / "cysrc"))
        found, known = variables(path), listed.pop(name, {})
        missing += [f"{name}: {v}" for v in sorted(found - known.keys())]
        stale += [f"{name}: {v}" for v in sorted(known.keys() - found)]
    stale += [f"{name}: no such file" for name in listed]
    assert not missing, "\n".join(["docs/state.md says who guards what outlives a call; these are not in it:", *missing])
    assert not stale, "\n".join(["docs/state.md lists what is no longer there:", *stale])


def test_what_a_thread_owns_is_thread_local():
    listed = inventory()
    for path in SOURCES:
        local = set(re.findall(r"static __thread [^;=]*?(\w+)(?:\[\w+\])*\s*(?:__attribute__|;|=)", path.read_text()))
        guards = listed.get(str(path.relative_to(ROOT / "cysrc")), {})
        assert {n for n, guard in guards.items() if guard == "thread"} == local & guards.keys(), path

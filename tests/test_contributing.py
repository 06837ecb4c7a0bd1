"""docs/contributing.md is true: its blocks pass the generator, its files exist. `python -m tools.try_contributing` builds and runs them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools import try_contributing
from tools.codegen.generate import generate
from tools.codegen.schema import load

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "contributing.md").read_text()


def test_the_generator_takes_the_blocks(tmp_path: Path) -> None:
    for folder in ("cysrc", "cuda_src", "tensorrt_lite/_compositions"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    before = {op.name for op in load(tmp_path / "cysrc" / "ops")}
    changed = try_contributing.apply(tmp_path)
    added = {op.name for op in load(tmp_path / "cysrc" / "ops")} - before
    assert len(changed) == 11 and added == set(re.findall(r"^- op: (\w+)", TEXT, re.M))
    generate(tmp_path, tmp_path / "out")
    compositions = "".join(p.read_text() for p in (tmp_path / "tensorrt_lite" / "_compositions").glob("*.py"))
    written = "".join(p.read_text() for p in (tmp_path / "out" / "ops").glob("*.pyx"))
    for name in added:
        assert f'-1, "{name}", NULL' in written or f"\ndef {name}(" in compositions, name
    # what the rows name is there
    kernels = (tmp_path / "cysrc" / "ops" / "reduction" / "reduction.pyx").read_text()
    for named in re.findall(r"^  meta: (\w+)", TEXT, re.M):
        assert f"cdef TensorBase {named}(" in kernels


def test_the_files_it_names_exist() -> None:
    paths = {p for p in re.findall(r"`((?:cysrc|cuda_src|tools|tests|tensorrt_lite|docs)/[\w./-]+)`", TEXT)}
    assert len(paths) > 20
    assert [p for p in sorted(paths) if not (ROOT / p).exists()] == []


def test_a_program_has_expectations() -> None:
    assert all(re.findall(r"^print\(.*\)  # ", p, re.M) for _, p in try_contributing.programs(TEXT))
    assert try_contributing.programs(TEXT)

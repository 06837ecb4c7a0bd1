"""The lists of instruction sets: measured names that still exist, sources that list what the builder knows, sets that the native build takes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("yaml")

from tools.build_core import ISA_FLAGS, ROOT, Builder
from tools.codegen.pointwise import highest_sets, loops_of
from tools.codegen.schema import load
from tools.measure_isa import OPERATORS, loop_sets

SOURCES = sorted((ROOT / "cysrc" / "loops").glob("*.c"))


def builder(folder: Path, monkeypatch, native: str, isa: str = "") -> Builder:
    monkeypatch.setenv("TENSORRT_LITE_NATIVE", native)
    monkeypatch.delenv("TENSORRT_LITE_QUICK", raising=False)
    monkeypatch.setenv("TENSORRT_LITE_ISA", isa)
    return Builder(folder, folder)


def test_listed_loops_exist():
    declared = {loop.name: set(loop.dtypes) for op in load(ROOT / "cysrc" / "ops") if op.kind == "pointwise" for forward, fused in [loops_of(op)] for loop in (forward, *fused.values())}
    stale = {name: types for name, types in highest_sets().items() if not set(types) <= declared.get(name, set())}
    assert not stale, f"cysrc/loops/sets.yaml: {stale}; run python -m tools.measure_isa --sets"
    assert {s for types in highest_sets().values() for s in types.values()} <= set(ISA_FLAGS)


def test_every_source_is_measured():
    """All but a table, a fill, a transposition, and what runs on tiles or pairs alone."""
    assert {p.stem for p in SOURCES} - {"isa_sets", "indexing_fill", "conv_tiles", "conv_pairs", "conv_layout"} == set(OPERATORS)


def test_a_row_ends_at_the_last_set_that_takes_a_fifth_off():
    row = {"loop": "f", "base": 100}
    rows = [{**row, "dtype": "f32", "avx2": 50, "avx512": 45}, {**row, "dtype": "i64", "avx2": 90, "avx512": 85}, {**row, "dtype": "f64", "avx2": 90, "avx512": 70}]
    assert loop_sets(rows).splitlines()[-1] == "f: {base: i64, avx2: f32}"


def test_wheels_take_the_listed_sets_and_native_builds_one(tmp_path, monkeypatch):
    every, native, lowered = builder(tmp_path, monkeypatch, "0"), builder(tmp_path, monkeypatch, "1"), builder(tmp_path / "base", monkeypatch, "1", "base")
    assert lowered.own_isa == "base"
    monkeypatch.setenv("TENSORRT_LITE_ISA", "")
    able = list(ISA_FLAGS)[: list(ISA_FLAGS).index(native.own_isa) + 1]
    for source in SOURCES:
        listed = every.sets_of(source)
        assert listed[0] == "base" and listed == [s for s in ISA_FLAGS if s in listed], source
        assert native.sets_of(source) == [s for s in listed if s in able][-1:] and lowered.sets_of(source) == ["base"], source


def test_rows_are_left_out_of_wheels_alone(tmp_path, monkeypatch):
    source = ROOT / "cysrc" / "loops" / "reduction_reduce.c"
    assert "-DISA_LEVEL=2" in builder(tmp_path, monkeypatch, "0").loop_flags(source, "avx512")
    assert not any("ISA_LEVEL" in flag for flag in builder(tmp_path, monkeypatch, "1").loop_flags(source, "avx512"))

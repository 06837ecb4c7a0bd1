"""`tensorrt-lite doctor`: what it finds in facts and in the files of an operating system."""

from __future__ import annotations

import json

import pytest

from tensorrt_lite import info
from tensorrt_lite._commands import doctor as _doctor
from tensorrt_lite.__main__ import main as command


def facts(**changes):
    base = {
        "build": {"instruction_set": "avx2", "instruction_sets": ["base", "avx2", "avx512"]},
        "cpu": {"cores": 8, "features": ["avx2", "fma"]},
        "environment": {},
        "handicaps": {},
        "openmp": {"threads": 8, "runtimes": ["/usr/lib/libgomp.so.1"]},
    }
    return {**base, **changes}


def machine(tmp_path, **files):
    for path, text in {"proc/loadavg": "0.1 0.1 0.1 1/1 1", **files}.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")
    return tmp_path


def slow(tmp_path, files=None, **changes):
    return [f.what for f in _doctor.findings(facts(**changes), machine(tmp_path, **(files or {}))) if f.level == "slow"]


def test_a_good_set_up_has_nothing_to_fix(tmp_path):
    assert slow(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never", "sys/fs/cgroup/cpu.max": "max 100000"}) == []


@pytest.mark.parametrize(
    ("files", "changes", "said"),
    [
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, {}, "grants the time of 1.5 cores, 8 are seen"),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, {}, "grants the time of 2 cores"),
        ({"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}, {}, "huge pages are off"),
        ({"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"}, {}, "clock is kept low"),
        ({}, {"openmp": {"threads": 8, "runtimes": ["/a/libgomp.so.1", "/b/libgomp-1f.so.1"]}}, "2 OpenMP runtimes: /a/libgomp.so.1"),
        ({}, {"build": {}}, "no compiled core"),
        ({}, {"build": {"debug": True, "instruction_set": "avx2"}}, "debug build"),
        ({}, {"build": {"stale": True, "instruction_set": "avx2"}}, "compiled from other sources"),
        (
            {},
            {"build": {"instruction_set": "base"}, "environment": {"TENSORRT_LITE_ISA": "base"}},
            "loops for base run on a processor with avx2: TENSORRT_LITE_ISA is set",
        ),
        ({}, {"environment": {"OMP_NUM_THREADS": "32"}}, "OMP_NUM_THREADS=32 on 8 cores"),
        ({}, {"environment": {"OMP_WAIT_POLICY": "active"}}, "idle threads keep their cores busy"),
        (
            {},
            {"environment": {"OPENBLAS_CORETYPE": "Prescott"}, "handicaps": info.blas_handicaps({"OPENBLAS_CORETYPE": "Prescott"})},
            "OPENBLAS_CORETYPE=Prescott forces",
        ),
    ],
)
def test_each_handicap_is_found_alone(files, changes, said, tmp_path):
    found = slow(tmp_path, files, **changes)
    assert len(found) == 1 and said in found[0]


def test_other_processes_are_noted_and_no_fault_of_the_installation(tmp_path):
    files = {"proc/loadavg": "7.5 7 6 1/1 1"}
    notes = [f.what for f in _doctor.findings(facts(), machine(tmp_path, **files)) if f.level == "note"]
    assert slow(tmp_path, files) == [] and len(notes) == 1 and notes[0].startswith("load 7.5 on 8 cores")


def test_a_limit_that_the_threads_keep_is_fine(tmp_path):
    assert slow(tmp_path, {"sys/fs/cgroup/cpu.max": "200000 100000"}, openmp={"threads": 2, "runtimes": []}) == []


def test_the_command_prints_json_of_this_machine(capsys):
    status = command(["doctor", "--json", "json"])
    found = json.loads(capsys.readouterr().out)
    assert {"level", "what", "advice"} == set(found[0])
    assert status == int(any(f["level"] == "slow" for f in found))
    with pytest.raises(SystemExit):
        command(["doctor", "no_such_module_anywhere"])

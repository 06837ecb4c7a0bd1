"""No call with bad arguments crashes, hangs or raises an unusual exception: some seconds of tools/fuzz.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tests.free_threading import needs_gil
from tools import fuzz, guard, sanitize


@pytest.mark.parametrize("seed", [11, 12])
def test_random_calls_end_in_a_result_or_in_an_exception_of_the_usual_kinds(seed):
    programs, failures = fuzz.fuzz(seconds=8, batch=1000, only="", seed=seed)
    assert programs >= 1000
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("mode", ["filters", pytest.param("threads", marks=needs_gil), "dispatch", "answers", "indices", "names", pytest.param("layouts", marks=needs_gil)])
def test_somebody_else_changes_the_tensors_of_a_call(mode):
    """With the guard's allocator, in which a kernel that reads what it did not check faults."""
    guard.build()
    command = [guard.interpreter(), "-m", "tools.fuzz", "--mode", mode, "--seconds", "5", "--batch", "150", "--seed", "21"]
    done = subprocess.run(command, env=guard.environment(), cwd=guard.ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and f"{mode}: " in done.stdout, done.stdout + done.stderr[-3000:]


def test_hostile_gradients_end_in_a_result_or_in_an_exception():
    programs, failures = fuzz.fuzz(seconds=5, batch=1000, only="", seed=11, mode="gradients")
    assert programs >= 1000
    assert not failures, "\n".join(failures)


def test_a_program_is_drawn_from_its_seed_and_number_alone():
    table = fuzz.targets()
    for number in range(30):
        texts: tuple[list[str], list[str]] = ([], [])
        for shown in texts:
            fuzz.run_program(trt, table, 5, number, shown.append)
        without_addresses = [[text.split(" at 0x")[0] for text in shown] for shown in texts]
        assert without_addresses[0] == without_addresses[1]
        assert not texts[0] or texts[0][0].split("(")[0] == fuzz.names_of(5, number, "").split(" ")[0]


def test_an_unusual_exception_is_a_failure():
    def divides(input):
        return 1 // 0

    def refuses(input):
        raise TypeError("no")

    assert "ZeroDivisionError" in fuzz.run_program(trt, [("divides", divides)], 0, 0)
    assert fuzz.run_program(trt, [("refuses", refuses)], 0, 0) is None


def test_a_child_that_dies_names_its_call(monkeypatch):
    """The child is made to die at its third program; the two behind it run in a second child."""
    monkeypatch.setenv("TENSORRT_LITE_FUZZ_DIE_AT", "2")
    failures = fuzz.run_batch(seed=1, first=0, count=5, only="^abs$")
    assert len(failures) == 1
    assert failures[0].startswith("1:2 abs: signal SIGABRT")


PLANTED = "float planted(const float* p, long n) { float s = 0; for (long i = 0; i <= n; i++) s += p[i]; return s; }\n"


@pytest.mark.parametrize("mode", ["calls", "filters"])
def test_the_guard_finds_an_overrun_by_one_element(tmp_path, mode):
    source, library = tmp_path / "planted.c", tmp_path / "planted.so"
    source.write_text(PLANTED)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    guard.build()
    program = f"import json; from tools import fuzz; print(json.dumps([fuzz.run_batch(1, 0, 1, '^planted$', '{mode}'), fuzz.run_batch(1, 0, 20, '^(abs|add|mm)$', '{mode}')]))"
    done = subprocess.run([guard.interpreter(), "-c", program], env={**guard.environment(), "TENSORRT_LITE_FUZZ_PLANT": str(library)}, cwd=guard.ROOT,
                          capture_output=True, text=True, check=True, timeout=300)  # fmt: skip
    failures, innocent = json.loads(done.stdout.splitlines()[-1])
    assert failures and "planted: signal SIG" in failures[0], failures
    assert innocent == []


def test_an_overrun_by_one_element_is_reported(tmp_path):
    """A kernel that reads one element too far, checked as the sanitized build's kernels are, and found by random calls."""
    libraries = [path for path in sanitize.libraries() if Path(path).exists()]
    if not libraries:
        pytest.skip("the compiler has no sanitizers")
    source, library = tmp_path / "planted.c", tmp_path / "planted.so"
    source.write_text(PLANTED)
    subprocess.run(["gcc", "-O1", "-g1", "-fsanitize=address", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    own = {k: v for k, v in sanitize.environment().items() if k != "PYTHONPATH"}
    program = "import json; from tools import fuzz; print(json.dumps([fuzz.run_batch(1, 0, 1, '^planted$'), fuzz.run_batch(1, 0, 20, '^(abs|add|mm)$')]))"
    done = subprocess.run([sys.executable, "-c", program], env={**own, "TENSORRT_LITE_CPU_ALLOCATOR": "system", "TENSORRT_LITE_FUZZ_PLANT": str(library)}, cwd=sanitize.ROOT,
                          capture_output=True, text=True, check=True, timeout=300)  # fmt: skip
    failures, innocent = json.loads(done.stdout.splitlines()[-1])
    assert failures and f"planted: exit {sanitize.REPORTED}" in failures[0] and "heap-buffer-overflow" in failures[0], failures
    assert innocent == []

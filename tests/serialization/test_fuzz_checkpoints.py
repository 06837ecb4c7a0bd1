"""A sample of what tools/fuzz_checkpoints.py does in full: mutated and hand-made files crash nothing, raise what is documented and take
no more memory than twice their size and 16 MB."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite import serialization
from tools import fuzz_checkpoints
from tools.fuzz_checkpoints import Report, fuzz, try_hostile, with_pickle

ROOT = Path(__file__).resolve().parents[2]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="files of PyTorch's older format are written by it")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of resident memory are Linux's")


def checked(report):
    assert not report.bad, report.text()
    return sum(report.outcomes.values())


@needs_torch
def test_mutated_files():
    report = Report()
    fuzz(600, 1, report)
    assert checked(report) == 600
    assert {outcome for _, outcome in report.outcomes} >= {"loaded", "UnpicklingError", "RuntimeError", "SafetensorError"}


# One or two of each family of files.
HOSTILE = [
    "(OrderedDict of pairs|Counter of dict|set of numbers|bytearray of bytes|Size of tuple) 20000 x 1500",
    "encode 20000|attributes 20000|text x 1000000|sparse memo x 1000000|metas x 200000",
    r"opcode b'[]\\}(]?.* x 1000000|opcodes b'\\x85' x 1000000|opcodes b'\]\\x94' x 1000000",
    "300 records of 1048576|names twice|60000 empty|safetensors (nested|names) x 300000",
]


@needs_torch
def test_hand_made_files():
    assert checked(try_hostile(Report(), "|".join(HOSTILE))) > 15


@needs_torch
def test_a_blow_up_is_seen():
    """The measurement can fail: without a budget one of the files takes too much. In a process of its own, whose heap has no room left by other tests."""
    program = """
from tensorrt_lite._checkpoint.budget import Budget
from tools.fuzz_checkpoints import Report, try_hostile
Budget.check = lambda self: None
report = try_hostile(Report(), "frozenset of numbers 20000 x 30$")
print(len(report.bad), report.worst > 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.stdout.split() == ["1", "True"], done.stdout + done.stderr


def test_known_files_of_small_objects_load_with_more_memory(tmp_path):
    path = tmp_path / "vocabulary.pt"
    words = {f"word {i}": i for i in range(300_000)}
    serialization.save(words, path)
    with pytest.raises(pickle.UnpicklingError, match="memory_limit="):
        serialization.load(path)
    assert serialization.load(path, memory_limit=1 << 30) == words
    with pytest.raises(pickle.UnpicklingError, match="more than 0 MB"):
        serialization.load(path, memory_limit=1000)


def test_memory_of_many_small_tensors_is_within_the_budget(tmp_path):
    path = tmp_path / "many.pt"
    serialization.save({f"layer.{i}": trt.ones(2) for i in range(10_000)}, path)
    assert len(serialization.load(path)) == 10_000


def test_memo_numbers_in_any_order():
    for body, expected in (
        (b"\x80\x02(K\x01q\x05K\x02q\0K\x03q\x01h\x05h\0h\x01l.", [1, 2, 3, 1, 2, 3]),
        (b"\x80\x02(K\x01q\0K\x02q\0h\0l.", [1, 2, 2]),
        (b"\x80\x04(K\x01\x94K\x02r\x09\0\0\0K\x03\x94h\0h\x09h\x02l.", [1, 2, 3, 1, 2, 3]),
        (b"\x80\x02(K\x01q\x01K\x02q\0K\x03q\x01h\x01l.", [1, 2, 3, 3]),
    ):
        assert serialization.load(io.BytesIO(with_pickle(body))) == expected, body


def test_the_tool_names_what_it_finds():
    report = Report()
    report.add("0:1", "zip", 1000, "undocumented KeyError: 3", 5)
    report.add("0:2", "zip", 1000, "loaded", 64 << 20)
    assert len(report.bad) == 2
    assert "worst share" in report.text()
    assert fuzz_checkpoints.drawn(0, 7) == fuzz_checkpoints.drawn(0, 7)

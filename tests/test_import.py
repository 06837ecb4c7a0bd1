"""What `import tensorrt_lite` leaves of the interpreter's state."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("switch", ["enable", "disable"])
def test_the_collector_is_as_it_was(switch):
    program = f"import gc; gc.{switch}(); import tensorrt_lite; print(gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(switch == "enable")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the private module has another name there")
@pytest.mark.parametrize("first", ["import tensorrt_lite", "pass"])
def test_a_second_interpreter_is_refused(first):
    """Before or after the main one: an error that says so, and the first goes on."""
    program = f"""
import _xxsubinterpreters as interpreters
{first}
attempts = ["import tensorrt_lite as trt; assert trt.ones(2).tolist() == [1, 1]"] * 2
if "{first}" == "pass":
    interpreters.run_string(interpreters.create(), attempts.pop())
    try:
        import tensorrt_lite
    except ImportError as error:
        print(error)
for attempt in attempts:
    try:
        interpreters.run_string(interpreters.create(), attempt)
    except Exception as error:
        print(error)
print({first != "pass"} and tensorrt_lite.ones(2).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *refusals, last = done.stdout.splitlines()
    assert len(refusals) == 2 and all("in use by another interpreter of this process" in text for text in refusals), done.stdout
    assert last == ("[1.0, 1.0]" if first != "pass" else "False")

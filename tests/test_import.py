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

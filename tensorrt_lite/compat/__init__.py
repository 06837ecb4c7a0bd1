"""PyTorch programs without a changed line: `import torch` and every `torch.x.y` give this package's modules while an alias is in force.

>>> from tensorrt_lite.compat import torch_alias
>>> with torch_alias():
...     import torch.nn.functional as F
...     import torch
...     print(torch.__version__ >= (2, 13), F.relu(torch.tensor([-1.0, 2.0])))
True tensor([0., 2.])

`tensorrt-lite run program.py` does it for a program, `pytest -p tensorrt_lite.compat.pytest_plugin` for a suite, TENSORRT_LITE_ALIAS=1 for whatever
an environment runs, once `tensorrt-lite alias --install` has put the hook there. docs/running_programs.md. Imported when asked for, never before.
"""

from __future__ import annotations

from tensorrt_lite.compat.alias import VERSION, install, is_installed, torch_alias
from tensorrt_lite.compat.report import report

__all__ = ["VERSION", "install", "is_installed", "report", "torch_alias"]

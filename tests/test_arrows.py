"""Rooms import from those below alone. KNOWN is what is left of the arrows up: it may shrink, not grow."""

from __future__ import annotations

from tools import arrows

KNOWN: dict[str, list[str]] = {
    "cysrc/autograd/engine.pyx": ["tensorrt_lite._C.operators", "tensorrt_lite.autograd.anomaly_mode", "tensorrt_lite.cuda"],
    "cysrc/core/kernels.pxd": ["cysrc/loops/kernels.h"],
    "cysrc/core/kernels.pyx": ["cysrc/loops/kernels.h"],
    "cysrc/core/storage.pyx": ["tensorrt_lite.cuda._kernels"],
    "cysrc/cuda/attention.pyx": ["tensorrt_lite.cuda"],
    "cysrc/cuda/backend.pyx": ["tensorrt_lite.cuda", "tensorrt_lite.cuda._compiler"],
    "cysrc/cuda/conv.pyx": ["tensorrt_lite.cuda"],
    "cysrc/cuda/cublas.pyx": ["tensorrt_lite.cuda._libraries"],
    "cysrc/cuda/driver.pyx": ["tensorrt_lite.cuda._compiler"],
    "cysrc/cuda/indexing.pyx": ["tensorrt_lite.cuda"],
    "cysrc/cuda/linalg.pyx": ["tensorrt_lite.cuda", "tensorrt_lite.linalg"],
    "cysrc/cuda/matmul.pyx": ["tensorrt_lite.cuda"],
    "cysrc/cuda/norm.pyx": ["tensorrt_lite.cuda._source"],
    "cysrc/cuda/pool.pyx": ["tensorrt_lite.cuda"],
    "cysrc/cuda/random.pyx": ["tensorrt_lite.cuda._source", "tensorrt_lite.cuda.random"],
    "cysrc/cuda/reduction.pyx": ["tensorrt_lite.cuda._source"],
    "cysrc/cuda/scan.pyx": ["tensorrt_lite.cuda._source"],
    "cysrc/cuda/softmax.pyx": ["tensorrt_lite.cuda._source"],
    "cysrc/cuda/sorting.pyx": ["tensorrt_lite.cuda"],
    "cysrc/ops/attention/attention.pyx": ["tensorrt_lite.cuda.random"],
    "cysrc/ops/copy/copy.pyx": ["tensorrt_lite._C.cuda"],
    "cysrc/ops/creation/creation.pyx": ["tensorrt_lite._dlpack"],
    "cysrc/ops/linalg/linalg.pyx": ["tensorrt_lite.linalg"],
    "cysrc/ops/matmul/einsum.pxi": ["tensorrt_lite.backends"],
    "cysrc/ops/reduction/reduction.pyx": ["tensorrt_lite._return_types", "tensorrt_lite.linalg"],
    "cysrc/ops/sorting/sorting.pyx": ["tensorrt_lite._return_types"],
}


def test_arrows_point_down() -> None:
    assert arrows.up() == KNOWN


def test_an_arrow_up_is_seen(monkeypatch, tmp_path) -> None:
    """In Python, Cython and C, inside functions and in `cdef extern`, and not in comments."""
    files = {
        "cysrc/core/a.pyx": 'def f():\n    from tensorrt_lite.nn import functional\n# from tensorrt_lite._C.ops import x\n',
        "cysrc/core/b.pxd": 'from tensorrt_lite._C.autograd.node cimport Node\ncdef extern from "table.h":\n    pass\n',
        "cysrc/loops/table.h": "#include <stdint.h>\n",
        "cysrc/loops/c.c": '#include "table.h"\n',
        "tensorrt_lite/d.py": "def f():\n    from tools import fuzz\n",
        "tensorrt_lite/e.py": "import typing\nif typing.TYPE_CHECKING:\n    import tools\nfrom tensorrt_lite._C.core import dtype\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(arrows, "ROOT", tmp_path)
    assert arrows.up() == {
        "cysrc/core/a.pyx": ["tensorrt_lite.nn"],
        "cysrc/core/b.pxd": ["cysrc/loops/table.h", "tensorrt_lite._C.autograd.node"],
        "tensorrt_lite/d.py": ["tools"],
    }

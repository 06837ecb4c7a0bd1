"""Rooms import from those below alone."""

from __future__ import annotations

from tools import arrows


def test_arrows_point_down() -> None:
    assert arrows.up() == {}


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


def test_few_private_modules_at_the_top_of_the_package() -> None:
    """Others have a room; `_ops`, `_size` and `_tensor_str` have PyTorch's names."""
    private = {p.stem for p in (arrows.ROOT / "tensorrt_lite").glob("_*.py") if not p.stem.startswith("__")}
    assert private == {"_extension", "_ops", "_public", "_root", "_size", "_tensor_str"}

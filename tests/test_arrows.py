"""Rooms import from those below alone."""

from __future__ import annotations

from tools import arrows, package_arrows


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


def test_modules_of_the_package_import_from_their_floor_and_below() -> None:
    assert package_arrows.up(package_arrows.imports()) == []


def test_cycles_of_the_package_are_small() -> None:
    assert max(map(len, package_arrows.cycles(package_arrows.graph(package_arrows.imports())))) < 10


def test_lazy_modules_exist() -> None:
    known = package_arrows.modules()
    lazy = {i.target for i in package_arrows.imports() if i.lazy}
    assert {t for t in lazy if t.removeprefix("tensorrt_lite.") not in known and not t.startswith("tensorrt_lite._C.")} == set()


def test_imports_of_the_package_are_seen(tmp_path) -> None:
    """In functions too, relative ones by their full name; lazy modules are apart, and lines for type checkers alone do not count."""
    files = {
        "__init__.py": "from tensorrt_lite import _ops\n",
        "_ops.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tensorrt_lite import nn\ndef f():\n    from .nn import functional\n",
        "nn/__init__.py": "import tensorrt_lite._ops as ops\nfrom tensorrt_lite._C.core import dtype\n",
        "nn/functional.py": 'from .. import _ops\noptim = LazyModule("tensorrt_lite.optim")\n',
        "optim.py": "import tensorrt_lite\nfrom . import nn\n",
    }
    for name, text in files.items():
        path = tmp_path / "tensorrt_lite" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = package_arrows.imports(tmp_path)
    assert package_arrows.inside_functions(found) == ["_ops:5"]
    assert package_arrows.graph(found) == {"": {"_ops"}, "_ops": {"nn.functional"}, "nn": {"_ops"}, "nn.functional": {"_ops"}, "optim": {"", "nn"}}
    assert package_arrows.cycles(package_arrows.graph(found)) == [["_ops", "nn.functional"]]
    assert package_arrows.graph(found, lazy=True)["nn.functional"] == {"_ops", "optim"}
    assert package_arrows.up(found) == ["_ops: nn.functional", "optim: tensorrt_lite"]

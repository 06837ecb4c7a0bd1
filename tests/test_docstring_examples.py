"""Examples in the docstrings of the package print what they say; those of the layers are in nn/test_examples.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "tensorrt_lite"

# with the names of their module: an example inside a module need not import it. Docstrings come from the source, since looking into a module
# loads what it has lazily.
PROGRAM = """
import ast, doctest, importlib, inspect, sys
import tensorrt_lite as trt
failed = 0
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        text = ast.get_docstring(node) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) else None
        if text and ">>> " in text:
            what = f"{name}.{getattr(node, 'name', '')}"
            test = doctest.DocTestParser().get_doctest(text, {**vars(module), "trt": trt}, what, None, 0)
            failed += doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE).run(test).failed
            print("ran", what)
sys.exit(failed > 0)
"""


def test_examples_in_docstrings(tmp_path: Path) -> None:
    """In a process of their own, since they register devices and operators and write files."""
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if ">>> " in path.read_text() and parts[1] != "nn":
            modules.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    done = subprocess.run([sys.executable, "-c", PROGRAM, *modules], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count("ran ") >= 45

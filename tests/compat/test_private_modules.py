"""PyTorch's private modules that programs import: settings are accepted, questions are answered, what is missing is refused when it is used."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite.compat import torch_alias


@pytest.fixture
def lite():
    with torch_alias() as torch:
        yield torch


IMPORTED = """
_decomp _dynamo.config _functorch.aot_autograd _functorch.config _functorch.vmap _guards _inductor _inductor.config _inductor.utils _linalg_utils _logging
_lowrank _prims _refs _refs.nn.functional _VF jit._trace nn._reduction nn.modules._functions optim._functional testing._internal.common_utils utils._triton
""".split()  # fmt: skip


@pytest.mark.parametrize("path", IMPORTED)
def test_it_can_be_imported(lite, path):
    module = importlib.import_module(f"torch.{path}")
    assert sys.modules[f"torch.{path}"] is module


@pytest.mark.parametrize("path", ["_dynamo.config", "_functorch.config", "_inductor.config"])
def test_settings_are_pytorchs_by_name(lite, path):
    """Each can be set to its own default, and a name that PyTorch does not have cannot."""
    config = importlib.import_module(f"torch.{path}")
    assert len(config.to_dict()) > 50
    for name, value in config.to_dict().items():
        owner = config
        *groups, last = name.split(".")
        for group in groups:
            owner = getattr(owner, group)
        setattr(owner, last, value)
        assert getattr(owner, last) is value
    for use in (lambda: config.no_such_setting, lambda: setattr(config, "no_such_setting", 1), lambda: config.patch(no_such_setting=1).__enter__()):
        with pytest.raises(AttributeError, match=f"torch.{path}.no_such_setting does not exist"):
            use()


def test_names_of_settings_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for path in ("_dynamo.config", "_functorch.config", "_inductor.config"):
        theirs = set(importlib.import_module(f"torch.{path}")._config)
        with torch_alias():
            ours = importlib.import_module(f"torch.{path}")
            assert not {name for name in theirs if not _has(ours, name)}
    assert torch.__version__.startswith("2.13")


def _has(config, name):
    try:
        config.read(name)
    except AttributeError:
        return False
    return True


def test_patches_of_settings_are_undone(lite):
    from torch._inductor import config

    before = config.max_autotune, config.triton.cudagraphs
    with config.patch({"triton.cudagraphs": "inner"}, max_autotune="inner"):
        assert (config.max_autotune, config.triton.cudagraphs) == ("inner", "inner")
        with config.patch("max_autotune", "innermost"):
            assert config.max_autotune == "innermost"
        assert config.max_autotune == "inner"
    assert (config.max_autotune, config.triton.cudagraphs) == before

    @config.patch(max_autotune="called")
    def value():
        return config.max_autotune

    assert (value(), config.max_autotune) == ("called", before[0])


def test_an_older_name_of_a_setting_is_the_setting(lite):
    import torch._dynamo.config as config

    with config.patch(cache_size_limit=77):
        assert config.recompile_limit == config.cache_size_limit == 77


def test_there_is_no_triton_and_no_trace(lite):
    from torch._guards import TracingContext, active_fake_mode, detect_fake_mode
    from torch.utils._triton import get_triton_version, has_triton, has_triton_package

    assert not has_triton() and not has_triton_package() and get_triton_version((3, 1)) == (3, 1)
    assert TracingContext.try_get() is None and active_fake_mode() is None and detect_fake_mode([lite.ones(1)]) is None
    with pytest.raises(RuntimeError, match="ongoing trace"):
        TracingContext.get()


def test_fake_modes_are_found(lite):
    from torch._guards import active_fake_mode, detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = lite.ones(2)
        assert active_fake_mode() is mode
    assert detect_fake_mode({"a": [1, fake]}) is mode and active_fake_mode() is None


def test_operators_of_private_modules_are_the_public_ones(lite):
    import torch._prims
    import torch._refs
    import torch._VF

    assert torch._refs.add is lite.add and torch._prims.cos is lite.cos and torch._VF.lstm is lite.lstm
    assert torch._refs.nn.functional.relu is lite.nn.functional.relu
    for module in (torch._prims, torch._refs):
        with pytest.raises(AttributeError):
            module.no_such_operator  # noqa: B018


def test_reductions_have_pytorchs_numbers(lite):
    reference = pytest.importorskip("torch.nn._reduction")  # the alias answers
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert reference.legacy_get_string(False, True) == "sum"
    assert [reference.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    assert reference.legacy_get_enum(None, None, emit_warning=False) == 1 and reference.legacy_get_enum(True, False, emit_warning=False) == 0
    with pytest.raises(ValueError, match="median is not a valid value"):
        reference.get_enum("median")


def test_helpers_of_linear_algebra(lite):
    from torch._linalg_utils import basis, bform, matmul, qform, symeig
    from torch._lowrank import get_approximate_basis

    lite.manual_seed(0)
    a = lite.randn(6, 4, dtype=lite.float64)
    square, x = a.T @ a, lite.randn(4, 2, dtype=lite.float64)
    assert lite.equal(matmul(None, x), x) and lite.allclose(matmul(square.to_sparse(), x), square @ x)
    assert lite.allclose(bform(x, square, x), x.T @ square @ x) and lite.allclose(qform(square, x), x.T @ square @ x)
    q = basis(a)
    assert lite.allclose(q.T @ q, lite.eye(4, dtype=lite.float64)) and lite.allclose(q @ (q.T @ a), a)
    values, vectors = symeig(square, largest=True)
    assert lite.allclose(vectors * values @ vectors.T, square) and (values.diff() <= 0).all()
    low = lite.randn(8, 2, dtype=lite.float64) @ lite.randn(2, 7, dtype=lite.float64)
    q = get_approximate_basis(low, 2)
    assert lite.allclose(q @ (q.T @ low), low)


def test_logs_take_their_settings(lite):
    import logging

    import torch._logging

    torch._logging.set_logs(recompiles=True, graph_breaks=True, modules={"a.module": logging.ERROR})
    assert logging.getLogger("a.module").level == logging.ERROR
    assert isinstance(torch._logging.getArtifactLogger(__name__, "aot_graphs"), logging.Logger)


def test_suites_of_packages_run_with_pytorchs_test_case(lite):
    import unittest

    from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, subtest

    seen = []

    class Case(TestCase):
        @parametrize("a", [1, 2])
        @parametrize("b,c", [(3, 4), subtest((5, 6), name="named")])
        def test_product(self, a, b, c):
            seen.append((a, b, c))
            self.assertEqual({"x": [lite.ones(2) * a]}, {"x": [lite.full((2,), float(a))]})
            with self.assertRaises(AssertionError):
                self.assertEqual(lite.ones(2), lite.ones(2) * 1.1)

    instantiate_parametrized_tests(Case)
    names = unittest.TestLoader().getTestCaseNames(Case)
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful() and result.testsRun == 4 and sorted(seen) == [(a, b, c) for a in (1, 2) for b, c in ((3, 4), (5, 6))]
    assert sum("named" in name for name in names) == 2


def _defined(path: Path) -> set[str]:
    """Names that a file defines, without what it imports."""
    nodes = ast.parse(path.read_text()).body
    assigned = {n.id for node in nodes if isinstance(node, ast.Assign) for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))} | {n for n in assigned if n != "__all__"}


def test_no_name_has_two_homes() -> None:
    """What a module of the package defines has no stand-in."""
    package = Path(trt.__file__).parent
    stand_ins = package / "compat" / "modules"
    both = []
    for path in stand_ins.rglob("*.py"):
        module = path.relative_to(stand_ins).with_suffix("")
        module = module.parent if module.name == "__init__" else module
        for real in (package / module / "__init__.py", package / f"{module}.py"):
            if module.name and real.exists():
                both += [f"{module}: {name}" for name in _defined(real) & _defined(path) - {"__getattr__", "__dir__"}]
    assert both == []


def test_definitions_of_a_file_are_seen(tmp_path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import os\n__all__ = ['f']\nx, y = 1, 2\ndef f():\n    z = 1\nclass C:\n    pass\n")
    assert _defined(file) == {"x", "y", "f", "C"}

"""Adding a pointwise operator is one yaml row: everything else comes out of the generator."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tools.codegen import functions, generate, schema, stubs

ROOT = Path(__file__).resolve().parents[2]
ROW = """
- op: bent_identity
  signature: "bent_identity(Tensor self) -> Tensor"
  variants: function, method, inplace, out
  promote: float
  dtypes: float
  expr: "(sqrt(self * self + 1) - 1) / 2 + self"
  backward: {self: "grad * (self / (2 * sqrt(self * self + 1)) + 1)"}
  samples: unary_float
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources generated from a declaration folder that holds one row more."""
    root = tmp_path_factory.mktemp("package")
    for sources in ("cysrc/ops", "cysrc/loops", "cuda_src"):
        shutil.copytree(ROOT / sources, root / sources)
    with open(root / "cysrc" / "ops" / "math" / "math.yaml", "a") as f:
        f.write(ROW)
    generate.generate(root, root / "out")
    return root / "out"


def test_entries_of_all_variants(generated: Path) -> None:
    text = (generated / "ops" / "math.pyx").read_text()
    assert '{OP_BENT_IDENTITY, TRT_ENTRY_OUT | TRT_ENTRY_POINTWISE, -1, "bent_identity", NULL' in text
    assert '{OP_BENT_IDENTITY, TRT_ENTRY_INPLACE | TRT_ENTRY_POINTWISE, -1, "bent_identity_", NULL' in text
    assert '"bent_identity": "fm"' in text and '"bent_identity_": "fm"' in text


def test_node_with_fused_and_composed_derivative(generated: Path) -> None:
    text = (generated / "ops" / "math.pyx").read_text()
    assert 'node_name = b"BentIdentityBackward0"' in text
    assert "_ops.sqrt(self * self + 1)" in text
    assert "op_bent_identity(" in (generated / "operators.pxd").read_text()


def test_loops_of_every_type_compile(generated: Path, tmp_path: Path) -> None:
    source = next(p for p in (generated / "loops").glob("loops_math_*.c") if "k_bent_identity_f32" in p.read_text())
    text = source.read_text()
    for dtype in ("f16", "bf16", "f32", "f64"):
        assert f"k_bent_identity_{dtype}(" in text
        assert f"k_bent_identity_backward_self_{dtype}(" in text
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    flags = [f"-I{ROOT}/cysrc/core", f"-I{ROOT}/cysrc/loops", f"-I{sysconfig.get_paths()['include']}", "-DISA=base", "-fsyntax-only", "-w"]
    done = subprocess.run([compiler, *flags, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def declared(generated: Path) -> schema.Operator:
    return next(o for o in schema.load(generated.parent / "cysrc" / "ops") if o.name == "bent_identity")


def test_the_row_carries_its_own_tests_and_benchmark(declared: schema.Operator) -> None:
    from tensorrt_lite.bench.suites.operators import _RANGES
    from tests.ops.samples import draw

    assert draw(declared.row["samples"])
    assert declared.row["samples"] in _RANGES


def test_stub_and_documentation(declared: schema.Operator) -> None:
    assert stubs.stub_line(declared, method=True, inplace=True) == "def bent_identity_(self) -> Tensor: ..."
    assert "def bent_identity(input: Tensor, *, out: Any = ...) -> Tensor: ..." in stubs.stub_module([declared], {"bent_identity": None}, {}, ())
    assert "| `bent_identity` | math | function, method, inplace, out | float | yes |" in stubs.documentation([declared])


@pytest.mark.parametrize(
    ("forward", "rules", "formulas"),
    [
        ("", "dd-z", {}),
        ("forward: linear", "jj-j", {}),
        ("forward: {a: linear, b: b_t * k}", "ff-z", {"a": "recall(OP_MIXED, (a_t, b, k, c, ), None, FRESH)", "b": "b_t * k"}),
    ],
)
def test_how_tangents_pass_is_derived_or_declared(forward: str, rules: str, formulas: dict[str, str]) -> None:
    import yaml

    row = f"""
    op: mixed
    signature: "mixed(Tensor a, Tensor b, Scalar k, Tensor c) -> Tensor"
    backward: {{a: "grad * b", b: "grad * a", c: "_ops.zeros_like(grad)"}}
    {forward}
    """
    assert functions.forward_rules(schema.parse_row(yaml.safe_load(row), "family")) == (rules, formulas)


def test_a_forward_rule_with_a_mistake_is_refused() -> None:
    row = {"op": "twice", "signature": "twice(Tensor self) -> Tensor", "backward": {"self": "grad * 2"}}
    for forward, message in (({"self": "other_t * 2"}, r"unknown names \['other_t'\]"), ({"other": "linear"}, r"forward rule for \['other'\]")):
        with pytest.raises(schema.DeclarationError, match=message):
            functions.emit_forward(schema.parse_row({**row, "forward": forward}, "family"), [], [])


@pytest.mark.parametrize(
    "row, message",
    [
        ("- op: twice\n  signature: 'twice(Tensor self) -> Tensor'\n  expr: self\n  colour: red\n", "unknown keys"),
        ("- op: twice\n  expr: self\n", "no signature"),
        ("- op: twice\n  signature: 'thrice(Tensor self) -> Tensor'\n  expr: self\n", "signature of thrice"),
        ("- op: twice\n  signature: 'twice(Tensor self) -> Tensor'\n  expr: self\n  backward: {other: grad}\n", "not an argument"),
    ],
)
def test_a_row_with_a_mistake_is_refused(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / "family.yaml").write_text(row)
    with pytest.raises(schema.DeclarationError, match=message):
        schema.load(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pairs.pyx": "", "steps.yaml": "steps: []"}, r"pairs: no pairs.yaml in the folder"),
        ({"pairs.yaml": '- op: swap\n  signature: "swap(Tensor self) -> Tensor"\n'}, r"pairs.yaml: swap has no backward"),
        ({"pairs.yaml": "op: swap\n"}, r"pairs/pairs.yaml: 'op' is no row"),
        ({"pairs.yaml": "[]", "steps.yaml": ""}, r"pairs/steps.yaml: the file is empty"),
        ({"pairs.yaml": "[]", "steps.yaml": "steps:\n  - step\n"}, r"pairs/steps.yaml: 'step' below steps is no row"),
    ],
)
def test_what_a_new_family_lacks_is_named(files: dict[str, str], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "cysrc" / "ops" / "pairs"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(schema.DeclarationError, match=message):
        generate.generate(tmp_path, tmp_path / "out")


def test_what_an_earlier_run_generated_is_removed(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated, tmp_path / "out")
    (tmp_path / "out" / "include" / "pairs_steps.h").write_text("old")
    generate.generate(generated.parent, tmp_path / "out")
    assert not (tmp_path / "out" / "include" / "pairs_steps.h").exists()
    assert (tmp_path / "out" / "include" / "operators.h").exists()

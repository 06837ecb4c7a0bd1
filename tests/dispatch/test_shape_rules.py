"""What rows say of sizes and dtypes is what their kernels do, and it works on sizes that are symbols."""

from __future__ import annotations

from collections import defaultdict

import pytest

import tensorrt_lite as trt
from tensorrt_lite._declared import declarations
from tensorrt_lite._declared.shapes import NoRuleError, Spec, infer, rules
from tests.dispatch.shape_rules import OPERATORS, Symbol, compare, refusals, row_of
from tests.dispatch.shape_samples import SAMPLES
from tools.codegen import shapes
from tools.codegen.schema import DeclarationError, load

GENERATED = [op for op in load("cysrc/ops") if op.kind in ("pointwise", "structured", "function")]
FAMILIES = defaultdict(list)
for _name in OPERATORS:
    FAMILIES[row_of(_name).family].append(_name)

# Rows whose results' sizes depend on elements, and one whose result is a number.
WITHOUT = {"_local_scalar_dense", "nonzero", "masked_select", "distinct", "_csr_product", "_csr_merge"}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_rules_give_what_the_kernels_give(family):
    for name in FAMILIES[family]:
        answered, wrong = compare(name, range(4))
        assert answered, wrong
        assert [line for line in wrong if not line.startswith("refused")] == []


def test_every_generated_row_has_a_rule():
    assert {op.name for op in GENERATED} - set(OPERATORS) == WITHOUT
    assert len(OPERATORS) >= 340


def test_every_rule_of_a_row_that_is_not_pointwise_has_samples():
    others = {name for name in OPERATORS if row_of(name).kind != "pointwise"}
    assert others == set(SAMPLES)


def sizes(text, guards, hints):
    return [Symbol(letter, hints[letter], guards) for letter in text]


def test_sizes_may_be_symbols_and_comparisons_are_guards():
    guards, hints = [], {"n": 5, "k": 4, "j": 4, "m": 7}
    (result,) = infer("mm", Spec(sizes("nk", guards, hints), trt.float32), Spec(sizes("jm", guards, hints), trt.float32))
    assert [str(n) for n in result.shape] == ["n", "m"] and guards == ["k == j"]


def test_a_reduction_asks_nothing_of_symbols():
    guards = []
    (result,) = infer("sum", Spec(sizes("abc", guards, dict.fromkeys("abc", 3)), trt.int32), [1], True)
    assert str(list(result.shape)) == "[a, 1, c]" and result.dtype is trt.int64 and guards == []


def test_a_convolution_of_symbols_is_an_expression():
    guards = []
    n, h, w = sizes("nhw", guards, {"n": 2, "h": 8, "w": 9})
    (result,) = infer("convolution", Spec([n, 3, h, w], trt.float32), Spec([6, 3, 3, 3], trt.float32), None, [2, 1], [1, 0], [1, 1], False, [0, 0], 1)
    assert [getattr(s, "hint", s) for s in result.shape] == [2, 6, 4, 7] and "h" in str(result.shape[2])


def test_operands_may_be_tensors_and_numbers():
    assert infer("add", trt.ones(3, 1), trt.ones(4, dtype=trt.float64)) == (Spec((3, 4), trt.float64),)
    assert infer("add", trt.ones(3, dtype=trt.int32), 2.5) == (Spec((3,), trt.float32),)
    assert infer("add", trt.ones(3, dtype=trt.float16), trt.ones((), dtype=trt.float64)) == (Spec((3,), trt.float16),)


def test_a_list_of_views_is_a_list_of_specs():
    assert infer("split", trt.ones(5, 2), 2) == [Spec((2, 2), trt.float32), Spec((2, 2), trt.float32), Spec((1, 2), trt.float32)]


def test_refusals_have_the_kernels_words():
    for given in ((trt.ones(2, 3), trt.ones(2, 3)), (trt.ones(2), trt.ones(2, 3))):
        with pytest.raises(RuntimeError) as kernel:
            trt.mm(*given)
        with pytest.raises(RuntimeError) as rule:
            infer("mm", *given)
        assert str(rule.value) == str(kernel.value)


GENERATED_META = [op.name for op in GENERATED if op.row.get("meta") == "generated"]


@pytest.mark.parametrize("name", GENERATED_META)
def test_generated_meta_functions_refuse_what_the_rule_refuses_in_its_words(name):
    assert GENERATED_META
    assert refusals(name, range(40)) == []


def test_what_depends_on_elements_has_no_rule():
    with pytest.raises(NoRuleError, match="nonzero"):
        infer("nonzero", trt.ones(3))


def test_rows_tell_their_rules():
    row = declarations.of("mm")
    assert row.shape_rule((2, 3), (3, 4)) == [2, 4] and row.dtype_rule(trt.ones(1, dtype=trt.float64), None) is trt.float64
    assert "size(self, 0)" in row.shape and declarations.of("nonzero").shape_rule is None
    assert set(rules()) == set(OPERATORS)


def test_a_meta_function_is_written_from_the_row():
    row = next(op for op in GENERATED if op.name == "_pair_distances")
    text = shapes.meta_function(row, "TensorBase self, double p")
    assert "if not (self.ndim == 2):" in text and "empty_tensor(n, sizes, self.dtype, place_of(self))" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [("[size(other, 0)]", "other is no argument"), ("[f(self)]", "f is no function"), ("[self ** 2]", "Pow is not in the language"), ("[1", "was never closed"), ("[size(self, dim=0)]", "by position")],
)
def test_the_language_refuses_what_it_does_not_have(text, message):
    with pytest.raises(DeclarationError, match=message):
        shapes.to_python(text, ["self"], "family.yaml: name")

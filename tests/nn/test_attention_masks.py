"""`nn.attention`: attention whose scores and masks are functions of positions, and causal masks for queries and keys of different numbers, beside PyTorch's."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import tensorrt_lite as trt
import tensorrt_lite.nn.attention.bias as our_bias
import tensorrt_lite.nn.attention.flex_attention as our_flex
from tensorrt_lite.autograd import gradcheck

torch = pytest.importorskip("torch")
import torch.nn.attention.bias as their_bias  # noqa: E402
import torch.nn.attention.flex_attention as their_flex  # noqa: E402

B, H, L, S, E = 2, 4, 20, 28, 8
BOTH = ((trt, our_flex), (torch, their_flex))


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch's function runs as it is written: its compiler takes seconds for each case."""
    monkeypatch.setattr(their_flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def operands(lib: Any, dtype: str = "float32") -> list[Any]:
    made = [[math.sin(7 * i / n) for i in range(B * H * n * E)] for n in (L, S, S)]
    return [lib.tensor(numbers, dtype=getattr(lib, dtype)).reshape(B, H, -1, E) for numbers in made]


def score_mods(lib: Any) -> dict[str, Any]:
    slopes, pairs = lib.exp2(-lib.arange(1, H + 1.0)), lib.arange(float(L * S)).reshape(L, S).cos()
    return {
        "none": None,
        "alibi": lambda score, b, h, q, kv: score - slopes[h] * (q - kv).abs(),
        "soft cap": lambda score, b, h, q, kv: 2 * lib.tanh(score / 2),
        "causal": lambda score, b, h, q, kv: lib.where(q >= kv, score, -float("inf")),
        "rows masked whole": lambda score, b, h, q, kv: lib.where(q > 3, score * (b + 1), -float("inf")),
        "one index after the other": lambda score, b, h, q, kv: score + pairs[q][kv],
    }


def mask_mods(lib: Any, flex: Any) -> dict[str, Any]:
    documents = lib.arange(S) // 6
    causal = lambda b, h, q, kv: q >= kv  # noqa: E731
    return {
        "none": None,
        "causal": causal,
        "window": flex.and_masks(causal, lambda b, h, q, kv: q - kv < 7),
        "documents": lambda b, h, q, kv: documents[q] == documents[kv],
        "heads": flex.or_masks(lambda b, h, q, kv: (h % 2 == 0) & (b == 1), lambda b, h, q, kv: kv < 3),
        "rows": lambda b, h, q, kv: q >= 9,
    }


def block_mask(lib: Any, flex: Any, name: str, block: Any = 8, length: int = L, separate: bool = True) -> Any:
    mask = mask_mods(lib, flex)[name]
    batch, heads = (B, H) if name == "heads" else (None, None)
    return None if mask is None else flex.create_block_mask(mask, batch, heads, length, S, "cpu", block, separate_full_blocks=separate)


def close(ours: Any, theirs: Any, tolerance: float = 2e-6) -> None:
    assert ours.shape == tuple(theirs.shape) and str(ours.dtype) == str(theirs.dtype)
    torch.testing.assert_close(torch.tensor(ours.tolist(), dtype=theirs.dtype), theirs, atol=tolerance, rtol=tolerance, equal_nan=False)


@pytest.mark.parametrize("mask", mask_mods(trt, our_flex))
@pytest.mark.parametrize("score", score_mods(trt))
def test_scores_and_masks_give_pytorchs_attention(score: str, mask: str):
    close(*(flex.flex_attention(*operands(lib), score_mods(lib)[score], block_mask(lib, flex, mask)) for lib, flex in BOTH))


@pytest.mark.parametrize("score", ["none", "alibi", "rows masked whole"])
def test_logarithms_of_sums(score: str):
    ours, theirs = (
        flex.flex_attention(*operands(lib), score_mods(lib)[score], scale=0.3, return_aux=flex.AuxRequest(lse=True)) for lib, flex in BOTH
    )
    close(ours[0], theirs[0])
    close(ours[1].lse, theirs[1].lse)
    assert ours[1].max_scores is None
    ours, theirs = (flex.flex_attention(*operands(lib), score_mods(lib)[score], return_lse=True)[1] for lib, flex in BOTH)
    close(ours, theirs)


def test_largest_scores():
    q, k, v = operands(trt)
    _, aux = our_flex.flex_attention(q, k, v, scale=2.0, return_aux=our_flex.AuxRequest(max_scores=True))
    assert aux.lse is None
    close(aux.max_scores, torch.tensor((2 * q @ k.mT).amax(-1).tolist()))


@pytest.mark.parametrize("score", ["none", "soft cap"])
def test_groups_of_heads_and_one_batch_of_keys(score: str):
    for lib, flex in BOTH:
        q, k, v = operands(lib)
        mask = flex.create_block_mask(mask_mods(lib, flex)["causal"], B, None, L, S, "cpu")
        result = [
            flex.flex_attention(q, k[:, :2], v[:, :2], score_mods(lib)[score], enable_gqa=True),
            flex.flex_attention(q, k[:1], v[:1], score_mods(lib)[score], mask),
        ]
        ours = result if lib is trt else ours  # noqa: F821
    for mine, its in zip(ours, result):
        close(mine, its)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("bfloat16", 1e-2), ("float16", 1e-3)])
def test_other_types(dtype: str, tolerance: float):
    close(
        *(flex.flex_attention(*operands(lib, dtype), score_mods(lib)["soft cap"], block_mask(lib, flex, "causal")) for lib, flex in BOTH), tolerance
    )


def test_gradients_of_operands_and_of_what_the_function_captures():
    """PyTorch has none on the CPU."""
    q, k, v = (t[:1, :2, :5].double().requires_grad_() for t in operands(trt))
    bias = trt.linspace(-1, 1, 2, dtype=trt.float64).requires_grad_()
    mask = our_flex.create_block_mask(lambda b, h, q, kv: (q >= kv) & (q > 0), None, None, 5, 5, "cpu")

    def attention(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return our_flex.flex_attention(q, k, v, lambda score, b, h, i, j: score * bias[h], mask)

    assert gradcheck(attention, (q, k, v, bias))
    assert gradcheck(lambda *args: our_flex.flex_attention(*args, block_mask=mask), (q, k, v))


@pytest.mark.parametrize("block", [8, (16, 4), 128])
@pytest.mark.parametrize("name", [n for n in mask_mods(trt, our_flex) if n != "none"])
def test_block_masks_are_pytorchs(name: str, block: Any):
    for separate in (True, False):
        ours, theirs = (block_mask(lib, flex, name, block, separate=separate) for lib, flex in BOTH)
        assert repr(ours).rpartition("mask_mod")[0] == repr(theirs).rpartition("mask_mod")[0] and ours.to_string() == theirs.to_string()
        for a, b in zip(ours.as_tuple()[:-1], theirs.as_tuple()[:-1], strict=True):
            assert a.tolist() == b.tolist() and str(a.dtype) == str(b.dtype) if isinstance(b, torch.Tensor) else a == b
        assert (ours.shape, ours.numel(), ours.sparsity()) == (theirs.shape, theirs.numel(), theirs.sparsity())
        assert ours.to_dense().tolist() == theirs.to_dense().tolist()


def test_block_masks_are_cut_and_adjusted():
    made = []
    for lib, flex in BOTH:
        mask = block_mask(lib, flex, "heads", 8, S)
        cut = [mask[0], mask[1, 2], mask[:, -1, 1], mask._adjust(17, 20), mask.to("cpu")]
        made.append(
            [(m.shape, m.as_tuple(False)[0], m.to_dense().tolist(), m.kv_num_blocks.tolist(), m.q_indices.tolist()) for m in cut] + [str(mask)]
        )
    for mine, its in zip(*made):
        assert mine == its


def test_masks_of_blocks_alone_mask_the_other_blocks():
    """What PyTorch's compiled kernel does; as it is written its function looks at `mask_mod` alone."""
    q, k, v = (t[:, :, :16] for t in operands(trt))
    counts, columns = trt.tensor([[[1, 2]]], dtype=trt.int32), trt.tensor([[[[0, 1], [0, 1]]]], dtype=trt.int32)
    mask = our_flex.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=8)
    allowed = trt.ones(16, 16, dtype=trt.bool)
    allowed[:8, 8:] = False
    expected = trt.nn.functional.scaled_dot_product_attention(q, k, v, allowed)
    assert trt.allclose(our_flex.flex_attention(q, k, v, block_mask=mask), expected, atol=1e-6)
    full = our_flex.BlockMask.from_kv_blocks(counts * 0, columns, counts, columns, 8, lambda b, h, q, kv: kv < 0)
    assert trt.allclose(our_flex.flex_attention(q, k, v, block_mask=full), expected, atol=1e-6)


def refusals(lib: Any, flex: Any) -> dict[str, Any]:
    q, k, v = operands(lib)
    mask = block_mask(lib, flex, "causal")
    square = block_mask(lib, flex, "causal", 8, S)
    return {
        "heads": lambda: flex.flex_attention(q, k[:, :2], v[:, :2]),
        "groups": lambda: flex.flex_attention(q[:, :3], k[:, :2], v[:, :2], enable_gqa=True),
        "batches": lambda: flex.flex_attention(q, k[:1], v[:1]),
        "a larger mask": lambda: flex.flex_attention(q[:, :, :9], k, v, block_mask=mask),
        "a smaller mask": lambda: flex.flex_attention(k, k, v, block_mask=mask),
        "a cut mask": lambda: flex.flex_attention(k, k, v, block_mask=square[0]),
        "both": lambda: flex.flex_attention(q, k, v, return_lse=True, return_aux=flex.AuxRequest(lse=True)),
        "no function": lambda: flex.and_masks(3),
        "arguments": lambda: flex.create_mask(lambda a: a, 1, 1, 2, 2, "cpu"),
    }


@pytest.mark.parametrize("name", refusals(trt, our_flex))
def test_refusals_say_what_pytorchs_do(name: str):
    said = []
    for lib, flex in BOTH:
        with pytest.raises(Exception) as error:
            refusals(lib, flex)[name]()
        said.append((error.type, str(error.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("kind", ["causal_upper_left", "causal_lower_right"])
@pytest.mark.parametrize("length", [L, S])
def test_causal_masks_of_different_lengths(kind: str, length: int):
    results = []
    for lib, bias in ((trt, our_bias), (torch, their_bias)):
        q, k, v = operands(lib)
        mask = getattr(bias, kind)(length, S)
        results.append((lib.nn.functional.scaled_dot_product_attention(k[:, :, :length], k, v, mask), mask))
    close(results[0][0], results[1][0])
    (mine, its) = (r[1] for r in results)
    assert repr(mine) == repr(its) and isinstance(mine, trt.Tensor) and (mine.variant, mine.variant.name) == (its.variant, its.variant.name)


def test_causal_masks_refuse_what_pytorchs_do():
    for lib, bias in ((trt, our_bias), (torch, their_bias)):
        q, k, v = operands(lib)
        with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
            lib.nn.functional.scaled_dot_product_attention(q, k, v, bias.causal_upper_left(L, S), is_causal=True)
        with pytest.raises(AssertionError, match="only supports 2D tensors"):
            bias.causal_upper_left(3)
        with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
            bias.CausalBias(1, 2, 3)
        with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
            bias.causal_lower_right(3, 2)

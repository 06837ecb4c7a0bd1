"""What small files may ask for: memory, and time, in proportion to their size."""

from __future__ import annotations

import io
import pickle
import sys

import pytest

import tensorrt_lite as trt
from tensorrt_lite import serialization
from tools.fuzz_checkpoints import Kept, Marked, Report, hostile, tensor, text, try_hostile, with_pickle

torch = pytest.importorskip("torch")
LEGACY = {"_use_new_zipfile_serialization": False}
LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
# Some of each family; tools/fuzz_checkpoints.py has them all.
FAMILIES = {
    "conjugated and negated views": "(neg|conj and neg) expanded 268435456|neg of a memoised call 1099511627776",
    "sparse parts of stride 0": r"stride 0 134217728|batched csr with stride 0 262144",
    "attributes": "attributes of .* 3000 x 2000$",
    "tensors of many dimensions": "of 64 dimensions x 200000",
    "nested keys": "(frozensets|tuples) of depth 45|of depth 24 as keys",
    "keys of one hash": "100000 (integers|tuples) of one hash",
    "long keys": "long",
    "sets of text": "set of (text|bytes) 2000 x 1500",
    "indices looked at again": "csr of 131072 rows x 20000",
}


def loaded(body, **records):
    return serialization.load(io.BytesIO(with_pickle(b"\x80\x04" + body + b".", **records)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of resident memory are Linux's")
@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_families_are_bounded(family):
    report = try_hostile(Report(), FAMILIES[family])
    assert not report.bad, report.text()
    assert report.outcomes


def test_the_families_exist():
    import re

    names = [name for name, _ in hostile()]
    assert all(any(re.search(pattern, name) for name in names) for pattern in FAMILIES.values())


def test_an_expanded_negated_view_stays_expanded():
    metadata = b"(" + text("neg") + b"\x88" + text("conj") + b"\x88d"
    found = loaded(tensor((1 << 40, 2), (0, 1), "ComplexFloat", 2, metadata=metadata), **{"data/0": trt.tensor([1 + 2j, 3 - 4j]).numpy().tobytes()})
    assert found.shape == (1 << 40, 2)
    assert found.untyped_storage().nbytes() == 16
    assert found[123].tolist() == [-1 + 2j, -3 - 4j]


@pytest.mark.parametrize("options", [{}, LEGACY], ids=["zip", "legacy"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_conjugated_and_negated_views_of_pytorch_have_their_values(options, weights_only):
    z, w = torch.randn(3, 4, dtype=torch.complex64), torch.randn(6)
    state = {
        "conj": z.conj(), "neg": torch._neg_view(w), "both": torch._neg_view(z.conj().t()), "row": z.conj()[1:, ::2],
        "expanded": torch._neg_view(w[:1]).expand(5), "windows": torch._neg_view(w).unfold(0, 3, 1), "empty": z.conj()[:0],
    }  # fmt: skip
    buffer = io.BytesIO()
    torch.save(state, buffer, **options)
    buffer.seek(0)
    found = serialization.load(buffer, weights_only=weights_only)
    for name, value in state.items():
        assert found[name].tolist() == value.tolist(), name


def compressed(matrix, layout):
    return getattr(matrix, "to_sparse" + ("" if layout == "coo" else f"_{layout}"))(*((2, 2),) if layout.startswith("b") else ())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("writer", [trt, torch], ids=["ours", "pytorch"])
def test_sparse_tensors_in_legacy_files_are_checked_after_their_bytes_are_read(layout, weights_only, writer):
    value = compressed(writer.eye(4) * writer.arange(4.0), layout)
    buffer = io.BytesIO()
    writer.save({"x": [value, value], "dense": writer.ones(2)}, buffer, **LEGACY)
    for _ in range(3):
        buffer.seek(0)
        junk = [trt.full((2, 4), 1 << 60) for _ in range(20)]  # what fresh memory holds
        del junk
        found = serialization.load(buffer, weights_only=weights_only)
        assert found["x"][0] is found["x"][1]
        assert str(found["x"][0].layout).rpartition(".")[2] == f"sparse_{layout}"
        assert found["x"][0].to_dense().tolist() == value.to_dense().tolist()
        assert found["dense"].tolist() == [1, 1]


def test_indices_outside_are_refused_in_legacy_files():
    buffer = io.BytesIO()
    serialization.save(trt.sparse_coo_tensor([[7]], trt.ones(1), (2,), check_invariants=False), buffer, **LEGACY)
    buffer.seek(0)
    with pytest.raises(RuntimeError, match="found index 7"):
        serialization.load(buffer)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, LEGACY], ids=["zip", "legacy"])
def test_sparse_tensors_are_mapped_to_meta(layout, options):
    buffer = io.BytesIO()
    serialization.save(compressed(trt.eye(4), layout), buffer, **options)
    buffer.seek(0)
    found = serialization.load(buffer, map_location="meta")
    assert found.is_meta
    assert found.shape == (4, 4)
    assert str(found.layout).rpartition(".")[2] == f"sparse_{layout}"


class P(trt.nn.Parameter):
    pass


@pytest.mark.parametrize("options", [{}, LEGACY], ids=["zip", "legacy"])
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("note", [None, "text"])
def test_subclasses_of_parameter_come_out_as_parameters(options, weights_only, note):
    module = trt.nn.Linear(2, 2)
    module.weight = P(trt.ones(2, 2), requires_grad=False)
    if note:
        module.weight.note = note
    given = {"alone": module.weight, "list": list(module.parameters()), "state": module.state_dict(keep_vars=True)}
    buffer = io.BytesIO()
    serialization.save(given, buffer, **options)
    buffer.seek(0)
    found = serialization.load(buffer, weights_only=weights_only)
    for value in (found["alone"], found["list"][0], found["state"]["weight"]):
        assert type(value) is trt.nn.Parameter
        assert value is found["alone"]
        assert getattr(value, "note", None) == note
        assert not value.requires_grad
        assert value.tolist() == [[1, 1], [1, 1]]
    buffer.seek(0)
    assert type(torch.load(buffer)["alone"]) is torch.nn.Parameter


def test_states_of_subclasses_are_restored_by_the_class():
    kept, marked = trt.ones(2).as_subclass(Kept), trt.ones(2).as_subclass(Marked)
    kept.mark, marked.label = 5, "x"
    buffer = io.BytesIO()
    serialization.save([kept, marked], buffer)
    buffer.seek(0)
    with serialization.safe_globals([Kept, Marked]):
        found = serialization.load(buffer)
    assert [type(x) for x in found] == [Kept, Marked]
    assert found[0].mark == 5
    assert found[1].label == "x"
    again = pickle.loads(pickle.dumps(kept))
    assert type(again) is Kept
    assert again.mark == 5


def test_ordinary_keys_are_taken():
    keys = {(1, (2, frozenset((3, 4)))): 0, frozenset(((1, 2), (3, 4))): 1, 1.5: 2, 1 << 80: 3, "a" * 1000: 4, b"b": 5, None: 6, (): 7}
    keys.update({(i, i + 1): i for i in range(3000)})
    keys.update({i / 7: i for i in range(1, 3000)})
    buffer = io.BytesIO()
    serialization.save(keys, buffer)
    buffer.seek(0)
    assert serialization.load(buffer, memory_limit=1 << 30) == keys


def test_large_sparse_matrices_load_within_the_bound():
    rows = 200_000
    for value in (
        trt.sparse_csr_tensor(trt.arange(0, rows + 1, dtype=trt.int32), trt.arange(rows, dtype=trt.int32), trt.ones(rows, dtype=trt.int8), (rows, rows)),
        trt.sparse_coo_tensor(trt.arange(2 * rows).view(1, -1), trt.ones(2 * rows, dtype=trt.int8), (2 * rows,), is_coalesced=True),
    ):
        buffer = io.BytesIO()
        serialization.save(value, buffer)
        buffer.seek(0)
        assert serialization.load(buffer).values().numel() == value.values().numel()

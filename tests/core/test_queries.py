"""Functions that answer with a dtype, a bool or text: the answers are PyTorch's."""

from __future__ import annotations

import itertools

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def operands(library):
    tensors = [library.zeros(shape, dtype=getattr(library, name)) for name in NAMES for shape in ((), (2, 0), (3,))]
    return [*tensors, True, 3, 2.5, 1j]


def test_result_type_of_all_pairs():
    pairs = zip(itertools.product(operands(trt), repeat=2), itertools.product(operands(torch), repeat=2), strict=True)
    for here, there in pairs:
        expected = str(torch.result_type(*there))
        assert str(trt.result_type(*here)) == expected, there


def test_result_type_follows_the_default():
    for library in (trt, torch):
        library.set_default_dtype(library.float64)
    try:
        for pair in ((1, 2.5), (1j, 1)):
            assert str(trt.result_type(*pair)) == str(torch.result_type(*pair))
    finally:
        for library in (trt, torch):
            library.set_default_dtype(library.float32)
    with pytest.raises(TypeError):
        trt.result_type("a", 1)


def test_can_cast_of_all_pairs():
    for a, b in itertools.product(NAMES, repeat=2):
        assert trt.can_cast(getattr(trt, a), getattr(trt, b)) == torch.can_cast(getattr(torch, a), getattr(torch, b)), (a, b)


def test_questions_about_a_tensor():
    for name in NAMES:
        x, y = trt.ones(1, dtype=getattr(trt, name)), torch.ones(1, dtype=getattr(torch, name))
        assert trt.is_signed(x) is x.is_signed() is torch.is_signed(y)
        assert trt.is_nonzero(x) is x.is_nonzero() is True
        assert trt.is_nonzero(x - x if name != "bool" else ~x) is False
    for shape in ((0,), (2,)):
        with pytest.raises(RuntimeError, match="ambiguous"):
            trt.is_nonzero(trt.ones(shape))
    assert trt.is_same_size(trt.ones(2, 3), trt.zeros(2, 3))
    assert not trt.is_same_size(trt.ones(2, 3), trt.zeros(3, 2))
    assert trt.get_device(trt.ones(1)) == -1


def test_functions_of_nn_at_the_top():
    x, y = trt.randn(4, 5), trt.randn(4, 5)
    tx, ty = torch.tensor(x.tolist()), torch.tensor(y.tolist())
    for name in ("cosine_similarity", "pairwise_distance"):
        torch.testing.assert_close(torch.tensor(getattr(trt, name)(x, y).tolist()), getattr(torch, name)(tx, ty))
    index = [[0, 3], [1, 1]]
    assert trt.embedding(x, trt.tensor(index)).tolist() == torch.embedding(tx, torch.tensor(index)).tolist()
    assert trt.embedding(weight=x, indices=trt.tensor(index), padding_idx=1).tolist() == torch.embedding(tx, torch.tensor(index)).tolist()


def test_version_and_configuration():
    assert trt.version.__version__ == trt.__version__
    assert (trt.version.cuda is not None) == trt.cuda.is_available()
    assert "OpenBLAS" in trt.__config__.show() or "instruction sets" in trt.__config__.show()
    assert str(trt.get_num_threads()) in trt.__config__.parallel_info()
    with pytest.raises(AttributeError):
        _ = trt.version.no_such_name


def test_broadcasting_of_shapes_and_tensors():
    for shapes in (((3,), (2, 1)), (2, (1,), [4, 2]), (), ((3,), (2,)), ((2, 3), (4,)), (2, 3), ([2, 1], (3,), (1, 2)), ((-1,), (2,))):
        found = []
        for library in (trt, torch):
            try:
                found.append(tuple(library.broadcast_shapes(*shapes)))
            except (RuntimeError, ValueError) as error:
                found.append((type(error), str(error)))
        assert found[0] == found[1], shapes
    for library in (trt, torch):
        wide, narrow = library.ones(2, 3, requires_grad=True), library.ones(3)
        same, expanded = library.broadcast_tensors(wide, narrow)
        assert same is wide and expanded.shape == (2, 3) and expanded.data_ptr() == narrow.data_ptr()


def test_numbers_of_tensors_that_have_none():
    def outcome(library, call):
        with pytest.raises(Exception) as caught:
            call(library)
        return caught.type, str(caught.value)

    for call in (
        lambda m: int(m.ones(2)), lambda m: float(m.ones(0)), lambda m: complex(m.ones(2)), lambda m: m.ones(2).__index__(), lambda m: m.ones(2).item(),
        lambda m: bool(m.ones(0)), lambda m: m.ones(2, device="meta").tolist(), lambda m: m.ones((), device="meta").item(),
    ):  # fmt: skip
        assert outcome(trt, call) == outcome(torch, call)


@pytest.mark.parametrize("name", ["size", "stride"])
@pytest.mark.parametrize("dim", [0, 1, -1, -3])
def test_a_tensor_without_dimensions_has_none_to_ask_for(name: str, dim: int) -> None:
    with pytest.raises(IndexError, match=f"^Dimension specified as {dim} but tensor has no dimensions$"):
        getattr(trt.ones(()), name)(dim)
    with pytest.raises(IndexError, match="Dimension out of range"):
        getattr(trt.ones(2), name)(-3)

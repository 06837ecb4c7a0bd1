"""`Tensor.storage()`: elements of a dtype over the tensor's memory, as PyTorch's TypedStorage, with its warning."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch

import tensorrt_lite as trt
from tensorrt_lite._legacy import typed_storage as _typed_storage

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def both(build, *uses):
    """The same in both libraries: what each use gives, or its exception."""

    def results(m):
        found = []
        for use in uses:
            try:
                value = use(build(m), m)
            except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
                value = type(error).__name__
            found.append(str(value) if isinstance(value, (m.dtype, m.device)) else value)
        return found

    return results(trt), results(torch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "bfloat16", "complex64"])
def test_elements(dtype):
    here, there = both(
        lambda m: m.tensor([1, 0, 3, 1]).to(getattr(m, dtype)).storage(),
        lambda s, m: s[0], lambda s, m: s[-1], lambda s, m: s[4], lambda s, m: s[-5], lambda s, m: s[0:2], lambda s, m: s["a"], lambda s, m: s.tolist(),
        lambda s, m: list(s), lambda s, m: len(s), lambda s, m: s.size(), lambda s, m: s.nbytes(), lambda s, m: s.element_size(), lambda s, m: s.dtype,
        lambda s, m: s.device, lambda s, m: s.type(), lambda s, m: s.pickle_storage_type(), lambda s, m: s.is_cuda, lambda s, m: m.is_storage(s),
        lambda s, m: (s.__setitem__(1, 1), s.__setitem__(slice(2, 4), 0), s.tolist())[-1], lambda s, m: s.fill_(1).tolist(), lambda s, m: s.clone().tolist(),
        lambda s, m: (s.resize_(2), s.tolist())[-1], lambda s, m: s.double().tolist(), lambda s, m: s.int().dtype, lambda s, m: s == s.clone(), lambda s, m: s == s,
        lambda s, m: s.copy_(s.clone().fill_(1)).tolist(), lambda s, m: copy.deepcopy(s).tolist(), lambda s, m: pickle.loads(pickle.dumps(s)).tolist(),
        lambda s, m: s.untyped().nbytes(), lambda s, m: m.empty(0, dtype=s.dtype).set_(s, 1, (2,)).tolist(), lambda s, m: len(s.cpu()),
    )  # fmt: skip
    assert here == there


def test_construction():
    here, there = both(
        lambda m: m,
        lambda m, _: m.TypedStorage([1, 2], dtype=m.int16).tolist(),
        lambda m, _: len(m.TypedStorage(3, dtype=m.int16)),
        lambda m, _: m.TypedStorage(wrap_storage=m.ones(1).untyped_storage(), dtype=m.int32)[0],
        lambda m, _: m.empty(2, device="meta").storage()[0],
    )
    assert here == there


def test_it_shares_the_tensors_memory_and_prints_it():
    x = trt.arange(3.0)
    x.storage()[1] = 9
    assert x.tolist() == [0, 9, 2]
    assert repr(x.storage()) == " 0.0\n 9.0\n 2.0\n[tensorrt_lite.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 3]"


def test_files_keep_the_dtype():
    file = io.BytesIO()
    x = trt.arange(3.0)
    trt.save({"s": x.storage(), "x": x}, file)
    file.seek(0)
    there = torch.load(file)
    assert there["s"].tolist() == [0, 1, 2]
    file.seek(0)
    here = trt.load(file)
    assert here["s"].tolist() == [0, 1, 2]
    assert here["s"].data_ptr() == here["x"].data_ptr()


@pytest.mark.filterwarnings("default:TypedStorage is deprecated")
def test_the_first_use_warns(monkeypatch):
    monkeypatch.setattr(_typed_storage, "_warned", False)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated. It will be removed in the future") as caught:
        trt.ones(2).storage()
        trt.ones(2).storage()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trt.ones(2).untyped_storage()


def test_bytes_of_an_untyped_storage_are_set():
    s = trt.zeros(4, dtype=trt.uint8).untyped_storage()
    s[1] = 5
    s[-1] = 6
    s[2:3] = 7
    assert s.tolist() == [0, 5, 7, 6]
    for index in (4, -5):
        with pytest.raises(IndexError):
            s[index] = 1
    with pytest.raises(OverflowError):
        s[0] = 256


def test_files_are_mapped_as_pytorch_maps_them(tmp_path):
    def results(library, path):
        shared = library.UntypedStorage.from_file(str(path), True, 8)
        library.empty(0, dtype=library.int32).set_(shared, 0, (2,), (1,)).copy_(library.tensor([5, 6]))
        private = library.empty(0, dtype=library.int32).set_(library.UntypedStorage.from_file(str(path), False, 8), 0, (2,), (1,))
        before = private.tolist()
        private.add_(1)
        grown = library.UntypedStorage.from_file(str(path), True, 12)
        errors = []
        for arguments in ((str(path) + ".no", False, 4), (str(path), False, 10**6), (str(path / "in"), True, 4)):
            with pytest.raises(RuntimeError) as error:
                library.UntypedStorage.from_file(*arguments)
            errors.append(str(error.value).replace(str(path), "PATH"))
        empty = library.UntypedStorage.from_file(str(path))
        return shared.nbytes(), before, private.tolist(), grown.nbytes(), path.stat().st_size, empty.nbytes(), errors

    assert results(trt, tmp_path / "ours") == results(torch, tmp_path / "theirs")
    assert trt.UntypedStorage.from_file(tmp_path / "ours", nbytes=12).tolist() == [5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]

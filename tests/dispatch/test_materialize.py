"""Reads of memory ask the tensor's class first: a class that defers its operators computes when its elements are read, whoever reads them."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import safetensors


class Deferred(trt.Tensor):
    """A tensor that is computed when its elements are first read. Operators on it are deferred in turn; their shapes come from meta tensors."""

    @staticmethod
    def __new__(cls, compute: Any, like: trt.Tensor) -> Deferred:
        made = trt.Tensor._make_wrapper_subclass(cls, like.shape, like.stride(), 0, dtype=like.dtype, device="cpu")
        made.compute, made.value, made.readers = compute, None, []
        return made

    def __init__(self, *args: Any) -> None:
        pass

    def __materialize__(self, reader: str) -> trt.Tensor:
        self.readers.append(reader)
        if self.value is None:
            self.value = self.compute()
        return self.value

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        real = lambda a: a.__materialize__(str(func)) if isinstance(a, Deferred) else a
        meta = lambda a: trt.empty_strided(a.shape, a.stride(), dtype=a.dtype, device="meta") if isinstance(a, trt.Tensor) else a
        return Deferred(lambda: func(*map(real, args), **kwargs), func(*map(meta, args), **kwargs))


def deferred(values: Any = (1.0, 2.0, 3.0)) -> Any:
    source = trt.tensor(values)
    return Deferred(lambda: source * 2, source)


def read_file(x: Any) -> Any:
    file = io.BytesIO()
    trt.save(x, file)
    file.seek(0)
    return trt.load(file)


VECTOR = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "tolist": lambda x: x.tolist(),
    "dlpack": trt.from_dlpack,
    "numpy's dlpack": np.from_dlpack,
    "to_dlpack": lambda x: trt.from_dlpack(trt.to_dlpack(x)),
    "untyped_storage": lambda x: trt.empty(0).set_(x.untyped_storage(), 0, (3,)),
    "storage": lambda x: list(x.storage()),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "save": read_file,
    "safetensors": lambda x: safetensors.load(safetensors.save({"x": x}))["x"],
    "deepcopy": lambda x: copy.deepcopy(x),
}
NUMBER = {"item": lambda x: x.item(), "float": float, "int": int, "bool": bool, "complex": complex, "index": lambda x: x.to(trt.int64).__index__()}


@pytest.mark.parametrize("reader", VECTOR)
def test_a_deferred_tensor_is_computed_for(reader) -> None:
    x = deferred()
    assert x.value is None
    result = VECTOR[reader](x)
    assert np.allclose(np.asarray(result), [2, 4, 6])


@pytest.mark.parametrize("reader", NUMBER)
def test_a_deferred_number_is_computed_for(reader) -> None:
    x = deferred(1.0)
    assert NUMBER[reader](x) == (True if reader == "bool" else 2)


def test_it_is_computed_for_its_text() -> None:
    assert repr(deferred()) == "Deferred([2., 4., 6.])"


def test_an_address_is_that_of_the_value() -> None:
    x = deferred()
    assert x.data_ptr() == x.const_data_ptr() == x.value.data_ptr() != 0
    assert x.readers[0] == "data_ptr"


def test_operators_are_deferred_until_a_read() -> None:
    x = deferred()
    y = (x + 1).sum()
    assert x.value is None and y.value is None
    assert y.item() == 15
    assert x.value is not None


@pytest.mark.parametrize("answer", [lambda t: t, lambda t: 1, lambda t: trt.ones(2), lambda t: trt.ones(3, dtype=trt.int64)], ids=["itself", "a number", "another shape", "another dtype"])
def test_a_wrong_answer_is_refused(answer) -> None:
    class Wrong(Deferred):
        def __materialize__(self, reader: str) -> Any:
            return answer(self)

    with pytest.raises(RuntimeError, match="Wrong.__materialize__"):
        Wrong(None, trt.ones(3)).numpy()


@pytest.mark.parametrize("reader", ["numpy", "tolist", "data_ptr", "untyped_storage"])
def test_a_level_of_grad_reads_its_value_and_one_of_vmap_refuses(reader) -> None:
    found = []

    def look(x: Any) -> Any:
        found.append(getattr(x.detach(), reader)())
        return x.sum()

    x = trt.tensor([1.0, 2.0])
    trt.func.grad(look)(x)
    expected = getattr(x, reader)()
    assert np.array_equal(found[0], expected) if reader in ("numpy", "tolist") else found[0] == expected if reader == "data_ptr" else found[0].data_ptr() == expected.data_ptr()
    with pytest.raises(RuntimeError, match="vmap"):
        trt.func.vmap(look)(trt.ones(3, 2))


def test_classes_without_the_hook_have_no_memory() -> None:
    class Bare(trt.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise NotImplementedError(func)

    bare = trt.Tensor._make_wrapper_subclass(Bare, (2,), dtype=trt.float32)
    assert bare.data_ptr() == 0
    with pytest.raises((TypeError, RuntimeError)):
        bare.numpy()

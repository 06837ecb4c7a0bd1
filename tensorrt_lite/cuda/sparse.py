"""torch.cuda.sparse: the typed tensor classes of sparse_coo tensors on CUDA (`cuda.sparse.FloatTensor`)."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_typed_tensors = _LazyModule("tensorrt_lite._legacy.typed_tensors")


def __getattr__(name: str) -> Any:
    if name not in _typed_tensors.SPARSE_NAMES:
        raise AttributeError(f"module 'torch.cuda.sparse' has no attribute '{name}'")
    globals()[name] = _typed_tensors.typed_class(name, cuda=True, sparse=True)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_typed_tensors.SPARSE_NAMES})

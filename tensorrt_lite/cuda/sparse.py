"""torch.cuda.sparse: the typed tensor classes of sparse_coo tensors on CUDA (`cuda.sparse.FloatTensor`)."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from tensorrt_lite._legacy.typed_tensors import SPARSE_NAMES, typed_class

    if name not in SPARSE_NAMES:
        raise AttributeError(f"module 'torch.cuda.sparse' has no attribute '{name}'")
    globals()[name] = typed_class(name, cuda=True, sparse=True)
    return globals()[name]


def __dir__() -> list[str]:
    from tensorrt_lite._legacy.typed_tensors import SPARSE_NAMES

    return sorted({*globals(), *SPARSE_NAMES})

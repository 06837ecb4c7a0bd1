"""Datasets, samplers, collation, DataLoader and data pipes; seeded loaders draw the same orders as PyTorch's."""

from importlib import import_module as _import_module
from tensorrt_lite._C.core.hints import LookUp as _LookUp
from ._utils.collate import default_collate, default_convert
from .dataloader import DataLoader, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "argument_validation",
    "runtime_validation",
    "runtime_validation_disabled",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
]

# Data pipes are imported when they are used.
_PIPES = {"DFIterDataPipe": "datapipe", "DataChunk": "datapipe", "IterDataPipe": "datapipe", "MapDataPipe": "datapipe"}
_PIPES |= dict.fromkeys(("functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"), "_decorator")
_PIPES |= dict.fromkeys(("argument_validation", "runtime_validation", "runtime_validation_disabled"), "_validation")
_MODULES = {"datapipes", "graph", "graph_settings"}


def __getattr__(name: str) -> object:
    if name in _PIPES:
        _import_module("tensorrt_lite.utils.data.datapipes")  # whose pipes are methods
        value = globals()[name] = getattr(_import_module(f"tensorrt_lite.utils.data.datapipes.{_PIPES[name]}"), name)
        return value
    if name == "_DatasetKind":
        return _import_module("tensorrt_lite.utils.data.dataloader")._DatasetKind
    if name in _MODULES:
        return _import_module(f"tensorrt_lite.utils.data.{name}")

    raise _missing.error("utils.data", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())

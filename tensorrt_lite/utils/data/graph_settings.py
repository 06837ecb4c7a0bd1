"""What loaders set in the data pipes of a graph: shares, shuffling, seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from tensorrt_lite import _root as trt

from ._utils.worker import get_worker_info
from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipeGraph, traverse_dps

__all__ = ["ShardingInit", "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[Any]:
    """Each pipe of a graph once, a pipe before those that it is made of."""
    found: dict[int, Any] = {}

    def collect(part: DataPipeGraph) -> None:
        for number, (pipe, inner) in part.items():
            if number not in found:
                found[number] = pipe
                collect(inner)

    collect(graph)
    return list(found.values())


def _has_methods(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> Any:
    """Give each sharding pipe of a graph its share. RuntimeError where one reads another."""

    def visit(graph: DataPipeGraph, above: Any) -> None:
        for pipe, inner in graph.values():
            sharding = isinstance(pipe, _ShardingIterDataPipe) or _has_methods(pipe, "apply_sharding")
            if sharding:
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {above} while trying to apply to {pipe}"
                    )
                more = {} if len(inspect.signature(pipe.apply_sharding).parameters) < 3 else {"sharding_group": sharding_group}
                pipe.apply_sharding(num_of_instances, instance_id, **more)
            visit(inner, pipe if sharding else above)

    visit(traverse_dps(datapipe), None)
    return datapipe


class ShardingInit:
    """The worker_init_fn of loaders of data pipes: the worker's share, then the program's own function."""

    def __init__(self, init_fn: Any) -> None:
        self._init_fn = init_fn

    def __call__(self, worker_id: int) -> None:
        info = get_worker_info()
        assert info is not None
        apply_sharding(info.dataset, info.num_workers, worker_id)
        if self._init_fn is not None:
            self._init_fn(worker_id)


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Have the shuffling pipes of a graph shuffle or not; None: as they are. The pipe, or one that shuffles it, with a warning, where none does."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _has_methods(pipe, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default buffer size might not be "
            "sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seed each pipe of a graph that can be, with a number of its own from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has_methods(pipe, "set_seed"):
            pipe.set_seed(int(trt.empty((), dtype=trt.int64, device="cpu").random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """The former name of `apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use `apply_random_seed` instead.", FutureWarning, stacklevel=2
    )
    return apply_random_seed(datapipe, rng)

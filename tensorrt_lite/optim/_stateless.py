"""`swap_in_optimizer_params_and_state`: an optimizer that works on other parameters and state for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorrt_lite.optim.optimizer import Optimizer


@contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Any], swapin_optim_state: dict[str, Any]) -> Iterator[None]:
    """Inside, the optimizer has these parameters, in the order of its own, and this state, of the form of its `state_dict()`; its own are back afterwards.

    What steps write in place into the given tensors stays written. ValueError unless there are as many parameters and groups as the optimizer has.
    """
    given = list(swapin_parameters.values())
    groups = optimizer.param_groups
    count = sum(len(group["params"]) for group in groups)
    if len(given) != count:
        raise ValueError(f"swap_in_optimizer_params_and_state(): expected {count} parameters, got {len(given)}")
    if len(swapin_optim_state["param_groups"]) != len(groups):
        raise ValueError(f"swap_in_optimizer_params_and_state(): expected {len(groups)} groups, got {len(swapin_optim_state['param_groups'])}")
    before, state = [dict(group) for group in groups], optimizer.state
    numbered: dict[Any, Any] = {}
    place = iter(given)
    try:
        for group, other in zip(groups, swapin_optim_state["param_groups"]):
            group.update({key: value for key, value in other.items() if key != "params"})
            group["params"] = [next(place) for _ in group["params"]]
            numbered.update(zip(other["params"], group["params"]))
        optimizer.state = type(state)(state.default_factory) if hasattr(state, "default_factory") else type(state)()
        for number, kept in swapin_optim_state["state"].items():
            optimizer.state[numbered.get(number, number)] = kept
        yield
    finally:
        for group, old in zip(groups, before):
            group.clear()
            group.update(old)
        optimizer.state = state

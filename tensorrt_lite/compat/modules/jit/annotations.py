"""torch.jit.annotations: types that annotations name."""

from __future__ import annotations

from typing import Any, Dict, Final, List, Optional, Tuple, Union

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "List", "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """``BroadcastingList2[int]``: a list of two, or a number that stands for both."""

    def __getitem__(self, kind: Any) -> Any:
        return Union[kind, List[kind]]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _BroadcastingList()

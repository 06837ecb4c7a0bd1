"""torch.utils.weak: weak references and dictionaries whose keys are compared by identity, since tensors compare by elements."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from tensorrt_lite.tensor import Tensor as _Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that hashes and compares by its object's identity."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), other() if isinstance(other, weakref.ref) else None
        # of two dead ones, nobody can tell whether they were the same object: an address may be used again
        return self is other if mine is None or others is None else mine is others


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are objects by identity; an entry goes with its key."""

    def __init__(self, dict: Any = None, ref_type: type[Any] = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        this = weakref.ref(self)

        def forget(reference: Any) -> None:
            owner = this()
            if owner is not None:
                owner.data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what cannot be referred to weakly is no key
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys; some may be dead by the time they are asked."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary of the same keys and values."""
        return type(self)(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        from copy import deepcopy

        copied = type(self)()
        for key, value in self.items():
            copied[key] = deepcopy(value, memo)
        return copied

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        joined = type(self)(other)
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:  # type: ignore[misc]
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: the tensor while it lives, then None."""

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, _Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()

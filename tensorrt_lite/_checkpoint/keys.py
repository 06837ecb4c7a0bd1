"""What files may use as keys of dicts and elements of sets: hashing and comparing them takes time in proportion to the file.

Python hashes tuples and compares tuples and frozensets by recursion, without a limit and without a cache where parts are shared; numbers and tuples whose hashes
collide can be made up. Used by `unpickler`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .budget import Budget

__all__ = ["Keys"]

_MAX_DEPTH = 50
_MAX_PARTS = 10_000
_NESTING = (tuple, frozenset)
# A key of more parts may be compared with this many others before a collision of hashes is looked for.
_SMALL = 16
_UNCHECKED = 32
# More keys of one hash than chance gives.
_MAX_EQUAL_HASHES = 8
_AT_ONCE = 4096  # keys whose hashes are counted together, which takes little memory
# Hashes of strings and bytes are keyed, those of smaller integers differ.
_KEYED = frozenset((str, bytes, type(None), bool))
_PLAIN_INT = (1 << 61) - 1


class Keys:
    """Checks keys before they are hashed, against the work that reading one file may take."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def checked(self, key: Any, present: int = 0) -> Any:
        """The key itself, which goes to `present` others. Raises UnpicklingError for tuples and frozensets nested so that hashing or comparing them could exhaust stack or time."""
        kind = type(key)
        if kind in _NESTING:
            parts = self._parts(key)
        elif kind is int:
            parts = key.bit_length() >> 8
        elif kind is str or kind is bytes:
            parts = len(key) >> 8
        else:
            return key
        if parts:
            self._budget.work(parts if parts <= _SMALL else parts * (1 + min(present, _UNCHECKED)))
        return key

    def _parts(self, key: Any) -> int:
        """The number of parts of a tuple or frozenset as often as they are met."""
        level, nested, total = [key], 0, 0
        for _ in range(_MAX_DEPTH):
            below: list[Any] = []
            for parent in level:
                total += len(parent)
                self._budget.work(len(parent))
                for part in parent:
                    kind = type(part)
                    if kind in _NESTING:
                        below.append(part)
                    elif kind is int:
                        total += part.bit_length() >> 8
                    elif kind is str or kind is bytes:
                        total += len(part) >> 8
                if nested + len(below) > _MAX_PARTS:
                    raise UnpicklingError("corrupt or hostile file: a key is a tuple nested too deeply")
            if not below:
                return total
            nested += len(below)
            level = below
        raise UnpicklingError("corrupt or hostile file: a key is a tuple nested too deeply")

    def all_checked(self, keys: Iterable[Any], present: int = 0) -> list[Any]:
        """The keys, each checked and no collisions among them."""
        found = [self.checked(key, present) for key in keys]
        if len(found) > _UNCHECKED:
            self.check_hashes(found)
        return found

    def grown(self, container: Any, before: int) -> None:
        """After keys were added to a dict or set that had so many: looks at the hashes whenever the number has doubled."""
        count = len(container)
        if count > _UNCHECKED and count.bit_length() != before.bit_length():
            self.check_hashes(container)

    def check_hashes(self, keys: Iterable[Any]) -> None:
        """UnpicklingError where more keys have the same hash than chance gives."""
        made_up = (key for key in keys if type(key) not in _KEYED and not (type(key) is int and -_PLAIN_INT < key < _PLAIN_INT))
        while hashes := Counter(map(hash, islice(made_up, _AT_ONCE))):
            if hashes.most_common(1)[0][1] > _MAX_EQUAL_HASHES:
                raise UnpicklingError("corrupt or hostile file: the hashes of many keys are equal")

"""torch.torch_version: a version string that compares with others by their numbers."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_PARTS = re.compile(r"\d+|[a-z]+", re.I)


def _key(version: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """What versions are ordered by: the release's numbers without trailing zeros; then pre-releases below the release, local parts above it."""
    if not isinstance(version, (str, tuple, list)):
        version = str(version)  # packaging's Version
    text = version if isinstance(version, str) else ".".join(map(str, version))
    public, _, local = text.strip().lower().removeprefix("v").partition("+")
    match = re.match(r"\d+(?:\.\d+)*", public)
    if match is None:
        raise ValueError(f"Invalid version: {text!r}")
    release = [int(n) for n in match[0].split(".")]
    while release and release[-1] == 0:
        release.pop()
    rest = public[match.end() :]
    words = tuple((1, int(w)) if w.isdigit() else (0, w) for w in _PARTS.findall(rest))
    rank = 0 if not rest else 1 if "post" in rest else -2 if "dev" in rest and not re.search(r"a|b|rc", rest.replace("dev", "")) else -1
    return tuple(release), (rank, words, tuple((1, int(w)) if w.isdigit() else (0, w) for w in _PARTS.findall(local)))


class TorchVersion(str):
    """A str that also compares with tuples of numbers, and by meaning: TorchVersion("2.13.0") > "2.9". `!=` is that of strings, as PyTorch has it."""

    __slots__ = ()

    def _compared(self, other: Any, test: Any, plain: Any) -> bool:
        try:
            return test(_key(str(self)), _key(other))
        except ValueError:
            return plain(str(self), str(other))

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a < b, str.__lt__)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a <= b, str.__le__)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a > b, str.__gt__)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a >= b, str.__ge__)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, lambda a, b: a == b, str.__eq__)

    __hash__ = str.__hash__

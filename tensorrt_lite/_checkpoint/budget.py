"""How much memory and work reading a file may take: twice the file's size and 16 MB, and time in proportion to that, whatever the file says.

Everything that a file causes to be built is counted before it is built, by the size of the objects, not by the bytes that
ask for them: a pickle may use one argument a thousand times. Used by `archive`, `unpickler`, `reader` and `utils.safetensors`.
"""

from __future__ import annotations

from pickle import UnpicklingError

__all__ = ["Budget"]

# Objects of the reader itself, and what an allocator holds beyond the objects that it was asked for.
_HEADROOM = 3 << 20
_FIXED = 16 << 20
# Parts of keys that are hashed and compared, indices that are looked at: some ns each, up to a second for a megabyte.
_WORK_A_BYTE = 32
_FIXED_WORK = 16 << 20


class Budget:
    """Bytes that may still be built. `left` is public for callers that count in a loop: they call `check` afterwards."""

    __slots__ = ("error", "left", "limit", "work_left")

    def __init__(self, file_size: int, limit: int | None = None, error: type[Exception] = UnpicklingError) -> None:
        self.error = error
        self.limit = 2 * file_size + _FIXED if limit is None else limit
        self.left = self.limit - _HEADROOM if limit is None else limit
        self.work_left = _WORK_A_BYTE * max(file_size, 0 if limit is None else limit) + _FIXED_WORK

    def spend(self, size: int) -> None:
        """Count bytes that are about to be built. Raises `error` when they are too many."""
        self.left -= size
        if self.left < 0:
            self.check()

    def work(self, steps: int) -> None:
        """Count what takes time and no memory. Raises `error` when it is too much."""
        self.work_left -= steps
        if self.work_left < 0:
            raise self.error(
                f"corrupt or hostile file: reading it would take more time than its size explains ({_WORK_A_BYTE} steps a byte). "
                "If it is known to be good, give load the memory it may take in bytes: memory_limit="
            )

    def check(self) -> None:
        """Raise `error` when more was built than may be."""
        if self.left < 0:
            raise self.error(
                f"corrupt or hostile file: reading it would take more than {self.limit >> 20} MB, which is more than twice its size and 16 MB. "
                "If it is known to hold very many small objects, give load the memory it may take in bytes: memory_limit="
            )

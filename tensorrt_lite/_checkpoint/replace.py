"""Writing a file so that its old content stays until the new one is complete. Used by `writer` and `utils.safetensors`.

The new file is written beside the old one and renamed over it: a program that fails or is killed in between leaves the old
file, and memory that maps it goes on seeing the old content. It is not forced to the disk: a machine that loses its power
may keep neither, as after any write.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["replacing"]

# Names in these folders stand for open files and devices, whatever they are links to.
_NOT_FILES = ("/dev/", "/proc/")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file for new content of `path`: links are followed, permissions and owner stay as `open` would leave them.

    Devices, pipes and files in a folder where no other can be made are written to directly, as `open(path, "wb")` does.
    """
    found = _beside(os.fspath(path))
    if found is None:
        with open(path, "wb") as file:
            yield file
        return
    target, temporary, descriptor = found
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _beside(path: str | bytes) -> tuple[str, str, int] | None:
    """The file that a path leads to, the name of a new one beside it and its descriptor; None where it is to be opened as it is."""
    target = os.path.realpath(os.fsdecode(path))
    if target.startswith(_NOT_FILES) or os.path.abspath(os.fsdecode(path)).startswith(_NOT_FILES):
        return None
    try:
        old = os.stat(target)
    except OSError:
        old = None
    if old is not None and (not stat.S_ISREG(old.st_mode) or not os.access(target, os.W_OK)):
        return None
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{os.urandom(6).hex()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError:
        return None  # no folder, or none that takes files: `open` says what is wrong, or succeeds
    try:
        if old is not None:
            new = os.fstat(descriptor)
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                os.chown(descriptor, old.st_uid, old.st_gid)
            os.chmod(descriptor, stat.S_IMODE(old.st_mode))
    except OSError:
        # somebody else's file: it stays theirs when it is written to in place
        os.close(descriptor)
        os.unlink(temporary)
        return None
    return target, temporary, descriptor

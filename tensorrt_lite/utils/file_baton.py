"""A lock between processes that is a file: who makes it has the baton, the others wait until it is gone."""

from __future__ import annotations

import os
import time
import warnings

__all__ = ["FileBaton"]


class FileBaton:
    """Lets one process at a time do something, such as building an extension.

    lock_file_path: the file, which must not be there before; wait_seconds: between looks at it; warn_after_seconds: wait() warns once after so long.

    >>> import tempfile, os
    >>> baton = FileBaton(os.path.join(tempfile.mkdtemp(), "lock"))
    >>> baton.try_acquire(), baton.try_acquire()
    (True, False)
    >>> baton.release()
    """

    def __init__(self, lock_file_path: str | os.PathLike[str], wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Whether this process has the baton now: it made the file."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Return when the file is gone."""
        begin, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if self.warn_after_seconds is not None and not warned and time.monotonic() - begin > self.warn_after_seconds:
                warned = True
                warnings.warn(f"Waited on lock file '{self.lock_file_path}' for {self.warn_after_seconds} seconds: remove it if no process works behind it.", stacklevel=2)

    def release(self) -> None:
        """Close and remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)

"""torch.utils.cpp_backtrace: the frames of compiled code below the caller."""

from __future__ import annotations

import ctypes

__all__ = ["get_cpp_backtrace"]


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """A line "frame #0: library(function+offset) [address]" for each frame of this thread's C stack, as the C library names them; empty where it has no
    `backtrace`."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "backtrace_symbols") or maximum_number_of_frames <= 0:
        return ""
    frames = (ctypes.c_void_p * (maximum_number_of_frames + frames_to_skip))()
    found = library.backtrace(frames, len(frames))
    library.backtrace_symbols.restype = ctypes.POINTER(ctypes.c_char_p)
    symbols = library.backtrace_symbols(frames, found)
    if not symbols:
        return ""
    lines = [f"frame #{i}: {(symbols[k] or b'').decode(errors='replace')}" for i, k in enumerate(range(frames_to_skip, found))]
    library.free.argtypes = [ctypes.c_void_p]
    library.free(ctypes.cast(symbols, ctypes.c_void_p))
    return "\n".join(lines)

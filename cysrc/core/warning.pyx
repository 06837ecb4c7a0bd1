"""PyTorch's warnings, shown at the line of the user's that led to them, however many functions of the package lie between."""
import sys
import warnings

_given = set()
_always = [False]


def warn_always(on=None):
    """Whether warnings that are given once in a process come each time; sets it where `on` is given."""
    if on is not None:
        _always[0] = bool(on)
    return _always[0]


def _frames_within():
    """How many Python frames of the package lie above the first one outside of it; compiled functions have none."""
    within = sys.modules["tensorrt_lite"].__path__[0] + "/"
    frame, count = sys._getframe(0), 0
    while frame is not None and frame.f_code.co_filename.startswith(within):
        frame, count = frame.f_back, count + 1
    return count


def warn(message):
    """A UserWarning at each occasion."""
    warnings.warn(message, UserWarning, stacklevel=1 + _frames_within())


def warn_once(message, direct=False):
    """A UserWarning once in a process (`set_warn_always`); if `direct`, not where Python code of the package called the operator, who didn't choose to."""
    if message in _given and not _always[0]:
        return
    within = _frames_within()
    if direct and within:
        return
    _given.add(message)
    warnings.warn(message, UserWarning, stacklevel=1 + within)

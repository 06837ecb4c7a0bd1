"""What a conversion of a module does with its parameters: the flags behind `torch.__future__`, which conversions read and `__future__` sets."""

from __future__ import annotations

overwrites = False  # parameters are made anew, where their data is exchanged otherwise
swaps = False  # parameters and what they are converted to change places (`utils.swap_tensors`), in `load_state_dict` too

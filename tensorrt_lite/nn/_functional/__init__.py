"""The parts of tensorrt_lite.nn.functional, one module per family; import the names from there.

`_ops` is the flat namespace of compiled operators under their schema names. What PyTorch composes in Python is
composed here from those operators; reductions reach them as integers (none 0, mean 1, sum 2).
"""

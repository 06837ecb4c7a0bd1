"""What modes and subclasses see in the place of fused rows: functions over ATen's operators, in the order of PyTorch's.

A row names its function by `decompose` (tools/codegen/schema.py). It gets the row's arguments and returns what the row returns; saved results that nobody reads
below a mode are None. Each piece is recorded with a Node of its own.
"""

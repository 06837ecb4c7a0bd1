"""Comparison of tensorrt_lite with PyTorch over PyTorch's own OpInfo database.

`opinfo` selects operators and draws samples, `library` carries arguments and results across the two libraries,
`compare` judges an outcome, `kinds` calls each variant of an operator, `runner` isolates, counts and tabulates.
"""

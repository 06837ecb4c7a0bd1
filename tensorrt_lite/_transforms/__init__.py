"""Functional transforms: what stands behind `func` and `vmap`.

`batching.py` runs an operator on batched tensors by its rule, `rules_*.py` are the rules, `mapping.py` is vmap, `derivatives.py` grad and its kin,
`functions.py` custom Functions and operators under transforms. The levels and wrappers are compiled (cysrc/core/transform.pyx).
"""

"""Operators composed of others, by family: they have no kernel and no derivative of their own, and run wherever their parts do.

`FAMILIES` names the modules whose functions are public as their rows in cysrc/ops/<family>/composed.yaml say; what has no row is in the module's `EXPORTS`.
`MODULES` are all, in the order in which names are collected. Compositions call operators through that namespace, or as methods, and stand below `nn`.
"""

FAMILIES = ("indexing", "joining", "linalg", "loss", "matmul", "random", "recurrent", "reduction", "resize", "sorting", "sparse", "special")
MODULES = (*FAMILIES, "linear_algebra", "spectral")

"""Operators composed of others, by family: they have no kernel and no derivative of their own, and run wherever their parts do.

`FAMILIES` names the modules. A function is public as its row in cysrc/ops/<family>/composed.yaml says; what has no row, and is called in the flat namespace alone,
stands in the module's `EXPORTS`. Compositions call operators through that namespace, or as methods, and stand below `nn`.
"""

FAMILIES = ("indexing", "joining", "linalg", "loss", "matmul", "random", "recurrent", "reduction", "resize", "sorting", "sparse", "special")

"""Operators composed of others, by family: they have no kernel and no derivative of their own, and run wherever their parts do.

`FAMILIES` names the modules; in each `EXPORTS` names what `_ops` collects: f function of the package, m method of Tensor, nothing: only in the flat
namespace. Compositions call operators through that namespace, or as methods, and stand below `nn`.
"""

FAMILIES = ("indexing", "joining", "matmul", "random", "sorting")

"""Named tuples that operators with several results return, printed as PyTorch prints them."""
from operator import itemgetter

cdef dict _types = {}


def result_type(name: str, fields: tuple[str, ...]):
    """The class of an operator's results: ``result_type('max', ('values', 'indices'))((v, i)).values``."""
    key = (name, fields)
    if key not in _types:
        body = {f: property(itemgetter(i)) for i, f in enumerate(fields)}
        body.update(__slots__=(), __module__="torch.return_types", _fields=fields, __repr__=_repr)
        _types[key] = type(name, (tuple,), body)
    return _types[key]


def _repr(self) -> str:
    parts = ",\n".join(f"{f}={v!r}" for f, v in zip(self._fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"

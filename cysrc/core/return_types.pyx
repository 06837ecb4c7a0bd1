"""Named tuples that operators with several results return, printed as PyTorch prints them."""
from operator import itemgetter

cdef dict _types = {}
classes = set()             # all of them
cdef list _receivers = []


def result_type(name: str, fields: tuple[str, ...]):
    """The class of an operator's results: ``result_type('max', ('values', 'indices'))((v, i)).values``."""
    key = (name, fields)
    if key not in _types:
        body = {f: property(itemgetter(i)) for i, f in enumerate(fields)}
        body.update(__slots__=(), __module__="torch.return_types", _fields=fields, __repr__=_repr, __reduce__=_reduce)
        _types[key] = type(name, (tuple,), body)
        classes.add(_types[key])
        for receive in _receivers:
            receive(_types[key])
    return _types[key]


def for_each_type(receive):
    """Call receive with every class of results, also with those that are made later."""
    _receivers.append(receive)
    for kind in list(_types.values()):
        receive(kind)


def _results(name: str, fields: tuple[str, ...], values: tuple):
    return result_type(name, fields)(values)


def _reduce(self):
    """For pickle: the class is made where it is needed, whether or not its name leads to it there."""
    return _results, (type(self).__name__, self._fields, tuple(self))


def _repr(self) -> str:
    parts = ",\n".join(f"{f}={v!r}" for f, v in zip(self._fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"

"""Schemas of rows, read once for all that ask: entries, operator objects, signatures."""
import sys
from tensorrt_lite._C.core.device import contiguous_format, preserve_format

cdef object REQUIRED = type("Required", (), {"__slots__": (), "__repr__": lambda self: "required"})()
cdef dict _schemas = {}


def required():
    """What stands in `defaults` for arguments without one."""
    return REQUIRED


cdef class Schema:
    """``add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`` taken apart.

    Of the arguments names, types as written, defaults (``required()`` where there is none) and how many may stand by position;
    of the results their types with their names.
    """

    def __init__(self, str text not None):
        cdef int depth = 0
        head, _, rest = text.partition("(")
        self.name, _, overload = head.strip().partition(".")
        self.overload = overload or "default"
        close = 0
        for i, c in enumerate(rest):
            depth += (c in "([") - (c in ")]")
            if depth < 0:
                close = i
                break
        if not rest[close + 1:].lstrip().startswith("->"):
            raise ValueError(f"not a schema: {text!r}")
        names, types, defaults = [], [], []
        self.positional = -1
        for part in split_arguments(rest[:close]):
            if part == "*":
                self.positional = <int>len(names)
                continue
            declared, equals, default = part.partition("=")
            kind, _, name = declared.strip().rpartition(" ")
            names.append(sys.intern(name))
            types.append(kind)
            value = parse_default(default) if equals else REQUIRED
            defaults.append(MEMORY_FORMATS.get(value, value) if kind.startswith("MemoryFormat") else value)
        if self.positional < 0:
            self.positional = <int>len(names)
        self.names, self.types, self.defaults = tuple(names), tuple(types), tuple(defaults)
        returned = rest[close + 1:].partition("->")[2].strip()
        self.results = tuple(split_arguments(returned[1:-1])) if returned.startswith("(") else (returned,)


cpdef list split_arguments(str text):
    """The parts between the commas that are in no brackets and no quotes. A comma at the end leaves an empty part behind it."""
    cdef list parts = []
    cdef int depth = 0
    cdef Py_ssize_t i, start = 0
    cdef Py_UCS4 c, quote = 0
    for i in range(len(text)):
        c = text[i]
        if quote or c in "'\"":
            quote = 0 if c == quote else quote or c
            continue
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    if last or parts:
        parts.append(last)
    return parts


cdef dict CONSTANTS = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan"),
                       "torch.contiguous_format": contiguous_format, "torch.preserve_format": preserve_format}


cdef dict MEMORY_FORMATS = {0: contiguous_format, 1: preserve_format}         # PyTorch's numbers, as its schemas have them


cdef object parse_default(str text):
    """A constant, a number, a list of such; a word stands for itself."""
    text = text.strip()
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text[:1] in "'\"":
        return text[1:-1]
    if text[:1] in "[(":
        return tuple([parse_default(part) for part in split_arguments(text[1:-1]) if part])
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return text


cdef Schema schema_of(const char* text):
    """The schema of a row; one object per text."""
    cdef str key = text.decode()
    found = _schemas.get(key)
    return <Schema>_schemas.setdefault(key, Schema(key)) if found is None else <Schema>found


def schema(str text not None):
    """The same for a text that comes from Python."""
    found = _schemas.get(text)
    return _schemas.setdefault(text, Schema(text)) if found is None else found

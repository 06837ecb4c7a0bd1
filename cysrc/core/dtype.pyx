"""Element types and PyTorch's promotion table.

A dtype is one of twelve immutable singletons; kernels index tables by its code. Categories order as
bool < int < float < complex; promotion inside a category follows PyTorch's lattice.
"""

cdef int item_size[12]
cdef int category[12]
cdef int promotion[12][12]
item_size[:] = [1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
category[:] = [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
cdef tuple _labels = (b"Bool", b"Byte", b"Char", b"Short", b"Int", b"Long", b"Half", b"BFloat16", b"Float", b"Double",
                      b"ComplexFloat", b"ComplexDouble")


cdef class dtype:
    """The element type of a tensor, for example ``float32``."""

    def __init__(self):
        raise TypeError("cannot create 'torch.dtype' instances")

    @property
    def is_floating_point(self):
        return category[self.code] == CAT_FLOAT

    @property
    def is_complex(self):
        return category[self.code] == CAT_COMPLEX

    @property
    def is_signed(self):
        return self.code >= I8

    def to_real(self):
        return dtype_of(to_real(self.code))

    def to_complex(self):
        return dtype_of(to_complex(self.code))

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return _dtype_by_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _dtype_by_name(str name):
    for t in dtypes:
        if (<dtype>t).name == name:
            return t
    raise ValueError(f"unknown dtype {name}")


cdef dtype _make(int code, str name):
    cdef dtype t = dtype.__new__(dtype)
    t.code = code
    t.name = name
    t.itemsize = item_size[code]
    return t


cdef list dtypes = [_make(i, n) for i, n in enumerate(
    ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
     "complex128"))]


cdef dtype dtype_of(int code):
    return <dtype>dtypes[code]


cdef const char* dtype_label(int code) noexcept:
    return <const char*>(<bytes>_labels[code])


cdef int _promote(int a, int b):
    if a > b:
        a, b = b, a
    if a == b:
        return a
    if category[b] == CAT_COMPLEX:
        return C128 if (a == F64 or b == C128) else C64
    if category[b] == CAT_FLOAT:
        return F32 if (a == F16 and b == BF16) else b
    if a == U8 and b == I8:
        return I16
    return b


cdef int _i, _j
for _i in range(12):
    for _j in range(12):
        promotion[_i][_j] = _promote(_i, _j)

cdef int _default_float = F32


cdef int default_float_code() noexcept:
    return _default_float


cdef int default_complex_code() noexcept:
    return C128 if _default_float == F64 else C64


cdef int to_real(int code) noexcept:
    return F32 if code == C64 else F64 if code == C128 else code


cdef int to_complex(int code) noexcept:
    return C128 if (code == F64 or code == C128) else C64


cdef bint can_cast(int source, int target) noexcept:
    """Whether a result of type ``source`` may be written to an output of type ``target``."""
    return category[source] <= category[target] or (category[source] == CAT_INT and category[target] == CAT_INT)


def set_default_dtype(dtype d not None):
    """Set the floating point type of new tensors; raises TypeError for other types."""
    global _default_float
    if category[d.code] != CAT_FLOAT:
        raise TypeError(f"only floating-point types are supported as the default type, but got {d!r}")
    _default_float = d.code


def get_default_dtype():
    """Return the current default floating point dtype."""
    return dtype_of(_default_float)


def promote_types(dtype type1 not None, dtype type2 not None):
    """Return the smallest dtype both types convert to safely (PyTorch's lattice)."""
    return dtype_of(promotion[type1.code][type2.code])


def can_cast_types(dtype from_ not None, dtype to not None):
    return can_cast(from_.code, to.code)

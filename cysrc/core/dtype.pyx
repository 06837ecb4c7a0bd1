"""Element types and PyTorch's promotion table.

A dtype is an immutable singleton, one for each row of dtype_table.h; kernels index tables by its code. Categories order as
bool < int < float < complex; promotion inside a category follows PyTorch's lattice. Types without loops are stored, moved and
cast; the operators that compute with them do so in their compute type (storage_types.pyx).
"""
from tensorrt_lite._C.core.free_threading cimport keep_for_ever

cdef extern from *:
    """
    typedef struct { const char *type, *name, *label, *cpp, *cuda, *encoding; int numpy; } trt_dtype_names;
    #define TRT_ROW_NAMES(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) \
      {#type, name, label, cpp, #cuda, #encoding, ((properties) & TRT_NUMPY) != 0},
    static const trt_dtype_names trt_names[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_NAMES)};
    """
    ctypedef struct trt_dtype_names:
        const char* type
        const char* name
        const char* label
        const char* cpp
        const char* cuda
        const char* encoding
        bint numpy
    const trt_dtype_names* names "trt_names"

cdef int promotion[NUM_DTYPES][NUM_DTYPES]


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
        return is_signed_type(self.code)

    def to_real(self):
        return dtype_of(to_real(self.code))

    def to_complex(self):
        if category[self.code] < CAT_FLOAT or category[self.code] == CAT_FLOAT and not has_loops(self.code):
            raise RuntimeError(f"Unknown Complex ScalarType for {names[self.code].label.decode()}")
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


cdef dtype _make(int code):
    cdef dtype t = dtype.__new__(dtype)
    t.code = code
    t.name = names[code].name.decode()
    t.itemsize = ITEM_SIZE[code]
    keep_for_ever(t)
    return t


cdef list dtypes = [_make(i) for i in range(<int>NUM_DTYPES)]


def table():
    """The descriptors by code: (the loops' name, Python's, CUDA's storage type, the code of the type it computes in, that of its real part,
    whether operators compute with it, whether NumPy has it)."""
    return tuple([(names[i].type.decode(), names[i].name.decode(), names[i].cuda.decode(), <int>compute_type[i], <int>real_type[i],
                   bool(has_loops(i)), bool(names[i].numpy)) for i in range(<int>NUM_DTYPES)])


def labels():
    """{dtype: its name in messages and in those of typed storages}, of all."""
    return {t: names[(<dtype>t).code].label.decode() for t in dtypes}


def limits(dtype d not None):
    """(exact bits, the largest value, encoding): the columns of dtype_table.h."""
    return DIGITS[d.code], LARGEST[d.code], names[d.code].encoding.decode()


cdef dtype dtype_of(int code):
    return <dtype>dtypes[code]


cdef const char* dtype_label(int code) noexcept:
    return names[code].label


cdef const char* dtype_cpp_name(int code) noexcept:
    return names[code].cpp


cdef int _promote(int a, int b):
    """PyTorch's lattice. float8 types go with nothing else, unsigned integers without loops with floating-point types alone."""
    if a == b:
        return a
    if is_floating_type(a) and not has_loops(a) or is_floating_type(b) and not has_loops(b):
        return NO_PROMOTION
    if category[a] > category[b]:
        a, b = b, a
    if is_integral_type(a) and not has_loops(a) or is_integral_type(b) and not has_loops(b):
        return b if is_floating_type(b) else NO_PROMOTION
    if is_complex_type(b):
        if real_type[a] == F64 or real_type[b] == F64:
            return C128
        return C32 if b == C32 and (category[a] <= CAT_INT or real_type[a] == F16) else C64
    if category[a] != category[b]:
        return b
    if is_floating_type(a):
        if ITEM_SIZE[a] == ITEM_SIZE[b]:
            return F32                                  # float16 and bfloat16
    elif ITEM_SIZE[a] == ITEM_SIZE[b]:
        return I16                                      # uint8 and int8
    return a if ITEM_SIZE[a] > ITEM_SIZE[b] else b


cdef int raise_promotion(int a, int b) except -1:
    cdef bint float8 = is_floating_type(a) and not has_loops(a) or is_floating_type(b) and not has_loops(b)
    raise RuntimeError(f"Promotion for {'Float8 Types' if float8 else 'uint16, uint32, uint64 types'} is not supported, attempted to promote "
                       f"{names[a].label.decode()} and {names[b].label.decode()}")


cdef int _i, _j
for _i in range(<int>NUM_DTYPES):
    for _j in range(<int>NUM_DTYPES):
        promotion[_i][_j] = _promote(_i, _j)

cdef int _default_float = F32


cdef int default_float_code() noexcept:
    return _default_float


cdef int default_complex_code() noexcept:
    return C128 if _default_float == F64 else C64


cdef int to_real(int code) noexcept:
    return real_type[code]


cdef int to_complex(int code) noexcept:
    return complex_type[code]


cdef bint can_cast(int source, int target) noexcept:
    """Whether a result of type ``source`` may be written to an output of type ``target``."""
    return category[source] <= category[target] or (category[source] == CAT_INT and category[target] == CAT_INT)


def set_default_dtype(dtype d not None):
    """Set the floating point type of new tensors; raises TypeError for other types.

    Parameters:
        d (dtype): float16, bfloat16, float32 or float64

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_default_dtype(trt.float64)
        >>> trt.tensor([1.5]).dtype
        torch.float64
        >>> trt.set_default_dtype(trt.float32)
    """
    global _default_float
    if category[d.code] != CAT_FLOAT or not has_loops(d.code):
        raise TypeError(f"only floating-point types that operators compute with are supported as the default type, but got {d!r}")
    _default_float = d.code


def get_default_dtype():
    """Return the current default floating point dtype.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_default_dtype()
        torch.float32
    """
    return dtype_of(_default_float)


def promote_types(dtype type1 not None, dtype type2 not None):
    """Return the smallest dtype both types convert to safely (PyTorch's lattice). RuntimeError where there is none.

    Parameters:
        type1 (dtype): the first type
        type2 (dtype): the second type

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.promote_types(trt.int32, trt.float32)
        torch.float32
    """
    cdef int code = promotion[type1.code][type2.code]
    if code == NO_PROMOTION:
        raise_promotion(type1.code, type2.code)
    return dtype_of(code)


def can_cast_types(dtype from_ not None, dtype to not None):
    return can_cast(from_.code, to.code)


cdef inline bint has_infinity(int code) noexcept:
    return names[code].encoding == NULL or names[code].encoding[0] != c"F" and names[code].encoding[0] != c"P" or category[code] == CAT_COMPLEX


cdef int check_number(const Scalar* value, int code) except -1:
    """The rule for all operators that take numbers: one that the type they compute in can't hold is refused. Unsigned types take the negatives that wrap."""
    cdef int kind = category[code], real
    cdef bint good = True
    cdef double low
    real = real_type[code]
    if code == BOOL or value.kind == 0 or code == F64 and value.kind != 3:
        return 0
    if value.kind == 3 and kind != CAT_COMPLEX:
        good = value.im == 0
    if kind == CAT_INT:
        low = -LARGEST[code] - 1 if is_signed_type(code) else -LARGEST[code] if value.kind == 1 else 0
        if value.kind == 1:
            good = code == I64 or low <= value.i <= LARGEST[code]
        elif value.kind == 4:
            good = code == U64
        elif code == I64:
            good = good and -9223372036854775808.0 <= value.d < 9223372036854775808.0
        else:
            good = good and low <= value.d <= LARGEST[code]
    else:
        low = LARGEST[real]
        good = good and (not (value.d > low or value.d < -low) or value.d - value.d != 0 and (value.d != value.d or has_infinity(real)))
        if kind == CAT_COMPLEX and value.kind == 3:
            good = good and (not (value.im > low or value.im < -low) or value.im - value.im != 0)
    if not good:
        raise RuntimeError(f"value cannot be converted to type {dtype_cpp_name(code).decode()} without overflow")
    return 0

"""Element types and PyTorch's promotion table.

A dtype is an immutable singleton, one for each row of dtype_table.h; kernels index tables by its code. Categories order as
bool < int < float < complex; promotion inside a category follows PyTorch's lattice. Types without loops are stored, copied and
cast: no operator computes with them.
"""

cdef extern from *:
    """
    typedef struct { const char *type, *name, *label, *cpp, *cuda; int numpy; } trt_dtype_names;
    #define TRT_ROW_NAMES(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, cuda) \
      {#type, name, label, cpp, #cuda, ((properties) & TRT_NUMPY) != 0},
    static const trt_dtype_names trt_names[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_NAMES)};
    """
    ctypedef struct trt_dtype_names:
        const char* type
        const char* name
        const char* label
        const char* cpp
        const char* cuda
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
    return t


cdef list dtypes = [_make(i) for i in range(<int>NUM_DTYPES)]


def table():
    """The descriptors by code: (the loops' name, Python's, CUDA's storage type, the code of the type it computes in, that of its real part,
    whether operators compute with it, whether NumPy has it)."""
    return tuple([(names[i].type.decode(), names[i].name.decode(), names[i].cuda.decode(), <int>compute_type[i], <int>real_type[i],
                   bool(has_loops(i)), bool(names[i].numpy)) for i in range(<int>NUM_DTYPES)])


cdef dtype dtype_of(int code):
    return <dtype>dtypes[code]


cdef const char* dtype_label(int code) noexcept:
    return names[code].label


cdef const char* dtype_cpp_name(int code) noexcept:
    return names[code].cpp


cdef int _promote(int a, int b):
    """PyTorch's lattice. Types without loops promote with themselves alone; the operators that meet others raise."""
    if a == b or not has_loops(a):
        return a
    if not has_loops(b):
        return b
    if category[a] > category[b]:
        a, b = b, a
    if is_complex_type(b):
        return C128 if (real_type[a] == F64 or real_type[b] == F64) else C64
    if category[a] != category[b]:
        return b
    if is_floating_type(a):
        if ITEM_SIZE[a] == ITEM_SIZE[b]:
            return F32                                  # float16 and bfloat16
    elif ITEM_SIZE[a] == ITEM_SIZE[b]:
        return I16                                      # uint8 and int8
    return a if ITEM_SIZE[a] > ITEM_SIZE[b] else b


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
    """Set the floating point type of new tensors; raises TypeError for other types."""
    global _default_float
    if category[d.code] != CAT_FLOAT or not has_loops(d.code):
        raise TypeError(f"only floating-point types that operators compute with are supported as the default type, but got {d!r}")
    _default_float = d.code


def get_default_dtype():
    """Return the current default floating point dtype."""
    return dtype_of(_default_float)


def promote_types(dtype type1 not None, dtype type2 not None):
    """Return the smallest dtype both types convert to safely (PyTorch's lattice). RuntimeError for two of which one is only stored."""
    if type1 is not type2 and not (has_loops(type1.code) and has_loops(type2.code)):
        raise RuntimeError(f"Promotion for types that are only stored is not supported, attempted to promote {names[type1.code].label.decode()} and {names[type2.code].label.decode()}")
    return dtype_of(promotion[type1.code][type2.code])


def can_cast_types(dtype from_ not None, dtype to not None):
    return can_cast(from_.code, to.code)

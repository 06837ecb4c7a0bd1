# cython: language_level=3
"""DLPack capsules out of tensors and tensors out of capsules (https://dmlc.github.io/dlpack, versions 0 and 1), and the table of C functions that does
both without capsules (`exchange_api`).

Out: the managed tensor owns a reference to the storage; its deleter may run on any thread, with or without the GIL.
In: the storage owns the managed tensor and calls its deleter once, when the last tensor over it is gone.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport malloc, free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from cpython.pycapsule cimport PyCapsule_New, PyCapsule_IsValid, PyCapsule_GetPointer, PyCapsule_SetName
from tensorrt_lite._C.core.dtype cimport *
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUDA, make_device
from tensorrt_lite._C.core.materialize cimport materialized
from tensorrt_lite._C.core.storage cimport Storage, external_storage, device_hooks, expose, is_read_only, set_read_only
from tensorrt_lite._C.core.tensor cimport TensorBase, empty_tensor, set_storage, set_geometry, checked_numel, contiguous_strides, data_of, ITEM_SIZE, MAX_DIMS
from tensorrt_lite._C.core.dispatch cimport attach

cdef extern from "Python.h":
    int Py_IsInitialized() nogil

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int32_t device_type, device_id; } trt_dl_device;
    typedef struct { uint8_t code, bits; uint16_t lanes; } trt_dl_type;
    typedef struct {
      void* data; trt_dl_device device; int32_t ndim; trt_dl_type dtype; int64_t* shape; int64_t* strides; uint64_t byte_offset;
    } trt_dl_tensor;
    typedef struct trt_dl_managed { trt_dl_tensor tensor; void* context; void (*deleter)(struct trt_dl_managed*); } trt_dl_managed;
    typedef struct trt_dl_versioned {
      struct { uint32_t major, minor; } version;
      void* context; void (*deleter)(struct trt_dl_versioned*); uint64_t flags; trt_dl_tensor tensor;
    } trt_dl_versioned;
    typedef void (*trt_dl_error)(void* context, const char* kind, const char* message);
    /* the functions are declared below, with what Cython says of their exceptions */
    typedef struct {
      struct { uint32_t major, minor; } version;
      void *earlier, *allocate, *export_object, *import_object, *describe_object, *current_stream;
    } trt_dl_exchange;
    """
    ctypedef struct trt_dl_device:
        int32_t device_type, device_id
    ctypedef struct trt_dl_type:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct trt_dl_tensor:
        void* data
        trt_dl_device device
        int32_t ndim
        trt_dl_type dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    ctypedef struct trt_dl_version "struct { uint32_t major, minor; }":
        uint32_t major, minor
    ctypedef struct trt_dl_managed:
        trt_dl_tensor tensor
        void* context
        void (*deleter)(trt_dl_managed*) noexcept nogil
    ctypedef struct trt_dl_versioned:
        trt_dl_version version
        void* context
        void (*deleter)(trt_dl_versioned*) noexcept nogil
        uint64_t flags
        trt_dl_tensor tensor
    ctypedef void (*trt_dl_error)(void* context, const char* kind, const char* message) noexcept
    ctypedef struct trt_dl_exchange:
        trt_dl_version version
        void* earlier
        void* allocate
        void* export_object
        void* import_object
        void* describe_object
        void* current_stream

cdef enum:
    DL_MINOR = 3                   # of version 1: what this file knows of
    DL_CPU = 1
    DL_CUDA = 2
    DL_CUDA_HOST = 3
    DL_INT = 0
    DL_UINT = 1
    DL_FLOAT = 2
    DL_BFLOAT = 4
    DL_COMPLEX = 5
    DL_BOOL = 6
    READ_ONLY = 1
    IS_COPIED = 2

attach()

cdef object _read = None           # the package's from_dlpack, which knows streams
cdef object _stream = None         # the package's current stream of a CUDA device, as a number
cdef trt_dl_exchange functions     # what exchange_api() hands out


def _set_reader(function not None, stream not None):
    """What makes a tensor of an object with `__dlpack__`, and what finds a CUDA device's current stream."""
    global _read, _stream
    _read = function
    _stream = stream


def read(array):
    """A tensor over the memory of an object with `__dlpack__`."""
    return _read(array)


# ---- out -----------------------------------------------------------------------------------------------------------

cdef void drop_reference(void* context) noexcept with gil:
    Py_DECREF(<object>context)


cdef void delete_managed(trt_dl_managed* m) noexcept nogil:
    # after the interpreter is gone the storage is left to the operating system
    if m != NULL and Py_IsInitialized():
        drop_reference(m.context)
        free(m)


cdef void delete_versioned(trt_dl_versioned* m) noexcept nogil:
    if m != NULL and Py_IsInitialized():
        drop_reference(m.context)
        free(m)


cdef void drop_capsule(object capsule) noexcept:
    """A capsule that nobody consumed releases its tensor."""
    cdef trt_dl_managed* m
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <trt_dl_managed*>PyCapsule_GetPointer(capsule, "dltensor")
        m.deleter(m)


cdef void drop_versioned_capsule(object capsule) noexcept:
    cdef trt_dl_versioned* m
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        m = <trt_dl_versioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        m.deleter(m)


cdef void describe_place(trt_dl_tensor* d, TensorBase t) noexcept:
    """Everything but sizes and strides."""
    d.data = <void*>data_of(t) if t.numel else NULL
    d.device.device_type = DL_CUDA if t.device_type == DEV_CUDA else DL_CPU
    d.device.device_id = t.device_index if t.device_type == DEV_CUDA else 0
    d.ndim = t.ndim
    d.dtype.code = <uint8_t>DLPACK_CODE[t.dtype]
    d.dtype.bits = <uint8_t>(8 * ITEM_SIZE[t.dtype])
    d.dtype.lanes = 1
    d.byte_offset = 0


cdef void describe(trt_dl_tensor* d, TensorBase t, int64_t* geometry) noexcept:
    """Fill in the description; `geometry` has room for sizes and strides and lives as long as the managed tensor."""
    cdef int i
    describe_place(d, t)
    d.shape = geometry
    d.strides = geometry + t.ndim
    for i in range(t.ndim):
        geometry[i] = t.sizes[i]
        # strides of dimensions of one element are free: 1 is what every consumer takes for contiguous
        geometry[t.ndim + i] = 1 if t.sizes[i] < 2 else t.strides[i]


cdef int check_exported(TensorBase t) except -1:
    """Called before a tensor's memory is given away."""
    if t.device_type != DEV_CPU and t.device_type != DEV_CUDA:
        if (<object>t).device.type in ("cpu", "cuda"):
            raise BufferError(f"Cannot pack a tensor that has no memory of its own (sparse, batched, fake or wrapped), on {(<object>t).device}")
        raise BufferError(f"Cannot pack tensors on {(<object>t).device}")
    expose(t.storage)
    t.storage.can_resize = False
    return 0


cdef trt_dl_versioned* make_versioned(TensorBase t, int minor, bint copied) except NULL:
    """A managed tensor of version 1 over a tensor's memory."""
    cdef trt_dl_versioned* v
    check_exported(t)
    v = <trt_dl_versioned*>malloc(sizeof(trt_dl_versioned) + 2 * t.ndim * sizeof(int64_t))
    if v == NULL:
        raise MemoryError
    v.version.major = 1
    v.version.minor = min(minor, <int>DL_MINOR)
    v.flags = (IS_COPIED if copied else 0) | (READ_ONLY if is_read_only(t.storage) else 0)
    v.deleter = delete_versioned
    v.context = <void*>t.storage
    describe(&v.tensor, t, <int64_t*>(v + 1))
    Py_INCREF(t.storage)
    return v


def to_capsule(TensorBase t not None, int minor, bint copied):
    """A capsule over the memory of a tensor on the CPU or on CUDA: named dltensor_versioned, of version 1.minor at most, or dltensor where minor is -1."""
    cdef trt_dl_managed* m
    if minor >= 0:
        return PyCapsule_New(make_versioned(t, minor, copied), "dltensor_versioned", drop_versioned_capsule)
    check_exported(t)
    if is_read_only(t.storage):
        raise BufferError("Can't export a tensor over read-only memory to a consumer of DLPack before version 1, which cannot be told so: use clone()")
    m = <trt_dl_managed*>malloc(sizeof(trt_dl_managed) + 2 * t.ndim * sizeof(int64_t))
    if m == NULL:
        raise MemoryError
    m.deleter = delete_managed
    m.context = <void*>t.storage
    describe(&m.tensor, t, <int64_t*>(m + 1))
    Py_INCREF(t.storage)
    return PyCapsule_New(m, "dltensor", drop_capsule)


# ---- in ------------------------------------------------------------------------------------------------------------

cdef class Managed:
    """Owner of a producer's managed tensor: the deleter runs when the storage that holds this object is gone."""
    cdef trt_dl_managed* plain
    cdef trt_dl_versioned* versioned

    def __dealloc__(self):
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef int dtype_code(const trt_dl_type* d) except -1:
    cdef int code
    if d.lanes == 1:
        for code in range(<int>NUM_DTYPES):
            if DLPACK_CODE[code] == d.code and 8 * ITEM_SIZE[code] == d.bits:
                return code
    raise BufferError(f"Unsupported dtype in DLTensor: code {d.code}, {d.bits} bits, {d.lanes} lanes")


cdef TensorBase tensor_over(const trt_dl_tensor* d, Managed owner):
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t last = 0, n
    cdef int i, code
    cdef TensorBase t
    if d.device.device_type not in (DL_CPU, DL_CUDA, DL_CUDA_HOST):
        raise BufferError(f"Unsupported device_type: {d.device.device_type}, only the CPU's (1) and CUDA's (2, 3) can be imported")
    if d.device.device_type == DL_CUDA:
        device_hooks()                          # RuntimeError without a driver
    if not 0 <= d.ndim <= MAX_DIMS:
        raise BufferError(f"a DLPack tensor of {d.ndim} dimensions can't become a tensor (at most {MAX_DIMS})")
    code = dtype_code(&d.dtype)
    n = checked_numel(d.ndim, d.shape)
    if d.strides == NULL:
        contiguous_strides(d.ndim, d.shape, strides)
    else:
        for i in range(d.ndim):
            strides[i] = d.strides[i] if d.shape[i] > 1 or d.strides[i] > 0 else 1
            if strides[i] < 0:
                raise BufferError(f"from_dlpack: stride {strides[i]} of dimension {i} is negative, and tensors with negative strides are not supported")
            if strides[i] >= <int64_t>1 << 58:
                raise BufferError(f"from_dlpack: stride {strides[i]} of dimension {i} is out of range")
    if n > 0:
        for i in range(d.ndim):
            if (d.shape[i] - 1) > ((<int64_t>1 << 58) - last) // max(strides[i], <int64_t>1):
                raise BufferError("from_dlpack: sizes and strides reach beyond the address space")
            last += (d.shape[i] - 1) * strides[i]
        if d.data == NULL:
            raise BufferError("from_dlpack: a tensor with elements has no data")
    t = empty_tensor(0, NULL, code, DEV_CPU)
    set_storage(t, external_storage(<char*>d.data + d.byte_offset if n > 0 else NULL, (last + 1) * ITEM_SIZE[code] if n > 0 else 0, owner,
                                    DEV_CUDA if d.device.device_type == DL_CUDA else DEV_CPU, d.device.device_id if d.device.device_type == DL_CUDA else 0))
    set_geometry(t, d.ndim, d.shape, strides)
    return t


cdef TensorBase tensor_of_versioned(const trt_dl_versioned* v, Managed owner):
    """A tensor over the memory of a managed tensor of version 1, which the caller gives to `owner` afterwards."""
    cdef TensorBase t
    if v.version.major > 1:
        raise BufferError(f"from_dlpack: capsule of DLPack version {v.version.major}.{v.version.minor}, at most 1 is understood")
    t = tensor_over(&v.tensor, owner)
    if v.flags & READ_ONLY:
        set_read_only(t.storage)
    return t


def from_capsule(capsule):
    """A tensor over a capsule's memory; the capsule is renamed, so that it can be consumed only once."""
    cdef Managed owner = Managed.__new__(Managed)
    cdef trt_dl_managed* m
    cdef trt_dl_versioned* v
    cdef TensorBase t
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <trt_dl_managed*>PyCapsule_GetPointer(capsule, "dltensor")
        t = tensor_over(&m.tensor, owner)
        PyCapsule_SetName(capsule, "used_dltensor")
        owner.plain = m
        return t
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        v = <trt_dl_versioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        t = tensor_of_versioned(v, owner)
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        owner.versioned = v
        if v.flags & READ_ONLY:
            from tensorrt_lite._C.core.warning import warn
            warn("The given DLPack tensor is read-only: writing to this tensor raises a RuntimeError. Use clone() to get one that can be written to.")
        return t
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once.")


# ---- the table of C functions ----------------------------------------------------------------------------------------------
# Consumers find it as `__dlpack_c_exchange_api__` of the type and call its functions with the GIL held; none waits for a stream. Tensors that require
# gradients are handed over as they are, as PyTorch does: who calls writes kernels, not graphs.

cdef int export_object(void* tensor, trt_dl_versioned** out) except -1 with gil:
    """A managed tensor over a tensor's memory."""
    out[0] = make_versioned(materialized(<TensorBase?>(<object>tensor), "__dlpack__"), DL_MINOR, False)
    return 0


cdef int import_object(trt_dl_versioned* v, void** out) except -1 with gil:
    """A new tensor over a managed tensor, which it owns from now on; where it fails the caller still does."""
    cdef Managed owner = Managed.__new__(Managed)
    cdef TensorBase t = tensor_of_versioned(v, owner)
    owner.versioned = v
    Py_INCREF(t)
    out[0] = <void*>t
    return 0


cdef int describe_object(void* tensor, trt_dl_tensor* out) except -1 with gil:
    """What a tensor is, in the caller's struct: sizes and strides are the tensor's own and valid while nothing changes it."""
    cdef TensorBase t = <TensorBase?>(<object>tensor)
    check_exported(t)
    describe_place(out, t)
    out.shape = t.sizes
    out.strides = t.strides
    return 0


cdef trt_dl_versioned* allocated(trt_dl_tensor* prototype) except NULL:
    """A new tensor of the prototype's type, sizes and device."""
    cdef int place = DEV_CPU
    if not 0 <= prototype.ndim <= MAX_DIMS:
        raise BufferError(f"a DLPack tensor of {prototype.ndim} dimensions can't become a tensor (at most {MAX_DIMS})")
    if prototype.device.device_type != DL_CPU and prototype.device.device_type != DL_CUDA:
        raise BufferError(f"Unsupported device_type: {prototype.device.device_type}, only the CPU's (1) and CUDA's (2) have memory here")
    if prototype.device.device_type == DL_CUDA:
        device_hooks()                          # RuntimeError without a driver
        place = DEV_CUDA | (prototype.device.device_id + 1) << 8
    checked_numel(prototype.ndim, prototype.shape)
    return make_versioned(empty_tensor(prototype.ndim, prototype.shape, dtype_code(&prototype.dtype), place), DL_MINOR, False)


cdef int allocate(trt_dl_tensor* prototype, trt_dl_versioned** out, void* context, trt_dl_error set_error) noexcept with gil:
    """A new tensor as the prototype says. Errors go to the caller's function, with the name of their class."""
    cdef object failure = None
    out[0] = NULL
    try:
        out[0] = allocated(prototype)
    except BaseException as error:
        failure = error
    if failure is None:
        return 0
    kind, message = type(failure).__name__.encode(), str(failure).encode()
    set_error(context, kind, message)
    return -1


cdef int current_stream(int32_t device_type, int32_t device, void** out) except -1 with gil:
    """The stream that work on a device goes to; NULL, the default one, for the CPU."""
    out[0] = NULL
    if device_type == DL_CUDA and _stream is not None:
        out[0] = <void*><uintptr_t>_stream(device)
    return 0


functions.version.major = 1
functions.version.minor = DL_MINOR
functions.allocate = <void*>allocate
functions.export_object = <void*>export_object
functions.import_object = <void*>import_object
functions.describe_object = <void*>describe_object
functions.current_stream = <void*>current_stream


def exchange_api():
    """The capsule of the table, `dlpack_exchange_api`."""
    return PyCapsule_New(&functions, "dlpack_exchange_api", NULL)

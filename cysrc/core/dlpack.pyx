# cython: language_level=3
"""DLPack capsules out of tensors and tensors out of capsules (https://dmlc.github.io/dlpack, versions 0 and 1).

Out: the managed tensor owns a reference to the storage; its deleter may run on any thread, with or without the GIL.
In: the storage owns the managed tensor and calls its deleter once, when the last tensor over it is gone.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc, free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from cpython.pycapsule cimport PyCapsule_New, PyCapsule_IsValid, PyCapsule_GetPointer, PyCapsule_SetName
from tensorrt_lite._C.core.dtype cimport *
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUDA, make_device
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

cdef enum:
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


def _set_reader(function not None):
    """What makes a tensor of an object with `__dlpack__`."""
    global _read
    _read = function


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


cdef int describe(trt_dl_tensor* d, TensorBase t, int64_t* geometry) except -1:
    """Fill in the description; `geometry` has room for sizes and strides and lives as long as the managed tensor."""
    cdef int i
    d.data = <void*>data_of(t) if t.numel else NULL
    d.device.device_type = DL_CUDA if t.device_type == DEV_CUDA else DL_CPU
    d.device.device_id = t.device_index if t.device_type == DEV_CUDA else 0
    d.ndim = t.ndim
    d.dtype.code = <uint8_t>DLPACK_CODE[t.dtype]
    d.dtype.bits = <uint8_t>(8 * ITEM_SIZE[t.dtype])
    d.dtype.lanes = 1
    d.byte_offset = 0
    d.shape = geometry
    d.strides = geometry + t.ndim
    for i in range(t.ndim):
        geometry[i] = t.sizes[i]
        # strides of dimensions of one element are free: 1 is what every consumer takes for contiguous
        geometry[t.ndim + i] = 1 if t.sizes[i] < 2 else t.strides[i]
    return 0


def to_capsule(TensorBase t not None, bint versioned, bint copied):
    """A capsule named dltensor, or dltensor_versioned, over the memory of a tensor on the CPU or on CUDA."""
    cdef trt_dl_managed* m
    cdef trt_dl_versioned* v
    if t.device_type != DEV_CPU and t.device_type != DEV_CUDA:
        raise BufferError(f"Cannot pack tensors on {(<object>t).device}")
    if t.conj_bit:
        raise BufferError("Can't export tensors with the conjugate bit set")
    expose(t.storage)
    t.storage.can_resize = False
    if versioned:
        v = <trt_dl_versioned*>malloc(sizeof(trt_dl_versioned) + 2 * t.ndim * sizeof(int64_t))
        if v == NULL:
            raise MemoryError
        v.version.major = 1
        v.version.minor = 0
        v.flags = (IS_COPIED if copied else 0) | (READ_ONLY if is_read_only(t.storage) else 0)
        v.deleter = delete_versioned
        v.context = <void*>t.storage
        describe(&v.tensor, t, <int64_t*>(v + 1))
        Py_INCREF(t.storage)
        return PyCapsule_New(v, "dltensor_versioned", drop_versioned_capsule)
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
        if v.version.major > 1:
            raise BufferError(f"from_dlpack: capsule of DLPack version {v.version.major}.{v.version.minor}, at most 1 is understood")
        t = tensor_over(&v.tensor, owner)
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        owner.versioned = v
        if v.flags & READ_ONLY:
            import warnings
            set_read_only(t.storage)
            warnings.warn("The given DLPack tensor is read-only: writing to this tensor raises a RuntimeError. Use clone() to get one that can be written to.",
                          UserWarning, stacklevel=3)
        return t
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once.")

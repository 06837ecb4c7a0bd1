# What a tensor is: geometry over a storage, a version counter, autograd fields.
from libc.stdint cimport int64_t, uint64_t, int8_t, uint8_t
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.storage cimport Storage
from tensorrt_lite._C.core.device cimport has_index
from tensorrt_lite._C.core.dtype cimport Scalar, ITEM_SIZE, has_loops

cdef enum:
    MAX_DIMS = 64
    INLINE_DIMS = 8

cdef enum:
    KEY_META = 0
    KEY_CPU = 1
    KEY_CUDA = 2
    KEY_UNUSED = 3
    KEY_STORAGE_ONLY = 4          # of tensors of a type without loops: no operator has a kernel under it, those that move elements alone skip it
    KEY_CUSTOM = 5
    KEY_PYTHON = 6
    KEY_AUTOGRAD = 7
    KEY_FORWARD_AD = 8
    KEY_DECOMPOSE = 9             # beside Python: takes rows with `decompose` apart above Autograd (core/python_key.pyx)
    KEY_TRACER = 10
    KEY_AUTOCAST = 11
    KEY_TRANSFORM = 12
    KEY_WRAPPED = 13              # of tensors that stand for others inside a functional transform (core/transform.pyx); no kernels
    KEY_SPARSE = 14               # of sparse tensors (core/sparse.pyx): above Autograd, as their operators record themselves
    NUM_KEYS = 15

cdef enum:
    K_META = 1
    K_CPU = 2
    K_CUDA = 4
    K_STORAGE_ONLY = 16
    K_CUSTOM = 32
    K_PYTHON = 64
    K_AUTOGRAD = 128
    K_FORWARD_AD = 256
    K_DERIVATIVES = 384           # either of the two
    K_DECOMPOSE = 512
    K_DISPATCHED = 576            # Python and Decompose: what modes and classes with __torch_dispatch__ have
    K_BACKENDS = 63
    K_AUTOCAST = 2048
    K_TRANSFORM = 4096
    K_WRAPPED = 8192
    K_SPARSE = 16384
    K_STANDS_IN = 24576           # Wrapped or Sparse: the tensor has no memory of its own, its storage holds other tensors

cdef extern from "dispatch.h":
    uint64_t index_keys "trt_index_keys"(int number) noexcept nogil
    uint64_t mixed_indices "trt_mixed_indices"(uint64_t keys) noexcept nogil
    uint64_t on_mixed_devices "trt_mixed_devices"(uint64_t keys) noexcept nogil
    const uint64_t K_PLACE "trt_place_mask"
    enum:
        INDEX_BITS "TRT_INDEX_BITS"
        DEVICE_INDICES "TRT_DEVICE_INDICES"

cdef enum:
    LAYOUT_STRIDED = 0
    LAYOUT_COO = 1                # the others are sparse (core/sparse.pyx)
    LAYOUT_CSR = 2
    LAYOUT_CSC = 3
    LAYOUT_BSR = 4
    LAYOUT_BSC = 5

cdef enum:
    CREATED_DEFAULT = 0
    CREATED_NO_GRAD = 1
    CREATED_MULTI_OUTPUT = 2
    CREATED_INFERENCE = 3
    CREATED_IN_FUNCTION = 4

cdef extern from "version_counter.h":
    ctypedef struct VersionCounter "trt_version_counter":
        int64_t refs
        int64_t value
        PyObject* views           # borrowed: head of the list of differentiable views, read and changed under its lock
    void lock_views "trt_lock_views"(VersionCounter*) noexcept
    void unlock_views "trt_unlock_views"(VersionCounter*) noexcept

cdef class TensorBase:
    cdef Storage storage              # changed by set_storage alone: device_type, device_index and keys are copies of where it lies
    cdef int64_t offset               # elements
    cdef uint64_t keys
    cdef int64_t numel
    cdef int64_t* sizes               # inline_geometry, or a heap block beyond 8 dimensions
    cdef int64_t* strides             # elements
    cdef int output_nr
    cdef int8_t ndim
    cdef int8_t dtype
    cdef int8_t device_type
    cdef int8_t device_index
    cdef uint8_t layout               # LAYOUT_*
    cdef uint8_t contiguous
    cdef uint8_t requires_grad        # a leaf that wants a gradient, or has a grad_fn
    cdef uint8_t wrapped_number       # made from a Python number: weak in type promotion
    cdef uint8_t inference
    cdef uint8_t retains_grad
    cdef uint8_t creation_meta
    cdef uint8_t detached             # autograd/node.pxd: what it has lost in place, then grad_fn_version says when
    cdef VersionCounter* version      # NULL until shared: then own_version counts
    cdef int64_t own_version
    cdef int64_t grad_fn_version      # version at which a view's grad_fn was made
    cdef object grad_fn_              # Node or None
    cdef object grad_
    cdef PyObject* accumulator        # borrowed: the AccumulateGrad node of a leaf, cleared when that dies
    cdef TensorBase base              # what this is a view of
    cdef PyObject* next_view          # borrowed links of the counter's list of views
    cdef PyObject* previous_view
    cdef object hooks                 # autograd hooks: list or None
    cdef object post_accumulate       # hooks that run after a gradient was added to a leaf: list or None
    cdef object tangent               # of a dual tensor: its Tangent, or the dual tensor that this is a view of; see autograd/forward.pyx
    cdef PyObject* attributes         # a dict of what Python sets on the object, made at the first; NULL before
    cdef object __weakref__
    cdef int64_t inline_geometry[16]

cdef void hold_versions(int change) noexcept        # while held, writes of this thread count no version: whoever holds does
cdef PyTypeObject* tensor_type
cdef PyTypeObject* parameter_type
cdef PyTypeObject* sparse_type
cdef object size_type

cdef inline char* data_of(TensorBase t) noexcept:
    return t.storage.block.data + t.offset * ITEM_SIZE[t.dtype]

cdef extern from "dispatch.h":
    enum:
        HELD_NUMEL "TRT_HELD_NUMEL"

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)     # borrowed

cdef inline bint is_large(TensorBase t) noexcept:
    return t is not None and t.numel >= HELD_NUMEL

cdef inline bint any_large(list tensors) noexcept:
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(tensors)):
        if is_large(<TensorBase>PyList_GET_ITEM(tensors, i)):
            return True
    return False

cdef inline bint is_listed(object tensors, TensorBase t) noexcept:
    for x in tensors:
        if x is t:
            return True
    return False

cdef inline int64_t version_of(TensorBase t) noexcept:
    return t.own_version if t.version == NULL else t.version.value

cdef inline bint same_sizes(TensorBase a, TensorBase b) noexcept:
    cdef int i
    if a.ndim != b.ndim or a.numel != b.numel:
        return False
    for i in range(a.ndim):
        if a.sizes[i] != b.sizes[i]:
            return False
    return True

cdef inline void set_dtype(TensorBase t, int dtype) noexcept:
    """The one way to change a tensor's element type: the key that keeps operators away from types without loops goes with it."""
    t.dtype = dtype
    t.keys = t.keys & ~<uint64_t>K_STORAGE_ONLY | (0 if has_loops(dtype) else K_STORAGE_ONLY)

# Where a new tensor goes, as one number: the device's type, and its index plus one in the bits above 8 (0: the current one; none on the CPU and meta).
cdef enum:
    PLACE_PINNED = 1 << 8          # page-locked memory of the host
cdef inline int place_of(TensorBase t) noexcept:
    return t.device_type | (<int>t.device_index + 1) << 8 if has_index(t.device_type) else t.device_type

cdef int set_storage(TensorBase t, Storage s) except -1
cdef int place_of_device(object device) except -1
cdef void set_inference_flag(bint on) noexcept
cdef TensorBase new_tensor()
cdef TensorBase new_alias(TensorBase t)
cdef int set_ndim(TensorBase t, int ndim) except -1
cdef int set_geometry(TensorBase t, int ndim, const int64_t* sizes, const int64_t* strides) except -1
cdef int update_flags(TensorBase t) except -1
cdef int64_t checked_numel(int ndim, const int64_t* sizes) except -1
cdef TensorBase empty_tensor(int ndim, const int64_t* sizes, int dtype, int place)
cdef TensorBase empty_strided_tensor(int ndim, const int64_t* sizes, const int64_t* strides, int dtype, int place)
cdef TensorBase empty_like_tensor(TensorBase t, int dtype)
cdef TensorBase alias_of(TensorBase t)
cdef TensorBase held(TensorBase t)
cdef list held_list(list tensors)
cdef int adopt_view(TensorBase r, TensorBase t, bint differentiable) except -1
cdef TensorBase make_view(TensorBase t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset)
cdef TensorBase number_tensor(int dtype, const Scalar* value)
cdef VersionCounter* shared_version(TensorBase t) except NULL
cdef int drop_version(TensorBase t) except -1
cdef int bump_version(TensorBase t) except -1
cdef object shape_of(TensorBase t)
cdef object strides_of(TensorBase t)
cdef str shape_text(TensorBase t)
cdef int resize_tensor(TensorBase t, int ndim, const int64_t* sizes, int memory_format) except -1
cdef int check_geometry(Storage s, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int itemsize, str op) except -1
cdef bint has_internal_overlap(TensorBase t) noexcept
cdef int memory_overlap(TensorBase a, TensorBase b) noexcept
cdef bint is_channels_last(TensorBase t) noexcept
cdef bint is_channels_last_3d(TensorBase t) noexcept
cdef bint non_overlapping_dense(TensorBase t) noexcept
cdef void channels_last_strides(int ndim, const int64_t* sizes, int64_t* strides) noexcept
cdef void contiguous_strides(int ndim, const int64_t* sizes, int64_t* strides) noexcept
cdef uint64_t backend_key(int device_type) noexcept
cdef uint64_t place_key(int device_type, int index) noexcept       # with the bits of the device's number

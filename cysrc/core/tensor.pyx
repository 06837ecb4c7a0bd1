"""TensorBase: sizes and strides over a storage, a version counter, autograd fields; and the functions that make tensors.

Invariants: every element that the geometry reaches lies inside the storage (`check_geometry` is the gate for geometry
that comes from outside); `contiguous` means row-major; `sizes` points into the object itself up to 8 dimensions.
The version counter is shared by views and by `detach()`; it is created when it is first shared.
"""
cimport cython
from libc.stdlib cimport malloc, free
from libc.string cimport memcpy
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_CLEAR
from cpython.tuple cimport PyTuple_SET_ITEM
from tensorrt_lite._C.core.storage cimport Storage, new_storage, meta_storage, alias_storage, storage_resize, device_hooks, hooks_of
from tensorrt_lite._C.core.dtype cimport Scalar, BOOL, F32, F64, I64, C64, C128, F16, BF16
from tensorrt_lite._C.core.free_threading cimport keep_for_ever, read_shared_integer
from tensorrt_lite._C.core.text cimport sizes_text
from tensorrt_lite._C.core.device cimport device, DEV_CPU, DEV_META, DEV_CUDA, DEV_CUSTOM, has_index, MF_CONTIGUOUS, MF_CHANNELS_LAST, MF_CHANNELS_LAST_3D, MF_PRESERVE


cdef extern from "stage.h" nogil:
    void store_scalar(char* destination, int dtype, const Scalar* value)

cdef extern from "version_counter.h":
    VersionCounter* trt_share_version(VersionCounter** place, int64_t own) noexcept
    void trt_hold_version(VersionCounter*) noexcept
    void trt_drop_version(VersionCounter*) noexcept
    void trt_bump_version(VersionCounter*) noexcept

cdef extern from "thread_state.h":
    object trt_new(PyTypeObject*, object)

cdef extern from *:
    """
    /* TensorBase's tp_new, which all subclasses inherit: without arguments the bare object, with arguments what the package's constructor makes of it.
     * Construction belongs here and not in __init__: what a subclass's __new__ returns is final. */
    static newfunc trt_bare_tensor;
    static PyObject* trt_constructor;
    static PyObject* trt_new_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
      PyObject* tensor = trt_bare_tensor(type, args, NULL);
      if (!tensor || !trt_constructor || (PyTuple_GET_SIZE(args) == 0 && (!kwargs || PyDict_GET_SIZE(kwargs) == 0))) return tensor;
      PyObject* done = PyObject_CallFunctionObjArgs(trt_constructor, tensor, args, kwargs ? kwargs : Py_None, NULL);
      if (done == Py_None) {
        Py_DECREF(done);
        return tensor;
      }
      Py_DECREF(tensor);
      return done;
    }
    static void trt_take_new(PyTypeObject* base) {
      trt_bare_tensor = base->tp_new;
      base->tp_new = trt_new_tensor;
    }
    static void trt_construct_by(PyObject* constructor) { Py_XSETREF(trt_constructor, Py_NewRef(constructor)); }
    """
    void trt_take_new(PyTypeObject* base)
    void trt_construct_by(PyObject* constructor)

cdef extern from *:
    """
    #define trt_new_tuple(type, n) (((PyTypeObject*)(type))->tp_alloc((PyTypeObject*)(type), (n)))
    """
    object trt_new_tuple(object type, Py_ssize_t n)

cdef extern from *:
    """
    static inline int trt_mul_overflow(int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }
    static inline int trt_add_overflow(int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }
    """
    bint mul_overflow "trt_mul_overflow"(int64_t, int64_t, int64_t*) nogil
    bint add_overflow "trt_add_overflow"(int64_t, int64_t, int64_t*) nogil

cdef extern from *:
    """
    /* Whether this thread is in inference mode: new tensors are inference tensors then. */
    static __thread uint8_t trt_inference_flag __attribute__((tls_model("initial-exec")));
    """
    uint8_t inference_flag "trt_inference_flag"


cdef void set_inference_flag(bint on) noexcept:
    global inference_flag
    inference_flag = on


cdef PyTypeObject* tensor_type = NULL
cdef PyTypeObject* parameter_type = NULL
cdef PyTypeObject* sparse_type = NULL
cdef object size_type = tuple
cdef tuple _no_arguments = ()
cdef Storage _no_storage = new_storage(0)
_no_storage.can_resize = False   # every tensor starts with it
keep_for_ever(_no_storage)


cdef extern from *:
    """
    /* Cython would make a dict for every tensor, a tenth of the cost of an operator; Python's own attribute access makes
       it when it is needed, given the place of a pointer. The collector then has to see it, too. */
    static Py_ssize_t trt_dict_offset;
    static traverseproc trt_traverse_fields;
    static inquiry trt_clear_fields;
    static int trt_traverse(PyObject* o, visitproc visit, void* arg) {
      Py_VISIT(*(PyObject**)((char*)o + trt_dict_offset));
      return trt_traverse_fields(o, visit, arg);
    }
    static int trt_clear(PyObject* o) {
      PyObject** d = (PyObject**)((char*)o + trt_dict_offset);
      Py_CLEAR(*d);
      return trt_clear_fields(o);
    }
    static void trt_give_dict(PyTypeObject* type, Py_ssize_t offset) {
      trt_dict_offset = offset;
      trt_traverse_fields = type->tp_traverse;
      trt_clear_fields = type->tp_clear;
      type->tp_traverse = trt_traverse;
      type->tp_clear = trt_clear;
      type->tp_dictoffset = offset;
      PyType_Modified(type);
    }

    /* Instances of a class that adds nothing to its base need none of what Python's deallocator does for subclasses. */
    static destructor trt_base_dealloc;
    static void trt_dealloc(PyObject* o) {
      PyTypeObject* type = Py_TYPE(o);
      trt_base_dealloc(o);
      Py_DECREF(type);
    }
    static void trt_deallocate_directly(PyTypeObject* type, PyTypeObject* base) {
      trt_base_dealloc = base->tp_dealloc;
      type->tp_dealloc = trt_dealloc;
    }
    """
    void trt_give_dict(PyTypeObject* type, Py_ssize_t offset)
    void trt_deallocate_directly(PyTypeObject* type, PyTypeObject* base)

cdef extern from "Python.h":
    object PyObject_GenericGetDict(object, void*)


cdef class TensorBase:
    """The compiled part of a tensor; users see its Python subclass ``Tensor``."""

    def __cinit__(self):
        self.inference = inference_flag
        self.storage = _no_storage
        self.sizes = self.inline_geometry
        self.strides = self.inline_geometry + INLINE_DIMS
        self.ndim = 1
        self.strides[0] = 1
        self.dtype = F32
        self.keys = K_CPU
        self.contiguous = 1

    def __dealloc__(self):
        if self.version != NULL:
            if self.base is not None or self.previous_view != NULL or self.version.views == <PyObject*>self:
                unlink_view(self)
            trt_drop_version(self.version)
        if self.sizes != self.inline_geometry:
            free(self.sizes)
        Py_CLEAR(self.attributes)


trt_take_new(<PyTypeObject*>TensorBase)


def _set_constructor(constructor):
    """The function of (bare tensor, arguments, keyword arguments or None) that a call of the class Tensor with arguments runs; called once by the package.
    It fills the tensor, or returns another in its place."""
    trt_construct_by(<PyObject*>constructor)


cdef int _give_dict() except -1:
    cdef TensorBase t = TensorBase.__new__(TensorBase)
    trt_give_dict(<PyTypeObject*>TensorBase, <char*>&t.attributes - <char*><PyObject*>t)
    return 0

_give_dict()


def _register_types(tensor, parameter, size):
    """The Python classes that results are made of; called once by the package."""
    global tensor_type, parameter_type, size_type
    for given, base in ((tensor, TensorBase), (parameter, TensorBase), (size, tuple)):
        if given is not None and not (isinstance(given, type) and issubclass(given, base)):
            raise TypeError(f"_register_types() takes subclasses of Tensor's base and of tuple, got {given}")
    if tensor_type != NULL and tensor is not None:
        raise RuntimeError("the classes of tensors have been registered")
    if tensor is not None:
        tensor_type = <PyTypeObject*>tensor
        trt_deallocate_directly(tensor_type, <PyTypeObject*>TensorBase)
    if parameter is not None:
        parameter_type = <PyTypeObject*>parameter
    if size is not None:
        size_type = size


def _register_sparse_type(kind):
    """The class of sparse tensors; called once, when the package makes the first."""
    global sparse_type
    if not issubclass(kind, TensorBase):
        raise TypeError(f"_register_sparse_type() takes a subclass of Tensor's base, got {kind}")
    Py_INCREF(kind)
    sparse_type = <PyTypeObject*>kind


def attributes_of(TensorBase self not None):
    """The dict of the attributes that Python set: what ``__dict__`` is on other objects."""
    return PyObject_GenericGetDict(self, NULL)


cdef TensorBase new_tensor():
    return <TensorBase>trt_new(tensor_type, _no_arguments)


cdef TensorBase new_alias(TensorBase t):
    """The object of an alias, a view or a stand-in: of the class Tensor, or of that of sparse tensors."""
    return new_tensor() if not t.keys & K_SPARSE or sparse_type == NULL else <TensorBase>trt_new(sparse_type, _no_arguments)


cdef int set_ndim(TensorBase t, int ndim) except -1:
    cdef int64_t* block
    if ndim > MAX_DIMS:
        raise RuntimeError(f"a tensor has at most {MAX_DIMS} dimensions, got {ndim}")
    if ndim > INLINE_DIMS:
        block = <int64_t*>malloc(2 * ndim * sizeof(int64_t))
        if block == NULL:
            raise MemoryError
        if t.sizes != t.inline_geometry:
            free(t.sizes)
        t.sizes = block
        t.strides = block + ndim
    elif t.sizes != t.inline_geometry:
        free(t.sizes)
        t.sizes = t.inline_geometry
        t.strides = t.inline_geometry + INLINE_DIMS
    t.ndim = ndim
    return 0


cdef int set_geometry(TensorBase t, int ndim, const int64_t* sizes, const int64_t* strides) except -1:
    cdef int i
    cdef int64_t kept[2 * MAX_DIMS]
    if ndim > INLINE_DIMS or t.sizes != t.inline_geometry:
        # what is given may be the tensor's own, which set_ndim frees
        for i in range(min(ndim, <int>MAX_DIMS)):
            kept[i] = sizes[i]
            kept[MAX_DIMS + i] = strides[i]
        sizes = kept
        strides = kept + MAX_DIMS
        set_ndim(t, ndim)
    t.ndim = ndim
    for i in range(ndim):
        t.sizes[i] = sizes[i]
        t.strides[i] = strides[i]
    update_flags(t)
    return 0


cdef int update_flags(TensorBase t) except -1:
    cdef int i
    cdef int64_t n = 1, expected = 1
    cdef bint contiguous = True
    for i in range(t.ndim - 1, -1, -1):
        if t.sizes[i] != 1:
            if t.strides[i] != expected:
                contiguous = False
            expected *= t.sizes[i]
        n *= t.sizes[i]
    t.numel = n
    t.contiguous = contiguous or n == 0
    return 0


cdef int64_t checked_numel(int ndim, const int64_t* sizes) except -1:
    """The number of elements; RuntimeError for negative sizes and for products beyond 63 bits."""
    cdef int64_t n = 1
    cdef int i
    cdef bint overflow = False, empty = False
    for i in range(ndim):
        if sizes[i] < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {sizes[i]}: {sizes_text(ndim, sizes)}")
        if sizes[i] == 0:
            empty = True
        if not overflow and mul_overflow(n, sizes[i] if sizes[i] > 0 else 1, &n):
            overflow = True
    if empty:
        return 0
    if overflow or n > (<int64_t>1 << 58):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)}")
    return n


cdef uint64_t backend_key(int device_type) noexcept:
    if device_type == DEV_CPU:
        return K_CPU
    if device_type == DEV_META:
        return K_META
    return K_CUDA if device_type == DEV_CUDA else K_CUSTOM


cdef uint64_t place_key(int device_type, int index) noexcept:
    if device_type == DEV_CPU:
        return K_CPU
    if device_type == DEV_META:
        return K_META
    return backend_key(device_type) | index_keys(index if device_type == DEV_CUDA else (device_type - DEV_CUSTOM) << INDEX_BITS | index)


cdef void contiguous_strides(int ndim, const int64_t* sizes, int64_t* strides) noexcept:
    cdef int i
    cdef int64_t n = 1
    for i in range(ndim - 1, -1, -1):
        strides[i] = n
        if sizes[i] > 1:
            n *= sizes[i]


cdef void channels_last_strides(int ndim, const int64_t* sizes, int64_t* strides) noexcept:
    """Strides of (N, C, spatial...) with C innermost."""
    cdef int i
    cdef int64_t n = max(sizes[1], 1)
    strides[1] = 1
    for i in range(ndim - 1, 1, -1):
        strides[i] = n
        n *= max(sizes[i], 1)
    strides[0] = n


cdef int place_of_device(object d) except -1:
    """The place of a parsed device; ``cuda`` without an index is the current device."""
    cdef device x = <device?>d
    if not has_index(x.code):
        return x.code
    return x.code | ((hooks_of(x.code).current(x.code) if x.index is None else <int>x.index) + 1) << 8


cdef Storage storage_for(int64_t nbytes, int place):
    cdef int device_type = place & 0xFF
    if place == PLACE_PINNED:
        return device_hooks().allocate_pinned(nbytes)
    if device_type == DEV_CPU:
        return new_storage(nbytes)
    if device_type == DEV_META:
        return meta_storage(nbytes)
    return hooks_of(device_type).allocate(device_type, nbytes, (place >> 8) - 1)


cdef TensorBase empty_tensor(int ndim, const int64_t* sizes, int dtype, int place):
    """A contiguous tensor with undefined contents. sizes: ndim numbers; place: see tensor.pxd."""
    cdef int64_t n = 1
    cdef int i
    cdef TensorBase t
    if ndim == 1 and 0 <= sizes[0] < (<int64_t>1 << 58):
        n = sizes[0]
    elif ndim > 0:
        n = checked_numel(ndim, sizes)
    t = new_tensor()
    if ndim > INLINE_DIMS:
        set_ndim(t, ndim)
    t.ndim = ndim
    for i in range(ndim):
        t.sizes[i] = sizes[i]
    contiguous_strides(ndim, sizes, t.strides)
    t.numel = n
    set_dtype(t, dtype)
    t.contiguous = 1
    if place == DEV_CPU:
        t.storage = new_storage(n * ITEM_SIZE[dtype])
    else:
        set_storage(t, storage_for(n * ITEM_SIZE[dtype], place))
    return t


cdef int set_storage(TensorBase t, Storage s) except -1:
    """Put a storage under a tensor, and with it the device. The one way to change it: what assigns `storage` elsewhere in this file does so to a
    new tensor on the CPU. Other keys stay. The old storage's owner may run Python when it goes: who calls keeps it until the geometry fits."""
    t.storage = s
    t.device_type = s.device_type
    t.device_index = s.device_index
    t.keys = t.keys & ~K_PLACE | place_key(s.device_type, s.device_index)
    return 0


cdef TensorBase empty_strided_tensor(int ndim, const int64_t* sizes, const int64_t* strides, int dtype, int place):
    """A tensor with given strides (not negative) over a fresh storage just large enough."""
    cdef int64_t n = checked_numel(ndim, sizes), last = 0, step
    cdef int i
    cdef TensorBase t
    for i in range(ndim):
        if strides[i] < 0:
            raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {sizes_text(ndim, strides)}")
        if n > 0 and (mul_overflow(sizes[i] - 1, strides[i], &step) or add_overflow(last, step, &last)):
            raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)} and strides={sizes_text(ndim, strides)}")
    if last > (<int64_t>1 << 58):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)} and strides={sizes_text(ndim, strides)}")
    t = new_tensor()
    set_dtype(t, dtype)
    set_storage(t, storage_for((last + 1) * ITEM_SIZE[dtype] if n > 0 else 0, place))
    set_geometry(t, ndim, sizes, strides)
    return t


cdef TensorBase empty_like_tensor(TensorBase t, int dtype):
    """Same sizes and device; strides too when `t` is dense (otherwise its order of dimensions, packed)."""
    cdef TensorBase r
    cdef int i, j, k, best
    cdef int64_t strides[MAX_DIMS]
    cdef int order[MAX_DIMS]
    cdef int64_t n
    if t.contiguous and t.device_type == DEV_CPU and t.ndim <= INLINE_DIMS:
        r = new_tensor()
        r.storage = new_storage(t.numel * ITEM_SIZE[dtype])
        r.numel = t.numel
        r.ndim = t.ndim
        set_dtype(r, dtype)
        for i in range(t.ndim):
            r.sizes[i] = t.sizes[i]
            r.strides[i] = t.strides[i]
        return r
    if non_overlapping_dense(t):
        return empty_strided_tensor(t.ndim, t.sizes, t.strides, dtype, place_of(t))
    # sort dimensions by stride, largest first, keeping the order of equals
    for i in range(t.ndim):
        order[i] = i
    for i in range(1, t.ndim):
        k = order[i]
        j = i - 1
        while j >= 0 and t.strides[order[j]] < t.strides[k] and t.strides[order[j]] != 0 and t.strides[k] != 0:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k
    n = 1
    for i in range(t.ndim - 1, -1, -1):
        strides[order[i]] = n
        n *= max(t.sizes[order[i]], 1)
    return empty_strided_tensor(t.ndim, t.sizes, strides, dtype, place_of(t))


cdef inline void copy_header(TensorBase r, TensorBase t):
    r.storage = t.storage
    r.dtype = t.dtype
    r.device_type = t.device_type
    r.device_index = t.device_index
    r.layout = t.layout
    # the class of the result is Tensor; what stands for another tensor does so by its storage
    r.keys = t.keys & ~<uint64_t>(K_DERIVATIVES | K_DISPATCHED) | (K_PYTHON if t.keys & K_STANDS_IN else 0)
    r.inference = t.inference      # a view of a normal tensor is a normal tensor, in inference mode too
    if not t.inference and inference_flag:
        r.creation_meta = CREATED_INFERENCE


cdef inline int copy_geometry(TensorBase r, TensorBase t) except -1:
    cdef int i
    r.offset = t.offset
    r.numel = t.numel
    r.contiguous = t.contiguous
    if t.ndim > INLINE_DIMS:
        set_ndim(r, t.ndim)
    r.ndim = t.ndim
    for i in range(t.ndim):
        r.sizes[i] = t.sizes[i]
        r.strides[i] = t.strides[i]
    return 0


cdef VersionCounter* shared_version(TensorBase t) except NULL:
    cdef VersionCounter* v = trt_share_version(&t.version, t.own_version)
    if v == NULL:
        raise MemoryError
    return v


cdef int drop_version(TensorBase t) except -1:
    """Let the tensor have a version counter of its own again, at 0."""
    trt_drop_version(t.version)
    t.version = NULL
    t.own_version = 0
    return 0


cdef extern from *:
    """
    static __thread int trt_versions_held __attribute__((tls_model("initial-exec")));
    """
    int versions_held "trt_versions_held"


cdef void hold_versions(int change) noexcept:
    global versions_held
    versions_held += change


cdef int bump_version(TensorBase t) except -1:
    if versions_held:
        return 0
    if t.version == NULL:
        t.own_version += 1
    else:
        trt_bump_version(t.version)
    return 0


cdef TensorBase alias_of(TensorBase t):
    """A detached tensor with the same geometry, storage and version counter."""
    cdef TensorBase r = new_alias(t)
    copy_header(r, t)
    copy_geometry(r, t)
    r.version = shared_version(t)
    trt_hold_version(r.version)
    return r


cdef TensorBase make_view(TensorBase t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset):
    """A view with the given geometry, whose elements the caller knows to lie inside `t`'s storage."""
    cdef TensorBase r = new_alias(t)
    copy_header(r, t)
    r.offset = offset
    if ndim > INLINE_DIMS:
        set_ndim(r, ndim)
    set_geometry(r, ndim, sizes, strides)
    r.version = shared_version(t)
    trt_hold_version(r.version)
    if t.base is None:
        r.base = t
    else:
        r.base = t.base
        if t.creation_meta and not r.creation_meta:
            r.creation_meta = t.creation_meta        # a write through it is one through `t`
    r.grad_fn_version = read_shared_integer(&r.version.value)
    link_view(r)
    if t.keys & K_FORWARD_AD:
        # its tangent is the same view of the tangent, made when somebody asks
        r.keys |= K_FORWARD_AD
        r.tangent = t.tangent if isinstance(t.tangent, TensorBase) else t
    return r


cdef int adopt_view(TensorBase r, TensorBase t, bint differentiable) except -1:
    """What a class with __torch_dispatch__ gave as a view of `t`, made one: it counts writes with `t` and, where `differentiable`, has its base."""
    cdef VersionCounter* version
    if r is t or r.base is not None or r.requires_grad:
        return 0
    version = shared_version(t)
    if r.version == NULL:
        r.version = version
        trt_hold_version(version)
    elif r.version != version:
        return 0                        # a tensor with a life of its own
    if differentiable:
        r.base = t if t.base is None else t.base
        if t.base is not None and t.creation_meta and not r.creation_meta:
            r.creation_meta = t.creation_meta
        r.grad_fn_version = read_shared_integer(&version.value)
        link_view(r)
    return 0


cdef TensorBase held(TensorBase t):
    """`t` as a kernel must see it that releases the GIL or lets Python run before it has read everything: geometry and memory stay
    although somebody resizes `t`, sets it or shrinks its storage. Known to nobody else, detached, for the length of a call. None stays None."""
    cdef TensorBase r
    if t is None or t.storage.block == NULL:
        return t
    r = new_tensor()
    set_storage(r, alias_storage(t.storage))
    set_dtype(r, t.dtype)
    r.wrapped_number = t.wrapped_number
    copy_geometry(r, t)
    return r


cdef list held_list(list tensors):
    return [held(<TensorBase>t) for t in tensors]


cdef inline void link_view(TensorBase r) noexcept:
    lock_views(r.version)
    r.next_view = r.version.views
    if r.next_view != NULL:
        (<TensorBase>r.next_view).previous_view = <PyObject*>r
    r.version.views = <PyObject*>r
    unlock_views(r.version)


cdef inline void unlink_view(TensorBase r) noexcept:
    lock_views(r.version)
    if r.previous_view != NULL:
        (<TensorBase>r.previous_view).next_view = r.next_view
    elif r.version.views == <PyObject*>r:
        r.version.views = r.next_view
    if r.next_view != NULL:
        (<TensorBase>r.next_view).previous_view = r.previous_view
    r.next_view = NULL
    r.previous_view = NULL
    unlock_views(r.version)


cdef TensorBase number_tensor(int dtype, const Scalar* value):
    """A 0-dimensional CPU tensor that holds a Python number."""
    cdef TensorBase t = new_tensor()
    t.ndim = 0
    t.numel = 1
    set_dtype(t, dtype)
    t.storage = new_storage(ITEM_SIZE[dtype])
    store_scalar(t.storage.block.data, dtype, value)
    return t


cdef object shape_of(TensorBase t):
    """The sizes as a Size (a tuple subclass), filled in place."""
    cdef int i
    cdef object v, r = trt_new_tuple(size_type, t.ndim)
    for i in range(t.ndim):
        v = t.sizes[i]
        Py_INCREF(v)
        PyTuple_SET_ITEM(r, i, v)
    return r


cdef object strides_of(TensorBase t):
    cdef int i
    return tuple([t.strides[i] for i in range(t.ndim)])


cdef str shape_text(TensorBase t):
    return sizes_text(t.ndim, t.sizes)


cdef int check_geometry(Storage s, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int itemsize, str op) except -1:
    """The gate for geometry from outside: sizes, strides and offset stay inside the storage, without overflow."""
    cdef int64_t n = checked_numel(ndim, sizes), last = offset, step, nbytes
    cdef int i
    if offset < 0:
        raise RuntimeError(f"{op}: Tensor: invalid storage offset {offset}")
    for i in range(ndim):
        if strides[i] < 0:
            raise RuntimeError(f"{op}: Negative strides are not supported at the moment, got strides: {sizes_text(ndim, strides)}")
    if n == 0:
        if offset > (<int64_t>1 << 58):
            raise RuntimeError(f"{op}: storage offset {offset} is out of range")
        return 0
    for i in range(ndim):
        if mul_overflow(sizes[i] - 1, strides[i], &step) or add_overflow(last, step, &last):
            raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)} and strides={sizes_text(ndim, strides)}")
    if add_overflow(last, 1, &last) or mul_overflow(last, itemsize, &nbytes):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)} and strides={sizes_text(ndim, strides)}")
    if nbytes > s.length:
        raise RuntimeError(
            f"{op}: setStorage: sizes {sizes_text(ndim, sizes)}, strides {sizes_text(ndim, strides)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {nbytes} are out of bounds for storage of size {s.length}")
    return 0


cdef int resize_tensor(TensorBase t, int ndim, const int64_t* sizes, int memory_format) except -1:
    """Give `t` new sizes in place, growing the storage when it is too small."""
    cdef int64_t n = checked_numel(ndim, sizes)
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t needed
    cdef int i
    cdef bint same = ndim == t.ndim
    if ndim > MAX_DIMS:
        raise RuntimeError(f"a tensor has at most {MAX_DIMS} dimensions, got {ndim}")
    if same:
        for i in range(ndim):
            if t.sizes[i] != sizes[i]:
                same = False
                break
    if same and memory_format < 0:
        return 0
    if memory_format == MF_CHANNELS_LAST or memory_format == MF_CHANNELS_LAST_3D:
        if ndim != (4 if memory_format == MF_CHANNELS_LAST else 5):
            raise RuntimeError(f"required rank {4 if memory_format == MF_CHANNELS_LAST else 5} tensor to use channels_last format")
        channels_last_strides(ndim, sizes, strides)
    else:
        contiguous_strides(ndim, sizes, strides)
    needed = 0
    if n > 0 and (add_overflow(n, t.offset, &needed) or mul_overflow(needed, ITEM_SIZE[t.dtype], &needed)):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes_text(ndim, sizes)} and storage offset {t.offset}")
    if needed > t.storage.length:
        if t.storage is _no_storage:
            t.storage = new_storage(0)
        storage_resize(t.storage, needed)
    set_geometry(t, ndim, sizes, strides)
    return 0


cdef bint non_overlapping_dense(TensorBase t) noexcept:
    """Whether the elements fill a block of memory without gaps and without sharing."""
    cdef int order[MAX_DIMS]
    cdef int i, j, k, n = 0
    cdef int64_t expected = 1
    if t.contiguous:
        return True
    for i in range(t.ndim):
        if t.sizes[i] == 1:
            continue
        j = n - 1
        while j >= 0 and t.strides[order[j]] > t.strides[i]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = i
        n += 1
    for k in range(n):
        i = order[k]
        if t.strides[i] != expected:
            return False
        expected *= t.sizes[i]
    return True


cdef bint has_internal_overlap(TensorBase t) noexcept:
    """Whether two indices certainly share an element (an expanded dimension)."""
    cdef int i
    if t.contiguous or t.numel == 0:
        return False
    for i in range(t.ndim):
        if t.strides[i] == 0 and t.sizes[i] > 1:
            return True
    return False


cdef int memory_overlap(TensorBase a, TensorBase b) noexcept:
    """0: apart, 1: the same elements in the same order, 2: partly shared, 3: too hard to tell."""
    cdef int64_t a0, a1, b0, b1
    cdef int i
    if a is b:
        return 1
    if a.numel == 0 or b.numel == 0 or a.storage.block != b.storage.block or a.storage.block == NULL:
        return 0
    a0 = a.offset * ITEM_SIZE[a.dtype]
    b0 = b.offset * ITEM_SIZE[b.dtype]
    a1 = 0
    for i in range(a.ndim):
        a1 += (a.sizes[i] - 1) * a.strides[i]
    b1 = 0
    for i in range(b.ndim):
        b1 += (b.sizes[i] - 1) * b.strides[i]
    a1 = a0 + (a1 + 1) * ITEM_SIZE[a.dtype]
    b1 = b0 + (b1 + 1) * ITEM_SIZE[b.dtype]
    if a1 <= b0 or b1 <= a0:
        return 0
    if a0 == b0 and a.dtype == b.dtype and same_sizes(a, b):
        for i in range(a.ndim):
            if a.strides[i] != b.strides[i] and a.sizes[i] > 1:
                break
        else:
            return 1
    if non_overlapping_dense(a) and non_overlapping_dense(b):
        return 2
    return 3


cdef bint is_channels_last(TensorBase t) noexcept:
    cdef int64_t expected = 1
    cdef int k
    cdef int* order = [1, 3, 2, 0]
    if t.ndim != 4:
        return False
    if t.strides[1] == 0:
        return False
    for k in range(4):
        if t.sizes[order[k]] != 1:
            if t.strides[order[k]] != expected:
                return False
            expected *= t.sizes[order[k]]
    return True


cdef bint is_channels_last_3d(TensorBase t) noexcept:
    cdef int64_t expected = 1
    cdef int k
    cdef int* order = [1, 4, 3, 2, 0]
    if t.ndim != 5:
        return False
    if t.strides[1] == 0:
        return False
    for k in range(5):
        if t.sizes[order[k]] != 1:
            if t.strides[order[k]] != expected:
                return False
            expected *= t.sizes[order[k]]
    return True


def sizeof_tensor():
    """Bytes of the compiled part of a tensor object."""
    return TensorBase.__basicsize__

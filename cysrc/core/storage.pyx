"""Storage: an untyped run of bytes that tensors share.

Invariants: `length` never exceeds the block's capacity on CPU; a meta storage has a size and no block. A block's capacity
never falls, because tensors keep the geometry they have when their storage shrinks: what shrinking gives back is pages,
which read as zeros from then on. Growing swaps the block, so a kernel that holds the old one stays safe.

Copy-on-write: a lazy clone is a storage that holds another one's block, which is marked TRT_BLOCK_LAZY. Whoever of them writes takes a
block of its own first (`make_writable`), and the last one that is left keeps the block. Only memory that nobody else can write to is
shared so: not what a kernel or an exporter holds, nor what has an owner or an address outside. Marks are read and set under the GIL, or
under the block's lock where there is none.
"""
cimport cython
from cpython.number cimport PyNumber_AsSsize_t
from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo
from libc.string cimport memcpy, memmove, memset
from tensorrt_lite._C.core.allocator cimport (
    trt_block, trt_block_hold, trt_block_context, trt_block_returns_by, block_alloc, block_drop, block_external, TRT_BLOCK_READ_ONLY, TRT_BLOCK_LAZY, TRT_BLOCK_EXPOSED)
from tensorrt_lite._C.core.free_threading cimport lock_of, mutex_lock, mutex_unlock
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUDA, DEV_META, device_type_name, has_index, make_device, parse_device, device as device_class

cdef extern from *:
    """
    #include <sys/mman.h>
    #include <unistd.h>
    /* Whole pages of private memory between two addresses: they stay mapped and read as zeros. */
    static void trt_give_back_pages(char* begin, char* end) {
      size_t page = (size_t)sysconf(_SC_PAGESIZE);
      size_t a = ((size_t)begin + page - 1) / page * page, b = (size_t)end / page * page;
      if (b > a) madvise((void*)a, b - a, MADV_DONTNEED);
    }
    """
    void trt_give_back_pages(char* begin, char* end)


cdef object _conversions = None


cdef object conversions():
    """What storages do by means of tensors, imported on first use."""
    global _conversions
    if _conversions is None:
        from importlib import import_module
        _conversions = import_module("tensorrt_lite._legacy.storage_conversions")
    return _conversions


cdef dict _added = {}                # {name: method or property that a custom device has given to storages}


def _add_method(str name not None, method):
    """What `setattr` is to a class in Python."""
    _added[name] = method


@cython.freelist(256)
cdef class Storage:
    """An untyped storage: a resizable run of bytes on a device."""

    def __init__(self, nbytes=0, *, device=None):
        cdef device_class place = parse_device(device) if device is not None else None
        cdef Storage fresh
        cdef bint listed = isinstance(nbytes, (list, tuple))
        cdef int64_t n = len(nbytes) if listed else PyNumber_AsSsize_t(nbytes, OverflowError)
        if n < 0:
            raise RuntimeError(f"UntypedStorage(): the size must not be negative, got {n}")
        if self.block != NULL or self.length or self.device_type != DEV_CPU:
            raise RuntimeError("UntypedStorage(): the storage has been initialised before")
        if place is not None and place.code == DEV_META:
            self.device_type = DEV_META
        elif place is not None and place.code != DEV_CPU:
            fresh = hooks_of(place.code).allocate(place.code, n, -1 if place.index is None else place.index)
            self.device_type, self.device_index = fresh.device_type, fresh.device_index
            self.block, fresh.block = fresh.block, NULL
        else:
            self.block = block_alloc(n)
        self.length = n
        self.can_resize = True
        if listed:
            for i in range(n):
                self[i] = nbytes[i] & 255

    def __dealloc__(self):
        if self.block != NULL:
            block_drop(self.block)
            self.block = NULL

    @staticmethod
    def from_file(filename, bint shared=False, nbytes=0):
        """The first bytes of a file, mapped. shared: writes go to the file, which is made and grown where it has fewer; else they stay in this process,
        and a file that has fewer is a RuntimeError."""
        if nbytes >= 1 << 63:
            raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{filename}>: no file has as many")
        return mapped().map_file(filename, shared, nbytes)

    @staticmethod
    def _new_shared(int64_t size, *, device="cpu"):
        """A storage in shared memory; on other devices than the CPU a plain one, which can be shared as it is."""
        cdef device_class place = parse_device(device)
        if place.code == DEV_META:
            return meta_storage(size)
        if place.code != DEV_CPU:
            return hooks_of(place.code).allocate(place.code, size, -1 if place.index is None else place.index)
        return mapped().new_shared(size, by_name())

    @staticmethod
    def _new_using_fd_cpu(int64_t size):
        return mapped().new_shared(size)

    @staticmethod
    def _new_using_filename_cpu(int64_t size):
        return mapped().new_shared(size, True)

    @staticmethod
    def _new_shared_fd_cpu(int fd, int64_t size):
        """The memory behind a descriptor of `_share_fd_cpu_`, which stays the caller's."""
        import os
        return mapped().from_descriptor(os.dup(fd), size)

    @staticmethod
    def _new_shared_filename_cpu(manager, handle, int64_t size):
        """The memory of a name of `_share_filename_cpu_`."""
        return mapped().from_name(handle, size)

    def share_memory_(self):
        """Move the bytes to memory that other processes can be given; returns the storage. Nothing on CUDA and custom devices, RuntimeError for meta."""
        if self.device_type in (DEV_CPU, DEV_META) and not self.is_shared():
            mapped().move_to_shared(self, by_name())
        return self

    def is_shared(self):
        """Whether other processes can be given the memory as it is: shared memory, mapped files, CUDA."""
        return self.device_type == DEV_CUDA or owner_of(self) is not None and mapped().is_mapped(self)

    @property
    def filename(self):
        """The file that is mapped, or None."""
        return mapped().filename_of(self) if owner_of(self) is not None else None

    def _get_filename(self):
        return self.filename

    def _share_fd_cpu_(self):
        """(descriptor, size) of shared memory, to which the bytes move where they are in other."""
        mapped().move_to_shared(self)
        return mapped().descriptor_of(self), self.length

    def _get_shared_fd(self):
        return self._share_fd_cpu_()[0]

    def _share_filename_cpu_(self):
        """(manager, name, size) of shared memory, to which the bytes move where they are in other. There is no manager: its handle is empty."""
        mapped().move_to_shared(self, True)
        return b"", mapped().filename_of(self).encode(), self.length

    def _shared_incref(self):
        mapped().add_reference(self)
        return self

    def _shared_decref(self):
        mapped().add_reference(self, -1)
        return self

    def nbytes(self):
        return self.length

    def size(self):
        return self.length

    def __len__(self):
        return self.length

    def element_size(self):
        return 1

    def data_ptr(self):
        """The address of the first byte, 0 where there is none."""
        if not self.length:
            return 0
        expose(self)
        return <size_t>(self.block.data) if self.block != NULL else 0

    @property
    def _cdata(self):
        return <size_t><void*>self

    @property
    def device(self):
        return make_device(self.device_type, self.device_index if has_index(self.device_type) else None)

    @property
    def is_cuda(self):
        return self.device_type == DEV_CUDA

    def __getattr__(self, str name):
        method = _added.get(name)
        if method is None:
            raise AttributeError(f"'UntypedStorage' object has no attribute '{name}'")
        return method.__get__(self, Storage)

    def untyped(self):
        return self

    def resizable(self):
        return bool(self.can_resize)

    def resize_(self, int64_t nbytes):
        storage_resize(self, nbytes)
        return self

    def __getitem__(self, index):
        cdef Py_ssize_t i
        if isinstance(index, slice):
            return slice_of(self, index)
        i = PyNumber_AsSsize_t(index, IndexError)       # an object's own comparisons and remainders may lie
        if i < -self.length or i >= self.length:
            raise IndexError(f"index {i} out of range for storage of size {self.length}")
        return (<unsigned char*>bytes_of(self))[i if i >= 0 else i + self.length]

    def tobytes(self):
        """Return a copy of the bytes."""
        return bytes_of(self)[:self.length]

    def tolist(self):
        return list(self.tobytes())

    def __setitem__(self, index, value):
        """Set a byte, or all bytes of a slice to one value."""
        cdef int64_t i
        cdef unsigned char byte = value
        if isinstance(index, slice):
            positions = range(*index.indices(self.length))
        else:
            i = index
            if i < -self.length or i >= self.length:
                raise IndexError(f"index {i} out of range for storage of size {self.length}")
            positions = (i + self.length if i < 0 else i,)
        prepare_write(self, "storage")
        for i in positions:
            if i < self.length:                      # an index or a value may have run Python
                (<unsigned char*>bytes_of(self))[i] = byte

    @staticmethod
    def from_buffer(*args, **kwargs):
        """from_buffer(buffer, byte_order, count=-1, offset=0, *, dtype): a copy of the elements behind `offset` bytes, in this machine's order. ValueError where the
        bytes are no whole number of elements or fewer than `count` of them."""
        return conversions().from_buffer(*args, **kwargs)

    def byteswap(self, dtype):
        """Swap the bytes of each element in place, of complex ones those of each part."""
        conversions().byteswap(self, dtype)

    def new(self):
        """An empty storage."""
        return new_storage(0)

    def get_device(self):
        """The device's index, None on the CPU."""
        return self.device.index

    @property
    def is_sparse(self):
        return False

    @property
    def is_sparse_csr(self):
        return False

    def to(self, *, device, non_blocking=False):
        """The storage itself where it is on the device, else a copy there."""
        return conversions().moved(self, device, non_blocking)

    def cpu(self):
        """The storage itself on the CPU, else a copy there."""
        return self if self.device_type == DEV_CPU else conversions().moved(self, "cpu")

    def cuda(self, device=None, non_blocking=False):
        """The storage on a CUDA device: itself, or a copy."""
        return conversions().moved(self, "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device, non_blocking)

    def is_pinned(self, device=None):
        """Whether the bytes lie in page-locked memory."""
        return conversions().elements(self).is_pinned(device)

    def pin_memory(self, device=None):
        """A copy in page-locked memory; itself where it is there. TypeError beyond the CPU."""
        if self.device_type != DEV_CPU:
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return conversions().elements(self).pin_memory(device).untyped_storage()

    def type(self, dtype=None, non_blocking=False):
        """The name of the storage's class. Storages of other classes have dtypes: NotImplementedError for `dtype`."""
        if dtype is not None:
            raise NotImplementedError("UntypedStorage.type(dtype): bytes have no dtype; use TypedStorage(wrap_storage=storage, dtype=...).type(dtype)")
        return f"torch.{'' if self.device_type == DEV_CPU else self.device.type + '.'}storage.UntypedStorage"

    def double(self):
        return conversions().converted(self, "float64")

    def float(self):
        return conversions().converted(self, "float32")

    def half(self):
        return conversions().converted(self, "float16")

    def bfloat16(self):
        return conversions().converted(self, "bfloat16")

    def long(self):
        return conversions().converted(self, "int64")

    def int(self):
        return conversions().converted(self, "int32")

    def short(self):
        return conversions().converted(self, "int16")

    def char(self):
        return conversions().converted(self, "int8")

    def byte(self):
        return conversions().converted(self, "uint8")

    def bool(self):
        return conversions().converted(self, "bool")

    def complex_double(self):
        return conversions().converted(self, "complex128")

    def complex_float(self):
        return conversions().converted(self, "complex64")

    def float8_e5m2(self):
        return conversions().converted(self, "float8_e5m2")

    def float8_e4m3fn(self):
        return conversions().converted(self, "float8_e4m3fn")

    def float8_e5m2fnuz(self):
        return conversions().converted(self, "float8_e5m2fnuz")

    def float8_e4m3fnuz(self):
        return conversions().converted(self, "float8_e4m3fnuz")

    def clone(self):
        cdef Storage s
        if self.device_type == DEV_META:
            return meta_storage(self.length)
        if self.device_type != DEV_CPU:
            return conversions().elements(self).clone().untyped_storage()
        bytes_of(self)
        s = new_storage(self.length)
        memcpy(s.block.data, self.block.data, min(s.length, self.length))
        return s

    def copy_(self, Storage other not None, non_blocking=None):
        if other.length != self.length:
            raise RuntimeError(f"copy_(): storage sizes do not match: {self.length} and {other.length}")
        prepare_write(self, "copy_")
        memmove(bytes_of(self), bytes_of(other), self.length)
        return self

    def fill_(self, int value):
        prepare_write(self, "fill_")
        memset(bytes_of(self), value, self.length)
        return self

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        """A copy, which the copies of tensors over this storage share."""
        cdef tuple key = ("storage", id(self))
        if key not in memo:
            memo[key] = self, self.clone()          # the original with it, so that nothing else gets its identity
        return memo[key][1]

    def __sizeof__(self):
        return object.__sizeof__(self) + self.length

    def __repr__(self):
        return f"UntypedStorage(device={self.device}) of size {self.length}"


cdef class _Exporter:
    """A storage's bytes as a buffer. It holds the block, so that a view of it stays valid when the storage is resized or gone."""
    cdef Storage storage           # what keeps external memory alive
    cdef Storage held
    cdef bint writable

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.held.block.data, self.held.length, not self.writable, flags)


def exported(Storage storage not None, bint writable=False):
    """A view of a storage's bytes in host memory, for files to read from or to fill. RuntimeError where they are not to be written to."""
    cdef _Exporter e = _Exporter.__new__(_Exporter)
    bytes_of(storage)
    if writable:
        prepare_write(storage, "exported")
    e.storage = storage
    e.held = alias_storage(storage)
    e.writable = writable
    return memoryview(e)


cdef Storage slice_of(Storage s, slice index):
    """Some bytes of a storage as a storage over the same memory, which it holds: it keeps the bytes that the other has when that is resized."""
    cdef Py_ssize_t start, stop, step
    cdef Storage r
    if s.block == NULL and s.device_type != DEV_META:
        raise RuntimeError("the storage has not been initialised")
    start, stop, step = index.indices(s.length)
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    stop = max(start, stop)
    if s.device_type == DEV_META:
        return meta_storage(stop - start)
    expose(s)
    r = external_storage(s.block.data + start, stop - start, alias_storage(s), s.device_type, s.device_index)
    if is_read_only(s):
        set_read_only(r)
    return r


cdef char* bytes_of(Storage s) except NULL:
    """The address; an exception for storages without memory."""
    if s.block == NULL:
        if s.device_type == DEV_META:
            raise NotImplementedError("Not available for 'meta' tensors: the storage has no data")
        raise RuntimeError("the storage has not been initialised")
    if s.device_type != DEV_CPU:
        raise NotImplementedError(f"the bytes of a storage on a {'CUDA' if s.device_type == DEV_CUDA else device_type_name(s.device_type)} device are not in host memory: "
                                  "copy the tensor with .cpu() first")
    return s.block.data


cdef DeviceHooks hooks              # of CUDA
cdef DeviceHooks custom_hooks
cdef object _load_device = None    # the package's function that has the hooks filled in


def _set_device_loader(function not None):
    """What is called when tensors on CUDA are first wanted: it ends with `install_device_hooks`, or with RuntimeError."""
    global _load_device
    _load_device = function


cdef DeviceHooks* device_hooks() except NULL:
    """The hooks of CUDA; RuntimeError where there is no driver."""
    if hooks.allocate == NULL:
        try:
            _load_device()
        except RuntimeError as error:
            raise error.with_traceback(None)  # without the frames of imports: the caller asked for a device
    return &hooks


cdef DeviceHooks* installed_hooks() noexcept:
    return &hooks


cdef DeviceHooks* hooks_of(int device_type) except NULL:
    """The hooks of a device with an index; RuntimeError where there is no driver, or where no custom device has been registered."""
    if device_type == DEV_CUDA:
        return device_hooks()
    if custom_hooks.allocate == NULL:
        raise RuntimeError(f"no device of the type '{device_type_name(device_type)}' has been registered: see tensorrt_lite.backend.register_device")
    return &custom_hooks


cdef void install_custom_hooks(const DeviceHooks* given) noexcept:
    global custom_hooks
    custom_hooks = given[0]


cdef void install_device_hooks(const DeviceHooks* given) noexcept:
    global hooks
    hooks = given[0]


cdef Storage device_storage(trt_block* block, int64_t nbytes, int device_type, int index):
    """A storage over a block of device memory, whose reference it takes over."""
    cdef Storage s = Storage.__new__(Storage)
    s.length = nbytes
    s.can_resize = True
    s.device_type = device_type
    s.device_index = index
    s.block = block
    return s


cdef Storage new_storage(int64_t nbytes):
    cdef Storage s = Storage.__new__(Storage)
    s.length = nbytes
    s.can_resize = True
    s.block = block_alloc(nbytes)
    return s


cdef Storage meta_storage(int64_t nbytes):
    cdef Storage s = Storage.__new__(Storage)
    s.length = nbytes
    s.can_resize = True
    s.device_type = DEV_META
    return s


cdef Storage alias_storage(Storage s):
    """A second storage over the same memory, with a reference of its own to the block; it can't be resized."""
    cdef Storage r = Storage.__new__(Storage)
    r.length = s.length
    r.device_type = s.device_type
    r.device_index = s.device_index
    r.block = s.block
    trt_block_hold(s.block)
    return r


def host_alias(Storage storage not None):
    """Memory that the host can address, of whatever device, as a storage of the CPU."""
    cdef Storage r = alias_storage(storage)
    r.device_type = DEV_CPU
    r.device_index = 0
    return r


# ---- marks of blocks -----------------------------------------------------------------------------------------------

cdef int set_read_only(Storage s) except -1:
    s.block.flags |= TRT_BLOCK_READ_ONLY
    return 0


cdef int make_writable(Storage s, str op) except -1:
    """Give a storage a block that it may write to; RuntimeError over read-only memory."""
    cdef trt_block* old = s.block
    if old.flags & TRT_BLOCK_READ_ONLY:
        raise RuntimeError(
            f"{op}: the memory to write to is read-only (an array that is not writeable, a file mapped for reading, bytes, or a DLPack tensor exported as "
            "read-only). Use clone() to get a tensor that can be written to.")
    mutex_lock(lock_of(old))
    try:
        return own_block(s, old)
    finally:
        mutex_unlock(lock_of(old))


cdef int own_block(Storage s, trt_block* old) except -1:
    """Of the holders of a lazy block one after the other leaves it with a copy; who is left keeps it."""
    cdef trt_block* fresh
    if s.block != old:
        return 0                                        # another thread that writes to the same storage
    if old.refs == 1:
        old.flags &= ~TRT_BLOCK_LAZY                    # the other clones are gone
        return 0
    fresh = block_alloc(old.capacity)                   # all of it: tensors may reach beyond a storage that has shrunk
    memcpy(fresh.data, old.data, old.capacity)
    s.block = fresh
    block_drop(old)
    return 0


cdef int expose(Storage s) except -1:
    """Whoever gets the address may write to it at any time: the block is this storage's own, and no lazy clone shares it from now on."""
    if s.block != NULL and not s.block.flags & TRT_BLOCK_READ_ONLY:
        prepare_write(s, "data_ptr")
        s.block.flags |= TRT_BLOCK_EXPOSED
    return 0


cdef Storage lazy_clone_of(Storage s):
    cdef trt_block* b = s.block
    cdef Storage r = None
    if b == NULL or s.device_type != DEV_CPU:
        return None
    mutex_lock(lock_of(b))
    if not b.flags & ~TRT_BLOCK_LAZY and (b.flags or b.refs == 1):
        b.flags |= TRT_BLOCK_LAZY
        r = alias_storage(s)
        r.can_resize = True
    mutex_unlock(lock_of(b))
    return r


cdef Storage external_storage(void* data, int64_t nbytes, object owner, int device_type=DEV_CPU, int device_index=0):
    """A storage over memory that `owner` keeps alive; it can't be resized."""
    cdef Storage s = Storage.__new__(Storage)
    s.length = nbytes
    s.device_type = device_type
    s.device_index = device_index
    s.block = block_external(data, nbytes, release_owner, <void*>owner)
    Py_INCREF(owner)
    return s


cdef object owner_of(Storage s):
    """The object that lends a storage its memory, or None."""
    if s.block == NULL or not trt_block_returns_by(s.block, release_owner):
        return None
    return <object>trt_block_context(s.block)


cdef object mapped():
    from tensorrt_lite._C.core import mapped
    return mapped


cdef bint by_name() except -1:
    """Whether memory that is shared from now on gets a name."""
    return mapped().sharing_strategy() == "file_system"


cdef void release_owner(trt_block* b) noexcept nogil:
    with gil:
        Py_XDECREF(<PyObject*>trt_block_context(b))


def is_lazy(Storage storage not None):
    """Whether the next write to the storage copies it, because lazy clones share its memory."""
    return storage.block != NULL and bool(storage.block.flags & TRT_BLOCK_LAZY)


cdef int storage_resize(Storage s, int64_t nbytes) except -1:
    cdef trt_block* fresh
    cdef trt_block* old = s.block
    if nbytes < 0:
        raise RuntimeError(f"resize_(): the size must not be negative, got {nbytes}")
    if not s.can_resize:
        raise RuntimeError("Trying to resize storage that is not resizable")
    if s.device_type == DEV_META:
        s.length = nbytes
        return 0
    if s.device_type != DEV_CPU:
        return resize_on_device(s, nbytes)
    if nbytes > old.capacity:
        fresh = block_alloc(nbytes)
        memcpy(fresh.data, old.data, min(nbytes, s.length))
        s.block = fresh
        s.length = nbytes
        block_drop(old)
        return 0
    if nbytes < s.length and old.capacity >= (1 << 20) and not old.flags & TRT_BLOCK_LAZY:
        trt_give_back_pages(old.data + nbytes, old.data + old.capacity)
    s.length = nbytes
    return 0


cdef int resize_on_device(Storage s, int64_t nbytes) except -1:
    cdef Storage fresh
    cdef trt_block* old = s.block
    if nbytes > old.capacity:
        fresh = hooks_of(s.device_type).allocate(s.device_type, nbytes, s.device_index)
        hooks_of(s.device_type).move(fresh.block.data, old.data, min(nbytes, s.length), s.device_type, s.device_index)
        s.block = fresh.block
        fresh.block = old
    s.length = nbytes
    return 0

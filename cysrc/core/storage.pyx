"""Storage: an untyped run of bytes that tensors share.

Invariants: `length` never exceeds the block's capacity on CPU; a meta storage has a size and no block. Resizing swaps
the block, so a kernel that holds the old one stays safe.
"""
cimport cython
from libc.string cimport memcpy
from tensorrt_lite._C.core.allocator cimport trt_block, block_alloc, block_drop, block_external
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_META, make_device


@cython.freelist(256)
@cython.no_gc_clear
cdef class Storage:
    """An untyped storage: a resizable run of bytes on a device."""

    def __init__(self, nbytes=0, *, device=None):
        cdef int64_t n = nbytes
        if n < 0:
            raise RuntimeError(f"UntypedStorage(): the size must not be negative, got {n}")
        self.length = n
        self.can_resize = True
        self.device_type = DEV_CPU
        self.block = block_alloc(n)

    def __dealloc__(self):
        if self.block != NULL:
            block_drop(self.block)
            self.block = NULL

    def nbytes(self):
        return self.length

    def size(self):
        return self.length

    def __len__(self):
        return self.length

    def element_size(self):
        return 1

    def data_ptr(self):
        return <size_t>(self.block.data) if self.block != NULL else 0

    @property
    def _cdata(self):
        return <size_t><void*>self

    @property
    def device(self):
        return make_device(self.device_type, None)

    @property
    def is_cuda(self):
        return False

    def untyped(self):
        return self

    def resizable(self):
        return self.can_resize

    def resize_(self, int64_t nbytes):
        storage_resize(self, nbytes)
        return self

    def __getitem__(self, index):
        if isinstance(index, slice):
            return list(self.tobytes()[index])
        if index < -self.length or index >= self.length:
            raise IndexError(f"index {index} out of range for storage of size {self.length}")
        return (<unsigned char*>self.block.data)[index % self.length]

    def tobytes(self):
        """Return a copy of the bytes."""
        if self.block == NULL:
            raise NotImplementedError("Not available for 'meta' tensors: the storage has no data")
        return self.block.data[:self.length]

    def tolist(self):
        return list(self.tobytes())

    def clone(self):
        cdef Storage s = new_storage(self.length)
        memcpy(s.block.data, self.block.data, self.length)
        return s

    def copy_(self, Storage other not None, non_blocking=None):
        if other.length != self.length:
            raise RuntimeError(f"copy_(): storage sizes do not match: {self.length} and {other.length}")
        memcpy(self.block.data, other.block.data, self.length)
        return self

    def fill_(self, int value):
        cdef int64_t i
        for i in range(self.length):
            self.block.data[i] = <char>value
        return self

    def __repr__(self):
        return f"UntypedStorage(device={self.device}) of size {self.length}"


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


cdef Storage external_storage(void* data, int64_t nbytes, object owner):
    """A storage over memory that `owner` keeps alive; it can't be resized."""
    cdef Storage s = Storage.__new__(Storage)
    s.length = nbytes
    s.owner = owner
    s.block = block_external(data, nbytes, NULL, NULL)
    return s


cdef int storage_resize(Storage s, int64_t nbytes) except -1:
    cdef trt_block* fresh
    if nbytes < 0:
        raise RuntimeError(f"resize_(): the size must not be negative, got {nbytes}")
    if not s.can_resize:
        raise RuntimeError("Trying to resize storage that is not resizable")
    if s.device_type == DEV_META:
        s.length = nbytes
        return 0
    if nbytes > s.block.capacity or nbytes < s.block.capacity // 4:
        fresh = block_alloc(nbytes)
        memcpy(fresh.data, s.block.data, min(nbytes, s.length))
        block_drop(s.block)
        s.block = fresh
    s.length = nbytes
    return 0

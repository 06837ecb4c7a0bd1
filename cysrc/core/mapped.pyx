"""Memory that is mapped: files, and memory that processes share.

Shared memory is a nameless file of the system (memfd), handed on as a descriptor, or under the strategy "file_system" a file in
/dev/shm, handed on as its name. The nameless one is gone with the last process that has it, however that ends. The named one begins with a
count of the mappings and messages that refer to it, and a mark, without which no file is counted or removed; who takes the count to 0 removes the
file, and for processes that were killed multiprocessing's resource tracker does. All pages are there before the memory is used: where the system has none left, sharing raises, and no later write faults.
"""
cimport cython
from libc.stdint cimport INT64_MAX, int64_t
from weakref import WeakValueDictionary
from libc.string cimport memcpy, strerror
from posix.unistd cimport getpid
from tensorrt_lite._C.core.allocator cimport trt_block
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.storage cimport Storage, external_storage, new_storage, owner_of

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <unistd.h>
    #include <stdio.h>
    #include <stdint.h>
    #include "physical_memory.h"

    enum { TRT_COUNT_BYTES = 64 };        /* before the data of a named file; keeps the alignment of blocks */

    static int trt_reserve(int fd, int64_t n) {
      if (n > trt_physical()) return ENOMEM;
      int error;
      while ((error = posix_fallocate(fd, 0, n)) == EINTR) {}
      if (error == EOPNOTSUPP || error == EINVAL) error = ftruncate(fd, n) ? errno : 0;
      return error;
    }

    static int trt_failed(int fd, int error) { if (fd >= 0) close(fd); return -error; }

    /* A descriptor of n bytes without a name, or -errno. Its size is fixed, since a mapping beyond the end of a file is a fatal signal. */
    static int trt_new_nameless(int64_t n) {
      int fd = memfd_create("tensorrt_lite", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      int error;
      if (fd < 0 && errno == ENOSYS) {
        static int number = 0;
        char path[80];
        snprintf(path, sizeof path, "/dev/shm/tensorrt_lite_%d_%d", (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) unlink(path);
      }
      if (fd < 0) return -errno;
      if ((error = trt_reserve(fd, n))) return trt_failed(fd, error);
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
      return fd;
    }

    static int trt_new_named(const char* path, int64_t n) {
      int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error;
      if (fd < 0) return -errno;
      if ((error = trt_reserve(fd, n))) { unlink(path); return trt_failed(fd, error); }
      return fd;
    }

    static int64_t trt_file_size(int fd) {
      struct stat s;
      return fstat(fd, &s) ? -errno : (int64_t)s.st_size;
    }

    static char* trt_map(int fd, int64_t n, int flags) {
      void* p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, flags, fd, 0);
      return p == MAP_FAILED ? NULL : (char*)p;
    }

    /* Behind the count and the tracker: says that a file is ours. */
    #define TRT_MARK INT64_C(0x5f4d48535f545254)

    static int trt_is_marked(int fd) {
      int64_t head[3];
      return pread(fd, head, sizeof head, 0) == sizeof head && head[2] == TRT_MARK;
    }

    static int64_t trt_inode(int fd) {
      struct stat s;
      return fstat(fd, &s) || !S_ISREG(s.st_mode) ? -1 : (int64_t)s.st_ino;
    }

    /* Whether the path was removed: not where another file has taken it. */
    static int trt_unlink_inode(const char* path, int64_t inode) {
      struct stat s;
      return lstat(path, &s) == 0 && (int64_t)s.st_ino == inode && unlink(path) == 0;
    }

    static int64_t trt_count(char* base, int by) { return __atomic_add_fetch((int64_t*)base, by, __ATOMIC_ACQ_REL); }
    """
    enum:
        TRT_COUNT_BYTES
    int trt_new_nameless(int64_t n) nogil
    int trt_new_named(const char* path, int64_t n) nogil
    int64_t trt_file_size(int fd) nogil
    enum:
        MAP_PRIVATE
        MAP_SHARED
        MAP_POPULATE
        MAP_ANONYMOUS
    char* trt_map(int fd, int64_t n, int flags) nogil
    int64_t trt_count(char* base, int by) nogil
    int64_t trt_inode(int fd) nogil
    int trt_unlink_inode(const char* path, int64_t inode) nogil
    const int64_t TRT_MARK
    int trt_is_marked(int fd) nogil
    int munmap(void* p, size_t n) nogil
    int close(int fd) nogil
    int errno

STRATEGIES = frozenset(("file_descriptor", "file_system"))
cdef str _strategy = "file_descriptor"
cdef int64_t _names_given = 0
cdef object _named = WeakValueDictionary()              # counted mappings
cdef int _exit_of = 0                                   # the process whose end has been prepared for


def sharing_strategy():
    return _strategy


def set_sharing_strategy(str name not None):
    """How memory that is made from now on is handed to other processes."""
    global _strategy
    if name == "file_system":
        from multiprocessing import resource_tracker
        resource_tracker.ensure_running()               # before processes are forked, which then share it
    _strategy = name


cdef object failed(str what, int error, int64_t nbytes):
    import errno as codes
    hint = ""
    if error == codes.EMFILE:
        hint = ("; a process may have no more open files: raise the limit with `ulimit -n`, or call multiprocessing.set_sharing_strategy('file_system') "
                "at the beginning of the program")
    elif error in (codes.ENOSPC, codes.ENOMEM):
        hint = "; the shared memory of the system is used up (/dev/shm, or the memory itself)"
    return RuntimeError(f"unable to {what} shared memory of {nbytes} bytes: {strerror(error).decode()} ({error}){hint}")


@cython.no_gc
cdef class MappedMemory:
    """A mapping, unmapped with the last storage over it. `descriptor`: -1 where it has been closed; `name`: of a counted file in /dev/shm."""
    cdef char* base
    cdef int64_t mapped
    cdef readonly int descriptor
    cdef readonly object filename              # of a file that the program has named
    cdef readonly bytes name
    cdef bint copied                           # of a file whose mapping is this process's own
    cdef int64_t inode                         # of the named file
    cdef int process                           # whose mapping the count knows: a forked child has it uncounted
    cdef object __weakref__

    def __cinit__(self):
        self.descriptor = -1

    def __dealloc__(self):
        end_reference(self)
        if self.base != NULL:
            munmap(self.base, self.mapped)
        if self.descriptor >= 0:
            close(self.descriptor)


cdef str path_of(bytes name):
    """The file of a name, which is one of /dev/shm itself: names come with messages. RuntimeError for others."""
    if len(name) < 2 or name[:1] != b"/" or b"/" in name[1:] or b"\0" in name or name in (b"/.", b"/.."):
        raise RuntimeError(f"unable to open shared memory object <{name.decode(errors='replace')}> in read-write mode: Invalid argument (22); it must be '/' and a name")
    return "/dev/shm" + name.decode(errors="surrogateescape")


cdef inline bint is_marked(MappedMemory m) noexcept:
    return (<int64_t*>m.base)[2] == TRT_MARK


cdef int64_t tracker_identity() except? -1:
    """Which resource tracker this process reports to: processes that were not started by one another have different ones."""
    from multiprocessing import resource_tracker
    import os
    return os.fstat(resource_tracker._resource_tracker.getfd()).st_ino


cdef void end_reference(MappedMemory m) noexcept:
    """This process's mapping counts no longer; the last one takes the name with it."""
    if m.name is None or m.base == NULL or m.process != getpid():
        return
    m.process = 0
    if not is_marked(m) or trt_count(m.base, -1) > 0:
        return
    path = path_of(m.name).encode(errors="surrogateescape")
    if trt_unlink_inode(<const char*>path, m.inode):
        try:
            if (<int64_t*>m.base)[1] == tracker_identity():
                from multiprocessing import resource_tracker
                resource_tracker.unregister(m.name.decode(), "shared_memory")
        except Exception:                               # the tracker is gone: nobody warns of the name
            pass


def _at_exit():
    for m in list(_named.values()):
        end_reference(m)


cdef void count_mapping(MappedMemory m, bytes name) except *:
    """Give a mapping its name. What lives at the process's end is given up before the interpreter is taken apart."""
    global _exit_of
    from multiprocessing import util
    if _exit_of != getpid():
        util.Finalize(None, _at_exit, exitpriority=-100)
        _exit_of = getpid()
    trt_count(m.base, 1)
    m.name = name
    _named[id(m)] = m


cdef MappedMemory map_descriptor(int descriptor, int64_t nbytes, int flags, str what):
    """A mapping that takes the descriptor over. RuntimeError where the file is smaller, or the system refuses."""
    cdef MappedMemory m = MappedMemory.__new__(MappedMemory)
    cdef int64_t size = trt_file_size(descriptor)
    m.descriptor = descriptor
    if size < nbytes:
        raise RuntimeError(f"{what}: the file has {size} bytes, {nbytes} are to be mapped")
    with nogil:
        m.base = trt_map(descriptor, nbytes, flags)
    if m.base == NULL:
        raise failed("map", errno, nbytes)
    m.mapped = nbytes
    m.process = getpid()
    return m


cdef void forget_descriptor(MappedMemory m) noexcept:
    close(m.descriptor)
    m.descriptor = -1


cdef MappedMemory new_memory(int64_t nbytes, bint named):
    """Shared memory of this process, zeros."""
    global _names_given
    cdef int descriptor
    cdef int64_t size = max(nbytes, 1) + (TRT_COUNT_BYTES if named else 0)
    cdef MappedMemory m
    cdef bytes path
    if not named:
        with nogil:
            descriptor = trt_new_nameless(size)
        if descriptor < 0:
            raise failed("allocate", -descriptor, nbytes)
        return map_descriptor(descriptor, size, MAP_SHARED | MAP_POPULATE, "shared memory")
    import os
    from multiprocessing import resource_tracker
    _names_given += 1
    name = f"/tensorrt_lite_{getpid()}_{os.urandom(4).hex()}_{_names_given}"
    path = path_of(name.encode()).encode()
    descriptor = trt_new_named(path, size)
    if descriptor < 0:
        raise failed("allocate", -descriptor, nbytes)
    resource_tracker.register(name, "shared_memory")
    m = map_descriptor(descriptor, size, MAP_SHARED | MAP_POPULATE, "shared memory")
    (<int64_t*>m.base)[1] = tracker_identity()
    (<int64_t*>m.base)[2] = TRT_MARK
    m.inode = trt_inode(m.descriptor)
    count_mapping(m, name.encode())
    forget_descriptor(m)
    return m


cdef Storage storage_of(MappedMemory m, int64_t nbytes):
    return external_storage(m.base + (TRT_COUNT_BYTES if m.name is not None else 0), nbytes, m)


cdef MappedMemory memory_of(Storage s):
    """The mapping that a storage lies in; None for other memory."""
    owner = owner_of(s)
    return <MappedMemory>owner if isinstance(owner, MappedMemory) else None


def is_mapped(Storage s not None):
    """Whether other processes may see a storage's memory: it is shared, or a mapped file."""
    return memory_of(s) is not None


def filename_of(Storage s not None):
    cdef MappedMemory m = memory_of(s)
    return None if m is None or m.copied else m.filename if m.name is None else m.name.decode()


cdef int check_size(int64_t nbytes) except -1:
    if nbytes < 0 or nbytes > INT64_MAX - TRT_COUNT_BYTES:
        raise RuntimeError(f"the size of a storage must not be negative, got {nbytes}" if nbytes < 0 else f"no memory has {nbytes} bytes")
    return 0


def new_shared(int64_t nbytes, bint named=False):
    """A storage of `nbytes` bytes that can be handed to other processes, zeros."""
    check_size(nbytes)
    return storage_of(new_memory(nbytes, named), nbytes)


def move_to_shared(Storage s not None, bint named=False):
    """Move a storage's bytes to shared memory; all its tensors follow. Nothing where they can be handed on as they are."""
    cdef MappedMemory m = memory_of(s)
    cdef Storage fresh
    cdef trt_block* old
    cdef int64_t capacity
    if s.device_type != DEV_CPU:
        raise RuntimeError(f"_share_{'filename' if named else 'fd'}_: only available on CPU")
    if s.block == NULL:
        raise RuntimeError("the storage has not been initialised")
    if m is not None and (m.name is not None if named else m.descriptor >= 0 and m.name is None and m.filename is None):
        return
    while True:
        capacity = s.block.capacity                     # all of it: tensors may reach beyond a storage that has shrunk
        m = new_memory(capacity, named)
        if s.block.capacity <= capacity:                # no other thread has let it grow meanwhile
            break
    fresh = storage_of(m, capacity)
    old = s.block
    memcpy(fresh.block.data, old.data, old.capacity)
    s.block = fresh.block
    fresh.block = old


def is_named(Storage s not None, bint otherwise):
    """Whether a storage's memory is handed on by its name; `otherwise` where it cannot be handed on yet."""
    cdef MappedMemory m = memory_of(s)
    return otherwise if m is None or m.name is None and m.descriptor < 0 else m.name is not None


def descriptor_of(Storage s not None):
    """The descriptor by which a storage's memory is handed on; -1 where it has none any more."""
    cdef MappedMemory m = memory_of(s)
    return -1 if m is None or m.name is not None or m.filename is not None else m.descriptor


def identity_of(Storage s not None):
    """What is the same for all storages over the same shared memory, in all processes; None for other memory."""
    cdef MappedMemory m = memory_of(s)
    if m is None or m.name is None and m.descriptor < 0:
        return None
    return m.name if m.name is not None else identity_of_descriptor(m.descriptor)


def identity_of_descriptor(int descriptor):
    import os
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def from_descriptor(int descriptor, int64_t nbytes, bint keep=True):
    """A storage over another process's memory; the descriptor becomes the storage's. keep=False: it is closed, and handing the memory on copies it."""
    cdef MappedMemory m
    try:
        check_size(nbytes)
    except RuntimeError:
        close(descriptor)
        raise
    m = map_descriptor(descriptor, max(nbytes, 1), MAP_SHARED | MAP_POPULATE, "shared memory")
    if not keep:
        forget_descriptor(m)
    return storage_of(m, nbytes)


def new_pool(int64_t nbytes):
    """Shared memory for the storages of `part_of`, without a descriptor: handing them on copies them."""
    cdef MappedMemory m = MappedMemory.__new__(MappedMemory)
    check_size(nbytes)
    with nogil:
        m.base = trt_map(-1, max(nbytes, 1), MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE)
    if m.base == NULL:
        raise failed("allocate", errno, nbytes)
    m.mapped = max(nbytes, 1)
    m.process = getpid()
    return m


def part_of(MappedMemory m not None, int64_t offset, bytes data not None):
    """A storage of the given bytes, which are put at an offset of a pool."""
    if offset < 0 or offset > m.mapped or len(data) > m.mapped - offset:
        raise RuntimeError(f"{len(data)} bytes at {offset} do not fit a pool of {m.mapped}")
    memcpy(m.base + offset, <const char*>data, len(data))
    return external_storage(m.base + offset, len(data), m)


def add_reference(Storage s not None, int by=1):
    """Count a message that has a named memory's name (or its end)."""
    cdef MappedMemory m = memory_of(s)
    if m is not None and m.name is not None:
        trt_count(m.base, by)


def from_name(bytes name not None, int64_t nbytes):
    """A storage over memory that another process has named; the message's own reference is the caller's to end."""
    import os
    cdef MappedMemory m
    check_size(nbytes)
    cdef str path = path_of(name), shown = name.decode(errors="replace")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RuntimeError(f"unable to open shared memory object <{shown}> in read-write mode: {error.strerror} ({error.errno})") from None
    if trt_inode(descriptor) < 0 or not trt_is_marked(descriptor):
        os.close(descriptor)
        raise RuntimeError(f"unable to open shared memory object <{shown}>: the file is not one that this package has made")
    m = map_descriptor(descriptor, max(nbytes, 1) + TRT_COUNT_BYTES, MAP_SHARED | MAP_POPULATE, "shared memory")
    m.inode = trt_inode(m.descriptor)
    count_mapping(m, name)
    forget_descriptor(m)
    return storage_of(m, nbytes)


def map_file(filename, bint shared, int64_t nbytes):
    """The first bytes of a file as a storage. shared: writes go to the file, which is made and grown where it has fewer."""
    import os
    cdef MappedMemory m
    try:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o666)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in read-{'write' if shared else 'only'} mode: {error.strerror} ({error.errno})") from None
    try:
        size = os.fstat(descriptor).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
            os.ftruncate(descriptor, nbytes)
        if nbytes <= 0:
            return new_storage(0)
        m = map_descriptor(os.dup(descriptor), nbytes, MAP_SHARED if shared else MAP_PRIVATE, f"file <{filename}>")
    finally:
        os.close(descriptor)
    forget_descriptor(m)
    m.filename = os.fspath(filename)
    m.copied = not shared
    return storage_of(m, nbytes)

"""The caching allocator, after PyTorch's design: freeing returns a block to the pool of its stream, where the next allocation finds it
without a call to the driver.

Sizes are multiples of 512 bytes. Requests of up to 1 MB come from segments of 2 MB (the small pool), larger ones from segments of
20 MB, those of 10 MB and more from a segment of their own, in steps of 2 MB. A block serves the requests of the stream it was allocated on:
work there is ordered, so that a freed block may be given out while kernels that read it are still queued. `record_stream` names another
stream that uses a block: freed, it waits for an event of that stream. When the driver has no memory left, all cached segments that are
whole go back and the request is repeated; then OutOfMemoryError says what is held.

With expandable segments each pool has one range of addresses per stream, an arena, into which memory is mapped at its end or where it was given
back: no memory is lost between segments. Blocks of an arena that have no memory are in its list of neighbours and in no pool.

A MemoryPool is a set of free blocks of its own: of graphs, and of programs that ask for one. Other allocators (the driver's stream-ordered one, or
two functions of a shared library) take the place of all this for the default pool.
"""
from libc.stdlib cimport malloc, realloc, free, calloc
from libc.string cimport memmove, memset
from libc.stdint cimport uint64_t
from tensorrt_lite._C.cuda.driver cimport (
    DevicePointer, StreamHandle, EventHandle, MAX_DEVICES, enter_device, try_allocate, release, device_memory, event_create, event_record, event_done,
    event_destroy, stream_wait, synchronize_device, reserve_addresses, release_addresses, map_memory, unmap_memory, try_allocate_async, release_async, keep_pool)

cdef enum:
    UNIT = 512
    SMALL = 1 << 20
    SMALL_SEGMENT = 2 << 20
    LARGE_SEGMENT = 20 << 20
    OWN_SEGMENT = 10 << 20
    STEP = 2 << 20
    N_POWERS = 16                # sizes from 1 MB to 64 GB have their own divisions between powers of two

cdef enum:
    NATIVE = 0
    ASYNC = 1                    # the driver's stream-ordered allocator
    PLUGGED = 2                  # functions of a shared library
    DIRECT = 3                   # the driver at each request

cdef Device devices[MAX_DEVICES]
cdef int d_
for d_ in range(MAX_DEVICES):
    devices[d_].fraction = 1.0

# What PYTORCH_ALLOC_CONF sets.
cdef int64_t max_split = <int64_t>1 << 62, max_rounding = LARGE_SEGMENT
cdef double garbage_threshold = 0
cdef bint expandable = False
cdef int divisions[N_POWERS]
memset(divisions, 0, sizeof(divisions))
cdef int backend = NATIVE
cdef bint caching = True
cdef allocate_function plugged_allocate = NULL
cdef release_function plugged_release = NULL

cdef int64_t clock = 0          # counts requests: how long a block has been free
cdef int captures = 0
cdef object collector = None    # called before the driver is asked for memory: gives up what other processes no longer use
cdef list deferred = []         # blocks freed meanwhile that other streams use

cdef object out_of_memory_error = RuntimeError


# ---- pools of free blocks ------------------------------------------------------------------------------------------

cdef class MemoryPool:
    """Free blocks of each device. allocate, release: addresses of functions that segments come from and go to, 0 for the driver's."""

    def __init__(self, size_t allocate=0, size_t release=0, owner=None, bint use_on_oom=False, number=None):
        self.number = new_number() if number is None else number
        self.allocate = <allocate_function>allocate
        self.release = <release_function>release
        self.owner = owner
        self.use_on_oom = use_on_oom
        self.kept = []
        pools[self.number] = self

    def __dealloc__(self):
        cdef int i
        for i in range(MAX_DEVICES):
            free(self.free_blocks[i][0].items)
            free(self.free_blocks[i][1].items)

    def hold(self, int change):
        """Count those who use the pool; without one, what it holds is given back like other cached memory."""
        self.holders += change
        pools[self.number] = self
        if self.holders == 0:
            self.kept = []
        if self.holders == 0 and self.segments == 0:
            pools.pop(self.number, None)

    @property
    def use_count(self):
        return self.holders


cdef int last_number = -1


def new_number():
    """The number of a pool that is yet to be made."""
    global last_number
    last_number += 1
    return last_number


cdef dict pools = {}            # {number: MemoryPool} of those that somebody holds or that have memory
cdef MemoryPool default_pool = MemoryPool()
default_pool.hold(1)            # the default one stays


def pool_of(int number):
    """The pool of this number, which is made when it has no memory yet (or any more)."""
    return pools[number] if number in pools else MemoryPool(number=number)


def _set_out_of_memory_error(kind):
    global out_of_memory_error
    out_of_memory_error = kind


def _set_collector(function):
    """function() -> whether it has freed memory; None for none."""
    global collector
    collector = function


def _note_captures(int change):
    """A graph's recording begins (1) or ends (-1)."""
    global captures
    captures += change


cdef inline void add(Stat* s, int64_t change) noexcept:
    s.current += change
    if s.current > s.peak:
        s.peak = s.current
    if change > 0:
        s.allocated += change
    else:
        s.freed -= change


cdef inline void count(Device* d, bint small, int what, int64_t change) noexcept:
    add(&d.stats[0][what], change)
    add(&d.stats[2 if small else 1][what], change)


cdef inline void count_inactive(Device* d, Block* b, int change) noexcept:
    """A free block enters or leaves its pool: it counts when it is a part of a segment."""
    if b.before != NULL or b.after != NULL or b.arena != NULL:
        count(d, b.small, S_INACTIVE, change)
        count(d, b.small, S_INACTIVE_BYTES, change * b.size)


cdef inline Pool* pool_with(Block* b) noexcept:
    return &(<MemoryPool>b.pool).free_blocks[b.device][b.small]

cdef inline bint comes_before(Block* a, Block* b) noexcept:
    if a.stream != b.stream:
        return <size_t>a.stream < <size_t>b.stream
    if a.size != b.size:
        return a.size < b.size
    return a.address < b.address


cdef int position(Pool* p, Block* key) noexcept:
    """The first place whose block does not come before `key`."""
    cdef int low = 0, high = p.n, middle
    while low < high:
        middle = (low + high) // 2
        if comes_before(p.items[middle], key):
            low = middle + 1
        else:
            high = middle
    return low


cdef int insert(Pool* p, Block* b) except -1:
    cdef int i
    if p.n == p.capacity:
        p.capacity = max(64, 2 * p.capacity)
        p.items = <Block**>realloc(p.items, p.capacity * sizeof(Block*))
        if p.items == NULL:
            raise MemoryError
    i = position(p, b)
    memmove(p.items + i + 1, p.items + i, (p.n - i) * sizeof(Block*))
    p.items[i] = b
    p.n += 1
    return 0


cdef void take(Pool* p, int i) noexcept:
    p.n -= 1
    memmove(p.items + i, p.items + i + 1, (p.n - i) * sizeof(Block*))


cdef Block* best_fit(Pool* p, int64_t size, StreamHandle stream) noexcept:
    """The smallest free block of the stream that holds `size` bytes, taken from the pool. Blocks that are not to be split serve only requests
    of nearly their size."""
    cdef Block key
    cdef int i
    cdef Block* b
    key.stream = stream
    key.size = size
    key.address = 0
    i = position(p, &key)
    if i == p.n or p.items[i].stream != stream:
        return NULL
    b = p.items[i]
    if b.arena == NULL and (b.size >= max_split if size < max_split else b.size >= size + max_rounding):
        return NULL
    take(p, i)
    return b


# ---- allocation ----------------------------------------------------------------------------------------------------

cdef int64_t rounded(int64_t nbytes) noexcept:
    """The size of the block for a request: a multiple of 512, or one of a few sizes between two powers of two."""
    cdef int64_t floor = UNIT, step
    cdef int i = 0, n
    if nbytes < UNIT:
        return UNIT
    while floor <= nbytes >> 1:
        floor <<= 1
    while i < N_POWERS - 1 and (<int64_t>2 << 20) << i <= floor:
        i += 1
    n = divisions[i]
    if n > 1 and nbytes > UNIT * n:
        step = floor // n
        return (nbytes + step - 1) // step * step
    return (nbytes + UNIT - 1) // UNIT * UNIT


cdef Block* new_block(int device, bint small, StreamHandle stream, void* pool, DevicePointer address, int64_t size) except NULL:
    cdef Block* b = <Block*>calloc(1, sizeof(Block))
    if b == NULL:
        raise MemoryError
    b.device = device
    b.small = small
    b.stream = stream
    b.pool = pool
    b.address = address
    b.size = size
    b.mapped = True
    return b


cdef Block* new_neighbour(Block* b, int64_t offset) except NULL:
    """Cut a block in two; returns the part from `offset` on."""
    cdef Block* rest = new_block(b.device, b.small, b.stream, b.pool, b.address + offset, b.size - offset)
    rest.arena = b.arena
    rest.mapped = b.mapped
    rest.before = b
    rest.after = b.after
    if b.after != NULL:
        b.after.before = rest
    b.after = rest
    b.size = offset
    return rest


cdef bint allowed(int device, int64_t bytes) except -1:
    """Whether the program's fraction of the device's memory leaves room for more."""
    cdef Device* d = &devices[device]
    cdef size_t free_bytes = 0, total = 0
    if d.fraction >= 1:
        return True
    device_memory(&free_bytes, &total)
    return d.stats[0][S_RESERVED_BYTES].current + bytes <= <int64_t>(d.fraction * total)


cdef Block* new_segment(int device, int64_t size, bint small, StreamHandle stream, MemoryPool pool) except? NULL:
    """A block of fresh memory; NULL when the device has none."""
    cdef Device* d = &devices[device]
    cdef int64_t bytes = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT else (size + STEP - 1) // STEP * STEP
    cdef DevicePointer address = 0
    cdef Block* b
    if expandable and pool.allocate == NULL:
        return grow_arena(device, size, small, stream, pool)
    if not allowed(device, bytes):
        return NULL
    address = <DevicePointer><size_t>pool.allocate(bytes, device, stream) if pool.allocate != NULL else try_allocate(bytes)
    if address == 0:
        return NULL
    if d.n_segments == d.segments_capacity:
        d.segments_capacity = max(64, 2 * d.segments_capacity)
        d.segments = <Block**>realloc(d.segments, d.segments_capacity * sizeof(Block*))
        if d.segments == NULL:
            raise MemoryError
    b = new_block(device, small, stream, <void*>pool, address, bytes)
    d.segments[d.n_segments] = b
    d.n_segments += 1
    if history is not None:
        note(b"segment_alloc", device, address, bytes, stream)
    d.driver_allocations += 1
    pool.segments += 1
    count(d, small, S_SEGMENT, 1)
    count(d, small, S_RESERVED_BYTES, bytes)
    if bytes >= max_split:
        add(&d.oversize[1], 1)
    return b


cdef Block* cached_allocate(int device, int64_t nbytes, StreamHandle stream, MemoryPool pool) except NULL:
    """A block of at least `nbytes` bytes for work on `stream`. The device's context must be current."""
    global clock
    cdef Device* d = &devices[device]
    cdef int64_t size
    cdef bint small
    cdef Block* b
    if pool is None:
        if backend != NATIVE or not caching:
            return foreign_allocate(device, nbytes, stream)
        pool = default_pool
    size = rounded(nbytes)
    small = size <= SMALL
    if (d.n_waiting or deferred) and captures == 0:
        collect_waiting(d, False)
    clock += 1
    b = best_fit(&pool.free_blocks[device][small], size, stream)
    if b != NULL:
        count_inactive(d, b, -1)
    else:
        if garbage_threshold > 0 and captures == 0:
            collect_garbage(device)
        if collector is not None and collector():
            b = best_fit(&pool.free_blocks[device][small], size, stream)
            if b != NULL:
                count_inactive(d, b, -1)
        if b == NULL:
            b = new_segment(device, size, small, stream, pool)
        if b == NULL and captures == 0:
            d.retries += 1
            release_cached(device)
            b = new_segment(device, size, small, stream, pool)
        if b == NULL:
            b = borrow(device, size, small, stream)
        if b == NULL:
            d.ooms += 1
            if history is not None:
                note(b"oom", device, 0, nbytes, stream)
            out_of_memory(device, nbytes)
    # the rest of a block stays free where another request may want it
    if b.size - size >= UNIT if small or b.arena != NULL else size < max_split and b.size - size > SMALL:
        new_neighbour(b, size)
        insert(pool_with(b), b.after)
        count_inactive(d, b.after, 1)
    b.allocated = True
    b.requested = nbytes
    count(d, small, S_ALLOCATION, 1)
    count(d, small, S_ACTIVE, 1)
    count(d, small, S_ALLOCATED_BYTES, b.size)
    count(d, small, S_ACTIVE_BYTES, b.size)
    count(d, small, S_REQUESTED_BYTES, nbytes)
    if b.size >= max_split:
        add(&d.oversize[0], 1)
    if history is not None:
        note(b"alloc", device, b.address, b.size, stream)
    return b


cdef Block* borrow(int device, int64_t size, bint small, StreamHandle stream) except? NULL:
    """A block of a pool that lends its memory before a request fails."""
    cdef MemoryPool p
    cdef Block* b
    for p in pools.values():
        if p.use_on_oom:
            b = best_fit(&p.free_blocks[device][small], size, stream)
            if b != NULL:
                count_inactive(&devices[device], b, -1)
                return b
    return NULL


cdef int out_of_memory(int device, int64_t nbytes) except -1:
    cdef Device* d = &devices[device]
    cdef size_t free_bytes = 0, total = 0
    device_memory(&free_bytes, &total)
    allowed = f" {_size(<int64_t>(d.fraction * total))} allowed;" if d.fraction < 1 else ""
    raise out_of_memory_error(
        f"CUDA out of memory. Tried to allocate {_size(nbytes)}. GPU {device} has a total capacity of {_size(total)} of which {_size(free_bytes)} is free.{allowed} Of "
        f"the allocated memory {_size(d.stats[0][S_ALLOCATED_BYTES].current)} is allocated by tensors, and "
        f"{_size(d.stats[0][S_RESERVED_BYTES].current - d.stats[0][S_ALLOCATED_BYTES].current)} is reserved but unallocated.")


def _size(n):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:.2f} {name}"
    return f"{n} bytes"


cdef int cached_record_stream(Block* b, StreamHandle stream) except -1:
    """Work on `stream` uses the block: freed, it waits for what is queued there by then."""
    cdef int i
    if stream == b.stream:
        return 0
    for i in range(b.n_used_by):
        if b.used_by[i] == stream:
            return 0
    b.used_by = <StreamHandle*>realloc(b.used_by, (b.n_used_by + 1) * sizeof(StreamHandle))
    if b.used_by == NULL:
        raise MemoryError
    b.used_by[b.n_used_by] = stream
    b.n_used_by += 1
    return 0


cdef int cached_free(Block* b) except -1:
    cdef Device* d = &devices[b.device]
    if history is not None:
        note(b"free_requested", b.device, b.address, b.size, b.stream)
    b.allocated = False
    count(d, b.small, S_ALLOCATION, -1)
    count(d, b.small, S_ALLOCATED_BYTES, -b.size)
    count(d, b.small, S_REQUESTED_BYTES, -b.requested)
    if b.size >= max_split:
        add(&d.oversize[0], -1)
    if b.foreign:
        return foreign_free(d, b)
    if b.n_used_by == 0:
        return give_back(d, b)
    b.events_pending = 1                 # not free until the events are done, or recorded
    if captures:
        deferred.append(<size_t>b)
        return 0
    return record_events(d, b)


cdef int record_events(Device* d, Block* b) except -1:
    """The block waits for the streams that use it."""
    cdef Waiting* w
    cdef int i
    enter_device(b.device)
    for i in range(b.n_used_by):
        if d.n_waiting == d.waiting_capacity:
            d.waiting_capacity = max(16, 2 * d.waiting_capacity)
            d.waiting = <Waiting*>realloc(d.waiting, d.waiting_capacity * sizeof(Waiting))
            if d.waiting == NULL:
                raise MemoryError
        w = &d.waiting[d.n_waiting]
        w.block = b
        w.event = event_create(False)
        event_record(w.event, b.used_by[i])
        d.n_waiting += 1
    b.events_pending = b.n_used_by
    free(b.used_by)
    b.used_by = NULL
    b.n_used_by = 0
    return 0


cdef int collect_waiting(Device* d, bint wait) except -1:
    """Give back the blocks whose streams have gone on; with `wait`, all."""
    global deferred
    cdef int i = 0
    cdef Block* b
    cdef Waiting w
    cdef list freed = deferred
    if freed:
        deferred = []
        for address in freed:
            b = <Block*><size_t>address
            record_events(&devices[b.device], b)
    while i < d.n_waiting:
        if not wait and not event_done(d.waiting[i].event, False):
            i += 1
            continue
        # out of the list first: while this thread waits others look at it
        w = d.waiting[i]
        d.n_waiting -= 1
        d.waiting[i] = d.waiting[d.n_waiting]
        if wait:
            event_done(w.event, True)
        event_destroy(w.event)
        b = w.block
        b.events_pending -= 1
        if b.events_pending == 0:
            give_back(d, b)
    return 0


cdef inline bint is_free(Block* b) noexcept:
    return b != NULL and b.mapped and not b.allocated and b.events_pending == 0


cdef void set_first(Device* d, Block* old, Block* new) noexcept:
    """Another block begins a segment."""
    cdef int i
    if old.arena != NULL:
        (<Arena*>old.arena).first = new
        return
    for i in range(d.n_segments):
        if d.segments[i] == old:
            d.segments[i] = new
            return


cdef void absorb_before(Device* d, Block* b) noexcept:
    cdef Block* other = b.before
    b.address = other.address
    b.size += other.size
    b.before = other.before
    if b.before != NULL:
        b.before.after = b
    else:
        set_first(d, other, b)
    free(other)


cdef void absorb_after(Block* b) noexcept:
    cdef Block* other = b.after
    b.size += other.size
    b.after = other.after
    if b.after != NULL:
        b.after.before = b
    free(other)


cdef void take_out(Device* d, Block* b) noexcept:
    """Remove a free block from its pool."""
    cdef Pool* p = pool_with(b)
    count_inactive(d, b, -1)
    take(p, position(p, b))


cdef int put_in(Device* d, Block* b) except -1:
    """Into its pool, joined with free neighbours."""
    if is_free(b.before):
        take_out(d, b.before)
        absorb_before(d, b)
    if is_free(b.after):
        take_out(d, b.after)
        absorb_after(b)
    b.freed_at = clock
    insert(pool_with(b), b)
    count_inactive(d, b, 1)
    return 0


cdef int give_back(Device* d, Block* b) except -1:
    cdef DevicePointer address = b.address
    cdef int64_t size = b.size
    count(d, b.small, S_ACTIVE, -1)
    count(d, b.small, S_ACTIVE_BYTES, -b.size)
    put_in(d, b)
    return note(b"free_completed", b.device, address, size, b.stream) if history is not None else 0


# ---- expandable segments -------------------------------------------------------------------------------------------

cdef Block* grow_arena(int device, int64_t size, bint small, StreamHandle stream, MemoryPool pool) except? NULL:
    """A free block of at least `size` bytes, by mapping memory where free addresses continue free blocks; NULL when the device has none."""
    cdef Device* d = &devices[device]
    cdef Arena* a
    cdef Block* b
    cdef int64_t before, after
    cdef int i
    for i in range(d.n_arenas):
        a = d.arenas[i]
        if a.pool != <void*>pool or a.stream != stream or a.small != small:
            continue
        b = a.first
        while b != NULL:
            if not b.mapped:
                before = b.before.size if is_free(b.before) else 0
                after = b.after.size if is_free(b.after) else 0
                if before + b.size + after >= size:
                    return map_into(d, a, b, size - before)
            b = b.after
    a = new_arena(device, size, small, stream, pool)
    return map_into(d, a, a.first, size)


cdef Arena* new_arena(int device, int64_t size, bint small, StreamHandle stream, MemoryPool pool) except NULL:
    cdef Device* d = &devices[device]
    cdef size_t free_bytes = 0, total = 0
    cdef int64_t reach
    cdef Arena* a = <Arena*>calloc(1, sizeof(Arena))
    if a == NULL:
        raise MemoryError
    d.arenas = <Arena**>realloc(d.arenas, (d.n_arenas + 1) * sizeof(Arena*))
    device_memory(&free_bytes, &total)
    a.chunk = SMALL_SEGMENT if small else LARGE_SEGMENT
    # addresses cost nothing: room for all of the memory and for holes
    reach = max(<int64_t>(total + total // 8), size)
    a.n_chunks = <int>((reach + a.chunk - 1) // a.chunk)
    a.handles = <uint64_t*>calloc(a.n_chunks, sizeof(uint64_t))
    if d.arenas == NULL or a.handles == NULL:
        raise MemoryError
    a.base = reserve_addresses(a.n_chunks * a.chunk)
    a.stream = stream
    a.pool = <void*>pool
    a.small = small
    a.first = new_block(device, small, stream, <void*>pool, a.base, a.n_chunks * a.chunk)
    a.first.arena = a
    a.first.mapped = False
    d.arenas[d.n_arenas] = a
    d.n_arenas += 1
    pool.segments += 1
    count(d, small, S_SEGMENT, 1)
    return a


cdef Block* map_into(Device* d, Arena* a, Block* b, int64_t needed) except? NULL:
    """Map memory at the start of a block without any, `needed` bytes or all of it; returns the block joined with its free neighbours, in no pool."""
    cdef int first = <int>((b.address - a.base) // a.chunk), i
    cdef int last = min(first + <int>((needed + a.chunk - 1) // a.chunk), first + <int>(b.size // a.chunk))
    if not allowed(b.device, (last - first) * a.chunk):
        forget_empty(d, a)
        return NULL
    for i in range(first, last):
        a.handles[i] = map_memory(a.base + i * a.chunk, a.chunk, b.device)
        if a.handles[i] == 0:
            unmap_chunks(d, a, first, i)
            forget_empty(d, a)
            return NULL
        a.n_mapped += 1
        count(d, a.small, S_RESERVED_BYTES, a.chunk)
        d.driver_allocations += 1
    if history is not None:
        note(b"segment_map", b.device, b.address, (last - first) * a.chunk, a.stream)
    if b.size > (last - first) * a.chunk:
        new_neighbour(b, (last - first) * a.chunk)
    b.mapped = True
    if is_free(b.before):
        take_out(d, b.before)
        absorb_before(d, b)
    if is_free(b.after):
        take_out(d, b.after)
        absorb_after(b)
    return b


cdef int unmap_chunks(Device* d, Arena* a, int first, int last) except -1:
    cdef int i
    for i in range(first, last):
        unmap_memory(a.base + i * a.chunk, a.chunk, a.handles[i])
        a.handles[i] = 0
        a.n_mapped -= 1
        count(d, a.small, S_RESERVED_BYTES, -a.chunk)
        d.driver_frees += 1
    return 0


cdef bint unmap_free(Device* d, Block* b) except -1:
    """Give back the memory of the whole chunks inside a free block, which leaves its pool."""
    cdef Arena* a = <Arena*>b.arena
    cdef int first = <int>((b.address - a.base + a.chunk - 1) // a.chunk), last = <int>((b.address - a.base + b.size) // a.chunk)
    cdef int64_t start = a.base + first * a.chunk - b.address, end = start + (last - first) * a.chunk
    cdef Block* part = b
    cdef Block* rest = NULL
    cdef StreamHandle stream = a.stream
    cdef int device = b.device
    if first >= last:
        return False
    take_out(d, b)
    if end < b.size:
        rest = new_neighbour(b, end)
    if start > 0:
        part = new_neighbour(b, start)
    part.mapped = False
    unmap_chunks(d, a, first, last)
    if part != b:
        put_in(d, b)
    if rest != NULL:
        put_in(d, rest)
    if part.before != NULL and not part.before.mapped:
        absorb_before(d, part)
    if part.after != NULL and not part.after.mapped:
        absorb_after(part)
    start = a.base + first * a.chunk
    end = start + (last - first) * a.chunk
    forget_empty(d, a)
    if history is not None:
        note(b"segment_unmap", device, start, end - start, stream)
    return True


cdef int forget_empty(Device* d, Arena* a) except -1:
    """Return the addresses of an arena without memory."""
    cdef int i
    if a.n_mapped:
        return 0
    release_addresses(a.base, a.n_chunks * a.chunk)
    for i in range(d.n_arenas):
        if d.arenas[i] == a:
            d.n_arenas -= 1
            d.arenas[i] = d.arenas[d.n_arenas]
            break
    count(d, a.small, S_SEGMENT, -1)
    (<MemoryPool>a.pool).segments -= 1
    free(a.first)
    free(a.handles)
    free(a)
    return 0


# ---- giving memory back to the driver ------------------------------------------------------------------------------

cdef bint release_block(Device* d, Block* b) except -1:
    """Return a free block's memory where it is whole; False where it is a part of what is in use."""
    cdef MemoryPool pool = <MemoryPool>b.pool
    cdef int i
    if b.arena != NULL:
        return unmap_free(d, b)
    if b.before != NULL or b.after != NULL:
        return False
    take_out(d, b)
    if pool.release != NULL:
        pool.release(<void*><size_t>b.address, b.size, b.device, b.stream)
    else:
        release(b.address)
    d.driver_frees += 1
    pool.segments -= 1
    count(d, b.small, S_SEGMENT, -1)
    count(d, b.small, S_RESERVED_BYTES, -b.size)
    if b.size >= max_split:
        add(&d.oversize[1], -1)
    for i in range(d.n_segments):
        if d.segments[i] == b:
            d.n_segments -= 1
            d.segments[i] = d.segments[d.n_segments]
            break
    if history is not None:
        note(b"segment_free", b.device, b.address, b.size, b.stream)
    free(b)
    return True


cdef int release_cached(int device) except -1:
    """Return every segment that is wholly free. The memory of graphs stays while they live, for they write to it at every launch."""
    cdef Device* d = &devices[device]
    cdef MemoryPool pool
    cdef Pool* p
    cdef int k, i
    if captures:
        return 0                                 # the driver must not be waited for now
    collect_waiting(d, True)
    synchronize_device()
    d.synchronizations += 1
    if backend == ASYNC:
        keep_pool(device, False)
    for pool in list(pools.values()):
        if pool is not default_pool and pool.holders and pool.allocate == NULL and not pool.use_on_oom:
            continue
        for k in range(2):
            p = &pool.free_blocks[device][k]
            i = 0
            while i < p.n:
                # what is left of a block in use by others may come into any place of the pool
                i = 0 if release_block(d, p.items[i]) else i + 1
        pool.hold(0)
    return 0


cdef int collect_garbage(int device) except -1:
    """Above the threshold: return what has been free for longest, until as much as needed is back."""
    cdef Device* d = &devices[device]
    cdef Pool* p = &default_pool.free_blocks[device][0]
    cdef size_t free_bytes = 0, total = 0
    cdef Block* oldest
    cdef int64_t limit
    cdef int i
    cdef set kept = set()
    device_memory(&free_bytes, &total)
    limit = <int64_t>(garbage_threshold * min(d.fraction, 1.0) * total)
    if d.stats[0][S_RESERVED_BYTES].current <= limit:
        return 0
    synchronize_device()
    while d.stats[0][S_RESERVED_BYTES].current > limit:
        oldest = NULL
        for i in range(p.n):
            if (oldest == NULL or p.items[i].freed_at < oldest.freed_at) and p.items[i].address not in kept:
                oldest = p.items[i]
        if oldest == NULL:
            break
        kept.add(oldest.address)
        release_block(d, oldest)
    return 0


# ---- other allocators ----------------------------------------------------------------------------------------------

cdef Block* foreign_allocate(int device, int64_t nbytes, StreamHandle stream) except NULL:
    """Memory for one request from the driver's stream-ordered allocator or the functions of a library."""
    cdef Device* d = &devices[device]
    cdef Block* b
    cdef DevicePointer address
    cdef int kind = DIRECT if backend == NATIVE else backend
    if kind == DIRECT:
        address = try_allocate(nbytes)
        if address == 0:
            release_cached(device)
            address = try_allocate(nbytes)
    elif kind == ASYNC:
        if d.driver_allocations == 0:
            keep_pool(device, True)
        address = try_allocate_async(nbytes, stream)
        if address == 0:
            d.retries += 1
            release_cached(device)
            address = try_allocate_async(nbytes, stream)
    else:
        address = <DevicePointer><size_t>plugged_allocate(nbytes, device, stream)
    if address == 0:
        d.ooms += 1
        out_of_memory(device, nbytes)
    b = new_block(device, nbytes <= SMALL, stream, NULL, address, nbytes)
    b.foreign = kind
    b.allocated = True
    b.requested = nbytes
    d.driver_allocations += 1
    count_foreign(d, b, 1)
    count(d, b.small, S_ALLOCATION, 1)
    count(d, b.small, S_ALLOCATED_BYTES, nbytes)
    count(d, b.small, S_REQUESTED_BYTES, nbytes)
    return b


cdef void count_foreign(Device* d, Block* b, int change) noexcept:
    count(d, b.small, S_SEGMENT, change)
    count(d, b.small, S_ACTIVE, change)
    count(d, b.small, S_ACTIVE_BYTES, change * b.size)
    count(d, b.small, S_RESERVED_BYTES, change * b.size)


cdef int foreign_free(Device* d, Block* b) except -1:
    """The allocators order memory by streams: the block's own waits for the others that use it."""
    cdef EventHandle event
    cdef int i
    enter_device(b.device)
    for i in range(b.n_used_by):
        event = event_create(False)
        event_record(event, b.used_by[i])
        stream_wait(b.stream, event)
        event_destroy(event)
    if b.foreign == ASYNC:
        release_async(b.address, b.stream)
    elif b.foreign == DIRECT:
        release(b.address)
    else:
        plugged_release(<void*><size_t>b.address, b.size, b.device, b.stream)
    d.driver_frees += 1
    count_foreign(d, b, -1)
    free(b.used_by)
    free(b)
    return 0


def configure(dict settings not None):
    """Settings by their names in PYTORCH_ALLOC_CONF, sizes in bytes; `divisions` a list of 16."""
    global max_split, max_rounding, garbage_threshold, expandable, backend
    cdef int i
    kind = settings.get("backend")
    if kind is not None:
        if (ASYNC if kind == "cudaMallocAsync" else NATIVE) != backend and is_initialized():
            raise RuntimeError("Can't swap an already initialized allocator")
        backend = ASYNC if kind == "cudaMallocAsync" else NATIVE
    max_split = settings.get("max_split_size", max_split)
    max_rounding = settings.get("max_non_split_rounding", max_rounding)
    garbage_threshold = settings.get("garbage_collection_threshold", garbage_threshold)
    expandable = settings.get("expandable_segments", expandable)
    for i, n in enumerate(settings.get("divisions", ())):
        divisions[i] = n
    for i in range(MAX_DEVICES):
        devices[i].fraction = settings.get("per_process_memory_fraction", devices[i].fraction)


def plug(size_t allocate, size_t release):
    """Take all memory from two functions: void* (ssize_t size, int device, stream), void (void*, ssize_t size, int device, stream)."""
    global backend, plugged_allocate, plugged_release
    if is_initialized():
        raise RuntimeError("Can't swap an already initialized allocator")
    plugged_allocate = <allocate_function>allocate
    plugged_release = <release_function>release
    backend = PLUGGED


def backend_name():
    return ("native", "cudaMallocAsync", "pluggable")[backend]


cdef bint is_initialized() noexcept:
    cdef int i
    for i in range(MAX_DEVICES):
        if devices[i].driver_allocations:
            return True
    return False


cdef Device* device_state(int device) except NULL:
    if device < 0 or device >= MAX_DEVICES:
        raise ValueError(f"invalid device index {device}")
    return &devices[device]


cdef int64_t largest_split() noexcept:
    return max_split if max_split < <int64_t>1 << 62 else -1


def empty_cache():
    """Return the free segments of all devices to the driver."""
    cdef int i
    for i in range(MAX_DEVICES):
        if devices[i].n_segments or devices[i].n_arenas or backend != NATIVE and devices[i].driver_allocations:
            enter_device(i)
            release_cached(i)


def set_caching(bint on):
    """Off: each request goes to the driver, and its memory back at once. Returns what was set."""
    global caching
    before, caching = caching, on
    return before


# ---- the history of requests ---------------------------------------------------------------------------------------

cdef object history = None      # entries, latest last; None: off
cdef object frames_now = None   # () -> the Python frames of a request
cdef dict frames_of = {}        # {(device, address): frames} of what is in use


def record_history(entries, frames):
    """Note requests in a deque from now on, with what `frames` returns for each; None stops."""
    global history, frames_now
    history = entries
    frames_now = frames
    if entries is None:
        frames_of.clear()


# Called where the lists of blocks are whole: it makes Python objects, and a collection of garbage may free blocks.
cdef int note(bytes action, int device, DevicePointer address, int64_t size, StreamHandle stream) except -1:
    import time
    frames = frames_now() if frames_now is not None else []
    if action == b"alloc" and frames:
        frames_of[device, address] = frames
    elif action == b"free_completed":
        frames_of.pop((device, address), None)
    history.append((device, {"action": action.decode(), "addr": address, "size": size, "stream": <size_t>stream, "time_us": time.time_ns() // 1000,
                             "frames": frames}))
    return 0


cdef list frames_at(int device, DevicePointer address):
    return frames_of.get((device, address), [])


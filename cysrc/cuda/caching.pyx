"""The caching allocator, after PyTorch's design: freeing returns a block to the pool of its stream, where the next allocation finds it
without a call to the driver.

Sizes are multiples of 512 bytes. Requests of up to 1 MB come from segments of 2 MB (the small pool), larger ones from segments of
20 MB, those of 10 MB and more from a segment of their own, in steps of 2 MB. A block serves the requests of the stream it was allocated on:
work there is ordered, so that a freed block may be given out while kernels that read it are still queued. `record_stream` names another
stream that uses a block: freed, it waits for an event of that stream. When the driver has no memory left, all cached segments that are
whole go back and the request is repeated; then OutOfMemoryError says what is held.
"""
from libc.stdlib cimport malloc, realloc, free, calloc
from libc.string cimport memmove, memset
from tensorrt_lite._C.cuda.driver cimport (
    DevicePointer, StreamHandle, EventHandle, MAX_DEVICES, enter_device, try_allocate, release, device_memory, event_create, event_record, event_done,
    event_destroy, synchronize_device)

cdef enum:
    UNIT = 512
    SMALL = 1 << 20
    SMALL_SEGMENT = 2 << 20
    LARGE_SEGMENT = 20 << 20
    OWN_SEGMENT = 10 << 20
    STEP = 2 << 20

# Statistics are kept for all blocks and for the two pools: current, peak, all ever allocated, all ever freed.
cdef enum:
    S_ALLOCATION = 0            # blocks in use
    S_SEGMENT = 1
    S_ACTIVE = 2                # in use, or waiting for a stream
    S_INACTIVE = 3              # free parts of segments that are in use
    S_ALLOCATED_BYTES = 4
    S_RESERVED_BYTES = 5
    S_ACTIVE_BYTES = 6
    S_INACTIVE_BYTES = 7
    S_REQUESTED_BYTES = 8
    N_STATS = 9

cdef tuple STAT_NAMES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                         "requested_bytes")

cdef struct Stat:
    int64_t current, peak, allocated, freed

cdef struct Pool:               # free blocks by (stream, size, address)
    Block** items
    int n, capacity

cdef struct Waiting:            # a freed block and the event of a stream that still uses it
    Block* block
    EventHandle event

cdef struct Device:
    Pool pools[2]               # large, small
    Waiting* waiting
    int n_waiting, waiting_capacity
    Block** segments            # the first block of each
    int n_segments, segments_capacity
    Stat stats[3][9]            # all, large, small
    int64_t retries, ooms, driver_allocations, driver_frees
    double fraction             # of the device's memory that may be reserved

cdef Device devices[MAX_DEVICES]
cdef int d_
for d_ in range(MAX_DEVICES):
    devices[d_].fraction = 1.0

cdef object out_of_memory_error = RuntimeError

# Pools of graphs: their blocks are keyed by a token in the place of a stream, and while a graph lives its memory stays, for the graph writes
# to it at every launch. {token: number of graphs}
cdef dict private_pools = {}
cdef size_t next_token = 3


def _new_pool():
    """The token of a fresh private pool: odd, so that it is no address of a stream."""
    global next_token
    next_token += 2
    return next_token


def _hold_pool(size_t token, int change):
    """Count the graphs that live in a pool; without one its memory is cached like any other."""
    held = private_pools.get(token, 0) + change
    if held > 0:
        private_pools[token] = held
    else:
        private_pools.pop(token, None)


def _set_out_of_memory_error(kind):
    global out_of_memory_error
    out_of_memory_error = kind


cdef inline void count(Device* d, bint small, int what, int64_t change) noexcept:
    cdef int k
    cdef Stat* s
    for k in range(2):
        s = &d.stats[0 if k == 0 else 2 if small else 1][what]
        s.current += change
        if s.current > s.peak:
            s.peak = s.current
        if change > 0:
            s.allocated += change
        else:
            s.freed -= change


# ---- pools ---------------------------------------------------------------------------------------------------------

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
    """The smallest free block of the stream that holds `size` bytes, taken from the pool; a large request does not break a far larger one."""
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
    if size >= LARGE_SEGMENT and b.size >= size + LARGE_SEGMENT:
        return NULL
    take(p, i)
    return b


# ---- allocation ----------------------------------------------------------------------------------------------------

cdef Block* new_block() except NULL:
    cdef Block* b = <Block*>calloc(1, sizeof(Block))
    if b == NULL:
        raise MemoryError
    return b


cdef Block* new_segment(int device, int64_t size, bint small, StreamHandle stream) except? NULL:
    """A block of fresh memory; NULL when the device has none."""
    cdef Device* d = &devices[device]
    cdef int64_t bytes = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT else (size + STEP - 1) // STEP * STEP
    cdef size_t free_bytes = 0, total = 0
    cdef DevicePointer address = 0
    cdef Block* b
    if d.fraction < 1:
        device_memory(&free_bytes, &total)
        if d.stats[0][S_RESERVED_BYTES].current + bytes > <int64_t>(d.fraction * total):
            return NULL
    address = try_allocate(bytes)
    if address == 0:
        return NULL
    if d.n_segments == d.segments_capacity:
        d.segments_capacity = max(64, 2 * d.segments_capacity)
        d.segments = <Block**>realloc(d.segments, d.segments_capacity * sizeof(Block*))
        if d.segments == NULL:
            raise MemoryError
    b = new_block()
    b.address = address
    b.size = bytes
    b.device = device
    b.small = small
    b.stream = stream
    d.segments[d.n_segments] = b
    d.n_segments += 1
    d.driver_allocations += 1
    count(d, small, S_SEGMENT, 1)
    count(d, small, S_RESERVED_BYTES, bytes)
    return b


cdef Block* cached_allocate(int device, int64_t nbytes, StreamHandle stream) except NULL:
    """A block of at least `nbytes` bytes for work on `stream`. The device's context must be current."""
    cdef int64_t size = max(<int64_t>UNIT, (nbytes + UNIT - 1) // UNIT * UNIT)
    cdef bint small = size <= SMALL
    cdef Device* d = &devices[device]
    cdef Block* b
    cdef Block* rest
    if d.n_waiting and not <size_t>stream & 1:
        collect_waiting(d, False)                # a stream that records a graph must not be asked for its events
    b = best_fit(&d.pools[small], size, stream)
    if b != NULL:
        if b.before != NULL or b.after != NULL:
            count(d, small, S_INACTIVE, -1)
            count(d, small, S_INACTIVE_BYTES, -b.size)
    else:
        b = new_segment(device, size, small, stream)
        if b == NULL:
            d.retries += 1
            release_cached(device)
            b = new_segment(device, size, small, stream)
            if b == NULL:
                d.ooms += 1
                out_of_memory(device, nbytes)
    # the rest of a block stays free where another request may want it
    if b.size - size >= UNIT if small else b.size - size > SMALL:
        rest = new_block()
        rest.address = b.address + size
        rest.size = b.size - size
        rest.device = device
        rest.small = small
        rest.stream = b.stream
        rest.before = b
        rest.after = b.after
        if b.after != NULL:
            b.after.before = rest
        b.after = rest
        b.size = size
        insert(&d.pools[small], rest)
        count(d, small, S_INACTIVE, 1)
        count(d, small, S_INACTIVE_BYTES, rest.size)
    b.allocated = True
    b.requested = nbytes
    count(d, small, S_ALLOCATION, 1)
    count(d, small, S_ACTIVE, 1)
    count(d, small, S_ALLOCATED_BYTES, b.size)
    count(d, small, S_ACTIVE_BYTES, b.size)
    count(d, small, S_REQUESTED_BYTES, nbytes)
    return b


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
    cdef Waiting* w
    cdef int i
    b.allocated = False
    count(d, b.small, S_ALLOCATION, -1)
    count(d, b.small, S_ALLOCATED_BYTES, -b.size)
    count(d, b.small, S_REQUESTED_BYTES, -b.requested)
    if b.n_used_by == 0:
        return give_back(d, b)
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
        b.events_pending += 1
    free(b.used_by)
    b.used_by = NULL
    b.n_used_by = 0
    return 0


cdef int collect_waiting(Device* d, bint wait) except -1:
    """Give back the blocks whose streams have gone on; with `wait`, all."""
    cdef int i = 0
    cdef Block* b
    while i < d.n_waiting:
        if not event_done(d.waiting[i].event, wait):
            i += 1
            continue
        b = d.waiting[i].block
        event_destroy(d.waiting[i].event)
        d.n_waiting -= 1
        d.waiting[i] = d.waiting[d.n_waiting]
        b.events_pending -= 1
        if b.events_pending == 0:
            give_back(d, b)
    return 0


cdef inline bint is_free(Block* b) noexcept:
    return b != NULL and not b.allocated and b.events_pending == 0


cdef int give_back(Device* d, Block* b) except -1:
    """Into the pool, joined with free neighbours."""
    cdef Block* other
    cdef int64_t original = b.size, joined = 0
    cdef int neighbours = 0
    if is_free(b.before):
        other = b.before
        take(&d.pools[b.small], position(&d.pools[b.small], other))
        joined += other.size
        neighbours += 1
        b.address = other.address
        b.size += other.size
        b.before = other.before
        if b.before != NULL:
            b.before.after = b
        else:
            replace_segment(d, other, b)
        free(other)
    if is_free(b.after):
        other = b.after
        take(&d.pools[b.small], position(&d.pools[b.small], other))
        joined += other.size
        neighbours += 1
        b.size += other.size
        b.after = other.after
        if b.after != NULL:
            b.after.before = b
        free(other)
    if neighbours:
        count(d, b.small, S_INACTIVE, -neighbours)
        count(d, b.small, S_INACTIVE_BYTES, -joined)
    count(d, b.small, S_ACTIVE, -1)
    count(d, b.small, S_ACTIVE_BYTES, -original)
    insert(&d.pools[b.small], b)
    if b.before != NULL or b.after != NULL:
        count(d, b.small, S_INACTIVE, 1)
        count(d, b.small, S_INACTIVE_BYTES, b.size)
    return 0


cdef void replace_segment(Device* d, Block* old, Block* new) noexcept:
    cdef int i
    for i in range(d.n_segments):
        if d.segments[i] == old:
            d.segments[i] = new
            return


cdef int release_cached(int device) except -1:
    """Return every segment that is wholly free to the driver."""
    cdef Device* d = &devices[device]
    cdef Pool* p
    cdef Block* b
    cdef int k, i
    collect_waiting(d, True)
    synchronize_device()
    for k in range(2):
        p = &d.pools[k]
        i = 0
        while i < p.n:
            b = p.items[i]
            if b.before != NULL or b.after != NULL or <size_t>b.stream in private_pools:
                i += 1
                continue
            take(p, i)
            release(b.address)
            d.driver_frees += 1
            count(d, b.small, S_SEGMENT, -1)
            count(d, b.small, S_RESERVED_BYTES, -b.size)
            forget_segment(d, b)
            free(b)
    return 0


cdef void forget_segment(Device* d, Block* b) noexcept:
    cdef int i
    for i in range(d.n_segments):
        if d.segments[i] == b:
            d.n_segments -= 1
            d.segments[i] = d.segments[d.n_segments]
            return


# ---- what tensorrt_lite.cuda.memory shows --------------------------------------------------------------------------

cdef Device* checked(int device) except NULL:
    if device < 0 or device >= MAX_DEVICES:
        raise ValueError(f"invalid device index {device}")
    return &devices[device]


def empty_cache():
    """Return the free segments of all devices to the driver."""
    cdef int i
    for i in range(MAX_DEVICES):
        if devices[i].n_segments:
            enter_device(i)
            release_cached(i)


def statistics(int device):
    """{"allocated_bytes": {"all": {"current": ...}}, ...} and the counts of retries, failures and calls of the driver."""
    cdef Device* d = checked(device)
    cdef dict found = {}
    cdef int i, k
    for i in range(N_STATS):
        found[STAT_NAMES[i]] = {
            pool: {"current": d.stats[k][i].current, "peak": d.stats[k][i].peak, "allocated": d.stats[k][i].allocated, "freed": d.stats[k][i].freed}
            for k, pool in ((0, "all"), (1, "large_pool"), (2, "small_pool"))}
    found["num_alloc_retries"] = d.retries
    found["num_ooms"] = d.ooms
    found["num_device_alloc"] = d.driver_allocations
    found["num_device_free"] = d.driver_frees
    return found


def reset_peak(int device):
    """Peaks start again at what is current."""
    cdef Device* d = checked(device)
    cdef int i, k
    for k in range(3):
        for i in range(N_STATS):
            d.stats[k][i].peak = d.stats[k][i].current


def reset_accumulated(int device):
    """The totals of what was allocated and freed start again at 0."""
    cdef Device* d = checked(device)
    cdef int i, k
    for k in range(3):
        for i in range(N_STATS):
            d.stats[k][i].allocated = d.stats[k][i].freed = 0
    d.retries = d.ooms = d.driver_allocations = d.driver_frees = 0


def set_fraction(int device, double fraction):
    """Limit what may be reserved to a part of the device's memory."""
    checked(device).fraction = fraction


def get_fraction(int device):
    return checked(device).fraction


def snapshot():
    """Every segment with its blocks, in order of address."""
    cdef int device, i
    cdef Block* b
    cdef list segments = []
    for device in range(MAX_DEVICES):
        for i in range(devices[device].n_segments):
            b = devices[device].segments[i]
            segment = {"device": device, "address": b.address, "stream": <size_t>b.stream, "segment_type": "small" if b.small else "large", "total_size": 0,
                       "allocated_size": 0, "active_size": 0, "requested_size": 0, "is_expandable": False, "blocks": []}
            while b != NULL:
                state = "active_allocated" if b.allocated else "active_awaiting_free" if b.events_pending else "inactive"
                segment["blocks"].append({"address": b.address, "size": b.size, "requested_size": b.requested if b.allocated else 0, "state": state})
                segment["total_size"] += b.size
                if b.allocated:
                    segment["allocated_size"] += b.size
                    segment["requested_size"] += b.requested
                if b.allocated or b.events_pending:
                    segment["active_size"] += b.size
                b = b.after
            segments.append(segment)
    return sorted(segments, key=lambda s: (s["device"], s["address"]))


cdef dict raw = {}                      # {address: block} of memory that other libraries hold


def raw_allocate(int device, int64_t nbytes, size_t stream):
    """The address of a block for another library."""
    cdef Block* b
    enter_device(device)
    b = cached_allocate(device, nbytes, <void*>stream)
    raw[b.address] = <size_t>b
    return b.address


def raw_delete(size_t address):
    """Free a block of `raw_allocate`. RuntimeError for another address."""
    if address not in raw:
        raise RuntimeError(f"caching_allocator_delete: {address:#x} was not allocated by caching_allocator_alloc")
    cached_free(<Block*><size_t>raw.pop(address))

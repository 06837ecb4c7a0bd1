"""What tensorrt_lite.cuda.memory reports of the caching allocator, and its memory for other libraries."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.cuda.caching cimport Block, Device, MemoryPool, N_STATS, Stat, cached_allocate, cached_free, device_state, frames_at, largest_split
from tensorrt_lite._C.cuda.driver cimport MAX_DEVICES, enter_device

cdef tuple STAT_NAMES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                         "requested_bytes")


cdef dict figures(Stat* s):
    return {"current": s.current, "peak": s.peak, "allocated": s.allocated, "freed": s.freed}


def statistics(int device):
    """{"allocated_bytes": {"all": {"current": ...}}, ...} and the counts of retries, failures and calls of the driver."""
    cdef Device* d = device_state(device)
    cdef dict found = {}
    cdef int i, k
    for i in range(N_STATS):
        found[STAT_NAMES[i]] = {pool: figures(&d.stats[k][i]) for k, pool in ((0, "all"), (1, "large_pool"), (2, "small_pool"))}
    found["oversize_allocations"] = figures(&d.oversize[0])
    found["oversize_segments"] = figures(&d.oversize[1])
    found["max_split_size"] = largest_split()
    found["num_alloc_retries"] = d.retries
    found["num_ooms"] = d.ooms
    found["num_sync_all_streams"] = d.synchronizations
    found["num_device_alloc"] = d.driver_allocations
    found["num_device_free"] = d.driver_frees
    return found


def reset_peak(int device):
    """Peaks start again at what is current."""
    cdef Device* d = device_state(device)
    cdef int i, k
    for k in range(3):
        for i in range(N_STATS):
            d.stats[k][i].peak = d.stats[k][i].current
    for k in range(2):
        d.oversize[k].peak = d.oversize[k].current


def reset_accumulated(int device):
    """The totals of what was allocated and freed start again at 0."""
    cdef Device* d = device_state(device)
    cdef int i, k
    for k in range(3):
        for i in range(N_STATS):
            d.stats[k][i].allocated = d.stats[k][i].freed = 0
    for k in range(2):
        d.oversize[k].allocated = d.oversize[k].freed = 0
    d.retries = d.ooms = d.synchronizations = d.driver_allocations = d.driver_frees = 0


def set_fraction(int device, double fraction):
    """Limit what may be reserved to a part of the device's memory."""
    device_state(device).fraction = fraction


def get_fraction(int device):
    return device_state(device).fraction


def snapshot(pool=None):
    """Every segment with its blocks, in order of address; those of one pool by its number. An arena shows its runs of memory."""
    cdef int device, i
    cdef Device* d
    cdef list segments = []
    for device in range(MAX_DEVICES):
        d = device_state(device)
        for i in range(d.n_segments):
            show(segments, device, d.segments[i], pool)
        for i in range(d.n_arenas):
            show(segments, device, d.arenas[i].first, pool)
    return sorted(segments, key=lambda s: (s["device"], s["address"]))


cdef int show(list segments, int device, Block* b, object pool) except -1:
    cdef dict segment = None
    cdef int number = (<MemoryPool>b.pool).number
    if pool is not None and pool != number:
        return 0
    while b != NULL:
        if not b.mapped:
            segment = None
            b = b.after
            continue
        if segment is None:
            segment = {"device": device, "address": b.address, "stream": <size_t>b.stream, "segment_type": "small" if b.small else "large",
                       "segment_pool_id": (number, 0), "total_size": 0, "allocated_size": 0, "active_size": 0, "requested_size": 0,
                       "is_expandable": b.arena != NULL, "frames": [], "blocks": []}
            segments.append(segment)
        state = "active_allocated" if b.allocated else "active_awaiting_free" if b.events_pending else "inactive"
        segment["blocks"].append({"address": b.address, "size": b.size, "requested_size": b.requested if b.allocated else 0, "state": state,
                                  "frames": frames_at(device, b.address) if b.allocated else []})
        segment["total_size"] += b.size
        if b.allocated:
            segment["allocated_size"] += b.size
            segment["requested_size"] += b.requested
        if b.allocated or b.events_pending:
            segment["active_size"] += b.size
        b = b.after
    return 0


cdef dict raw = {}                      # {address: block} of memory that other libraries hold


def raw_allocate(int device, int64_t nbytes, size_t stream):
    """The address of a block for another library."""
    cdef Block* b
    enter_device(device)
    b = cached_allocate(device, max(nbytes, 1), <void*>stream, None)
    raw[b.address] = <size_t>b
    return b.address


def raw_delete(size_t address):
    """Free a block of `raw_allocate`. RuntimeError for another address."""
    if address not in raw:
        raise RuntimeError(f"caching_allocator_delete: {address:#x} was not allocated by caching_allocator_alloc")
    cached_free(<Block*><size_t>raw.pop(address))

# What tensorrt_lite.cuda.memory shows of the allocator, and its memory for other libraries.

cdef Device* checked(int device) except NULL:
    if device < 0 or device >= MAX_DEVICES:
        raise ValueError(f"invalid device index {device}")
    return &devices[device]


def empty_cache():
    """Return the free segments of all devices to the driver."""
    cdef int i
    for i in range(MAX_DEVICES):
        if devices[i].n_segments or devices[i].n_arenas or backend != NATIVE and devices[i].driver_allocations:
            enter_device(i)
            release_cached(i)


cdef dict figures(Stat* s):
    return {"current": s.current, "peak": s.peak, "allocated": s.allocated, "freed": s.freed}


def statistics(int device):
    """{"allocated_bytes": {"all": {"current": ...}}, ...} and the counts of retries, failures and calls of the driver."""
    cdef Device* d = checked(device)
    cdef dict found = {}
    cdef int i, k
    for i in range(N_STATS):
        found[STAT_NAMES[i]] = {pool: figures(&d.stats[k][i]) for k, pool in ((0, "all"), (1, "large_pool"), (2, "small_pool"))}
    found["oversize_allocations"] = figures(&d.oversize[0])
    found["oversize_segments"] = figures(&d.oversize[1])
    found["max_split_size"] = max_split if max_split < <int64_t>1 << 62 else -1
    found["num_alloc_retries"] = d.retries
    found["num_ooms"] = d.ooms
    found["num_sync_all_streams"] = d.synchronizations
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
    for k in range(2):
        d.oversize[k].peak = d.oversize[k].current


def reset_accumulated(int device):
    """The totals of what was allocated and freed start again at 0."""
    cdef Device* d = checked(device)
    cdef int i, k
    for k in range(3):
        for i in range(N_STATS):
            d.stats[k][i].allocated = d.stats[k][i].freed = 0
    for k in range(2):
        d.oversize[k].allocated = d.oversize[k].freed = 0
    d.retries = d.ooms = d.synchronizations = d.driver_allocations = d.driver_frees = 0


def set_fraction(int device, double fraction):
    """Limit what may be reserved to a part of the device's memory."""
    checked(device).fraction = fraction


def get_fraction(int device):
    return checked(device).fraction


def snapshot(pool=None):
    """Every segment with its blocks, in order of address; those of one pool by its number. An arena shows its runs of memory."""
    cdef int device, i
    cdef list segments = []
    for device in range(MAX_DEVICES):
        for i in range(devices[device].n_segments):
            show(segments, device, devices[device].segments[i], pool)
        for i in range(devices[device].n_arenas):
            show(segments, device, devices[device].arenas[i].first, pool)
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
                                  "frames": frames_of.get((device, b.address), []) if b.allocated else []})
        segment["total_size"] += b.size
        if b.allocated:
            segment["allocated_size"] += b.size
            segment["requested_size"] += b.requested
        if b.allocated or b.events_pending:
            segment["active_size"] += b.size
        b = b.after
    return 0


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

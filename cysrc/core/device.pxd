# Devices, layouts, memory formats. Device types are small codes so that tensors hold two bytes.
cdef enum:
    DEV_CPU = 0
    DEV_CUDA = 1
    DEV_META = 2
    DEV_CUSTOM = 3                # the first of the custom ones
    LAST_CUSTOM = 10

cdef inline bint has_index(int device_type) noexcept:
    """Whether there may be several devices of a type, each with memory of its own: not the CPU, not meta."""
    return device_type & ~DEV_META != 0

cdef str device_type_name(int device_type)
cdef str place_text(int place)

cdef class device:
    cdef readonly int code
    cdef readonly object index

cdef class layout:
    cdef readonly str name

cdef class memory_format:
    cdef readonly str name
    cdef readonly int code

cdef enum:
    MF_CONTIGUOUS = 0
    MF_PRESERVE = 1
    MF_CHANNELS_LAST = 2
    MF_CHANNELS_LAST_3D = 3

cdef device cpu_device
cdef device make_device(int code, object index)
cdef device parse_device(object x)
cdef device default_device()

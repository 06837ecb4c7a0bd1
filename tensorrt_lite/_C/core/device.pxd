# Devices, layouts, memory formats. Device types are small codes so that tensors hold two bytes.
cdef enum:
    DEV_CPU = 0
    DEV_CUDA = 1
    DEV_META = 2
    DEV_CUSTOM = 3

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

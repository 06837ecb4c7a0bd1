# What other rooms know of custom devices.
cdef enum:
    NOTE_CUSTOM_STREAMS = 16           # of a thread's notes (node.pxd): its current devices or streams are not the default ones

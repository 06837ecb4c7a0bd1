# Entries of operators, driven by their rows.
cdef extern from "dispatch.h":
    ctypedef struct trt_entry_spec:
        int id
        int flags
        int needed
        const char* name
        const char* aliases
        const char* schema
        void* body

cdef int add_entries(dict namespace, const trt_entry_spec* specs, int n) except -1

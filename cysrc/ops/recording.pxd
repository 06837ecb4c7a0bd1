# The generator's tables of what Nodes save and operands hold (recording.h).
from tensorrt_lite._C.core.dispatch cimport trt_value

cdef extern from "recording.h":
    ctypedef struct trt_saving:
        signed char slot
        signed char source "from"
        unsigned readers
    ctypedef struct trt_record:
        void* node
        int id
        signed char outputs
        char inplace
        char list_edges
        char multi_view
        signed char cloned
        const char* edges
        const trt_saving* tensors
        const trt_saving* results
        const char* lists
        const char* values
        object (*below)(const trt_value*, void* out, int mode)
    ctypedef struct trt_held:
        int id
        unsigned tensors
        unsigned lists
        void* kernel

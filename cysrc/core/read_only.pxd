# Memory that others declared read-only: arrays and maps that are not writeable, bytes, DLPack tensors exported so. A write would end
# the process or change an object that Python takes for immutable, so each operator asks here before it writes. The mark is the
# block's: views, `.data` and `set_` carry it along.
from tensorrt_lite._C.core.allocator cimport trt_block

cdef enum:
    EXTERNAL_READ_ONLY = 2        # a value of trt_block.external

cdef extern from *:
    """
    /* Out of line: the callers are the hot paths of all operators. */
    static __attribute__((noinline, cold, unused)) int trt_refuse_read_only(PyObject* op) {
      PyErr_Format(PyExc_RuntimeError,
        "%U: the memory to write to is read-only (an array that is not writeable, a file mapped for reading, bytes, or a DLPack tensor exported as "
        "read-only). Use clone() to get a tensor that can be written to.", op);
      return -1;
    }
    """
    int refuse_read_only "trt_refuse_read_only"(str op) except -1

cdef inline bint is_read_only(const trt_block* b) noexcept:
    return b != NULL and b.external == EXTERNAL_READ_ONLY

cdef inline int check_writable(const trt_block* b, str op) except -1:
    if is_read_only(b):
        refuse_read_only(op)
    return 0

# The memory of a kernel's tensors, held while the kernel runs without the GIL: another thread may resize or free them meanwhile.
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef inline int hold_blocks(tuple tensors, trt_block** blocks) noexcept:
    """Hold the blocks of the tensors that are not None, and note them in `blocks`; their number."""
    cdef int n = 0
    for t in tensors:
        if t is not None:
            blocks[n] = (<TensorBase>t).storage.block
            trt_block_hold(blocks[n])
            n += 1
    return n


cdef inline void drop_blocks(trt_block** blocks, int n) noexcept:
    cdef int i
    for i in range(n):
        block_drop(blocks[i])

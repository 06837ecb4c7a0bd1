"""ctc_loss on CUDA, beneath the checks of cysrc/ops/loss/loss.pyx: a block a sample. Losses over class indices are in softmax.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64, I32
from tensorrt_lite._C.core.iterator cimport copy_elements
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, place_of
from tensorrt_lite._C.cuda.backend cimport kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.steps.loss cimport ctc_args, set_ctc_loss, set_ctc_loss_backward

attach()
cdef FunctionHandle ctc_handles[64][2][2]       # by device, type, direction of the pass


cdef FunctionHandle load(int index, int dtype, bint backward) except NULL:
    cdef FunctionHandle* slot = &ctc_handles[index][dtype == F64][backward]
    if slot[0] == NULL:
        t = "double" if dtype == F64 else "float"
        text = f"""#include "ctc.cuh"

extern "C" __global__ void __launch_bounds__(256) forward(const ctc_args a) {{ trt::ctc_forward<{t}>(a); }}
extern "C" __global__ void __launch_bounds__(256) backward(const ctc_args a, int* chains) {{ trt::ctc_backward<{t}>(a, chains); }}
"""
        slot[0] = kernel_of(text, "backward" if backward else "forward", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    load(index, F32, False)
    load(index, F64, False)


cdef TensorBase set_operands(ctc_args* a, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha):
    """Everything but the gradients; what must live until the launch."""
    cdef TensorBase places = empty_tensor(2, lengths.sizes, lengths.dtype, place_of(log_probs))
    copy_elements(places, lengths)
    a.log_probs, a.loss, a.log_alpha = data_of(log_probs), data_of(loss), data_of(log_alpha)
    a.targets, a.input_lengths = <const int64_t*>data_of(targets), <const int64_t*>data_of(places)
    a.target_lengths = a.input_lengths + a.batch
    a.offsets = a.target_lengths + a.batch
    return places


cdef int ctc_loss(ctc_args* a, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha) except -1:
    cdef void* arguments[1]
    cdef TensorBase places = set_operands(a, log_probs, targets, lengths, loss, log_alpha)
    arguments[0] = a
    return run(load(log_probs.device_index, log_probs.dtype, False), log_probs.device_index, min(a.batch, <int64_t>65535), 256, 0, arguments)


cdef int ctc_loss_backward(ctc_args* a, TensorBase grad, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha, TensorBase out) except -1:
    cdef void* arguments[2]
    cdef int64_t size = 3 * a.batch * a.span, links = 2 * a.batch * a.span
    cdef TensorBase places = set_operands(a, log_probs, targets, lengths, loss, log_alpha)
    cdef TensorBase scratch = empty_tensor(1, &size, log_probs.dtype, place_of(log_probs)), chains = empty_tensor(1, &links, I32, place_of(log_probs))
    cdef char* chain = data_of(chains)
    a.scratch, a.grad, a.out = data_of(scratch), data_of(grad), data_of(out)
    arguments[0], arguments[1] = a, &chain
    return run(load(log_probs.device_index, log_probs.dtype, True), log_probs.device_index, min(a.batch, <int64_t>65535), 256, 0, arguments)


set_ctc_loss(DEV_CUDA, ctc_loss)
set_ctc_loss_backward(DEV_CUDA, ctc_loss_backward)

"""The streams that forward calls ran on: of CUDA and of custom devices, whose hooks number the sets of them (core/storage.pxd), as one number.

CUDA's number is the lower half, the custom devices' the upper one. A program with more than 65,535 sets of either has default streams for the rest.
"""
from tensorrt_lite._C.core.device cimport DEV_CUDA, DEV_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.storage cimport DeviceHooks, hooks_of, installed_hooks
from tensorrt_lite._C.core.tensor cimport TensorBase

attach()

cdef enum:
    HALF = 16
    LOWER = 0xFFFF

cdef DeviceHooks* _custom = NULL       # of the custom devices, once there is one


def use_custom_devices():
    """A custom device has been registered, whose streams Nodes shall remember."""
    global _custom
    _custom = hooks_of(DEV_CUSTOM)


cdef bint other_streams() noexcept:
    return installed_hooks().stream_sets != 0 or _custom != NULL and _custom.stream_sets != 0


cdef int current_streams() noexcept:
    cdef int cuda = 0, custom = 0
    if installed_hooks().current_streams != NULL:
        cuda = installed_hooks().current_streams()
    if _custom != NULL:
        custom = _custom.current_streams()
    return (cuda if cuda <= LOWER else 0) | (custom if custom <= LOWER >> 1 else 0) << HALF


cdef int use_streams(int number) except -1:
    cdef int before = current_streams()
    if (number ^ before) & LOWER:
        installed_hooks().use_streams(number & LOWER)
    if (number ^ before) >> HALF:
        _custom.use_streams(number >> HALF)
    return 0


cdef int hand_over(object tensor, int producer, int consumer) except -1:
    cdef int device_type = (<TensorBase>tensor).device_type
    if device_type == DEV_CUDA:
        return installed_hooks().hand_over(tensor, producer & LOWER, consumer & LOWER)
    if device_type >= DEV_CUSTOM and _custom != NULL:
        return _custom.hand_over(tensor, producer >> HALF, consumer >> HALF)
    return 0


cdef int keep_for(object tensor, int consumer) except -1:
    cdef int device_type = (<TensorBase>tensor).device_type
    if device_type == DEV_CUDA:
        return installed_hooks().keep_for(tensor, consumer & LOWER)
    if device_type >= DEV_CUSTOM and _custom != NULL:
        return _custom.keep_for(tensor, consumer >> HALF)
    return 0


cdef int join(int producer, int consumer) except -1:
    if (producer ^ consumer) & LOWER:
        installed_hooks().join(producer & LOWER, consumer & LOWER)
    if (producer ^ consumer) >> HALF:
        _custom.join(producer >> HALF, consumer >> HALF)
    return 0

# What kernels of other families note an index out of range in (cuda_src/fault.cuh): the device's memory for it, and the number that stands
# for an operator's name. The call that next waits for the device raises IndexError.
cdef char* fault_of(int index) except NULL
cdef int code_of(str name) except -1

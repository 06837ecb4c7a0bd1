# The streams that forward calls ran on, of CUDA and of custom devices, as one number.
cdef bint other_streams() noexcept                                       # whether a thread has ever had other streams than the default ones
cdef int current_streams() noexcept
cdef int use_streams(int number) except -1
cdef int hand_over(object tensor, int producer, int consumer) except -1
cdef int keep_for(object tensor, int consumer) except -1
cdef int join(int producer, int consumer) except -1

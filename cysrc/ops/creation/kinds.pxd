# The kinds of windows.

cdef enum WindowKind:
    COSINES                  # a - b cos(x) + c cos(2 x)
    BARTLETT                 # a triangle
    KAISER                   # Kaiser's window of shape parameter a

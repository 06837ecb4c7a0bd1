# Schemas of rows, read once for all that ask: entries, operator objects, signatures.

cdef class Schema:
    cdef readonly str name, overload
    cdef readonly tuple names, types, defaults, results
    cdef readonly int positional

cdef Schema schema_of(const char* text)
cdef object REQUIRED

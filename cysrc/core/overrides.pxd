# Public functions over entries: the call of an entry looks at the arguments' types while it parses them.
from cpython.object cimport PyTypeObject

cdef void set_entry_call(PyTypeObject* entry, void* call) noexcept      # how public functions over objects of this type are called
cdef void* general_call() noexcept                                       # where such a call goes with arguments that may override

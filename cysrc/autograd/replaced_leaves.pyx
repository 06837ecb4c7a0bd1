"""What Nodes from before a leaf's set_() need of it: an accumulator that they share, and the sizes of that time.

Only leaves with `REPLACED` (node.pxd) are in the table. With the GIL alone, where Nodes of all threads are numbered together.
"""
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dispatch cimport attach
from _weakref import ref as _ref       # `weakref` itself would cost half a millisecond at import

attach()

cdef enum:
    MOST_REPLACED = 64             # ReplacedLeafs of one leaf: a program may call set_ in every step

cdef dict _replaced = {}           # {address of a leaf: (LeafRef, its ReplacedLeafs, oldest first)}


class LeafRef(_ref):
    """The weak reference by which the table notices the end of a leaf."""
    __slots__ = ("address",)


def _forget_leaf(ref):
    _replaced.pop(ref.address, None)


def _no_accumulator():
    return None


cdef class ReplacedLeaf:
    """A leaf until one of its set_(), for the Nodes that were made since the one before."""


cdef ReplacedLeaf leaf_at(TensorBase t, uint64_t seq):
    """The leaf `t` as Nodes of that number have met it; None where that is what it is today."""
    cdef ReplacedLeaf past, found = None
    for past in reversed(<list>_replaced[<size_t><PyObject*>t][1]):
        if past.seq < seq:
            break
        found = past
    return found


cdef int keep_leaf(TensorBase t, bint first, uint64_t seq, object like, object accumulator) except -1:
    """Write down `t` for the Nodes until `seq`. first: it is not in the table yet. accumulator: the one that they have already asked for, or None."""
    cdef ReplacedLeaf past = ReplacedLeaf.__new__(ReplacedLeaf)
    cdef list pasts
    past.seq = seq
    past.like = like
    past.accumulator = _no_accumulator if accumulator is None else _ref(accumulator)
    if first:
        ref = LeafRef(t, _forget_leaf)
        ref.address = <size_t><PyObject*>t
        _replaced[ref.address] = (ref, [])
    pasts = <list>_replaced[<size_t><PyObject*>t][1]
    pasts.append(past)
    if len(pasts) > MOST_REPLACED:
        del pasts[0]               # Nodes of that time that have not asked for their accumulator yet get the next one
    return 0

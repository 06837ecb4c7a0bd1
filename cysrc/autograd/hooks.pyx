# cython: language_level=3, boundscheck=True, wraparound=False, binding=True, auto_pickle=False
"""Handles of hooks: of tensors and Nodes, whose hooks are lists that the executor walks, and of modules and optimizers, whose hooks are dicts by number."""
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.free_threading cimport count_up
from _weakref import ref as _ref      # `weakref` itself would cost half a millisecond at import

cdef uint64_t _given_ids = 0      # numbers of hooks given out


class Entry:
    """A hook in a list, found again by identity."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class RetainGrad(Entry):
    """The hook behind retain_grad(): runs after all others and follows its tensor through writes in place."""
    __slots__ = ("ref",)


def _empty_handle():
    return RemovableHandle.__new__(RemovableHandle)


cdef class RemovableHandle:
    """Returned by every function that registers a hook: remove() takes the hook out, once; a with block does so at its end.

    hooks_dict: the table of the hook, keyed by `id`; held weakly, so that a handle does not keep a dead module's hooks alive.
    extra_dict: a table or a list of tables from which the hook goes as well.
    """
    cdef readonly int64_t id
    cdef readonly object hooks_dict_ref
    cdef tuple extra
    cdef list hooks                    # of a tensor or a Node, and
    cdef object entry                  # the hook in it
    cdef object __weakref__

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = _ref(hooks_dict)
        self.extra = () if extra_dict is None else tuple(extra_dict) if isinstance(extra_dict, list) else (extra_dict,)
        self.id = <int64_t>count_up(&_given_ids) - 1

    def remove(self):
        """Take the hook out; harmless when it is gone already."""
        if self.hooks is not None:
            for i, e in enumerate(self.hooks):
                if e is self.entry:
                    del self.hooks[i]
                    return
            return
        table = self.hooks_dict_ref() if self.hooks_dict_ref is not None else None
        if table is not None:
            table.pop(self.id, None)
        for table in self.extra or ():
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()

    def __reduce__(self):
        # copies of a module that keeps its own handles remove the copy's hooks; a tensor's hooks are not copied with it
        return _empty_handle, (), (self.hooks_dict_ref() if self.hooks_dict_ref is not None else None, self.id, self.extra)

    def __setstate__(self, state):
        global _given_ids
        # PyTorch's files have the tables of `extra` or not
        table, self.id = state[0], state[1]
        self.extra = tuple(state[2]) if len(state) > 2 and state[2] is not None else ()
        self.hooks_dict_ref = None if table is None else _ref(table)
        _given_ids = max(_given_ids, <uint64_t>(self.id + 1))


def add_hook(list hooks, hook):
    """Append a tensor's or a Node's hook."""
    cdef RemovableHandle handle = RemovableHandle.__new__(RemovableHandle)
    handle.hooks = hooks
    handle.entry = Entry(hook)
    hooks.append(handle.entry)
    return handle

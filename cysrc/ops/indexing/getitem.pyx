"""x[key] and x[key] = value: basic indexing as geometry of one view, tensors and masks as index and index_put.

`parse_key` walks the key once. Where nothing records and no mode or subclass looks on it only changes a Geometry; else it applies
select, slice and unsqueeze one after another, so that the graph has PyTorch's Nodes and modes see PyTorch's operators.
"""
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport check_inplace, grad_mode, ops_namespace
from tensorrt_lite._C.core.args cimport is_number, to_scalar, wrap_number
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport INPLACE, attach, intercepted
from tensorrt_lite._C.core.dtype cimport BOOL, CAT_COMPLEX, CAT_INT, I32, I64, ITEM_SIZE, Scalar, U8, category, check_number, dtype_of, is_reduced_floating_type
from tensorrt_lite._C.core.iterator cimport cast_to, check_internal_overlap, fill_elements
from tensorrt_lite._C.core.tensor cimport (
    INLINE_DIMS, K_CPU, K_DERIVATIVES, K_META, K_PYTHON, K_WRAPPED, MAX_DIMS, TensorBase, alias_of, bump_version, check_geometry, data_of, empty_tensor,
    has_internal_overlap, make_view, place_of, same_sizes, shape_text)
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.operators cimport op_alias, op_fill, op_index, op_index_put, op_masked_fill, op_select, op_slice, op_unsqueeze
from tensorrt_lite._C.ops.indexing.rows cimport beside, number_beside
from tensorrt_lite._C.ops.support cimport finish_inplace, note_view

from cpython.sequence cimport PySequence_Check
cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    bint PyLong_Check(object)
    bint PySlice_Check(object)
    int PySlice_Unpack(object, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) except -1
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


from tensorrt_lite._C.core.python_key import dispatch_object, dispatches, operator_object


cdef struct Geometry:
    int ndim
    int64_t sizes[MAX_DIMS]
    int64_t strides[MAX_DIMS]
    int64_t offset


cdef int raise_bounds(int64_t i, int dim, int64_t size) except -1:
    raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")


cdef inline bint is_mask(TensorBase t) noexcept:
    return t.dtype == BOOL or t.dtype == U8


cdef bint list_is_tuple(list key):
    """PyTorch takes a short list that holds tensors, sequences, slices, None or ... for a tuple."""
    if len(key) >= 32:
        return False
    for v in key:
        if v is None or v is Ellipsis or isinstance(v, (TensorBase, list, tuple, slice)):
            return True
    return False


cdef int add_output(Geometry* g, int64_t size, int64_t stride) except -1:
    if g.ndim >= MAX_DIMS:
        raise IndexError(f"indexing: the result has more than {MAX_DIMS} dimensions")
    g.sizes[g.ndim] = size
    g.strides[g.ndim] = stride
    g.ndim += 1
    return 0


cdef TensorBase index_of_sequence(object v):
    """A list, array or range as an index tensor (int64, or bool)."""
    if isinstance(v, (list, tuple, range)):
        if len(v) == 0:
            return <TensorBase?>_ops.empty(0, dtype=dtype_of(I64))
        v = _ops.tensor(list(v) if not isinstance(v, list) else v)
        return <TensorBase>v
    return <TensorBase?>_ops.as_tensor(v)


cdef bint is_index_sequence(object v):
    """Arrays, and what else has positions: a pandas Series, a deque."""
    if hasattr(type(v), "__array_interface__"):
        return getattr(v, "ndim", 0) > 0
    return PySequence_Check(v) and not isinstance(v, (str, bytes))


cdef object not_an_index(object v):
    raise IndexError(f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {type(v).__name__})")


cdef bint runs_no_python(object v):
    """Whether an index is read without asking it anything: an int, a tensor, a slice of ints."""
    if PyLong_CheckExact(v) or isinstance(v, TensorBase):
        return True
    return PySlice_Check(v) and is_bound((<slice>v).start) and is_bound((<slice>v).stop) and is_bound((<slice>v).step)


cdef inline bint is_bound(object v):
    return v is None or PyLong_CheckExact(v) or isinstance(v, TensorBase)


cdef TensorBase parse_key(TensorBase self, object key, list indices):
    """The view that the key's ints, slices, None and Ellipsis name; `indices` gets (output dimension, tensor) pairs."""
    cdef Geometry g
    cdef TensorBase t, current = self
    cdef TensorBase x = self   # whose geometry counts: a copy of it where a key runs Python, which may change the tensor
    cdef bint record = self.requires_grad and grad_mode() or intercepted(self.keys), changed = False
    cdef int source = 0, specified = 0, k, overflow = 0
    cdef int64_t i, n
    cdef Py_ssize_t start, stop, step
    cdef tuple items
    if type(key) is tuple:
        items = <tuple>key
    elif isinstance(key, tuple) or isinstance(key, list) and list_is_tuple(key):
        items = tuple(key)
    else:
        items = (key,)
    for v in items:
        if v is None or v is Ellipsis or v is True or v is False:
            continue
        if not runs_no_python(v):
            x = alias_of(self)
        if isinstance(v, TensorBase) and is_mask(<TensorBase>v):
            specified += (<TensorBase>v).ndim
        else:
            specified += 1
    if specified > self.ndim:
        if self.ndim == 0 and len(items) == 1:
            if isinstance(items[0], slice):
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if not isinstance(items[0], (TensorBase, list, tuple, str, float)):
                raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    g.ndim = 0
    g.offset = x.offset
    for v in items:
        if PyLong_CheckExact(v):
            i = PyLong_AsLongLongAndOverflow(v, &overflow)
            n = x.sizes[source]
            if overflow or i >= n or i < -n:
                raise IndexError(f"index {v} is out of bounds for dimension {source} with size {n}")
            if record:
                current = op_select(current, g.ndim, i)
                changed = True
            g.offset += (i + n if i < 0 else i) * x.strides[source]
            source += 1
        elif PySlice_Check(v):
            if (<slice>v).start is None and (<slice>v).stop is None and (<slice>v).step is None:
                add_output(&g, x.sizes[source], x.strides[source])
                source += 1
                continue
            PySlice_Unpack(plain_slice(v), &start, &stop, &step)
            if step <= 0:
                raise ValueError("step must be greater than zero")
            n = x.sizes[source]
            start = max(start + n, 0) if start < 0 else min(start, n)
            stop = max(stop + n, 0) if stop < 0 else min(stop, n)
            stop = max(start, stop)
            if record and not (start == 0 and stop == n and step == 1):
                current = op_slice(current, g.ndim, start, stop, step)
                changed = True
            i = (stop - start - 1) // step + 1 if stop > start else 0
            # strides of at most one element are never used; a huge step must not overflow them
            add_output(&g, i, x.strides[source] * step if i > 1 or step <= n else x.strides[source])
            if i > 0:
                g.offset += start * x.strides[source]
            source += 1
        elif v is Ellipsis:
            for k in range(x.ndim - specified):
                add_output(&g, x.sizes[source], x.strides[source])
                source += 1
            specified = x.ndim
        elif v is None or v is True or v is False:
            if record:
                current = op_unsqueeze(current, g.ndim)
                changed = True
            if v is not None:
                indices.append((g.ndim, flag_index(v is True)))
            add_output(&g, 1, x.sizes[source] * x.strides[source] if source < x.ndim else 1)
        elif isinstance(v, TensorBase):
            t = <TensorBase>v
            if t.ndim == 0 and category[t.dtype] <= CAT_INT and not t.keys & K_WRAPPED:
                if is_mask(t):
                    if record:
                        current = op_unsqueeze(current, g.ndim)
                        changed = True
                    indices.append((g.ndim, flag_index(bool(v.item()))))
                    add_output(&g, 1, x.sizes[source] * x.strides[source] if source < x.ndim else 1)
                    continue
                i = v.item()
                n = x.sizes[source]
                if i >= n or i < -n:
                    raise_bounds(i, source, n)
                if record:
                    current = op_select(current, g.ndim, i)
                    changed = True
                g.offset += (i + n if i < 0 else i) * x.strides[source]
                source += 1
                continue
            indices.append((g.ndim, t))
            for k in range(t.ndim if is_mask(t) else 1):
                add_output(&g, x.sizes[source], x.strides[source])
                source += 1
        elif isinstance(v, (list, tuple, range)) or is_index_sequence(v):
            t = index_of_sequence(v)
            indices.append((g.ndim, t))
            if is_mask(t) and t.ndim != 1 and source + t.ndim > x.ndim:
                raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
            for k in range(t.ndim if is_mask(t) else 1):
                add_output(&g, x.sizes[source], x.strides[source])
                source += 1
        elif hasattr(type(v), "__index__") and not hasattr(v, "__bool__index__"):
            if type(v).__name__ in ("bool_", "bool"):
                not_an_index(v)
            i = v.__index__()
            n = x.sizes[source]
            if i >= n or i < -n:
                raise_bounds(i, source, n)
            if record:
                current = op_select(current, g.ndim, i)
                changed = True
            g.offset += (i + n if i < 0 else i) * x.strides[source]
            source += 1
        elif isinstance(v, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            not_an_index(v)
    while source < x.ndim:
        add_output(&g, x.sizes[source], x.strides[source])
        source += 1
    if record:
        return current if changed else (op_alias(self) if not indices else self)
    if indices and g.ndim == x.ndim and len(indices) == len(items):
        return self
    if x is not self:
        check_geometry(self.storage, g.ndim, g.sizes, g.strides, g.offset, ITEM_SIZE[self.dtype], "indexing")
    current = make_view(self, g.ndim, g.sizes, g.strides, g.offset)
    if self.requires_grad:
        note_view(current)
    return current


cdef object plain_slice(object v):
    """A slice whose bounds may be one-element tensors, as ints."""
    cdef slice s = v
    if isinstance(s.start, TensorBase) or isinstance(s.stop, TensorBase) or isinstance(s.step, TensorBase):
        return slice(s.start.__index__() if isinstance(s.start, TensorBase) else s.start, s.stop.__index__() if isinstance(s.stop, TensorBase) else s.stop,
                     s.step.__index__() if isinstance(s.step, TensorBase) else s.step)
    return v


cdef TensorBase flag_index(bint flag):
    """The index that keeps or drops a dimension of size one."""
    cdef int64_t n = 1 if flag else 0
    cdef TensorBase t = empty_tensor(1, &n, I64, DEV_CPU)
    if flag:
        (<int64_t*>data_of(t))[0] = 0
    return t


cdef list dense_indices(list pairs):
    """(dimension, tensor) pairs as a list with None for the dimensions in between."""
    cdef list r = []
    for d, t in pairs:
        while len(r) < d:
            r.append(None)
        r.append(t)
        if is_mask(<TensorBase>t):
            # the mask's other dimensions are used up by it
            for _ in range((<TensorBase>t).ndim - 1):
                r.append(_USED)
    return [t for t in r if t is not _USED]


cdef object _USED = object()


def getitem(TensorBase self not None, key):
    """self[key]: a view for ints, slices, None and ..., a copy where tensors, lists or masks pick elements. IndexError when out of range."""
    cdef int64_t i, n
    cdef int overflow = 0
    cdef TensorBase r
    cdef list indices
    if PyLong_CheckExact(key) and self.ndim > 0 and self.ndim <= INLINE_DIMS:
        i = PyLong_AsLongLongAndOverflow(key, &overflow)
        n = self.sizes[0]
        if overflow or i >= n or i < -n:
            raise IndexError(f"index {key} is out of bounds for dimension 0 with size {n}")
        if i < 0:
            i += n
        if self.requires_grad and grad_mode() or intercepted(self.keys):
            return op_select(self, 0, i)
        r = make_view(self, self.ndim - 1, self.sizes + 1, self.strides + 1, self.offset + i * self.strides[0])
        if self.requires_grad:
            note_view(r)
        return r
    indices = []
    r = parse_key(self, key, indices)
    if not indices:
        return r
    if handled_by_index(r, indices):
        return dispatch_object(operator_object("index"), (r, dense_indices(indices)), {})
    return op_index(r, checked_indices(r, dense_indices(indices)))


cdef bint handled_by_index(TensorBase self, list indices):
    """Whether an index is of a class with __torch_dispatch__, which the tensor is not. Transforms' tensors are of none."""
    cdef object t
    if self.keys & K_PYTHON:
        return False
    for _, t in indices:
        if (<TensorBase>t).keys & K_PYTHON and intercepted((<TensorBase>t).keys) and dispatches(type(t)):
            return True
    return False


cdef int check_assigned(const Scalar* value, int code) except -1:
    """As PyTorch, which stores infinity where a half type can't hold the number, but refuses it for all others."""
    if value.kind == 4:
        raise ValueError("Overflow when unpacking long long")
    return 0 if is_reduced_floating_type(code) and value.kind != 3 else check_number(value, code)


cdef int assign_number(TensorBase v, object value) except -1:
    cdef Scalar s
    to_scalar(value, &s)
    check_assigned(&s, v.dtype)
    if v.keys & K_DERIVATIVES or intercepted(v.keys):
        finish_inplace(op_fill(v, &s, v, INPLACE), v.keys)
        return 0
    check_internal_overlap("__setitem__", v)
    fill_elements(v, &s)
    bump_version(v)
    return 0


cdef object without_leading_ones(object value, int ndim):
    """The value without the leading dimensions of size one that it has more than its destination."""
    cdef TensorBase t = value
    cdef int extra = 0
    while t.ndim - extra > ndim and t.sizes[extra] == 1:
        extra += 1
    return value.reshape([t.sizes[k] for k in range(extra, t.ndim)]) if extra else value


cdef TensorBase assigned_value(TensorBase self, object value):
    """The right side of an assignment as a tensor."""
    cdef Scalar s
    if isinstance(value, TensorBase):
        return beside(<TensorBase>value, self)
    if is_number(value):
        to_scalar(value, &s)
        check_assigned(&s, self.dtype)
        return number_beside(self, self.dtype, &s)
    raise TypeError(f"can't assign a {type(value).__module__ + '.' if type(value).__module__ != 'builtins' else ''}{type(value).__name__} to a torch.{dtype_text(self.dtype)}Tensor")


def setitem(TensorBase self not None, key, value):
    """self[key] = value, broadcast and converted to self's dtype. IndexError when out of range, RuntimeError when shapes do not fit."""
    cdef TensorBase v, t
    cdef list indices = []
    cdef object whole
    if not isinstance(value, TensorBase) and not is_number(value):
        assigned_value(self, value)
    if key is False:
        # nothing is selected, so no value is too large for it
        return
    v = parse_key(self, key, indices)
    check_inplace(v, "setitem")
    if not indices:
        if not isinstance(value, TensorBase):
            assign_number(v, value)
            return
        t = <TensorBase>value
        value = without_leading_ones(value, v.ndim)
        check_expands(<TensorBase>value, v)
        _ops.copy_(v, value)
        return
    t = assigned_value(v, value)
    if handled_by_index(v, indices):
        dispatch_object(operator_object("index_put", INPLACE), (v, dense_indices(indices), t), {})
        return
    if t.numel == 1 and t.dtype != v.dtype and len(indices) == 1 and (<TensorBase>indices[0][1]).dtype == BOOL and (category[t.dtype] != CAT_COMPLEX or category[v.dtype] == CAT_COMPLEX):
        # one value for a mask is converted, as a number is; other values must have the tensor's dtype
        t = <TensorBase?>_ops.to(t, dtype_of(v.dtype))
    if len(indices) == 1 and indices[0][0] == 0 and (<TensorBase>indices[0][1]).dtype == BOOL and t.ndim == 0 and same_sizes(<TensorBase>indices[0][1], v) \
            and t.dtype == v.dtype and not has_internal_overlap(v):
        if not isinstance(value, TensorBase) and intercepted(v.keys):
            t = wrap_number(value)           # modes get the number
        finish_inplace(op_masked_fill(v, <TensorBase>indices[0][1], t, v, INPLACE), v.keys | t.keys)
        return
    whole = without_leading_ones(t, MAX_DIMS)
    finish_inplace(op_index_put(v, checked_indices(v, dense_indices(indices)), <TensorBase>whole, False, v, INPLACE), v.keys | t.keys)


cdef int check_expands(TensorBase value, TensorBase v) except -1:
    cdef int k, j
    for k in range(value.ndim - 1, -1, -1):
        j = k + v.ndim - value.ndim
        if j < 0:
            raise RuntimeError(f"expand: the number of sizes provided ({v.ndim}) must be greater or equal to the number of dimensions in the tensor ({value.ndim}): value of shape {shape_text(value)} assigned to {shape_text(v)}")
        if value.sizes[k] != 1 and value.sizes[k] != v.sizes[j]:
            raise RuntimeError(
                f"The expanded size of the tensor ({v.sizes[j]}) must match the existing size ({value.sizes[k]}) at non-singleton dimension {j}.  "
                f"Target sizes: {shape_text(v)}.  Tensor sizes: {shape_text(value)}")
    return 0


def delitem(self, key):
    """Tensors have a fixed number of elements."""
    raise TypeError("Tensor does not support deleting items")


# ---- index and index_put -------------------------------------------------------------------------------------------

cdef list expand_masks(TensorBase self, object given):
    """Index tensors with every mask replaced by the coordinates of its true elements; int64 or None, at most one per dimension."""
    cdef list r = []
    cdef TensorBase t
    cdef int k
    cdef object x
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"index: indices must be a tuple of Tensors, not {type(given).__name__}")
    for x in given:
        if x is None:
            r.append(None)
            continue
        t = <TensorBase?>x
        if place_of(t) != place_of(self) and not self.keys & K_META and not t.keys & K_WRAPPED:
            if not t.keys & K_CPU:
                raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({(<object>self).device}), but one is on {(<object>t).device}")
            t = <TensorBase?>(<object>t).to((<object>self).device)
        if is_mask(t):
            if t.dtype == U8:
                from tensorrt_lite._C.core.warning import warn
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            if t.ndim == 0:
                raise IndexError("index: a 0-dimensional mask can't index a dimension")
            for k in range(t.ndim):
                if len(r) + k >= self.ndim:
                    raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
                if t.sizes[k] != self.sizes[len(r) + k]:
                    raise IndexError(f"The shape of the mask {shape_text(t)} at index {k} does not match the shape of the indexed tensor {shape_text(self)} at index {len(r) + k}")
            r.extend(coordinates_of(t))
        elif t.dtype == I64 or t.dtype == I32:
            r.append(t if t.dtype == I64 else <TensorBase?>(<object>t).to(dtype_of(I64)) if t.keys & (K_WRAPPED | K_PYTHON) else cast_to(t, I64))
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    while r and r[len(r) - 1] is None:
        r.pop()
    if len(r) > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim} (got {len(r)})")
    return r


cdef object copied(object indices):
    """A sequence of the caller's as a list of its own."""
    return list(indices) if isinstance(indices, (list, tuple)) else indices


cdef list checked_indices(TensorBase self, object given):
    """What a Node saves of the indices: masks as they are, a byte per element, where their coordinates may take many; others as int64."""
    cdef object t
    if not isinstance(given, list):
        return expand_masks(self, given)
    for t in <list>given:
        if t is not None and (not isinstance(t, TensorBase) or (<TensorBase>t).dtype != BOOL):
            return expand_masks(self, given)
    return <list>given

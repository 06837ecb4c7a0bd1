# Kernels of the sorting family: sorted lines along a dimension or one element of each, distinct elements, bins and counts. What touches elements
# are steps: cpu.pyx has the CPU's, cysrc/cuda/sorting.pyx CUDA's.
from tensorrt_lite._C.ops.reduction.backward cimport selected_backward
from tensorrt_lite._C.ops.sorting.loops cimport SORT_ALL, SORT_FIRST, SORT_KTH, SORT_MEDIAN, SORT_MODE, SORT_NANMEDIAN
from tensorrt_lite._C.steps.sorting cimport run_count_numbers, run_number_bins, run_sort_lines, run_unique
from tensorrt_lite._C.core.return_types import result_type


cdef object finish_pair(str name, TensorBase values, TensorBase indices, object out, int mode):
    if mode == OUT:
        values, indices = write_to_out(name, values, <TensorBase>out[0], OUT), write_to_out(name, indices, <TensorBase>out[1], OUT)
    return result_type(name, ("values", "indices"))((values, indices))


cdef int check_pair(str name, TensorBase self, object out, int mode) except -1:
    if category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(self.dtype)}'")
    if mode == OUT:
        check_out_type(name, <TensorBase>out[0], self.dtype)
        check_out_type(name, <TensorBase>out[1], I64)
        check_no_overlap(name, <TensorBase>out[0], self, True)
    return 0


cdef object sort_kernel(TensorBase self, int64_t dim, bint descending, object stable, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef TensorBase values, indices
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"Sort does not support {dtype_text(self.dtype)} dtypes on CPU")
    check_pair("sort", self, out, mode)
    values = empty_like_tensor(self, self.dtype)
    indices = empty_like_tensor(self, I64)
    if self.numel:
        run_sort_lines(self.device_type, self, d, values, indices, SORT_ALL, self.sizes[d] if self.ndim else 1, 0, descending, True)
    return finish_pair("sort", values, indices, out, mode)


cdef object topk_kernel(TensorBase self, int64_t k, int64_t dim, bint largest, bint sorted, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), i
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase values, indices
    if k < 0 or k > (self.sizes[d] if self.ndim else 1):
        raise RuntimeError(f"selected index k out of range (topk: k is {k}, the dimension {d} of {shape_text(self)} has fewer elements)")
    if category[self.dtype] == CAT_COMPLEX or self.dtype == BOOL:
        raise RuntimeError(f"topk does not support {dtype_text(self.dtype)} dtypes on CPU")
    check_pair("topk", self, out, mode)
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
    if self.ndim:
        sizes[d] = k
    values = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, sizes, I64, place_of(self))
    if values.numel:
        run_sort_lines(self.device_type, self, d, values, indices, SORT_FIRST, k, 0, largest, sorted)
    return finish_pair("topk", values, indices, out, mode)


cdef object one_of_line(str name, TensorBase self, int64_t dim, bint keepdim, int what, int64_t kth, object out, int mode):
    """(value, position) of one element of each line."""
    cdef int d = wrap_dim(dim, self.ndim), i, n = 0
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase values, indices
    check_pair(name, self, out, mode)
    if self.dtype == BOOL and what != SORT_MODE:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    for i in range(self.ndim):
        sizes[i] = 1 if i == d else self.sizes[i]
    if self.ndim and self.sizes[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    self = held(self)            # the step gives up the GIL, and the shape is read after it
    values = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, sizes, I64, place_of(self))
    if self.numel:
        run_sort_lines(self.device_type, self, d, values, indices, what, 1, kth, False, True)
    if self.ndim and not keepdim:
        for i in range(self.ndim):
            if i != d:
                sizes[n] = self.sizes[i]
                n += 1
        contiguous_strides(n, sizes, strides)
        set_geometry(values, n, sizes, strides)
        set_geometry(indices, n, sizes, strides)
    return finish_pair(name, values, indices, out, mode)


cdef object kthvalue_kernel(TensorBase self, int64_t k, int64_t dim, bint keepdim, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    if self.ndim and self.sizes[d] == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if k < 1 or k > (self.sizes[d] if self.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d} (k is {k}, shape {shape_text(self)})")
    if mode == OUT:
        check_no_overlap("kthvalue", <TensorBase>out[0], self, False)
        check_no_overlap("kthvalue", <TensorBase>out[1], self, False)
    return one_of_line("kthvalue", self, dim, keepdim, SORT_KTH, k - 1, out, mode)


cdef object mode_kernel(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("mode", self, dim, keepdim, SORT_MODE, 0, out, mode)


cdef object median_dim_kernel(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("median", self, dim, keepdim, SORT_MEDIAN, 0, out, mode)


cdef object nanmedian_dim_kernel(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("nanmedian", self, dim, keepdim, SORT_NANMEDIAN, 0, out, mode)


cdef TensorBase median_all_kernel(TensorBase self, bint skip_nan):
    cdef TensorBase x, r
    cdef Scalar nan
    cdef int64_t one = 1
    if self.dtype == BOOL:
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'")
    check_pair("nanmedian" if skip_nan else "median", self, None, FRESH)
    r = empty_tensor(0, NULL, self.dtype, place_of(self))
    if self.numel == 0:
        nan.kind = 2
        nan.d = float("nan")
        nan.im = 0
        nan.i = 0
        if category[self.dtype] != CAT_FLOAT:
            nan.kind = 1
            nan.i = <int64_t>-1 << (8 * ITEM_SIZE[self.dtype] - 1) if self.dtype != U8 else 0
        fill_elements(r, &nan)
        return r
    x = contiguous_of(self)
    x = make_view(x, 1, &x.numel, &one, x.offset)
    run_sort_lines(self.device_type, x, 0, r, None, SORT_NANMEDIAN if skip_nan else SORT_MEDIAN, 1, 0, False, True)
    return r


cdef object distinct_kernel(TensorBase self, object dim, bint ordered, bint inverse, bint counts):
    cdef str name = "unique" if ordered else "unique_consecutive"
    cdef int d, k
    if category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"unique\" not implemented for '{dtype_text(self.dtype)}'")
    if dim is None:
        return with_empty(self, run_unique(self.device_type, self, None, ordered, inverse, counts))
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(parse_int(dim, name, "dim"), self.ndim)
    for k in range(self.ndim):
        if k != d and self.sizes[k] == 0:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return with_empty(self, run_unique(self.device_type, self, d, ordered, inverse, counts))


cdef tuple with_empty(TensorBase self, tuple found):
    """Results that were not asked for as empty tensors, as PyTorch's operators return them."""
    cdef int64_t none = 0
    return tuple([empty_tensor(1, &none, I64, place_of(self)) if t is None else t for t in found])


# ---- bins and counts, for the histograms of tensorrt_lite/_compositions/sorting.py -----------------------------------

cdef TensorBase with_numbers(TensorBase t):
    """What a loop outside of operators reads or writes. A tensor without memory of its own is refused, unless it stands for one that has some."""
    if t is None or not (t.keys & K_PYTHON and t.device_type == DEV_META):
        return t
    if t.keys & K_WRAPPED:
        from tensorrt_lite._C.core.transform import readable_value
        return with_numbers(<TensorBase?>readable_value(t, "histc"))
    raise NotImplementedError("histogram: needs the numbers of a tensor that has none of its own")


cdef int check_counted(TensorBase t, int dtype, int64_t numel, TensorBase other) except -1:
    """A dispatch mode may have answered with something else for a tensor that was just made."""
    if t.dtype != dtype or t.numel != numel or not t.contiguous or t.device_type != other.device_type:
        raise RuntimeError(f"histogram: expected {numel} contiguous elements of {dtype_text(dtype)}, got {shape_text(t)} of {dtype_text(t.dtype)} on {(<object>t).device}")
    return 0


def _number_bins(TensorBase flat not None, TensorBase x not None, TensorBase edges not None, bint uniform, bint adjust):
    """flat = flat * bins + the bin between edges of each element of x, -1 outside of all. flat: int64, contiguous, as many elements as x."""
    cdef TensorBase target
    if x.numel != flat.numel:
        raise RuntimeError(f"histogram: {x.numel} elements where there were {flat.numel} before")
    if flat.numel and not hasattr(x, "_holds_no_elements"):
        target = with_numbers(flat)
        check_counted(target, I64, x.numel, with_numbers(x))
        if edges.numel < 2 or with_numbers(edges).device_type != target.device_type or category[edges.dtype] == CAT_COMPLEX or category[x.dtype] == CAT_COMPLEX:
            raise RuntimeError(f"histogram: expected two edges or more of a real type, got {shape_text(edges)} of {dtype_text(edges.dtype)} for {dtype_text(x.dtype)}")
        run_number_bins(target.device_type, alias_of(with_numbers(x)), alias_of(with_numbers(edges)), target, uniform, adjust)
    return flat


def _count_numbers(TensorBase flat not None, TensorBase weights, int64_t bins):
    """How often each number below `bins` occurs in the vector flat (int64), or with what total weight (float64)."""
    cdef TensorBase target, counts = _ops.zeros(bins, dtype=dtype_of(I64 if weights is None else F64), device=(<object>flat).device)
    if weights is not None and weights.numel != flat.numel:
        raise RuntimeError(f"{weights.numel} weights of {flat.numel} elements")
    if flat.numel and not hasattr(flat, "_holds_no_elements"):
        target = with_numbers(counts)
        check_counted(target, I64 if weights is None else F64, bins, with_numbers(flat))
        if weights is not None and (with_numbers(weights).device_type != target.device_type or category[weights.dtype] == CAT_COMPLEX):
            raise RuntimeError(f"histogram: expected real weights on the device of what is counted, got {dtype_text(weights.dtype)} on {(<object>weights).device}")
        run_count_numbers(target.device_type, alias_of(with_numbers(flat)), None if weights is None else alias_of(with_numbers(weights)), target)
    return counts


# ---- gradients -----------------------------------------------------------------------------------------------------

cdef object shared_gradient(object grad, object self, object result):
    """Evenly to all elements that equal the result."""
    nothing = result.isnan()
    mask = _ops.where(nothing, self.isnan(), _ops.eq(self, result)) if holds_any(nothing) else _ops.eq(self, result)
    return grad * mask / mask.sum()


cdef object no_derivative(str name):
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


# ---- entries ---------------------------------------------------------------------------------------------------------

cdef object median_of(object function, str name, object input, object dim, object keepdim, object out, bint skip_nan):
    cdef TensorBase self
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        if out is not None:
            return deliver_result(name, op_median_all(self, skip_nan), out)
        return op_median_all(self, skip_nan)
    along = parse_int(dim, name, "dim")
    keep = parse_bool(keepdim, name, "keepdim")
    if out is not None:
        check_outs(out, name, 2)
        resolve(&OPS[OP_MEDIAN_DIM], self.keys | keys_of_list(list(out)))
    pair = (op_nanmedian_dim if skip_nan else op_median_dim)(self, along, keep, out, FRESH if out is None else OUT)
    if out is not None:
        bump_outs(out)
    return pair


def median(input, dim=None, keepdim=False, *, out=None):
    """The lower median of all elements, or (values, indices) along dim; NaN where there is one."""
    return median_of(median, "median", input, dim, keepdim, out, False)


def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """The lower median of the elements that are not NaN, of all or as (values, indices) along dim."""
    return median_of(nanmedian, "nanmedian", input, dim, keepdim, out, True)


cdef object chosen_results(tuple found, inverse, counts):
    found = tuple([t for t, wanted in zip(found, (True, inverse, counts)) if wanted])
    return found if len(found) > 1 else found[0]


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices along dim) in order; with return_inverse where each element went, with counts how many there were."""
    return chosen_results(op_distinct(as_tensor_arg(input, "unique", "input"), dim, True, return_inverse, return_counts), return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements (or slices along dim), where each element went and how long the runs are."""
    return chosen_results(op_distinct(as_tensor_arg(input, "unique_consecutive", "input"), dim, False, return_inverse, return_counts), return_inverse, return_counts)

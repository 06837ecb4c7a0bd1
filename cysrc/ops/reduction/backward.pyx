"""Derivatives of reductions and scans, as compositions of differentiable operators. `meta` is (shape, dtype code) of an operand, `dim` a tuple or None."""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport grad_mode, ops_namespace
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport dtype_of
from tensorrt_lite._C.core.tensor cimport K_WRAPPED, TensorBase
from tensorrt_lite._C.ops.support cimport holds_any

attach()
cdef object _ops = ops_namespace()


cdef object restore_dims(object g, object shape, object dim, bint keepdim):
    """Put back reduced dimensions as size 1."""
    if keepdim or not len(shape):
        return g
    if dim is None or len(dim) == 0:
        return g.reshape((1,) * len(shape))
    n = len(shape)
    for d in sorted([d % n for d in dim]):
        g = g.unsqueeze(d)
    return g


cdef int64_t reduced_count(object shape, object dim):
    cdef int64_t n = 1
    if dim is None or len(dim) == 0:
        for s in shape:
            n *= s
        return n
    for d in dim:
        if len(shape):
            n *= shape[d % len(shape)]
    return n


cdef object sum_backward(object grad, object meta, object dim, bint keepdim):
    shape = meta[0]
    return restore_dims(grad, shape, dim, keepdim).expand(shape).to(dtype_of(meta[1]))


cdef object nansum_backward(object grad, object self, object dim, bint keepdim):
    return _ops.where(self.isnan(), 0, restore_dims(grad, self.shape, dim, keepdim).to(self.dtype))


cdef object mean_backward(object grad, object meta, object dim, bint keepdim):
    shape = meta[0]
    n = reduced_count(shape, dim)
    return (restore_dims(grad, shape, dim, keepdim) / n).expand(shape).to(dtype_of(meta[1]))


cdef object extreme_backward(object grad, object self, object result, object dim, bint keepdim):
    """The gradient is shared evenly between equal extremes."""
    r = restore_dims(result, self.shape, dim, keepdim)
    mask = _ops.eq(self, r)
    if r.is_floating_point():
        mask = mask | (self.isnan() & r.isnan())
    if dim is None or len(dim) == 0:
        count = mask.sum()
    else:
        count = mask.sum(dim, True)
    return restore_dims(grad, self.shape, dim, keepdim) * mask / count


cdef object selected_backward(object grad, object shape, object indices, int64_t dim, bint keepdim):
    if grad is None:
        return None
    if not len(shape):
        return grad
    if not keepdim:
        grad = grad.unsqueeze(dim)
        indices = indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter_(dim, indices, grad)


cdef object selected_tangent(object tangent, object indices, int64_t dim, bint keepdim):
    if not tangent.dim():
        return tangent
    r = tangent.gather(dim, indices if keepdim else indices.unsqueeze(dim))
    return r if keepdim else r.squeeze(dim)


cdef object cumulative_selected_backward(object grad, object shape, object indices, int64_t dim):
    if grad is None:
        return None
    if not len(shape):
        return grad
    return grad.new_zeros(shape).scatter_add(dim, indices, grad)


cdef object var_backward(object grad, object self, object result, object dim, double correction, bint keepdim, bint root):
    n = reduced_count(self.shape, dim)
    if root:
        grad = _ops.where(_ops.eq(result, 0), _ops.zeros_like(grad), grad / (result * 2))
    g = restore_dims(grad, self.shape, dim, keepdim)
    mean_ = self.mean(keepdim=True) if dim is None or len(dim) == 0 else self.mean(dim, True)
    if n - correction <= 0:
        return g * (float("nan") * (self - mean_)) if correction == n else g * (2.0 / (n - correction) * (self - mean_))
    return g * (self - mean_) * (2.0 / (n - correction))


cdef object logsumexp_backward(object grad, object self, object result, object dim, bint keepdim):
    if not self.is_floating_point():
        self = self.to(result.dtype)
    r = restore_dims(result, self.shape, dim, keepdim)
    if self.is_complex():
        return restore_dims(grad, self.shape, dim, keepdim) * (self - r).exp().conj()
    return restore_dims(grad, self.shape, dim, keepdim) * (self - r.masked_fill(r.isinf(), 0)).exp()


cdef object norm_backward(object grad, object self, object result, double p, object dim, bint keepdim):
    shape = self.shape
    g = restore_dims(grad, shape, dim, keepdim)
    r = restore_dims(result, shape, dim, keepdim)
    if p == 0:
        return None
    if 2 < p < INFINITY:
        size = self.abs() if p == 3 else self.abs().pow(p - 2)
        return (self * size * (g / r.pow(p - 1)).masked_fill(_ops.eq(r, 0), 0)).to(self.dtype)
    sign = _ops.sgn(self)
    if p == 1:
        return (sign * g).to(self.dtype)
    if p == 2 and (grad_mode() or (<TensorBase?>self).keys & K_WRAPPED):
        # what is differentiated again has PyTorch's form, and with it PyTorch's values at zero and of no elements
        return (g * (self / r).masked_fill(_ops.eq(r, 0), 0)).to(self.dtype)
    if p == 2:
        return (self * (g / r).masked_fill(_ops.eq(r, 0), 0)).to(self.dtype)
    if p == INFINITY or p == -INFINITY:
        if self.is_complex():
            # the norm's kernel may round an absolute value otherwise than abs() does
            size = self.detach().abs()
            axes = list(range(self.dim())) if dim is None or len(dim) == 0 else dim
            r = size.amax(axes, True) if p > 0 else size.amin(axes, True)
        mask = _ops.eq(self.abs(), r) | (self.abs().isnan() & r.isnan())
        count = mask.sum() if dim is None or len(dim) == 0 else mask.sum(dim, True)
        return (sign * (g * mask / count)).to(self.dtype)
    if p < 1:
        scaled = sign * self.abs().pow(p - 1)
        scaled = scaled.masked_fill(_ops.eq(self, 0), 0)
        return (scaled * (g * r.pow(1 - p))).to(self.dtype)
    scaled = sign * self.abs().pow(p - 1)
    return (scaled * (g / r.pow(p - 1)).masked_fill(_ops.eq(r, 0), 0)).to(self.dtype)


cdef object reversed_cumsum(object x, int64_t dim):
    return x.flip(dim).cumsum(dim).flip(dim)


cdef object cumsum_backward(object grad, object meta, int64_t dim):
    if grad.dim() == 0 or grad.numel() == 0:
        return grad.to(dtype_of(meta[1]))
    return reversed_cumsum(grad, dim).to(dtype_of(meta[1]))


cdef object cumprod_backward(object grad, object self, object result, int64_t dim):
    """d/dx_k sum_i g_i prod_{j<=i} x_j. Without zeros: reversed cumsum(g * y) / x. With zeros each product leaves x_k out."""
    if grad.dim() == 0 or grad.numel() == 0:
        return (grad * _ops.ones_like(self)).to(self.dtype)
    if self.dtype != result.dtype:
        x = self.to(result.dtype)
    else:
        x = self
    if not holds_any(_ops.eq(x.detach(), 0)):
        return (reversed_cumsum(grad * result.conj(), dim) / x.conj()).to(self.dtype)
    n = x.size(dim)
    pieces = []
    ones = _ops.ones_like(x.select(dim, 0))
    zero = _ops.zeros_like(ones)
    before = ones
    for k in range(n):
        # product of all before k, times running products after k
        running = before
        total = zero
        for i in range(k, n):
            if i > k:
                running = running * x.select(dim, i)
            total = total + grad.select(dim, i) * running.conj()
        pieces.append(total)
        before = before * x.select(dim, k)
    return _ops.stack(pieces, dim).to(self.dtype)


cdef object prod_backward(object grad, object self, object result, object dim, bint keepdim):
    shape = self.shape
    x = self if self.dtype == result.dtype else self.to(result.dtype)
    if not len(shape):
        return grad.to(self.dtype) if x is not self else grad
    if not holds_any(_ops.eq(x.detach(), 0)):
        g = restore_dims(grad, shape, dim, keepdim)
        r = restore_dims(result, shape, dim, keepdim)
        return (g * (r / x).conj()).to(self.dtype)
    if dim is None or len(dim) == 0:
        flat = x.reshape(-1)
        return (grad.reshape(()) * others_product(flat, 0).conj()).reshape(shape).to(self.dtype)
    g = restore_dims(grad, shape, dim, keepdim)
    return (g * others_product(x, dim[0]).conj()).to(self.dtype)


cdef object others_product(object x, int64_t dim):
    """For each element the product of the others along `dim`: products from the left times products from the right."""
    n = x.size(dim)
    if n == 0:
        return x
    one = _ops.ones_like(x.narrow(dim, 0, 1))
    left = _ops.cat([one, x.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    right = _ops.cat([one, x.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return left * right



"""Derivatives of scatter and scatter_reduce, composed of operators."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.autograd.operator_nodes import delayed_error
from tensorrt_lite._C.core.dispatch cimport attach, tls
from tensorrt_lite._C.ops.support cimport holds_any



cdef object enlarged(object g, object shape):
    """`g` at the beginning of zeros of a larger shape."""
    if tuple(g.shape) == tuple(shape):
        return g
    r = g.new_zeros(shape)
    part = r
    for k in range(len(shape)):
        part = part.narrow(k, 0, g.shape[k])
    part.copy_(g)
    return r


cdef object source_gradient(object grad, int64_t dim, object index, object shape):
    if not shape and index.dim():
        return grad.gather(dim, index).reshape(shape)
    return enlarged(grad.gather(dim, index), shape)


cdef object scatter_reduce_backward(object grad, object self, int64_t dim, object index, object source, object reduce, bint include_self, object result, bint to_self):
    """Gradients of scatter_reduce: ties of amin and amax share, products leave their own factor out."""
    cdef object src = source, g, own
    if reduce == "sum":
        if to_self:
            return grad if include_self else grad.scatter(dim, index, 0)
        return source_gradient(grad, dim, index, source.shape)
    if tuple(source.shape) != tuple(index.shape) and index.dim():
        for k in range(index.dim()):
            src = src.narrow(k, 0, index.shape[k])
    if reduce == "mean":
        n = _ops.ones_like(grad) if include_self else _ops.zeros_like(grad)
        n = n.scatter_add(dim, index, _ops.ones_like(src))
        share = grad / n.masked_fill(n == 0, 1)
        own = share
        g = None if to_self else share.gather(dim, index)
    elif reduce == "prod":
        if to_self:
            kept = self.masked_fill(self == 0, 1)
            own = grad * kept.scatter_reduce(dim, index, src, "prod", include_self=include_self) / kept
        else:
            zero = src == 0
            zeros = _ops.zeros_like(self).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
            single = zero & (zeros == 1)
            others = self.scatter_reduce(dim, index, src.masked_fill(single, 1), "prod", include_self=include_self)
            g = _ops.where(single, (grad * others).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1))
            if tls().grad_mode and holds_any(zeros > 1, False):
                g = delayed_error("scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the same position in self", g)
    else:
        own_is = (self == result).to(grad.dtype)
        if not include_self:
            own_is = own_is.scatter(dim, index, 0)
        src_is = (src == result.gather(dim, index)).to(grad.dtype)
        share = grad / own_is.scatter_add(dim, index, src_is)
        own = own_is * share
        g = None if to_self else src_is * share.gather(dim, index)
    if to_self:
        return own if include_self else own.scatter(dim, index, 0)
    return enlarged(g, source.shape)

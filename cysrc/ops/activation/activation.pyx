# Entries of activations whose arguments are checked or choose between declared operators.
from tensorrt_lite._C.core.dispatch cimport tls
from tensorrt_lite._C.core.tensor cimport K_AUTOCAST


cdef object clipped(object input, object min_val, object max_val, object out, bint inplace):
    cdef Scalar p[2]
    param(min_val, &p[0], "hardtanh", "min_val")
    param(max_val, &p[1], "hardtanh", "max_val")
    if isinstance(input, TensorBase) and (<TensorBase>input).dtype == U8 and (p[0].d < 0 or p[1].d < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return entry1(&pw_activation[PW_HARDTANH], input, p, out, inplace)


cdef bint reads_result(double slope) noexcept:
    """Whether a write in place can do without a copy of its input: the result's sign is the input's, from which the derivative follows."""
    return slope > 0


cdef object leaky_relu_of(object input, object negative_slope, object out, bint inplace):
    cdef Scalar p[1]
    param(negative_slope, &p[0], "leaky_relu", "negative_slope")
    return entry1(&pw_activation[PW__LEAKY_RELU_WRITTEN if inplace and reads_result(p[0].d) else PW_LEAKY_RELU], input, p, out, inplace)


cdef object elu_of(object input, object alpha, object scale, object input_scale, object out, bint inplace):
    cdef Scalar p[3]
    cdef bint written
    param(alpha, &p[0], "elu", "alpha")
    param(scale, &p[1], "elu", "scale")
    param(input_scale, &p[2], "elu", "input_scale")
    written = inplace and reads_result(p[0].d) and p[1].d > 0 and p[2].d > 0
    return entry1(&pw_activation[PW__ELU_WRITTEN if written else PW_ELU], input, p, out, inplace)


cdef object selu_of(object input, object out, bint inplace):
    return entry1(&pw_activation[PW__SELU_WRITTEN if inplace and reads_result(1) else PW_SELU], input, NULL, out, inplace)


cdef object celu_of(object input, object alpha, object out, bint inplace):
    cdef Scalar p[1]
    param(alpha, &p[0], "celu", "alpha")
    if p[0].d == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return entry1(&pw_activation[PW__CELU_WRITTEN if inplace and reads_result(p[0].d) else PW_CELU], input, p, out, inplace)


cdef object gelu_of(object input, object approximate, object out, bint inplace):
    if approximate == "none":
        return entry1(&pw_activation[PW_GELU], input, NULL, out, inplace)
    if approximate == "tanh":
        return entry1(&pw_activation[PW__GELU_TANH], input, NULL, out, inplace)
    raise RuntimeError("approximate argument must be either none or tanh.")


cdef object softshrink_of(object input, object lambd, object out, bint inplace):
    cdef Scalar p[1]
    param(lambd, &p[0], "softshrink", "lambd")
    if not scalar_as_f64(&p[0]) >= 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    if isinstance(input, TensorBase) and category[(<TensorBase>input).dtype] == CAT_FLOAT and scalar_as_f64(&p[0]) > LARGEST[(<TensorBase>input).dtype]:
        code = (<TensorBase>input).dtype
        raise RuntimeError(f"lambda must be in range [0, {LARGEST[code]:g}] for input dtype {dtype_text(code)}, but found {lambd}")
    return entry1(&pw_activation[PW_SOFTSHRINK], input, p, out, inplace)


def prelu(input, weight):
    """x where x > 0, else weight * x; weight: (1,) or (C,) for input (N, C, ...)."""
    cdef TensorBase x = as_tensor_arg(input, "prelu", "input"), w = as_tensor_arg(weight, "prelu", "weight")
    cdef int i
    # autocast gives the kernel one type, but leaves float64 as it is
    if x.dtype != w.dtype and (x.dtype == F64 or w.dtype == F64 or not tls().included & ~tls().excluded & K_AUTOCAST):
        raise RuntimeError(f"prelu: Type promoting not supported. Got {dtype_of(x.dtype).name} and {dtype_of(w.dtype).name}")
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.numel != 1:
        if x.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if w.numel != x.sizes[1 if x.ndim > 1 else 0]:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {w.numel} and channel size = "
                               f"{x.sizes[1 if x.ndim > 1 else 0]}.")
    if w.ndim == 1 or x.ndim > 0:
        weight = weight.reshape([w.numel if i == (1 if x.ndim > 1 else 0) else 1 for i in range(x.ndim)])
    return _prelu_kernel(input, weight)


def glu(input, dim=-1, *, out=None):
    """a * sigmoid(b) of the two halves a and b of input along dim."""
    cdef TensorBase x = as_tensor_arg(input, "glu", "input")
    cdef int d
    if x.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    d = wrap_dim(parse_int(dim, "glu", "dim"), x.ndim)
    if x.sizes[d] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {x.sizes[d]}")
    half = x.sizes[d] // 2
    # one Node writes both halves of the gradient, where two of narrow would each fill a whole one with zeros
    a, b = _ops.split_with_sizes(input, (half, half), d)
    return _glu(a, b, out=out)


cdef inline double scalar_as_f64(const Scalar* s) noexcept:
    return <double>s.i if s.kind <= 1 else s.d


WITHOUT_ROW = {"glu": ""}

# Fourier transforms: checks and results for all devices, one dimension after another by the device's step.
from libc.math cimport sqrt
from tensorrt_lite._C.ops.fft import cpu as _cpu_steps
from tensorrt_lite._C.steps.fft cimport FFT_C2C, FFT_C2R, FFT_R2C, run_transform_dim


cdef int check_signal(TensorBase t, const Dims* dim, int64_t normalization, bint is_complex, str op, int* dims) except -1:
    cdef int i, k
    if t.dtype not in ((C64, C128) if is_complex else (F32, F64)):
        raise RuntimeError(f"{op}: expected a {'complex' if is_complex else 'real floating point'} tensor of 32 or 64 bit numbers, but got {dtype_text(t.dtype)}")
    if normalization < 0 or normalization > 2:
        raise RuntimeError(f"{op}: unknown normalization {normalization}")
    if dim.n > t.ndim or (not is_complex and dim.n < 1):
        raise RuntimeError(f"{op}: {dim.n} dimensions to transform of a tensor of shape {shape_text(t)}")
    for i in range(dim.n):
        dims[i] = wrap_dim(dim.v[i], t.ndim)
        for k in range(i):
            if dims[k] == dims[i]:
                raise RuntimeError("FFT dims must be unique")
    return 0


cdef double scale_of(int64_t numel, int64_t normalization) noexcept:
    return 1.0 if normalization == 0 or numel == 0 else 1.0 / numel if normalization == 2 else 1.0 / sqrt(<double>numel)


cdef TensorBase _fft_c2c_kernel(TensorBase self, const Dims* dim, int64_t normalization, bint forward):
    cdef int dims[64]
    cdef int i
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y
    check_signal(x, dim, normalization, True, "_fft_c2c", dims)
    for i in range(dim.n):
        signal *= x.sizes[dims[i]]
    y = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
    if y.numel == 0:
        return y
    if dim.n == 0:
        return _ops.copy_(y, x)
    for i in range(dim.n - 1, -1, -1):
        run_transform_dim(x.device_type, x, y, dims[i], x.sizes[dims[i]], FFT_C2C, not forward, False, scale_of(signal, normalization) if i == 0 else 1.0)
        x = y
    return y


cdef TensorBase _fft_r2c_kernel(TensorBase self, const Dims* dim, int64_t normalization, bint onesided):
    cdef int dims[64]
    cdef int64_t sizes[64]
    cdef int i, last
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y
    check_signal(x, dim, normalization, False, "_fft_r2c", dims)
    last = dims[dim.n - 1]
    for i in range(dim.n):
        signal *= x.sizes[dims[i]]
    memcpy(sizes, x.sizes, x.ndim * sizeof(int64_t))
    if onesided:
        sizes[last] = x.sizes[last] // 2 + 1
    y = empty_tensor(x.ndim, sizes, C128 if x.dtype == F64 else C64, place_of(x))
    if y.numel == 0:
        return y
    if x.sizes[last] == 0:
        raise RuntimeError(f"_fft_r2c: dimension {last} of a tensor of shape {shape_text(x)} has no elements")
    run_transform_dim(x.device_type, x, y, last, x.sizes[last], FFT_R2C, False, not onesided, scale_of(signal, normalization) if dim.n == 1 else 1.0)
    for i in range(dim.n - 2, -1, -1):
        run_transform_dim(x.device_type, y, y, dims[i], y.sizes[dims[i]], FFT_C2C, False, False, scale_of(signal, normalization) if i == 0 else 1.0)
    return y


cdef TensorBase _fft_c2r_kernel(TensorBase self, const Dims* dim, int64_t normalization, int64_t last_dim_size):
    cdef int dims[64]
    cdef int64_t sizes[64]
    cdef int i, last
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y, t
    check_signal(x, dim, normalization, True, "_fft_c2r", dims)
    if dim.n < 1:
        raise RuntimeError("_fft_c2r: at least one dimension is needed")
    last = dims[dim.n - 1]
    if last_dim_size < 1 or x.sizes[last] != last_dim_size // 2 + 1:
        raise RuntimeError(f"_fft_c2r: expected {max(0, last_dim_size) // 2 + 1} frequencies along dimension {last} for {last_dim_size} numbers, but got a tensor of shape {shape_text(x)}")
    memcpy(sizes, x.sizes, x.ndim * sizeof(int64_t))
    sizes[last] = last_dim_size
    checked_numel(x.ndim, sizes)
    for i in range(dim.n):
        signal *= sizes[dims[i]]
    y = empty_tensor(x.ndim, sizes, F64 if x.dtype == C128 else F32, place_of(x))
    if y.numel == 0:
        return y
    if dim.n > 1:
        t = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        for i in range(dim.n - 1):
            run_transform_dim(x.device_type, x, t, dims[i], x.sizes[dims[i]], FFT_C2C, True, False, 1.0)
            x = t
    run_transform_dim(x.device_type, x, y, last, last_dim_size, FFT_C2R, True, False, scale_of(signal, normalization))
    return y


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef object real_to_complex_gradient(object grad, object dim, object normalization, bint onesided, object shape):
    """The transposed map: the missing frequencies have no gradient; of what an inverse transform gives the real part counts."""
    cdef object missing, last = dim[len(dim) - 1]
    if onesided:
        missing = shape[last] - grad.size(last)
        if missing > 0:
            shape = list(grad.shape)
            shape[last] = missing
            grad = _ops.cat([grad, grad.new_zeros(shape)], last)
    return _ops.real(_ops._fft_c2c(grad, dim, normalization, False))


cdef object complex_to_real_gradient(object grad, object dim, object normalization, object last_dim_size):
    """The transposed map: every frequency but the first and, of an even number, the last stood for itself and its mirror image."""
    cdef object spectrum = _ops._fft_r2c(grad, dim, normalization, True), last = dim[len(dim) - 1]
    cdef object size = spectrum.size(last), mirrored = last_dim_size - size
    if mirrored > 0:
        pieces = [spectrum.narrow(last, 0, 1), spectrum.narrow(last, 1, mirrored) * 2]
        if size > mirrored + 1:
            pieces.append(spectrum.narrow(last, mirrored + 1, size - mirrored - 1))
        spectrum = _ops.cat(pieces, last)
    return spectrum

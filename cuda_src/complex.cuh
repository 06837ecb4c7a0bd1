// Complex numbers for device code: PyTorch's complex64 and complex128 as they lie in memory, with arithmetic and the functions of
// the declarations' expressions. Products and quotients do not repair infinities, as the vector functions of the CPU don't.
#pragma once

#include "c_math.cuh"

namespace trt {

template <class T>
struct alignas(2 * sizeof(T)) complex {
    T re, im;
    __host__ __device__ constexpr complex() : re(0), im(0) {}
    __host__ __device__ constexpr complex(T real, T imaginary = T(0)) : re(real), im(imaginary) {}
};
using c64 = complex<float>;
using c128 = complex<double>;

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<complex<T>> = true;
template <class T>
struct RealOf { using type = T; };
template <class T>
struct RealOf<complex<T>> { using type = T; };
template <class T>
using real_t = typename RealOf<T>::type;

#define TRT_COMPLEX(type) \
    template <class T>    \
    static __device__ __forceinline__ type

TRT_COMPLEX(complex<T>) operator-(complex<T> x) { return {-x.re, -x.im}; }
TRT_COMPLEX(complex<T>) operator+(complex<T> x, complex<T> y) { return {x.re + y.re, x.im + y.im}; }
TRT_COMPLEX(complex<T>) operator-(complex<T> x, complex<T> y) { return {x.re - y.re, x.im - y.im}; }
TRT_COMPLEX(complex<T>) operator*(complex<T> x, complex<T> y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
// Smith 1962: scaled by the larger part, so that the square of the divisor neither overflows nor vanishes.
TRT_COMPLEX(complex<T>) operator/(complex<T> x, complex<T> y) {
    if ((y.re < 0 ? -y.re : y.re) >= (y.im < 0 ? -y.im : y.im)) {
        if (y.re == 0 && y.im == 0) return {x.re / (y.re < 0 ? -y.re : y.re), x.im / (y.re < 0 ? -y.re : y.re)};
        const T ratio = y.im / y.re, scale = T(1) / (y.re + y.im * ratio);
        return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
    }
    const T ratio = y.re / y.im, scale = T(1) / (y.re * ratio + y.im);
    return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}
TRT_COMPLEX(bool) operator==(complex<T> x, complex<T> y) { return x.re == y.re && x.im == y.im; }
TRT_COMPLEX(bool) operator!=(complex<T> x, complex<T> y) { return x.re != y.re || x.im != y.im; }
// A real number beside a complex one: its type is the complex one's part, whatever it was.
template <class T>
struct Same { using type = T; };
template <class T>
using part = typename Same<T>::type;
TRT_COMPLEX(complex<T>) operator+(part<T> x, complex<T> y) { return {x + y.re, y.im}; }
TRT_COMPLEX(complex<T>) operator-(part<T> x, complex<T> y) { return {x - y.re, -y.im}; }
TRT_COMPLEX(complex<T>) operator*(part<T> x, complex<T> y) { return {x * y.re, x * y.im}; }
TRT_COMPLEX(complex<T>) operator*(complex<T> x, part<T> y) { return {x.re * y, x.im * y}; }
TRT_COMPLEX(complex<T>) operator/(complex<T> x, part<T> y) { return {x.re / y, x.im / y}; }
TRT_COMPLEX(bool) operator==(part<T> x, complex<T> y) { return x == y.re && y.im == 0; }
TRT_COMPLEX(bool) operator!=(complex<T> x, int) { return x.re != 0 || x.im != 0; }
TRT_COMPLEX(bool) operator!(complex<T> x) { return x.re == 0 && x.im == 0; }
TRT_COMPLEX(complex<T>) conj(complex<T> x) { return {x.re, -x.im}; }
TRT_COMPLEX(T) real(complex<T> x) { return x.re; }
TRT_COMPLEX(T) imag(complex<T> x) { return x.im; }
TRT_COMPLEX(T) abs(complex<T> x) {
    if constexpr (sizeof(T) == 4) return ::hypotf(x.re, x.im);
    return static_cast<T>(::hypot(x.re, x.im));
}
TRT_COMPLEX(T) angle(complex<T> x) {
    if constexpr (sizeof(T) == 4) return ::atan2f(x.im, x.re);
    return static_cast<T>(::atan2(x.im, x.re));
}
TRT_COMPLEX(bool) isnan(complex<T> x) { return x.re != x.re || x.im != x.im; }

#undef TRT_COMPLEX

}  // namespace trt

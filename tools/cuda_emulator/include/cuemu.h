// Compiles CUDA C++ as ordinary C++17 on g++ and runs it on the emulator's fibers (x86-64).
//
// compiler.py force-includes this header in front of every translation unit. It maps CUDA's keywords to C++, gives
// the built-in variables, and pulls in the device library. A kernel can test `CUEMU` to give a second body to
// what has no portable form (inline PTX, for instance).
//
// One block runs at a time in a process, which is why `__shared__` may be a plain static.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#define CUEMU 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define CUEMU_VARIABLE __attribute__((visibility("default"), used))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static

#include "cuemu_runtime.h"
#include "cuemu_types.h"

#define threadIdx (cuemu_current->thread)
#define blockIdx (cuemu_current->block)
#define blockDim (cuemu_current->block_dim)
#define gridDim (cuemu_current->grid_dim)
#define warpSize 32

#include "cuemu_sync.h"
#include "cuemu_atomic.h"
#include "cuemu_half.h"
#include "cuemu_math.h"

#include "assert.h"

// Entry in the module's symbol table that the driver's cuModuleGetFunction looks up; compiler.py appends one
// for each `extern "C" __global__` kernel.
#define CUEMU_EXPORT(name)                                                                    \
    extern "C" __attribute__((visibility("default"), used)) const cuemu::Kernel cuemu_kernel_##name = { \
        #name, cuemu::ParameterList<decltype(&name)>::count, cuemu::ParameterList<decltype(&name)>::bytes, \
        cuemu::ParameterList<decltype(&name)>::sizes, cuemu::ParameterList<decltype(&name)>::offsets, \
        &cuemu::Invoke<&name>::call};

/* What a custom device may bring as C functions, given to tensorrt_lite.backend by their addresses. They are called with the GIL held and use nothing of
   Python. Addresses on the device are the device's own: the host adds offsets to them and reads nothing through them. */
#ifndef TRT_DEVICE_INTERFACE_H
#define TRT_DEVICE_INTERFACE_H
#include <stdint.h>

/* NULL: out of memory. The address is not 0, and aligned for any element (16 bytes). */
typedef void* (*trt_device_allocate)(int64_t nbytes, int index);
typedef void (*trt_device_release)(void* address, int64_t nbytes, int index);

/* Bytes between host and device, or within a device; behind what its current stream has been given. non_blocking: the call may return before the copy is
   done. 0: well; else RuntimeError. */
typedef int (*trt_device_copy)(void* destination, const void* source, int64_t nbytes, int index, int non_blocking);

/* Operands of a pointwise operator, the result first; all have the result's sizes, outermost dimension first. */
typedef struct {
  const char* name;                     /* the operator, "copy" of copies, conversions and fills */
  int index;                            /* of the device */
  int compute;                          /* dtype to compute in, that of the operands; a code as in core/dtype_table.h */
  int count, ndim, n_params;
  const int64_t* sizes;
  const int64_t* strides[7];            /* in bytes */
  char* data[7];
  int dtype[7];
  unsigned on_host;                     /* bit i: operand i is one number in host memory, with strides of 0 */
  const double* params;                 /* the operator's numbers in the order of its declaration (docs/operators.md) */
} trt_device_operands;

/* 0: done, 1: there is no kernel for these, anything else is an error. */
typedef int (*trt_device_elementwise)(const trt_device_operands* operands);
#endif

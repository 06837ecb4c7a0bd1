/* The description of a pointwise operator that the generator fills in and TensorIterator runs. */
#ifndef TRT_POINTWISE_H
#define TRT_POINTWISE_H
#include <stdint.h>
#include "scalar_types.h"

typedef struct _object PyObject; /* Python's: the loops are compiled without its headers */

/* data[0] is the output; strides in bytes, one per operand. Loops are contiguous, except that operand i may have stride
   0 where bit i of scalar_forms is set. */
typedef void (*loop_t)(char** data, const int64_t* strides, int64_t n, const Scalar* params);
typedef struct trt_operator trt_operator_fwd;

typedef struct PointwiseInfo PointwiseInfo;
struct PointwiseInfo {
  const char* name;
  const char* node_name;
  int id, nin, nparams;
  int promote;                 /* PROMOTE_*: flags */
  int scalar_forms;
  int checks;                  /* CHECK_*: what operands are examined for before the loop; NO_REPEATS: nothing where an expanded tensor is written in place */
  int cost;                    /* work per element in units of an addition: scales the grain size */
  loop_t loops[NUM_DTYPES];    /* by compute type */
  signed char in_type[6];      /* IN_*: which type an input is converted to */
  struct trt_operator* op;
  void* on_device[NUM_DTYPES]; /* its kernels on CUDA by compute type, once loaded */
  const PointwiseInfo* fused[3];       /* backward kernel of each input */
  int n_used[3];
  signed char used[3][6];              /* slots it reads: 0 grad, 1..3 inputs, 4 result */
  PyObject* (*formula[3])(PyObject** slots, const Scalar* params);   /* the same as differentiable operators */
  int differentiable;
  unsigned save_mask;                  /* slots that the Node saves */
  void* node_type;
  const char* bool_error;              /* what is said when the operator has no loop for bool (a RuntimeError) */
  const char* int_error;               /* the same for bool and integers */
  int tensor_only;                     /* bit i: a Python number is no operand i */
  int two_numbers;                     /* both operands may be Python numbers */
  int exact_out;                       /* out= must have the type of the result, it is not converted to */
  int self_adjoint;                    /* of complex numbers: the derivative is its own adjoint (elsewhere: holomorphic) */
  int unit_pass;                       /* bit i: the gradient of input i is the incoming one when parameter 0 is 1 */
  unsigned stored;                     /* bit by code: types without loops that it takes, in the loop of their compute type */
  int stored_as_bits;                  /* of those it moves the bits: it chooses between elements */
  int wide_number;                     /* one number as operand 2 of halves comes as a parameter, in float32 */
  int wide_params;                     /* bit i: parameter i of halves need not be one, but goes into float32 */
};

enum { PROMOTE_SAME = 0, PROMOTE_FLOAT = 1, PROMOTE_BOOL_OUT = 2, PROMOTE_REAL_OUT = 4, PROMOTE_FIRST_BOOL = 8, PROMOTE_INT_TO_FLOAT = 16 };
enum { CHECK_ZERO_DIVISOR = 1, CHECK_NEGATIVE_EXPONENT = 2, CHECK_ALPHA = 4, CHECK_SUBTRACTION = 8, CHECK_SAME_DTYPE = 16, CHECK_NUMBERS = 32, CHECK_NO_REPEATS = 64 };
enum { IN_COMPUTE = 0, IN_BOOL = 1, IN_OWN = 2 };
#endif

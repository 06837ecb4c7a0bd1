/* The C interface of tensorrt_lite: tensors as opaque handles, operators registered under schemas with kernels and gradients in C.

   Everything goes through one table of function pointers, `trtl_api`, which the package hands over: nothing is linked, no layout of the package's own
   structures is known outside, and no C++ ABI is promised. The table only grows at its end; `version` counts what is not compatible, `size` says how much of it
   there is. tensorrt_lite.hpp has the same for C++, tensorrt_lite_api.pxd for Cython. docs/extensions.md is the guide, examples/extension the example.

   A library that `ops.load_library(path)` loads exports `int trtl_library_init(const trtl_api*)` (0, or -1 with an error set). A Python extension module calls
   `trtl_import()` in its init function, which includes <Python.h> before this file.

   Rules. Functions that return int return 0, or -1 with an error set, which becomes a Python exception; those that return a handle return NULL then. Arguments are
   borrowed; handles that are returned, or put into results, are owned by whom they go to (`release`). All functions need Python's GIL, but those of the group
   "geometry" and `parallel_for`; kernels are called with it and may give it up between `release_gil` and `acquire_gil`. */
#ifndef TENSORRT_LITE_H
#define TENSORRT_LITE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { TRTL_VERSION = 1 };

typedef struct trtl_tensor_object* trtl_tensor;   /* a tensor, counted */
typedef struct trtl_context_object* trtl_context; /* what one call keeps for its gradient */
typedef struct trtl_list_object* trtl_list;       /* a list of tensors as a result */

/* Element types, by PyTorch's numbers. */
enum {
  TRTL_UINT8 = 0, TRTL_INT8 = 1, TRTL_INT16 = 2, TRTL_INT32 = 3, TRTL_INT64 = 4, TRTL_FLOAT16 = 5, TRTL_FLOAT32 = 6, TRTL_FLOAT64 = 7,
  TRTL_COMPLEX32 = 8, TRTL_COMPLEX64 = 9, TRTL_COMPLEX128 = 10, TRTL_BOOL = 11, TRTL_BFLOAT16 = 15, TRTL_FLOAT8_E5M2 = 23, TRTL_FLOAT8_E4M3FN = 24,
  TRTL_FLOAT8_E5M2FNUZ = 25, TRTL_FLOAT8_E4M3FNUZ = 26, TRTL_UINT16 = 27, TRTL_UINT32 = 28, TRTL_UINT64 = 29, TRTL_FLOAT8_E8M0FNU = 44
};

enum { TRTL_CPU = 0, TRTL_CUDA = 1, TRTL_META = 2, TRTL_CUSTOM = 3 };   /* TRTL_CUSTOM and above: devices that a program registered */

enum { TRTL_RUNTIME_ERROR, TRTL_VALUE_ERROR, TRTL_TYPE_ERROR, TRTL_INDEX_ERROR, TRTL_NOT_IMPLEMENTED, TRTL_MEMORY_ERROR };

/* What a value holds; which member of the union goes with it. */
enum {
  TRTL_NONE = 0,
  TRTL_TENSOR,     /* tensor */
  TRTL_INT,        /* i */
  TRTL_FLOAT,      /* d */
  TRTL_BOOLEAN,    /* i */
  TRTL_COMPLEX,    /* c: real and imaginary part */
  TRTL_STRING,     /* s: n bytes of UTF-8 and a zero */
  TRTL_DTYPE,      /* i */
  TRTL_DEVICE,     /* i: the type; n: the index, -1 for the current one */
  TRTL_TENSORS,    /* tensors: n, NULL where the list has None; of arguments alone */
  TRTL_INTS,       /* ints: n */
  TRTL_FLOATS,     /* floats: n */
  TRTL_LIST        /* list, of results alone */
};

typedef struct {
  int32_t kind;
  int32_t reserved;
  int64_t n;
  union {
    trtl_tensor tensor;
    trtl_list list;
    int64_t i;
    double d;
    double c[2];
    const char* s;
    const trtl_tensor* tensors;
    const int64_t* ints;
    const double* floats;
  } u;
} trtl_value;

/* A kernel: arguments in the schema's order, keyword ones last; as many results as the schema returns, all TRTL_NONE at first. */
typedef int (*trtl_kernel)(const trtl_value* arguments, int n_arguments, trtl_value* results, int n_results, void* context);
/* After the forward call: keep what the gradient needs. */
typedef int (*trtl_setup)(trtl_context call, const trtl_value* inputs, int n_inputs, const trtl_value* outputs, int n_outputs, void* context);
/* One gradient in for each result (NULL: none arrived), one out for each positional argument (owned; NULL, as at first: none). */
typedef int (*trtl_backward)(trtl_context call, const trtl_tensor* grads, int n_grads, trtl_tensor* input_grads, int n_inputs, void* context);
typedef void (*trtl_task)(void* context, int64_t begin, int64_t end);
typedef void (*trtl_deleter)(void* context);

typedef struct trtl_api {
  uint32_t version, size;

  /* errors */
  void (*set_error)(int kind, const char* message);     /* formatted by the caller; the message is copied */
  int (*error_occurred)(void);
  int (*warn)(const char* message);                     /* UserWarning; -1 where warnings are errors */

  /* counting */
  void (*retain)(trtl_tensor);
  void (*release)(trtl_tensor);                         /* NULL is nothing */

  /* geometry; sizes and strides stay valid as long as the tensor does and is not resized */
  int (*dim)(trtl_tensor);
  int64_t (*numel)(trtl_tensor);
  const int64_t* (*sizes)(trtl_tensor);
  const int64_t* (*strides)(trtl_tensor);               /* in elements */
  int64_t (*storage_offset)(trtl_tensor);               /* in elements */
  int (*dtype)(trtl_tensor);
  int (*item_size)(int dtype);                          /* bytes; 0 for no dtype */
  int (*device_type)(trtl_tensor);
  int (*device_index)(trtl_tensor);                     /* -1 where the device has none */
  int (*is_contiguous)(trtl_tensor);
  int (*requires_grad)(trtl_tensor);

  /* memory; NULL with an error for tensors whose memory is not to be written to, or who have none. The address is that of the first element. */
  const void* (*const_data)(trtl_tensor);
  void* (*data)(trtl_tensor);                           /* to write to */

  /* making; index -1 is the current device. Contents of `empty` are not set. */
  trtl_tensor (*empty)(int dim, const int64_t* sizes, int dtype, int device_type, int device_index);
  trtl_tensor (*empty_like)(trtl_tensor);
  trtl_tensor (*full)(int dim, const int64_t* sizes, double value, int dtype, int device_type, int device_index);
  trtl_tensor (*contiguous)(trtl_tensor);               /* the tensor itself where it is */
  trtl_tensor (*to_dtype)(trtl_tensor, int dtype);
  trtl_tensor (*from_memory)(void* data, int dim, const int64_t* sizes, int dtype, trtl_deleter deleter, void* context);   /* contiguous, on the CPU */
  trtl_tensor (*from_object)(void* object);             /* of a PyObject*: a new reference where it is a tensor, else TypeError */
  void* (*to_object)(trtl_tensor);                      /* a new reference to the PyObject* */

  /* any operator, by name: "aten::add", "mine::scale.overload". Results are owned. */
  int (*call)(const char* name, const trtl_value* arguments, int n_arguments, trtl_value* results, int n_results);
  int (*set_list)(trtl_value* result, const trtl_tensor* tensors, int64_t n);   /* makes a result a list; the tensors stay the caller's */

  /* registration. Names are copied; functions and contexts last as long as the process. */
  int (*define)(const char* schema);                    /* "mine::scale(Tensor x, float factor) -> Tensor"; one that is there is replaced */
  int (*implement)(const char* name, const char* key, trtl_kernel kernel, void* context);   /* key: CPU, CUDA, Meta, CompositeExplicitAutograd, ... */
  int (*set_gradient)(const char* name, trtl_setup setup, trtl_backward backward, void* context);  /* setup may be NULL */

  /* for gradients */
  int (*save)(trtl_context, const trtl_tensor* tensors, int n);
  int (*n_saved)(trtl_context);
  trtl_tensor (*saved)(trtl_context, int i);            /* owned; RuntimeError where it was written to since */
  int (*needs_gradient)(trtl_context, int input);
  int (*set_number)(trtl_context, const char* name, double value);
  int (*number)(trtl_context, const char* name, double* value);

  /* threads */
  void* (*release_gil)(void);
  void (*acquire_gil)(void*);
  void (*parallel_for)(int64_t n, int64_t grain, trtl_task task, void* context);   /* task(context, begin, end) over [0, n), chunks of grain at least */
  int (*num_threads)(void);
} trtl_api;

#ifdef Py_PYTHON_H
/* The table; NULL with a Python error where the package is not there or too old. */
static inline const trtl_api* trtl_import(void) {
  PyObject* module = PyImport_ImportModule("tensorrt_lite._extension");
  if (!module) return NULL;
  Py_DECREF(module);
  const trtl_api* api = (const trtl_api*)PyCapsule_Import("tensorrt_lite._extension.api", 0);
  if (api && (api->version != TRTL_VERSION || api->size < sizeof(trtl_api))) {
    PyErr_Format(PyExc_ImportError, "this module was compiled for version %d of tensorrt_lite's C interface, and the package has %u: compile it again",
                 (int)TRTL_VERSION, (unsigned)api->version);
    return NULL;
  }
  return api;
}
#endif

#ifdef __cplusplus
}
#endif
#endif

/* The dispatcher: an operator is a row of typed C function pointers, one per dispatch key; the highest key of its arguments that the
   thread allows wins. A kernel goes on below its own key by `trt_redispatch`. Kernels that are not typed (Python's, a custom
   backend's, forward mode) share one entry, `trt_core->box`, behind a small packer per operator. */
#ifndef TRT_DISPATCH_H
#define TRT_DISPATCH_H
#include <Python.h>
#include <stdint.h>
#include "thread_state.h"

/* An argument of any kind: p a tensor, a list, another object, Dims or Scalar (NULL: none); i an int, a bool, a dtype (-1: none); d a float. */
typedef union { void* p; int64_t i; double d; } trt_value;

typedef struct trt_operator trt_operator;

/* What callers need that do not know an operator's C type. Kinds of arguments: t tensor or None, l list of tensors, i int, b bool, d float,
   s Scalar, v Dims, y dtype, o another object; returned: t, l, or o. */
typedef struct {
  const char *schema, *kinds;
  char returned, written;               /* written: a result may be given, as `out` and a write mode after the arguments */
  char view;
  char results;                         /* o: how many tensors are in the tuple; 0 of t and l, and where nothing is returned */
  const char* autocast;                 /* a letter for the CPU and one for CUDA, see autograd/autocast.pyx; NULL: nothing is cast */
  const char* stored;                   /* a letter by dtype: how types without loops are taken, see core/storage_types.pyx; NULL: by no kernel */
  void* pack;                           /* a kernel of the operator's C type that boxes its arguments */
  void* (*unpack)(trt_operator*, const trt_value*, void* out, int mode);
  void* (*invoke)(trt_operator*, void* kernel, const trt_value*, void* out, int mode);      /* a kernel of the operator's C type, undispatched */
} trt_row;

struct trt_operator {
  const char* name;
  uint64_t mask;                /* keys that have a kernel, and all backends (whose absence is an error) */
  void* info;                   /* PointwiseInfo of a pointwise operator */
  void* forward;                /* ForwardInfo of the others: how tangents go through it */
  const trt_row* row;
  void* kernels[16];
  PyObject** python;            /* kernels that Python registered, by key, or NULL */
};

enum { TRT_NO_OUT = -1 };       /* in place of a write mode: the operator takes no output */

/* An entry: a public form of an operator (ops/entry.h). */
enum { TRT_ENTRY_INPLACE = 1, TRT_ENTRY_OUT = 2, TRT_ENTRY_POINTWISE = 4, TRT_ENTRY_VARARGS = 8, TRT_ENTRY_NAMED = 16 };

typedef struct {
  int id;                       /* the operator */
  int flags;
  int needed;                   /* the argument that must be given beside out=, or -1 */
  const char* name;
  const char* aliases;          /* other public names, separated by spaces, or NULL */
  const char* schema;           /* of the public function where it is not the operator's, or NULL */
  PyObject* (*body)(const trt_value*, PyObject* out, int inplace);      /* of a public function that is made of several operators, or NULL */
} trt_entry_spec;

/* CPU, CUDA, meta, and then the custom ones (core/device.pxd). */
enum { TRT_CUSTOM_TYPES = 8, TRT_FIRST_CUSTOM = 3, TRT_DEVICE_TYPES = TRT_FIRST_CUSTOM + TRT_CUSTOM_TYPES };

/* A step of a family (cysrc/ops/<family>/steps.yaml): one typed function per device type. `boxed`, of the same type, hands its arguments to the
   Python function that a custom device has registered. */
enum { TRT_STEPS = 1024 };
typedef struct {
  const char *name, *arguments;
  void* boxed;
  void* functions[TRT_DEVICE_TYPES];
} trt_step;

/* What modules call across their borders, filled by the modules that define it. */
typedef struct {
  trt_operator* operators;
  trt_thread_state* (*thread_state)(void);
  PyTypeObject* tensor_base;
  int (*missing)(trt_operator*, uint64_t keys);         /* set the error: no kernel */
  int (*mixed)(trt_operator*, uint64_t keys);           /* -1 and an error: tensors on several devices; 0: no matter */
  int (*no_tensor)(trt_operator*, void* element);       /* set the error: an element of a list is no tensor */
  void* (*box)(trt_operator*, const trt_value*, void* out, int mode);
  trt_step* steps;
  int (*missing_step)(const char* step, int device_type);  /* set the error: the device has no such step */
  void* (*call1)(void* info, void* a, const void* params, void* out, int mode);
  void* (*call2)(void* info, void* a, void* b, const void* params, void* out, int mode);
  void* (*call3)(void* info, void* a, void* b, void* c, const void* params, void* out, int mode);
  /* what ops/recording.h says */
  void* (*record)(const void* record, const trt_value*, void* out, int mode, unsigned skipped);
  void* (*hold)(const void* held, const trt_value*, void* out, int mode);
  int (*bump_version)(void* tensor);
  int (*note_view)(void* result);
} trt_core_table;

static trt_core_table* trt_core;
static trt_operator* trt_ops;
#define trt_attach(table) (trt_core = (trt_core_table*)(table), trt_ops = trt_core->operators, trt_state_getter = trt_core->thread_state)

/* The first fields of TensorBase; core/dispatch.pyx compares them with the class. */
typedef struct {
  PyObject_HEAD
  void* storage;
  int64_t offset;
  uint64_t keys;
  int64_t numel, *sizes, *strides;
  int output_nr;
  int8_t ndim, dtype, device_type, device_index;
  uint8_t layout, contiguous, requires_grad;
} trt_tensor_head;
#define TRT_HEAD(t) ((trt_tensor_head*)(t))
enum {
  TRT_KEY_AUTOGRAD = 7,         /* KEY_AUTOGRAD of tensor.pxd */
  TRT_HELD_NUMEL = 16384        /* a kernel gets `held` operands where one has so many elements: copies of fewer keep the GIL */
};
#define TRT_KEYS(t) (((trt_tensor_head*)(t))->keys)
#define TRT_OPTIONAL_KEYS(t) ((void*)(t) == (void*)Py_None ? 0 : TRT_KEYS(t))

/* The keys of a tensor on a device hold a number of nine bits and its complement in nine more: in the union of several tensors' keys a pair of these
   bits is set where two numbers differ. The number is the device's index, and above its six bits which of the custom devices it is. */
enum { TRT_INDEX_BITS = 6, TRT_DEVICE_INDICES = 1 << TRT_INDEX_BITS };
#define trt_index_keys(number) (((uint64_t)(number) & 511) << 40 | (~(uint64_t)(number) & 511) << 49)
#define trt_mixed_indices(keys) ((keys) >> 40 & (keys) >> 49 & 511)
/* Whether tensors with these keys lie on several devices. */
#define trt_mixed_devices(keys) (((keys) & 63 & (((keys) & 63) - 1)) | trt_mixed_indices(keys))
/* The keys that say where a tensor lies: its backend and the bits of its device's number. */
#define trt_place_mask ((uint64_t)47 | (uint64_t)0x3FFFF << 40)

/* Keys below one: what a kernel under it goes on with. */
#define TRT_BELOW(key) (((uint64_t)1 << (key)) - 1)

static inline void trt_box_step(int place, const char* name, const char* arguments, void* boxed) {
  trt_core->steps[place].name = name;
  trt_core->steps[place].arguments = arguments;
  trt_core->steps[place].boxed = boxed;
}

/* The kernel for the highest of `keys` that is below, not excluded and has one. NULL: an error is set. Look up immediately before the call:
   the key that was chosen stays in the thread's state, for a boxed kernel that stands under several. */
static inline void* trt_redispatch(trt_operator* op, uint64_t keys, uint64_t below) {
  trt_thread_state* state = trt_tls();
  int key = trt_top_bit((keys | state->included) & ~state->excluded & op->mask & below);
  void* kernel = op->kernels[key];
  state->key = key;
  if (__builtin_expect(!kernel, 0)) trt_core->missing(op, (keys | state->included) & ~state->excluded & below);
  return kernel;
}

static inline void trt_set_step(int place, const char* name, int device_type, void* function) {
  trt_core->steps[place].name = name;
  trt_core->steps[place].functions[device_type] = function;
}

/* A device's step. NULL: an error is set. Look up immediately before the call: a custom device stays in the thread's state, for a boxed step. */
static inline void* trt_step_of(int place, const char* name, int device_type) {
  void* function = trt_core->steps[place].functions[device_type];
  if (__builtin_expect(device_type >= TRT_FIRST_CUSTOM, 0)) trt_tls()->step_device = device_type;
  if (__builtin_expect(!function, 0)) trt_core->missing_step(name, device_type);
  return function;
}

static inline void* trt_resolve(trt_operator* op, uint64_t keys) {
  if (__builtin_expect(trt_mixed_devices(keys) != 0, 0) && trt_core->mixed(op, keys) < 0) return NULL;
  return trt_redispatch(op, keys, ~(uint64_t)0);
}

/* The keys of a list's tensors, of the CPU where there is none. None stands for no tensor. -1: an error is set. */
static inline int trt_keys_of_list(trt_operator* op, void* list, uint64_t* keys) {
  uint64_t found = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE((PyObject*)list); i++) {
    PyObject* x = PyList_GET_ITEM((PyObject*)list, i);
    if (x == Py_None) continue;
    if (!PyObject_TypeCheck(x, trt_core->tensor_base)) return trt_core->no_tensor(op, x);
    found |= TRT_KEYS(x);
  }
  *keys |= found ? found : 2;
  return 0;
}
#endif

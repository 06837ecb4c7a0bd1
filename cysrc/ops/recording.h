/* Kernels that the generator writes around an operator's own, as tables and small functions of C: under Autograd one that records a Node, on the CPU one that
   holds large operands while the kernel runs, and for outputs one that gives the warning about a new size when the kernel has run. What they do in the usual
   case, nothing, is decided here; the rest is in ops/recording.pyx. */
#ifndef TRT_RECORDING_H
#define TRT_RECORDING_H
#include "dispatch.h"

/* A tensor that a Node saves: in which slot, of which argument or result, and where not all gradients read it, the arguments (bits) whose gradients do. */
typedef struct { signed char slot, from; unsigned readers; } trt_saving;

typedef struct {
  void* node;                           /* OpNodeInfo */
  int id;
  signed char outputs;                  /* 1 a tensor, more a tuple of so many, 0 a list */
  char inplace, list_edges, multi_view;
  signed char cloned;                   /* the argument that is written in place, of which a copy is saved; or -1 */
  const char* edges;                    /* arguments with a gradient, as letters from 'a' */
  const trt_saving* tensors;            /* ending with a slot below 0; in the order of their names, in which hooks see them, as in PyTorch */
  const trt_saving* results;
  const char* lists;                    /* arguments that are saved lists */
  const char* values;                   /* pairs: v the value of an argument, s its sizes, m what brings a gradient back to it, t sizes, strides, offset, l sizes of a list, c whether it is stored by columns */
  void* (*below)(const trt_value*, void* out, int mode);
} trt_record;

typedef struct {
  int id;
  unsigned tensors, lists;              /* operands, by bits */
  void* kernel;
} trt_held;

static inline int trt_wants(void* t) { return TRT_HEAD(t)->requires_grad; }
static inline int trt_perhaps_wants(void* t) { return t != (void*)Py_None && TRT_HEAD(t)->requires_grad; }
static int trt_list_wants(void* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE((PyObject*)list); i++)
    if (trt_perhaps_wants(PyList_GET_ITEM((PyObject*)list, i))) return 1;
  return 0;
}

static inline int trt_is_large(void* t) { return t != (void*)Py_None && TRT_HEAD(t)->numel >= TRT_HELD_NUMEL; }
static int trt_list_is_large(void* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE((PyObject*)list); i++)
    if (trt_is_large(PyList_GET_ITEM((PyObject*)list, i))) return 1;
  return 0;
}

/* What is left of a call that is not recorded. */
static void* trt_unrecorded(void* result, void* out, int mode, int view) {
  if (result && ((mode == 2 && trt_core->bump_version(out) < 0) || (view && trt_core->note_view(result) < 0))) Py_CLEAR(result);
  return result;
}
#endif

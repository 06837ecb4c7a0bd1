/* Entries: what stands behind trt.add, Tensor.sum, F.relu_. One C type for all of them, driven by the operator's row: a call parses its
   arguments by the row's schema into trt_values and goes to the row's unpacker, which dispatches. */
#ifndef TRT_ENTRY_H
#define TRT_ENTRY_H
#include "dispatch.h"
#include "free_threading.h"
#include "public.h"
#include "scalar_types.h"
#include "pointwise.h"

typedef struct { int n; int64_t v[64]; } trt_dims;      /* Dims of core/args.pxd */

/* What a call's values point to. */
enum { TRT_MOST_ARGUMENTS = 24, TRT_MOST_DIMS = 6, TRT_MOST_SCALARS = 6, TRT_MOST_KEPT = 4 };
typedef struct {
  int n_dims, n_scalars, n_kept;
  PyObject* kept[TRT_MOST_KEPT];
  Scalar scalars[TRT_MOST_SCALARS];
  trt_dims dims[TRT_MOST_DIMS];
} trt_room;

/* Of a row's schema what parsing needs, made by the first call. Kinds: p operand of a pointwise operator, t Tensor, T Tensor?, l Tensor[], i int, b bool,
   d float, s Scalar, S Scalar?, v int[], V int[]?, y ScalarType, o any object. */
typedef struct {
  int n, positional;            /* arguments without out; how many may stand by position */
  int first_dims;               /* the place of the int[] that takes what is left over of positional numbers, or -1 */
  uint32_t required;
  char kinds[TRT_MOST_ARGUMENTS];
  PyObject* names[TRT_MOST_ARGUMENTS];
  PyObject* other_names[TRT_MOST_ARGUMENTS][3];         /* NumPy's: axis, keepdims, x, a, x1, x2; or NULL */
  trt_value defaults[TRT_MOST_ARGUMENTS];
  trt_room room;                /* of the defaults */
} trt_arguments;

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  const trt_entry_spec* spec;
  trt_operator* op;
  trt_arguments* arguments;     /* NULL before the first call */
} trt_entry;

static PyTypeObject **trt_plain_tensor, **trt_plain_parameter;        /* the classes are made after this module is imported */
static PyObject* trt_out_name;
static int (*trt_prepare_entry)(PyObject*);
static int (*trt_convert_argument)(PyObject* entry, int i, PyObject* x, trt_value* v, trt_room* room);
static void* trt_pointwise_entries[3];                  /* entry1 to entry3 of autograd/pointwise.pyx */
static PyObject* (*trt_finish_entry)(PyObject* entry, trt_value* v, PyObject* out, unsigned given);
static int (*trt_bad_call)(PyObject* entry, int what, PyObject* name, Py_ssize_t given);
static PyObject* (*trt_older_call)(PyObject* entry, PyObject* f, PyObject* const* args, Py_ssize_t n, PyObject* keywords);
static vectorcallfunc trt_call_overridden;       /* a public function with arguments that may override */
enum { TRT_TOO_MANY, TRT_UNEXPECTED, TRT_TWICE, TRT_MISSING };

/* A small exact int. */
static inline int trt_small_int(PyObject* x, int64_t* v) {
  if (!PyLong_CheckExact(x)) return 0;
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact((PyLongObject*)x)) return 0;
  *v = PyUnstable_Long_CompactValue((PyLongObject*)x);
#else
  Py_ssize_t size = Py_SIZE(x);
  if (size > 1 || size < -1) return 0;
  *v = size * (int64_t)((PyLongObject*)x)->ob_digit[0];
#endif
  return 1;
}

static inline trt_dims* trt_new_dims(trt_room* room) { return room->n_dims < TRT_MOST_DIMS ? &room->dims[room->n_dims++] : NULL; }

/* The usual types in line, no errors: 0 leaves the argument to trt_convert_argument. */
static inline __attribute__((always_inline)) int trt_convert_quickly(char kind, PyObject* x, trt_value* v, trt_room* room) {
  if (kind == 't') {
    v->p = x;
    return Py_TYPE(x) == *trt_plain_tensor || Py_TYPE(x) == *trt_plain_parameter;
  }
  switch (kind) {
    case 'p': case 'o':
      v->p = x;
      return 1;
    case 'T':
      v->p = x;
      return x == Py_None || Py_TYPE(x) == *trt_plain_tensor || Py_TYPE(x) == *trt_plain_parameter;
    case 'i':
      return trt_small_int(x, &v->i);
    case 'b':
      v->i = x == Py_True;
      return x == Py_True || x == Py_False;
    case 'd':
      if (!PyFloat_CheckExact(x)) return 0;
      v->d = PyFloat_AS_DOUBLE(x);
      return 1;
    case 's': case 'S': {
      if (room->n_scalars == TRT_MOST_SCALARS) return 0;
      Scalar* s = &room->scalars[room->n_scalars];
      if (PyFloat_CheckExact(x)) {
        s->kind = 2;
        s->d = PyFloat_AS_DOUBLE(x);
        s->i = s->d > -9.2e18 && s->d < 9.2e18 ? (int64_t)s->d : 0;
      } else if (trt_small_int(x, &s->i)) {
        s->kind = 1;
        s->d = (double)s->i;
      } else return 0;
      s->im = 0;
      room->n_scalars++;
      v->p = s;
      return 1;
    }
    case 'v': case 'V': {
      if (kind == 'V' && x == Py_None) { v->p = NULL; return 1; }
      trt_dims* d = trt_new_dims(room);
      if (!d) return 0;
      v->p = d;
      if (trt_small_int(x, &d->v[0])) { d->n = 1; return 1; }
      if (PyTuple_CheckExact(x) && PyTuple_GET_SIZE(x) <= 64) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); i++)
          if (!trt_small_int(PyTuple_GET_ITEM(x, i), &d->v[i])) { room->n_dims--; return 0; }
        d->n = (int)PyTuple_GET_SIZE(x);
        return 1;
      }
      room->n_dims--;
      return 0;
    }
  }
  return 0;
}

/* The place of a keyword; n for `out`; -1: an error is set. */
static __attribute__((noinline)) int trt_find_keyword(trt_entry* e, PyObject* keyword) {
  trt_arguments* a = e->arguments;
  int takes_out = e->spec->flags & TRT_ENTRY_OUT;
  for (int round = 0; round < 2; round++) {              /* names written in a call are interned, so that pointers tell */
    for (int i = 0; i < a->n; i++)
      if (round ? PyUnicode_Compare(a->names[i], keyword) == 0 : a->names[i] == keyword) return i;
    if (takes_out && (round ? PyUnicode_Compare(trt_out_name, keyword) == 0 : trt_out_name == keyword)) return a->n;
    for (int i = 0; i < a->n; i++)
      for (int k = 0; k < 3; k++) {
        PyObject* other = a->other_names[i][k];
        if (other && (round ? PyUnicode_Compare(other, keyword) == 0 : other == keyword)) return i;
      }
  }
  return trt_bad_call((PyObject*)e, TRT_UNEXPECTED, keyword, 0);
}

/* permute(2, 0, 1): what stands by position from the int[] on is its sequence. */
static __attribute__((noinline)) int trt_convert_rest(trt_entry* e, PyObject* const* args, Py_ssize_t n, trt_value* v, trt_room* room) {
  int at = e->arguments->first_dims;
  trt_dims* d = &room->dims[room->n_dims];
  if (n - at <= 64 && room->n_dims < TRT_MOST_DIMS) {
    Py_ssize_t i = at;
    while (i < n && trt_small_int(args[i], &d->v[i - at])) i++;
    if (i == n) {
      d->n = (int)(n - at);
      room->n_dims++;
      v[at].p = d;
      return 0;
    }
  }
  PyObject* rest = PyTuple_New(n - at);
  if (!rest) return -1;
  for (Py_ssize_t i = at; i < n; i++) { Py_INCREF(args[i]); PyTuple_SET_ITEM(rest, i - at, args[i]); }
  room->kept[room->n_kept++] = rest;           /* the value may be the sequence itself */
  return trt_convert_argument((PyObject*)e, at, rest, &v[at], room);
}

/* A pointwise operator: its entries take operands as they are. */
static inline PyObject* trt_run_pointwise(trt_entry* e, const trt_value* v, PyObject* out) {
  PointwiseInfo* info = (PointwiseInfo*)e->op->info;
  int n = info->nin, inplace = e->spec->flags & TRT_ENTRY_INPLACE;
  Scalar params[4], *p = NULL;
  if (info->nparams) {
    p = params;
    for (int i = 0; i < info->nparams; i++) params[i] = *(const Scalar*)v[n + i].p;
  }
  if (!out) out = Py_None;
  void* f = trt_pointwise_entries[n - 1];
  if (n == 1) return ((PyObject* (*)(void*, void*, const Scalar*, PyObject*, int))f)(info, v[0].p, p, out, inplace);
  if (n == 2) return ((PyObject* (*)(void*, void*, void*, const Scalar*, PyObject*, int))f)(info, v[0].p, v[1].p, p, out, inplace);
  return ((PyObject* (*)(void*, void*, void*, void*, const Scalar*, PyObject*, int))f)(info, v[0].p, v[1].p, v[2].p, p, out, inplace);
}

/* `f` is the entry, or a public function over it: then arguments of classes that may override, and modes, send the call another way. */
static inline __attribute__((always_inline)) PyObject* trt_run_entry(PyObject* f, trt_entry* e, PyObject* const* args, size_t nargsf, PyObject* keywords, int is_public) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), by_name = keywords ? PyTuple_GET_SIZE(keywords) : 0, plain = n;
  trt_value v[TRT_MOST_ARGUMENTS];
  trt_room room;
  PyObject *out = NULL, *result = NULL;
  uint32_t given;
  if (is_public && __builtin_expect(trt_tls()->function_modes || (keywords && ((trt_public*)f)->spellings), 0)) return trt_call_overridden(f, args, nargsf, keywords);
  trt_arguments* a = TRT_LOAD(e->arguments);
  if (__builtin_expect(!a, 0)) {
    if (trt_prepare_entry((PyObject*)e) < 0) return NULL;
    a = TRT_LOAD(e->arguments);
  }
  room.n_dims = room.n_scalars = room.n_kept = 0;
#define TRT_IS_PLAIN_TENSOR(x) (Py_TYPE(x) == *trt_plain_tensor || Py_TYPE(x) == *trt_plain_parameter)
#define TRT_TAKE(i, x)                                                                                                       \
  if (TRT_IS_PLAIN_TENSOR(x) && (a->kinds[i] | 4) == 't') v[i].p = x;         /* kinds p and t */                            \
  else if (is_public && !trt_is_basic_argument(x, *trt_plain_tensor, *trt_plain_parameter)) goto overridden;                 \
  else if (!trt_convert_quickly(a->kinds[i], x, &v[i], &room) && trt_convert_argument((PyObject*)e, (int)(i), x, &v[i], &room) < 0) goto end;
  if (a->first_dims >= 0 && n > a->first_dims && (n > a->first_dims + 1 || PyLong_Check(args[a->first_dims]))) plain = a->first_dims;
  else if (__builtin_expect(n > a->positional, 0)) return trt_older_call((PyObject*)e, f, args, n, keywords);
  for (Py_ssize_t i = 0; i < plain; i++) { TRT_TAKE(i, args[i]) }
  given = ((uint32_t)1 << plain) - 1;
  if (plain < n) {
    for (Py_ssize_t i = plain; i < n && is_public; i++)
      if (!trt_is_basic_argument(args[i], *trt_plain_tensor, *trt_plain_parameter)) goto overridden;
    if (trt_convert_rest(e, args, n, v, &room) < 0) goto end;
    given |= (uint32_t)1 << plain;
  }
  for (int i = (int)plain + (plain < n); i < a->n; i++) v[i] = a->defaults[i];
  for (Py_ssize_t j = 0; j < by_name; j++) {
    PyObject* x = args[n + j];
    int i = trt_find_keyword(e, PyTuple_GET_ITEM(keywords, j));
    if (i < 0) goto end;
    if (i == a->n) {
      if (is_public && !trt_is_basic_argument(x, *trt_plain_tensor, *trt_plain_parameter)) goto overridden;
      out = x;
      continue;
    }
    if (given >> i & 1) { trt_bad_call((PyObject*)e, TRT_TWICE, PyTuple_GET_ITEM(keywords, j), n); goto end; }
    given |= (uint32_t)1 << i;
    TRT_TAKE(i, x)
  }
#undef TRT_TAKE
  if (__builtin_expect((given & a->required) != a->required, 0)) { trt_bad_call((PyObject*)e, TRT_MISSING, NULL, given); goto end; }
  if (e->spec->body)
    result = e->spec->body(v, out, e->spec->flags & TRT_ENTRY_INPLACE);
  else if (e->spec->flags & TRT_ENTRY_POINTWISE)
    result = trt_run_pointwise(e, v, out);
  else if (e->spec->flags & (TRT_ENTRY_INPLACE | TRT_ENTRY_NAMED) || (out && out != Py_None))
    result = trt_finish_entry((PyObject*)e, v, out, given);
  else
    result = (PyObject*)e->op->row->unpack(e->op, v, e->op->row->written ? Py_None : NULL, e->op->row->written ? 0 : TRT_NO_OUT);
end:
  for (int i = 0; i < room.n_kept; i++) Py_DECREF(room.kept[i]);
  return result;
overridden:
  for (int i = 0; i < room.n_kept; i++) Py_DECREF(room.kept[i]);
  return trt_call_overridden(f, args, nargsf, keywords);
}

static PyObject* trt_call_entry(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  return trt_run_entry(f, (trt_entry*)f, args, nargsf, keywords, 0);
}

static PyObject* trt_call_public_entry(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  return trt_run_entry(f, (trt_entry*)((trt_public*)f)->impl, args, nargsf, keywords, 1);
}

static inline int trt_keep(trt_room* room, PyObject* x) {
  if (room->n_kept == TRT_MOST_KEPT) return -1;
  Py_INCREF(x);
  room->kept[room->n_kept++] = x;
  return 0;
}

static void trt_prepare_entry_type(PyTypeObject* t) {
  t->tp_vectorcall_offset = offsetof(trt_entry, vectorcall);
  t->tp_call = PyVectorcall_Call;
  t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Modified(t);
}
#endif

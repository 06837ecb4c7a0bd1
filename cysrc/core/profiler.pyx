"""The profiler's side of the core: what runs in a thread is written down while the dispatch key Tracer is among the thread's keys.

Under that key every operator has the same boxed kernel, which notes begin and end around the kernel below it: an operator that is not profiled pays
nothing, as nothing asks. Backward passes, functions over several operators and the program's own ranges call `begin_record` and `end_record`.

A recording is the process's one, its buffers are the threads' (core/recorder.h). A thread whose keys still hold Tracer after the recording ended drops the
key at its next call. Operators are named by their rows, everything else by objects that the records own until `stop` has read them.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from libc.stdint cimport int64_t, uint64_t, intptr_t
from libc.string cimport memcpy, strlen
from tensorrt_lite._C.core.args cimport Dims
from tensorrt_lite._C.core.boxing cimport register_boxed
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, redispatch, BELOW, INPLACE
from tensorrt_lite._C.core.dtype cimport Scalar, dtype_of
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED, mutex, mutex_lock, mutex_unlock
from tensorrt_lite._C.core.tensor cimport TensorBase, K_CPU, K_CUDA, K_DERIVATIVES, KEY_TRACER
from tensorrt_lite._C.core import allocator as _allocator
from tensorrt_lite._C.core import dispatch as _dispatch
import sys

attach()

cdef extern from "recorder.h":
    ctypedef struct trt_record:
        int64_t begin, end
        void* what
        int64_t sequence, after, detail, stack
        int mark
        unsigned char kind, device, in_place
    ctypedef struct trt_recorder:
        trt_recorder* next
        trt_record* records
        int64_t count, capacity, dropped
        int64_t* words
        int64_t used, room
        int64_t thread
        unsigned long python_thread
    trt_recorder* own_recorder "trt_own_recorder"
    int64_t own_recording "trt_own_recording"
    bint trt_begin_writing() noexcept
    void trt_end_writing() noexcept
    void trt_wait_for_writers(trt_recorder* r) noexcept nogil
    int64_t trt_nanoseconds() noexcept
    int64_t trt_ticks() noexcept
    void trt_choose_clock() noexcept
    trt_recorder* trt_new_recorder(trt_recorder* next) noexcept
    void trt_free_recorder(trt_recorder* r) noexcept
    trt_record* trt_add_record(trt_recorder* r, int kind) noexcept
    int64_t* trt_more_words(trt_recorder* r, int64_t n) noexcept
    int64_t trt_write_stack(trt_recorder* r, object codes) noexcept

cdef extern from *:
    """
    #include <frameobject.h>
    /* Of this thread the records of the calls of Python functions that have not returned, in the recording of that number. */
    static __thread int64_t* trt_calls __attribute__((tls_model("initial-exec")));
    static __thread int64_t trt_calls_room __attribute__((tls_model("initial-exec")));
    static __thread int64_t trt_calls_open __attribute__((tls_model("initial-exec")));
    static __thread int64_t trt_calls_recording __attribute__((tls_model("initial-exec")));
    static int trt_room_for_call(void) {
      if (trt_calls_open < trt_calls_room) return 1;
      int64_t room = trt_calls_room ? 2 * trt_calls_room : 256;
      int64_t* more = (int64_t*)realloc(trt_calls, room * sizeof(int64_t));
      if (!more) return 0;
      trt_calls = more;
      trt_calls_room = room;
      return 1;
    }
    """
    int64_t* calls "trt_calls"
    int64_t calls_open "trt_calls_open"
    int64_t calls_recording "trt_calls_recording"
    bint trt_room_for_call() noexcept
    ctypedef int (*Py_tracefunc)(PyObject*, PyObject*, int, PyObject*) noexcept
    int PyTrace_CALL, PyTrace_RETURN
    void set_profile "(PyEval_SetProfile)"(Py_tracefunc, PyObject*) noexcept

cdef extern from "Python.h":
    PyObject* PyThreadState_GetFrame(void*) noexcept
    void* PyThreadState_Get() noexcept
    PyObject* PyFrame_GetBack(PyObject*) noexcept
    PyObject* PyFrame_GetCode(PyObject*) noexcept
    long long PyLong_AsLongLongAndOverflow(object, int*) noexcept
    Py_ssize_t PySequence_Fast_GET_SIZE(object) noexcept
    PyObject* PySequence_Fast_GET_ITEM(object, Py_ssize_t) noexcept

cdef uint64_t K_TRACER = <uint64_t>1 << KEY_TRACER

cdef enum:
    NOTE_ARGUMENTS = 1
    NOTE_STACK = 2
    NOTE_MEMORY = 4
    NOTE_DEVICE = 8
    NOTE_ECHO = 16

cdef enum:
    INDEX_BITS = 40               # of a token: the place of its record; above them the number of the recording

# tags of the words that describe an argument
cdef enum:
    WORD_NONE = 0
    WORD_TENSOR = 1
    WORD_LIST = 2
    WORD_INT = 3
    WORD_BOOL = 4
    WORD_FLOAT = 5
    WORD_COMPLEX = 6
    WORD_DIMS = 7
    WORD_DTYPE = 8

cdef Recording active = None      # the recording that runs
cdef int64_t active_number = 0    # its number; 0: none runs
cdef int active_notes = 0
cdef mutex threads_lock           # of a recording's list of threads, and of its end
cdef int64_t recordings = 0       # numbers given out
cdef const uint64_t* newest_node = NULL
trt_choose_clock()
cdef int64_t first_tick = trt_ticks(), first_nanosecond = trt_nanoseconds()


cdef void follow_sequence(const uint64_t* newest) noexcept:
    """Where the number of the newest Node stands, which belongs to a room above."""
    global newest_node
    newest_node = newest


cdef inline int64_t newest_number() noexcept:
    """The number of the newest Node: without the GIL of this thread's."""
    if FREE_THREADED:
        return <int64_t>tls().newest_sequence
    return 0 if newest_node == NULL else <int64_t>newest_node[0]


cdef trt_recorder* recorder_of_thread() noexcept:
    """This thread's buffer; NULL where no recording runs, whose key is then taken away, or memory is short."""
    global own_recorder, own_recording
    if own_recording == active_number and own_recorder != NULL:
        return own_recorder
    if active_number == 0:
        tls().included &= ~K_TRACER
        return NULL
    mutex_lock(&threads_lock)
    own_recorder = active.add_thread() if active_number else NULL
    own_recording = active_number if own_recorder != NULL else 0
    mutex_unlock(&threads_lock)
    return own_recorder


cdef int64_t begin_record(int kind, void* what, int64_t sequence) noexcept:
    """Open a range of this thread; returns what `end_record` closes it by. `what` of all kinds but operators is an object, which the record owns."""
    cdef int64_t token
    if not trt_begin_writing():
        return -1
    token = write_begin(kind, what, sequence)
    trt_end_writing()
    return token


cdef inline int64_t write_begin(int kind, void* what, int64_t sequence) noexcept:
    cdef trt_recorder* r = recorder_of_thread()
    cdef trt_record* x
    if r == NULL:
        return -1
    x = trt_add_record(r, kind)
    if x == NULL:
        return -1
    x.what = what
    if kind != KIND_OPERATOR:
        Py_INCREF(<object>what)
    x.sequence = sequence if sequence >= 0 else newest_number()
    if active_notes & NOTE_STACK:
        x.stack = trt_write_stack(r, active.codes)
    if active_notes & NOTE_ECHO:
        active.echo_begin(x)
        x = &r.records[r.count - 1]
    if kind == KIND_NODE and active_notes & NOTE_DEVICE:
        mark_begin(x)
    x.begin = trt_ticks()
    return active_number << INDEX_BITS | (r.count - 1)


cdef void end_record(int64_t token) noexcept:
    cdef int64_t now = trt_ticks()
    if token >= 0 and trt_begin_writing():
        write_end(token, now)
        trt_end_writing()


cdef inline void write_end(int64_t token, int64_t now) noexcept:
    cdef trt_record* x
    if token >> INDEX_BITS != active_number or own_recording != active_number:
        return                     # the recording has ended in between
    x = &own_recorder.records[token & ((<int64_t>1 << INDEX_BITS) - 1)]
    x.end = now
    x.after = newest_number()
    if x.mark >= 0:
        active.marks[x.mark + 1] = active.make_mark()
    if active_notes & NOTE_ECHO:
        active.echo_end()


cdef void mark_begin(trt_record* x) noexcept:
    """A mark in the device's stream here, and room for one at the end."""
    x.mark = <int>len(active.marks)
    active.marks.append(active.make_mark())
    active.marks.append(None)


# ---- operators -----------------------------------------------------------------------------------------------------

cdef uint64_t keys_of_call(trt_operator* op, const trt_value* v, PyObject* out, int mode) noexcept:
    """The keys by which the call was dispatched."""
    cdef const char* kinds = op.row.kinds
    cdef uint64_t keys = 0, numbers = 0, found
    cdef Py_ssize_t i = 0, k
    cdef object x
    while kinds[i]:
        if kinds[i] == c't':
            if v[i].p != <void*>None and v[i].p != NULL:
                if (<TensorBase>v[i].p).wrapped_number:          # a number does not say where to compute
                    numbers |= (<TensorBase>v[i].p).keys
                else:
                    keys |= (<TensorBase>v[i].p).keys
        elif kinds[i] == c'l':
            found = 0
            for k in range(len(<list>v[i].p)):
                x = (<list>v[i].p)[k]
                if x is not None:
                    found |= (<TensorBase>x).keys
            keys |= found if found else <uint64_t>K_CPU
        i += 1
    if mode > 0 and out != NULL and isinstance(<object>out, TensorBase):
        keys |= (<TensorBase>out).keys
    return keys | (numbers & K_DERIVATIVES if keys else numbers)


cdef int64_t* write_tensor(trt_recorder* r, int64_t* w, TensorBase t) noexcept:
    """Type, number of dimensions and sizes; room for them is there."""
    cdef int i
    w[0] = t.dtype
    w[1] = t.ndim
    for i in range(t.ndim):
        w[2 + i] = t.sizes[i]
    return w + 2 + t.ndim


cdef int64_t write_arguments(trt_recorder* r, trt_operator* op, const trt_value* v) noexcept:
    """The words that `read_arguments` reads; where they begin, 0 where memory is short."""
    cdef const char* kinds = op.row.kinds
    cdef Py_ssize_t i, k, n = <Py_ssize_t>strlen(kinds)
    cdef int64_t place = r.used
    cdef int64_t* w = trt_more_words(r, 1)
    cdef const Scalar* s
    cdef const Dims* d
    cdef TensorBase t
    if w == NULL:
        return 0
    w[0] = n
    r.used += 1
    for i in range(n):
        w = trt_more_words(r, 80)
        if w == NULL:
            return 0
        w[0] = WORD_NONE
        if kinds[i] == c't':
            if v[i].p != NULL and v[i].p != <void*>None:
                w[0] = WORD_TENSOR
                w = write_tensor(r, w + 1, <TensorBase>v[i].p)
            else:
                w += 1
        elif kinds[i] == c'l':
            w[0] = WORD_LIST
            w[1] = len(<list>v[i].p)
            r.used += 2
            for k in range(len(<list>v[i].p)):
                w = trt_more_words(r, 80)
                if w == NULL:
                    return 0
                x = (<list>v[i].p)[k]
                if x is None:
                    w[0] = w[1] = 0
                    w += 2
                else:
                    w = write_tensor(r, w, <TensorBase>x)
                r.used = w - r.words
            continue
        elif kinds[i] == c'i' or kinds[i] == c'b' or kinds[i] == c'y':
            w[0] = WORD_INT if kinds[i] == c'i' else WORD_BOOL if kinds[i] == c'b' else WORD_DTYPE
            w[1] = v[i].i
            w += 2
        elif kinds[i] == c'd':
            w[0] = WORD_FLOAT
            memcpy(&w[1], &v[i].d, 8)
            w += 2
        elif kinds[i] == c's' and v[i].p != NULL:
            s = <const Scalar*>v[i].p
            w[0] = WORD_BOOL if s.kind == 0 else WORD_INT if s.kind == 1 else WORD_COMPLEX if s.kind == 3 else WORD_FLOAT
            if s.kind <= 1:
                w[1] = s.i
            else:
                memcpy(&w[1], &s.d, 8)
            w += 2
            if s.kind == 3:
                memcpy(w, &s.im, 8)
                w += 1
        elif kinds[i] == c'v' and v[i].p != NULL:
            d = <const Dims*>v[i].p
            w[0] = WORD_DIMS
            w[1] = d.n
            for k in range(d.n):
                w[2 + k] = d.v[k]
            w += 2 + d.n
        else:
            w += 1
        r.used = w - r.words
    return place


cdef void describe_call(int64_t token, PyObject** args, Py_ssize_t n) noexcept:
    """The arguments of a function's call, which no schema describes."""
    if token >= 0 and active_notes & NOTE_ARGUMENTS and trt_begin_writing():
        if own_recording == active_number:
            write_call_arguments(token, args, n)
        trt_end_writing()


cdef inline void write_call_arguments(int64_t token, PyObject** args, Py_ssize_t n) noexcept:
    cdef trt_recorder* r = own_recorder
    cdef int64_t place
    cdef int64_t* w
    cdef PyObject* item
    cdef Py_ssize_t i, k
    cdef double d
    cdef int overflow
    cdef object x
    place = r.used
    w = trt_more_words(r, 1)
    if w == NULL:
        return
    w[0] = n
    r.used += 1
    for i in range(n):
        w = trt_more_words(r, 80)
        if w == NULL:
            return
        x = <object>args[i]
        w[0] = WORD_NONE
        if isinstance(x, TensorBase):
            w[0] = WORD_TENSOR
            w = write_tensor(r, w + 1, <TensorBase>x)
        elif type(x) is bool:
            w[0] = WORD_BOOL
            w[1] = x is True
            w += 2
        elif type(x) is int:
            w[1] = PyLong_AsLongLongAndOverflow(x, &overflow)
            w[0] = WORD_NONE if overflow else WORD_INT
            w += 1 if overflow else 2
        elif type(x) is float:
            d = x
            w[0] = WORD_FLOAT
            memcpy(&w[1], &d, 8)
            w += 2
        elif (type(x) is tuple or type(x) is list) and PySequence_Fast_GET_SIZE(x) <= 64:
            w[0] = WORD_DIMS
            w[1] = PySequence_Fast_GET_SIZE(x)
            for k in range(w[1]):
                item = PySequence_Fast_GET_ITEM(x, k)
                overflow = 1
                if type(<object>item) is int:
                    w[2 + k] = PyLong_AsLongLongAndOverflow(<object>item, &overflow)
                if overflow:
                    w[0] = WORD_NONE
                    break
            w += 1 if w[0] == WORD_NONE else 2 + w[1]
        else:
            w += 1
        r.used = w - r.words
    r.records[token & ((<int64_t>1 << INDEX_BITS) - 1)].detail = place


cdef tuple read_tensor(const int64_t* w, int64_t* at):
    cdef int64_t dtype = w[at[0]], n = w[at[0] + 1], i
    cdef list sizes = [w[at[0] + 2 + i] for i in range(n)]
    at[0] += 2 + n
    return sizes, str(dtype_of(<int>dtype))


cdef double as_double(int64_t bits) noexcept:
    cdef double d
    memcpy(&d, &bits, 8)
    return d


cdef list read_arguments(const int64_t* words, int64_t at):
    """[(sizes, dtype's name) of a tensor, [those of several], ("value", number or tuple), None]"""
    cdef int64_t i, k, n = words[at], tag
    cdef list found = []
    at += 1
    for i in range(n):
        tag = words[at]
        at += 1
        if tag == WORD_NONE:
            found.append(None)
        elif tag == WORD_TENSOR:
            found.append(read_tensor(words, &at))
        elif tag == WORD_LIST:
            k = words[at]
            at += 1
            found.append([read_tensor(words, &at) for _ in range(k)])
        elif tag == WORD_DIMS:
            k = words[at]
            found.append(("value", [words[at + 1 + j] for j in range(k)]))
            at += 1 + k
        elif tag == WORD_COMPLEX:
            found.append(("value", complex(as_double(words[at]), as_double(words[at + 1]))))
            at += 2
        else:
            value = words[at]
            found.append(("value", as_double(value) if tag == WORD_FLOAT else bool(value) if tag == WORD_BOOL else value if tag == WORD_INT
                          else None if value < 0 else str(dtype_of(<int>value))))
            at += 1
    return found


cdef inline void describe_operator(trt_operator* op, const trt_value* v, uint64_t keys, int mode) noexcept:
    """What the newest record says of an operator's call besides its times."""
    cdef int64_t place
    own_recorder.records[own_recorder.count - 1].in_place = mode == INPLACE
    if active_notes & NOTE_ARGUMENTS:
        place = write_arguments(own_recorder, op, v)
        own_recorder.records[own_recorder.count - 1].detail = place
    if keys & K_CUDA:
        own_recorder.records[own_recorder.count - 1].device = DEV_CUDA
        if active_notes & NOTE_DEVICE:
            mark_begin(&own_recorder.records[own_recorder.count - 1])


cdef object run_recorded(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel of Tracer."""
    cdef uint64_t keys = keys_of_call(op, v, out, mode)
    cdef int64_t token = begin_record(KIND_OPERATOR, op, -1)
    cdef void* kernel
    if token >= 0 and trt_begin_writing():
        if own_recording == active_number:
            describe_operator(op, v, keys, mode)
        trt_end_writing()
    try:
        kernel = redispatch(op, keys, BELOW(KEY_TRACER))
        return op.row.invoke(op, kernel, v, <void*>out, mode)
    finally:
        end_record(token)


register_boxed(KEY_TRACER, run_recorded)


# ---- memory --------------------------------------------------------------------------------------------------------

cdef void note_memory(void* address, int64_t nbytes, int64_t in_use) noexcept:
    cdef trt_recorder* r
    cdef trt_record* x
    if active_number == 0 or not tls().included & K_TRACER or not trt_begin_writing():
        return
    r = recorder_of_thread()
    x = NULL if r == NULL else trt_add_record(r, KIND_MEMORY)
    if x != NULL:
        x.begin = x.end = trt_ticks()
        x.what = address
        x.sequence = nbytes
        x.after = in_use
    trt_end_writing()


# ---- calls of Python functions ---------------------------------------------------------------------------------------

cdef void begin_call(PyObject* frame) noexcept:
    """Python has called a function of this thread: its frame."""
    if not trt_room_for_call():
        return
    calls[calls_open] = -1
    calls_open_by(1)
    if is_recorded() and trt_begin_writing():
        write_call(frame)
        trt_end_writing()


cdef inline void write_call(PyObject* frame) noexcept:
    cdef trt_recorder* r = recorder_of_thread()
    cdef trt_record* x
    x = NULL if r == NULL else trt_add_record(r, KIND_FRAME)
    if x == NULL:
        return
    x.what = <void*>PyFrame_GetCode(frame)     # owned by the record
    x.sequence = x.after = newest_number()
    x.begin = trt_ticks()
    calls[calls_open - 1] = active_number << INDEX_BITS | (r.count - 1)


cdef inline void calls_open_by(int change) noexcept:
    global calls_open
    calls_open += change


cdef int note_call(PyObject* nothing, PyObject* frame, int what, PyObject* argument) noexcept:
    """The interpreter's profile function of a thread whose Python functions are recorded."""
    if active_number == 0 or calls_recording != active_number:
        set_profile(NULL, NULL)                # the recording was ended by another thread
        return 0
    if what == PyTrace_CALL:
        begin_call(frame)
    elif what == PyTrace_RETURN and calls_open:
        calls_open_by(-1)
        end_record(calls[calls_open])
    return 0


cdef void begin_calls() noexcept:
    """Record this thread's calls from now on, and those that have not returned: the outermost first."""
    global calls_open, calls_recording
    cdef PyObject* frames[256]
    cdef PyObject* frame = PyThreadState_GetFrame(PyThreadState_Get())
    cdef int n = 0
    while frame != NULL and n < 256:
        frames[n] = frame
        n += 1
        frame = PyFrame_GetBack(frame)
    if frame != NULL:
        Py_DECREF(<object>frame)
    calls_open = 0
    calls_recording = active_number
    while n:
        n -= 1
        begin_call(frames[n])
        Py_DECREF(<object>frames[n])
    set_profile(note_call, NULL)


# ---- what Python calls ---------------------------------------------------------------------------------------------

cdef object NAMES = ("operator", "operator", "function", "node", "pass", "range", "module", "memory", "frame")


cdef class Recording:
    """One recording, of the thread that starts it and of those that go on with its backward passes or call `join_recording`.

    arguments: shapes and values of operators' arguments; stack: Python frames; memory: what the CPU's allocator gives and takes; make_mark: called
    around operators on CUDA, its results are in `marks` two by two; push, pop: called with the name of each range that begins, and when it ends."""
    cdef trt_recorder* recorders
    cdef int64_t number, begin_tick, end_tick, end_nanosecond
    cdef int notes
    cdef dict codes
    cdef tuple prefixes
    cdef readonly list marks
    cdef object make_mark, on_begin, on_end

    def __init__(self, *, bint arguments=False, bint stack=False, bint memory=False, make_mark=None, push=None, pop=None):
        self.notes = (NOTE_ARGUMENTS * arguments | NOTE_STACK * stack | NOTE_MEMORY * memory | NOTE_DEVICE * (make_mark is not None)
                      | NOTE_ECHO * (push is not None))
        self.codes = {}
        self.marks = []
        self.make_mark = make_mark
        self.on_begin = push
        self.on_end = pop

    def __dealloc__(self):
        cdef trt_recorder* r
        cdef int64_t i
        while self.recorders != NULL:
            r = self.recorders
            self.recorders = r.next
            for i in range(r.count):
                if r.records[i].kind != KIND_OPERATOR and r.records[i].kind != KIND_MEMORY:
                    Py_DECREF(<object>r.records[i].what)
            trt_free_recorder(r)

    cdef void echo_begin(self, trt_record* x) noexcept:
        name = self.name_of(x)
        self.on_begin(name if x.sequence < 0 else f"{name}, seq = {x.sequence}")

    cdef void echo_end(self) noexcept:
        self.on_end()

    cdef trt_recorder* add_thread(self) noexcept:
        cdef trt_recorder* r = trt_new_recorder(self.recorders)
        if r != NULL:
            self.recorders = r
        return r

    def start(self):
        """Record what this thread does from now on. RuntimeError while a recording runs."""
        global active, active_number, active_notes, recordings
        if active_number:
            raise RuntimeError("a profiler is running already, in this thread or another one")
        if self.number:
            raise RuntimeError("a recording is started once")
        recordings += 1
        self.number = recordings
        active = self
        active_number = self.number
        active_notes = self.notes
        if self.notes & NOTE_MEMORY:
            _allocator._watch_memory(<size_t><void*>note_memory)
        _set_recording(True)
        self.begin_tick = trt_ticks()
        tls().included |= K_TRACER
        if self.notes & NOTE_STACK and sys.getprofile() is None:         # another profiler's function stays
            begin_calls()

    def stop(self):
        """End it. What is still open ends now."""
        global active, active_number, active_notes
        if active_number != self.number or not self.number:
            raise RuntimeError("this recording does not run")
        self.end_tick = trt_ticks()
        self.end_nanosecond = trt_nanoseconds()
        tls().included &= ~K_TRACER
        if calls_recording == self.number:
            set_profile(NULL, NULL)
        _allocator._watch_memory(0)
        _set_recording(False)
        mutex_lock(&threads_lock)
        active_number = 0
        active_notes = 0
        mutex_unlock(&threads_lock)
        with nogil:
            trt_wait_for_writers(self.recorders)
        active = None

    cdef double nanosecond(self, int64_t tick) noexcept:
        """Since the start."""
        return <double>(tick - self.begin_tick) * <double>(self.end_nanosecond - first_nanosecond) / <double>(self.end_tick - first_tick)

    @property
    def span(self):
        """(begin, end) in nanoseconds of `time.monotonic_ns`."""
        cdef int64_t length = <int64_t>self.nanosecond(self.end_tick)
        return self.end_nanosecond - length, self.end_nanosecond

    @property
    def dropped(self):
        """How many records there was no memory for."""
        cdef trt_recorder* r = self.recorders
        cdef int64_t n = 0
        while r != NULL:
            n += r.dropped
            r = r.next
        return n

    def records(self, tuple prefixes=()):
        """[(system's thread, Python's thread, [(kind, name, begin, end, sequence, after, arguments or None, frames or None, mark, device type)])]; of
        memory (kind, address, begin, begin, bytes, in use, None, None, -1, type). In the order in which they began; times in nanoseconds since the start.
        Files are named from behind the first of the prefixes that they have."""
        cdef trt_recorder* r = self.recorders
        cdef trt_record* x
        cdef int64_t i
        cdef list threads = [], found
        cdef dict names = {}, frames = {}
        self.prefixes = prefixes
        if self.number == active_number:
            raise RuntimeError("the recording still runs")
        while r != NULL:
            found = []
            for i in range(r.count):
                x = &r.records[i]
                if x.kind == KIND_MEMORY:
                    name = <size_t>x.what
                else:
                    key = (<size_t>x.what, x.in_place)
                    name = names.get(key)
                    if name is None:
                        name = names[key] = self.name_of(x)
                found.append((
                    NAMES[x.kind], name, self.nanosecond(x.begin), self.nanosecond(x.end if x.end else self.end_tick), x.sequence, x.after,
                    read_arguments(r.words, x.detail) if x.detail else None, self.read_stack(r.words, x.stack, frames) if x.stack else None, x.mark, x.device))
            threads.append((r.thread, r.python_thread, found))
            r = r.next
        threads.reverse()
        return threads

    cdef object name_of(self, trt_record* x):
        if x.kind == KIND_OPERATOR:
            return row_name(<trt_operator*>x.what) + "_" * x.in_place
        if x.kind == KIND_NODE:
            return "torch::autograd::AccumulateGrad" if (<object>x.what).__name__ == "AccumulateGrad" else (<object>x.what).__name__
        if x.kind == KIND_FRAME:
            code = <object>x.what
            return f"{self.shown_path(code.co_filename)}({code.co_firstlineno}): {code.co_name}"
        return <object>x.what

    cdef str shown_path(self, str path):
        for prefix in self.prefixes:
            if path.startswith(prefix):
                return path[len(prefix):]
        return path

    cdef tuple read_stack(self, const int64_t* words, int64_t at, dict known):
        """(file(line): function, …), the innermost first; equal frames are one string."""
        cdef int64_t i
        cdef list found = []
        for i in range(words[at]):
            key = (words[at + 1 + 2 * i], words[at + 2 + 2 * i])
            text = known.get(key)
            if text is None:
                code = <object><PyObject*><intptr_t>words[at + 1 + 2 * i]
                text = known[key] = f"{self.shown_path(code.co_filename)}({words[at + 2 + 2 * i]}): {code.co_name}"
            found.append(text)
        return tuple(found)


cdef dict RENAMED = {"max_dim": "max", "min_dim": "min", "median_dim": "median", "view_dtype": "view"}    # as PyTorch's profiles name them


cdef str row_name(trt_operator* op):
    """aten:: and the name of the row's schema, without the overload."""
    schema = op.name.decode() if op.row == NULL else op.row.schema.decode().partition("(")[0]
    schema = schema.partition(".")[0]
    return schema if "::" in schema else f"aten::{RENAMED.get(schema, schema)}"


_set_recording = None              # tells a room above that a recording runs


def _set_switch(switch not None):
    """What is called with True when a recording starts and with False when it ends."""
    global _set_recording
    _set_recording = switch


def is_recording():
    """Whether this thread is recorded."""
    return active_number != 0 and tls().included & K_TRACER != 0


def pause_recording():
    """Record nothing of this thread until `join_recording`."""
    tls().included &= ~K_TRACER


def join_recording():
    """Have the recording that runs, if any, record this thread, too."""
    if active_number:
        tls().included |= K_TRACER


def begin_range(str name not None, bint module=False):
    """Open a named range in this thread; returns its token, -1 where nothing is recorded."""
    return begin_record(KIND_MODULE if module else KIND_RANGE, <void*>name, -1) if is_recorded() else -1


def end_range(int64_t token):
    """Close it. The newest may be closed after those below it."""
    if token >= 0:
        end_record(token)


def _begin_defined(str name not None):
    return begin_record(KIND_DEFINED, <void*>name, -1)


_dispatch._set_recorder(_begin_defined, end_range)

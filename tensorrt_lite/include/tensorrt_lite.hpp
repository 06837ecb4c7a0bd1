// tensorrt_lite.h for C++17: tensors that count themselves, errors as exceptions, functions and operators bound by their types. Everything here is compiled into
// the extension; only the table of C functions crosses its border, so that compilers and standard libraries need not agree.
//
//   #include <tensorrt_lite.hpp>
//   trtl::Tensor twice(const trtl::Tensor& x) { return trtl::call("aten::mul", x, 2.0); }
//   TRTL_LIBRARY(mine, m) { m.def("twice(Tensor x) -> Tensor"); m.impl("twice", "CPU", TRTL_FN(twice)); }   // trt.ops.mine.twice
//   TRTL_MODULE(name) { m.def("twice", TRTL_FN(twice)); }                                                  // import name; name.twice
//
// Arguments of bound functions: const trtl::Tensor&, std::optional<trtl::Tensor>, int64_t (or int), double, bool, std::string, std::vector<int64_t>,
// std::vector<double>, std::vector<trtl::Tensor>. Results: trtl::Tensor, int64_t, double, bool, std::string, std::vector<trtl::Tensor>, std::tuple of these, void.
#ifndef TENSORRT_LITE_HPP
#define TENSORRT_LITE_HPP
#include <Python.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorrt_lite.h"

namespace trtl {

#define TRTL_HIDDEN __attribute__((visibility("hidden")))

inline TRTL_HIDDEN const trtl_api* table = nullptr;

// Thrown where Python's error is set already.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "an error of Python's"; }
};

inline const trtl_api& api() {
  if (!table) {
    table = trtl_import();
    if (!table) throw PythonError();
  }
  return *table;
}

// Becomes the Python exception of its kind.
struct Error : std::runtime_error {
  int kind;
  Error(int kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
};

inline void check(int status) {
  if (status != 0) throw PythonError();
}

template <class... Parts>
std::string concatenate(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// TRTL_CHECK(x.dim() == 2, "f: expected a matrix, got ", x.dim(), " dimensions")
#define TRTL_CHECK(condition, ...) \
  do { if (!(condition)) throw ::trtl::Error(TRTL_RUNTIME_ERROR, ::trtl::concatenate(__VA_ARGS__)); } while (0)

inline void set_python_error() noexcept {      // inside of a catch clause
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a function failed without saying why");
  } catch (const Error& error) {
    if (table) table->set_error(error.kind, error.what());
    else PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown type");
  }
}

template <class T> struct dtype_of;
#define TRTL_DTYPE_OF(type, number) template <> struct dtype_of<type> { static constexpr int value = number; }
TRTL_DTYPE_OF(float, TRTL_FLOAT32);
TRTL_DTYPE_OF(double, TRTL_FLOAT64);
TRTL_DTYPE_OF(bool, TRTL_BOOL);
TRTL_DTYPE_OF(int8_t, TRTL_INT8);
TRTL_DTYPE_OF(uint8_t, TRTL_UINT8);
TRTL_DTYPE_OF(int16_t, TRTL_INT16);
TRTL_DTYPE_OF(uint16_t, TRTL_UINT16);
TRTL_DTYPE_OF(int32_t, TRTL_INT32);
TRTL_DTYPE_OF(uint32_t, TRTL_UINT32);
TRTL_DTYPE_OF(int64_t, TRTL_INT64);
TRTL_DTYPE_OF(uint64_t, TRTL_UINT64);
#undef TRTL_DTYPE_OF

// A counted handle. Copies are cheap and share the memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : handle_(other.handle_) { if (handle_) api().retain(handle_); }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept { std::swap(handle_, other.handle_); return *this; }
  ~Tensor() { if (handle_) table->release(handle_); }

  // Takes over a handle that a function of the table returned; throws where it is NULL.
  static Tensor owned(trtl_tensor handle) {
    if (!handle) throw PythonError();
    Tensor t;
    t.handle_ = handle;
    return t;
  }
  static Tensor borrowed(trtl_tensor handle) {
    Tensor t;
    t.handle_ = handle;
    if (handle) api().retain(handle);
    return t;
  }
  trtl_tensor handle() const { return handle_; }
  trtl_tensor release() { return std::exchange(handle_, nullptr); }
  bool defined() const { return handle_ != nullptr; }

  int64_t dim() const { return api().dim(handle_); }
  int64_t numel() const { return api().numel(handle_); }
  std::vector<int64_t> sizes() const { return {api().sizes(handle_), api().sizes(handle_) + dim()}; }
  std::vector<int64_t> strides() const { return {api().strides(handle_), api().strides(handle_) + dim()}; }
  int64_t size(int64_t d) const { return api().sizes(handle_)[wrapped(d)]; }
  int64_t stride(int64_t d) const { return api().strides(handle_)[wrapped(d)]; }
  int dtype() const { return api().dtype(handle_); }
  int device_type() const { return api().device_type(handle_); }
  int device_index() const { return api().device_index(handle_); }
  bool is_cpu() const { return device_type() == TRTL_CPU; }
  bool is_cuda() const { return device_type() == TRTL_CUDA; }
  bool is_contiguous() const { return api().is_contiguous(handle_); }
  bool requires_grad() const { return api().requires_grad(handle_); }
  Tensor contiguous() const { return owned(api().contiguous(handle_)); }
  Tensor to(int dtype) const { return owned(api().to_dtype(handle_, dtype)); }

  // The first element's address, of elements of this very type.
  template <class T> const T* const_data_ptr() const {
    expect<T>();
    const void* p = api().const_data(handle_);
    if (!p && PyErr_Occurred()) throw PythonError();
    return static_cast<const T*>(p);
  }
  template <class T> T* data_ptr() const {
    expect<T>();
    void* p = api().data(handle_);
    if (!p && PyErr_Occurred()) throw PythonError();
    return static_cast<T*>(p);
  }

 private:
  int64_t wrapped(int64_t d) const {
    const int64_t n = dim();
    if (d < -n || d >= n) throw Error(TRTL_INDEX_ERROR, concatenate("Dimension out of range (of ", n, " dimensions, got ", d, ")"));
    return d < 0 ? d + n : d;
  }
  template <class T> void expect() const {
    if (dtype() != dtype_of<std::remove_cv_t<T>>::value)
      throw Error(TRTL_TYPE_ERROR, concatenate("data_ptr(): the elements are of dtype ", dtype(), " and were asked for as ", dtype_of<std::remove_cv_t<T>>::value));
  }
  trtl_tensor handle_ = nullptr;
};

inline Tensor empty(const std::vector<int64_t>& sizes, int dtype = TRTL_FLOAT32, int device_type = TRTL_CPU, int device_index = -1) {
  return Tensor::owned(api().empty((int)sizes.size(), sizes.data(), dtype, device_type, device_index));
}
inline Tensor full(const std::vector<int64_t>& sizes, double value, int dtype = TRTL_FLOAT32, int device_type = TRTL_CPU, int device_index = -1) {
  return Tensor::owned(api().full((int)sizes.size(), sizes.data(), value, dtype, device_type, device_index));
}
inline Tensor zeros(const std::vector<int64_t>& sizes, int dtype = TRTL_FLOAT32) { return full(sizes, 0, dtype); }
inline Tensor empty_like(const Tensor& t) { return Tensor::owned(api().empty_like(t.handle())); }
inline Tensor zeros_like(const Tensor& t) { return full(t.sizes(), 0, t.dtype(), t.device_type(), t.device_index()); }

// body(begin, end) over [0, n) in the package's threads, without the GIL; it must not throw.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  void* state = api().release_gil();
  api().parallel_for(n, grain, [](void* f, int64_t begin, int64_t end) { (*static_cast<std::remove_reference_t<F>*>(f))(begin, end); }, (void*)&body);
  api().acquire_gil(state);
}

// ---- values

template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};
template <class T> struct is_tuple : std::false_type {};
template <class... T> struct is_tuple<std::tuple<T...>> : std::true_type {};
template <class> inline constexpr bool never = false;

[[noreturn]] inline void wrong_type(const char* expected) { throw Error(TRTL_TYPE_ERROR, concatenate("expected ", expected, " as argument")); }

template <class T>
T from_value(const trtl_value& v) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (v.kind != TRTL_TENSOR) wrong_type("a tensor");
    return Tensor::borrowed(v.u.tensor);
  } else if constexpr (is_optional<T>::value) {
    if (v.kind == TRTL_NONE) return std::nullopt;
    return from_value<typename T::value_type>(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (v.kind != TRTL_BOOLEAN) wrong_type("a bool");
    return v.u.i != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (v.kind != TRTL_INT && v.kind != TRTL_BOOLEAN && v.kind != TRTL_DTYPE) wrong_type("an int");
    return (T)v.u.i;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (v.kind == TRTL_INT || v.kind == TRTL_BOOLEAN) return (T)v.u.i;
    if (v.kind != TRTL_FLOAT) wrong_type("a float");
    return (T)v.u.d;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (v.kind != TRTL_STRING) wrong_type("a str");
    return std::string(v.u.s, (size_t)v.n);
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    if (v.kind != TRTL_INTS) wrong_type("a list of ints");
    return {v.u.ints, v.u.ints + v.n};
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (v.kind == TRTL_INTS) return {v.u.ints, v.u.ints + v.n};
    if (v.kind != TRTL_FLOATS) wrong_type("a list of floats");
    return {v.u.floats, v.u.floats + v.n};
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    if (v.kind != TRTL_TENSORS && !(v.kind == TRTL_INTS && v.n == 0)) wrong_type("a list of tensors");
    std::vector<Tensor> found;
    if (v.kind == TRTL_TENSORS) for (int64_t i = 0; i < v.n; i++) found.push_back(Tensor::borrowed(v.u.tensors[i]));
    return found;
  } else {
    static_assert(never<T>, "arguments of this type are not bound (tensorrt_lite.hpp, at the top)");
  }
}

template <class T>
void to_value(trtl_value& v, T&& x) {
  using U = std::decay_t<T>;
  v.n = 0;
  if constexpr (std::is_same_v<U, Tensor>) {
    Tensor t(std::forward<T>(x));
    v.kind = t.defined() ? TRTL_TENSOR : TRTL_NONE;
    v.u.tensor = t.release();
  } else if constexpr (is_optional<U>::value) {
    if (x) to_value(v, *std::forward<T>(x));
    else v.kind = TRTL_NONE;
  } else if constexpr (std::is_same_v<U, bool>) {
    v.kind = TRTL_BOOLEAN;
    v.u.i = x;
  } else if constexpr (std::is_integral_v<U>) {
    v.kind = TRTL_INT;
    v.u.i = (int64_t)x;
  } else if constexpr (std::is_floating_point_v<U>) {
    v.kind = TRTL_FLOAT;
    v.u.d = x;
  } else if constexpr (std::is_same_v<U, std::vector<Tensor>>) {
    std::vector<trtl_tensor> handles;
    for (const Tensor& t : x) handles.push_back(t.handle());
    check(api().set_list(&v, handles.data(), (int64_t)handles.size()));
  } else {
    static_assert(never<U>, "results of this type are not bound (tensorrt_lite.hpp, at the top)");
  }
}

template <class R> constexpr int n_results() {
  if constexpr (std::is_void_v<R>) return 0;
  else if constexpr (is_tuple<R>::value) return (int)std::tuple_size_v<R>;
  else return 1;
}

template <class R>
void to_results(trtl_value* results, R&& r) {
  if constexpr (is_tuple<std::decay_t<R>>::value)
    std::apply([&](auto&&... part) { int i = 0; (to_value(results[i++], std::forward<decltype(part)>(part)), ...); }, std::forward<R>(r));
  else
    to_value(results[0], std::forward<R>(r));
}

// The C kernel of a C++ function.
template <auto F> struct Bound;
template <class R, class... A, R (*F)(A...)>
struct Bound<F> {
  static constexpr int n_arguments = sizeof...(A);
  static constexpr int n_returned = n_results<R>();

  template <size_t... I>
  static void call(const trtl_value* arguments, trtl_value* results, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) F(from_value<std::decay_t<A>>(arguments[I])...);
    else to_results(results, F(from_value<std::decay_t<A>>(arguments[I])...));
  }
  static int kernel(const trtl_value* arguments, int n, trtl_value* results, int n_wanted, void*) {
    try {
      if (n != n_arguments) throw Error(TRTL_TYPE_ERROR, concatenate("the function takes ", n_arguments, " arguments, and the call has ", n));
      if (n_wanted != n_returned) throw Error(TRTL_TYPE_ERROR, concatenate("the function returns ", n_returned, " values, and the schema ", n_wanted));
      call(arguments, results, std::index_sequence_for<A...>{});
      return 0;
    } catch (...) {
      set_python_error();
      return -1;
    }
  }
};
#define TRTL_FN(function) ::trtl::Bound<&function>()

// ---- calling operators

namespace detail {
inline void argument(trtl_value& v, const Tensor& t) { v.kind = t.defined() ? TRTL_TENSOR : TRTL_NONE; v.u.tensor = t.handle(); }
inline void argument(trtl_value& v, bool x) { v.kind = TRTL_BOOLEAN; v.u.i = x; }
inline void argument(trtl_value& v, double x) { v.kind = TRTL_FLOAT; v.u.d = x; }
inline void argument(trtl_value& v, int64_t x) { v.kind = TRTL_INT; v.u.i = x; }
inline void argument(trtl_value& v, int x) { v.kind = TRTL_INT; v.u.i = x; }
inline void argument(trtl_value& v, std::nullopt_t) { v.kind = TRTL_NONE; }
inline void argument(trtl_value& v, const char* x) { v.kind = TRTL_STRING; v.u.s = x; v.n = (int64_t)std::char_traits<char>::length(x); }
inline void argument(trtl_value& v, const std::string& x) { v.kind = TRTL_STRING; v.u.s = x.c_str(); v.n = (int64_t)x.size(); }
inline void argument(trtl_value& v, const std::vector<int64_t>& x) { v.kind = TRTL_INTS; v.u.ints = x.data(); v.n = (int64_t)x.size(); }
}  // namespace detail

// One result of any operator: call("aten::sum", x), call("mine::scale", x, 2.0).
template <class... A>
Tensor call(const char* name, const A&... arguments) {
  trtl_value given[sizeof...(A) + 1] = {}, result = {};
  int i = 0;
  (detail::argument(given[i++], arguments), ...);
  check(api().call(name, given, (int)sizeof...(A), &result, 1));
  if (result.kind != TRTL_TENSOR) throw Error(TRTL_TYPE_ERROR, concatenate(name, ": the result is no tensor"));
  return Tensor::owned(result.u.tensor);
}

// ---- gradients

class Context {
 public:
  explicit Context(trtl_context c) : c_(c) {}
  void save_for_backward(const std::vector<Tensor>& tensors) {
    std::vector<trtl_tensor> handles;
    for (const Tensor& t : tensors) handles.push_back(t.handle());
    check(api().save(c_, handles.data(), (int)handles.size()));
  }
  Tensor saved(int i) const {
    trtl_tensor t = api().saved(c_, i);
    if (!t && PyErr_Occurred()) throw PythonError();
    return t ? Tensor::owned(t) : Tensor();
  }
  bool needs_gradient(int input) const {
    const int needs = api().needs_gradient(c_, input);
    if (needs < 0) throw PythonError();
    return needs;
  }
  void set(const char* name, double value) { check(api().set_number(c_, name, value)); }
  double get(const char* name) const {
    double value;
    check(api().number(c_, name, &value));
    return value;
  }

 private:
  trtl_context c_;
};

using Values = std::pair<const trtl_value*, int>;
using Setup = void (*)(Context, Values inputs, Values outputs);
using Backward = std::vector<Tensor> (*)(Context, const std::vector<Tensor>& grads);

struct Gradient {
  Setup setup;
  Backward backward;

  static int run_setup(trtl_context c, const trtl_value* inputs, int n, const trtl_value* outputs, int n_outputs, void* self) {
    try {
      static_cast<Gradient*>(self)->setup(Context(c), {inputs, n}, {outputs, n_outputs});
      return 0;
    } catch (...) {
      set_python_error();
      return -1;
    }
  }
  static int run_backward(trtl_context c, const trtl_tensor* grads, int n, trtl_tensor* input_grads, int n_inputs, void* self) {
    try {
      std::vector<Tensor> given;
      for (int i = 0; i < n; i++) given.push_back(Tensor::borrowed(grads[i]));
      std::vector<Tensor> found = static_cast<Gradient*>(self)->backward(Context(c), given);
      if ((int)found.size() != n_inputs) throw Error(TRTL_RUNTIME_ERROR, concatenate("backward returned ", found.size(), " gradients of ", n_inputs, " inputs"));
      for (int i = 0; i < n_inputs; i++) input_grads[i] = found[i].release();
      return 0;
    } catch (...) {
      set_python_error();
      return -1;
    }
  }
};

// ---- registration

class Library {
 public:
  explicit Library(const char* name) : name_(name) {}
  // "scale(Tensor x, float factor) -> Tensor"; one of the name is replaced
  Library& def(const std::string& schema) {
    check(api().define((name_ + "::" + schema).c_str()));
    return *this;
  }
  // key: "CPU", "CUDA", "Meta", "CompositeExplicitAutograd", ...
  template <auto F> Library& impl(const std::string& name, const char* key, Bound<F>) {
    check(api().implement((name_ + "::" + name).c_str(), key, &Bound<F>::kernel, nullptr));
    return *this;
  }
  Library& gradient(const std::string& name, Setup setup, Backward backward) {
    check(api().set_gradient((name_ + "::" + name).c_str(), setup ? &Gradient::run_setup : nullptr, &Gradient::run_backward, new Gradient{setup, backward}));
    return *this;
  }

 private:
  std::string name_;
};

inline TRTL_HIDDEN std::vector<void (*)()>& registrations() {
  static std::vector<void (*)()> found;
  return found;
}
struct Registration {
  explicit Registration(void (*f)()) { registrations().push_back(f); }
};
inline TRTL_HIDDEN int register_all() {
  static bool done = false;
  try {
    if (!std::exchange(done, true))
      for (auto f : registrations()) f();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

#define TRTL_LIBRARY(name, m)                                                        \
  static void trtl_define_##name(::trtl::Library& m);                                \
  static ::trtl::Registration trtl_registration_##name([] {                          \
    ::trtl::Library library(#name);                                                  \
    trtl_define_##name(library);                                                     \
  });                                                                                \
  static void trtl_define_##name(::trtl::Library& m)

// ---- Python modules

// A bound function as Python calls it, positional arguments alone: the interface's own conversions do the work.
class Module {
 public:
  explicit Module(PyObject* module) : module_(module) {}
  template <auto F> Module& def(const char* name, Bound<F>, const char* doc = "") {
    PyObject* make = PyImport_ImportModule("tensorrt_lite._extension");
    PyObject* made = make ? PyObject_CallMethod(make, "function", "sKiis", name, (unsigned long long)(uintptr_t)&Bound<F>::kernel, Bound<F>::n_arguments,
                                                Bound<F>::n_returned, doc) : nullptr;
    Py_XDECREF(make);
    if (!made || PyModule_AddObject(module_, name, made) < 0) {
      Py_XDECREF(made);
      throw PythonError();
    }
    return *this;
  }

 private:
  PyObject* module_;
};

// In one source of the extension, `name` as it is imported. `load` and `BuildExtension` define TRTL_EXTENSION_NAME.
#define TRTL_MODULE(name) TRTL_MODULE_(name)
#define TRTL_MODULE_(name)                                                           \
  static void trtl_fill_##name(::trtl::Module& m);                                   \
  PyMODINIT_FUNC PyInit_##name(void) {                                               \
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, #name, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    PyObject* module = PyModule_Create(&definition);                                 \
    if (!module) return nullptr;                                                     \
    try {                                                                            \
      ::trtl::api();                                                                 \
      if (::trtl::register_all() < 0) throw ::trtl::PythonError();                   \
      ::trtl::Module m(module);                                                      \
      trtl_fill_##name(m);                                                           \
    } catch (...) {                                                                  \
      ::trtl::set_python_error();                                                    \
      Py_DECREF(module);                                                             \
      return nullptr;                                                                \
    }                                                                                \
    return module;                                                                   \
  }                                                                                  \
  static void trtl_fill_##name(::trtl::Module& m)

}  // namespace trtl

// What `ops.load_library` calls.
extern "C" __attribute__((weak, visibility("default"))) int trtl_library_init(const trtl_api* api) {
  if (api->version != TRTL_VERSION || api->size < sizeof(trtl_api)) {
    api->set_error(TRTL_RUNTIME_ERROR, "the library was compiled for another version of tensorrt_lite's C interface: compile it again");
    return -1;
  }
  trtl::table = api;
  return trtl::register_all();
}
#endif

/* An operator in C alone, in a library that `trt.ops.load_library` loads: the running maximum along the last dimension. It knows nothing of Python. */
#include <tensorrt_lite.h>

static const trtl_api* api;

static int running_max(const trtl_value* arguments, int n_arguments, trtl_value* results, int n_results, void* context) {
  (void)n_arguments, (void)n_results, (void)context;
  if (api->dtype(arguments[0].u.tensor) != TRTL_FLOAT64 || api->device_type(arguments[0].u.tensor) != TRTL_CPU || api->dim(arguments[0].u.tensor) < 1) {
    api->set_error(TRTL_TYPE_ERROR, "running_max: expected a float64 tensor on the CPU of one dimension at least");
    return -1;
  }
  trtl_tensor x = api->contiguous(arguments[0].u.tensor);
  trtl_tensor out = x ? api->empty_like(x) : NULL;
  const double* p = out ? (const double*)api->const_data(x) : NULL;
  double* q = out ? (double*)api->data(out) : NULL;
  if (!out || api->error_occurred()) {
    api->release(x);
    api->release(out);
    return -1;
  }
  const int64_t length = api->sizes(x)[api->dim(x) - 1], rows = length ? api->numel(x) / length : 0;
  void* state = api->release_gil();
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < length; i++) {
      const double before = i ? q[r * length + i - 1] : p[r * length];
      q[r * length + i] = p[r * length + i] > before ? p[r * length + i] : before;
    }
  api->acquire_gil(state);
  api->release(x);
  results[0].kind = TRTL_TENSOR;
  results[0].u.tensor = out; /* handed over */
  return 0;
}

int trtl_library_init(const trtl_api* given) {
  api = given;
  if (api->version != TRTL_VERSION || api->size < sizeof(trtl_api)) {
    api->set_error(TRTL_RUNTIME_ERROR, "running_max: compiled for another version of tensorrt_lite.h");
    return -1;
  }
  if (api->define("example::running_max(Tensor x) -> Tensor")) return -1;
  return api->implement("example::running_max", "CPU", running_max, NULL);
}

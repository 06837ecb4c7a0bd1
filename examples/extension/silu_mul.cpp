// An operator in C++ with its gradient: silu(x) * gate, what the feed-forward part of many language models computes, in one pass over memory.
#include <tensorrt_lite.hpp>

#include <cmath>

using trtl::Tensor;

namespace {

void check(const Tensor& x, const Tensor& gate) {
  TRTL_CHECK(x.is_cpu() && gate.is_cpu(), "silu_mul: expected tensors on the CPU");
  TRTL_CHECK(x.dtype() == TRTL_FLOAT32 && gate.dtype() == TRTL_FLOAT32, "silu_mul: expected float32 tensors");
  TRTL_CHECK(x.sizes() == gate.sizes(), "silu_mul: expected tensors of one shape");
}

Tensor silu_mul(const Tensor& given, const Tensor& given_gate) {
  check(given, given_gate);
  Tensor x = given.contiguous(), gate = given_gate.contiguous(), out = trtl::empty_like(x);
  const float *p = x.const_data_ptr<float>(), *g = gate.const_data_ptr<float>();
  float* q = out.data_ptr<float>();
  trtl::parallel_for(x.numel(), 4096, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) q[i] = p[i] / (1 + std::exp(-p[i])) * g[i];
  });
  return out;
}

std::tuple<Tensor, Tensor> silu_mul_backward(const Tensor& given_grad, const Tensor& given, const Tensor& given_gate) {
  check(given, given_gate);
  Tensor grad = given_grad.contiguous(), x = given.contiguous(), gate = given_gate.contiguous();
  Tensor dx = trtl::empty_like(x), dgate = trtl::empty_like(gate);
  const float *d = grad.const_data_ptr<float>(), *p = x.const_data_ptr<float>(), *g = gate.const_data_ptr<float>();
  float *a = dx.data_ptr<float>(), *b = dgate.data_ptr<float>();
  trtl::parallel_for(x.numel(), 4096, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const float s = 1 / (1 + std::exp(-p[i]));
      a[i] = d[i] * g[i] * s * (1 + p[i] * (1 - s));
      b[i] = d[i] * p[i] * s;
    }
  });
  return {dx, dgate};
}

// Meta tensors ask for shapes alone.
Tensor silu_mul_meta(const Tensor& x, const Tensor&) { return trtl::empty_like(x); }

void keep(trtl::Context c, trtl::Values inputs, trtl::Values) {
  c.save_for_backward({trtl::from_value<Tensor>(inputs.first[0]), trtl::from_value<Tensor>(inputs.first[1])});
}

std::vector<Tensor> backward(trtl::Context c, const std::vector<Tensor>& grads) {
  auto [dx, dgate] = silu_mul_backward(grads[0], c.saved(0), c.saved(1));
  return {dx, dgate};
}

}  // namespace

TRTL_LIBRARY(example, m) {
  m.def("silu_mul(Tensor x, Tensor gate) -> Tensor");
  m.impl("silu_mul", "CPU", TRTL_FN(silu_mul));
  m.impl("silu_mul", "Meta", TRTL_FN(silu_mul_meta));
  m.gradient("silu_mul", keep, backward);
}

TRTL_MODULE(silu_mul) { m.def("silu_mul", TRTL_FN(silu_mul), "silu(x) * gate, without a gradient: trt.ops.example.silu_mul has one"); }

"""An operator of one's own: Mish's activation x tanh(softplus(x)) with a CPU kernel, a CUDA kernel written here, and a gradient.

    python examples/custom_operator.py [--device cuda]       # TENSORRT_LITE_CUDA=emulate where there is no GPU

Checks both kernels and the gradient against the composition of library operators, then trains a small network with it on points of a ring.
"""

from __future__ import annotations

import argparse
import functools

import tensorrt_lite as trt
import tensorrt_lite.nn.functional as F
from tensorrt_lite import nn

SOURCE = r"""
__device__ float softplus(float x) { return x > 20.f ? x : log1pf(expf(x)); }

extern "C" __global__ void mish(const float* x, float* out, long long n) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) out[i] = x[i] * tanhf(softplus(x[i]));
}

extern "C" __global__ void mish_gradient(const float* grad, const float* x, float* out, long long n) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        const float t = tanhf(softplus(x[i])), sigmoid = 1.f / (1.f + expf(-x[i]));
        out[i] = grad[i] * (t + x[i] * (1.f - t * t) * sigmoid);
    }
}
"""


@functools.cache
def kernels() -> trt.cuda.CompiledSource:
    """Compiled when the first tensor on a device asks for it."""
    return trt.cuda.compile_source(SOURCE)


def launch(name: str, *tensors: trt.Tensor) -> trt.Tensor:
    """A kernel over all elements; the result is like the first tensor."""
    dense = [t.contiguous() for t in tensors]
    out = trt.empty_like(dense[0])
    if out.numel():
        kernels()[name]((min((out.numel() + 255) // 256, 4096),), (256,), (*dense, out, out.numel()))
    return out


@trt.library.custom_op("example::mish", mutates_args=(), device_types="cpu")
def mish(x: trt.Tensor) -> trt.Tensor:
    return x * trt.tanh(F.softplus(x))


@trt.library.custom_op("example::mish_backward", mutates_args=(), device_types="cpu")
def mish_backward(grad: trt.Tensor, x: trt.Tensor) -> trt.Tensor:
    t = trt.tanh(F.softplus(x))
    return grad * (t + x * (1 - t * t) * trt.sigmoid(x))


mish.register_kernel("cuda")(lambda x: launch("mish", x))
mish_backward.register_kernel("cuda")(lambda grad, x: launch("mish_gradient", grad, x))
mish.register_fake(lambda x: trt.empty_like(x))
mish_backward.register_fake(lambda grad, x: trt.empty_like(x))
mish.register_autograd(
    lambda ctx, grad: mish_backward(grad, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


class Mish(nn.Module):
    """The operator as a layer; `x: (*)` to `(*)`, float32 on CUDA."""

    def forward(self, x: trt.Tensor) -> trt.Tensor:
        return mish(x)


def largest_error(device: str) -> float:
    """Of values and gradients, beside the composition on the CPU."""
    x = trt.linspace(-30, 30, 4001, requires_grad=True)
    own = x.detach().to(device).requires_grad_()
    expected, result = x * trt.tanh(F.softplus(x)), mish(own)
    expected.sum().backward()
    result.sum().backward()
    assert own.grad is not None and x.grad is not None
    return max((result.cpu() - expected).abs().max().item(), (own.grad.cpu() - x.grad).abs().max().item())


def train(device: str, steps: int = 60) -> list[float]:
    """Losses of a network that tells a disc from the ring around it."""
    trt.manual_seed(0)
    points = trt.randn(256, 2)
    labels = (points.norm(dim=1) > 1.2).float()
    model = nn.Sequential(nn.Linear(2, 16), Mish(), nn.Linear(16, 16), Mish(), nn.Linear(16, 1)).to(device)
    optimizer = trt.optim.Adam(model.parameters(), lr=0.02)
    points, labels = points.to(device), labels.to(device)
    losses = []
    for _ in range(steps):
        loss = F.binary_cross_entropy_with_logits(model(points).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    trt.library.opcheck(mish, (trt.randn(5, 7, device=device, requires_grad=True),))
    print(f"largest error on {device}: {largest_error(device):.1e}")
    losses = train(device)
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    main()

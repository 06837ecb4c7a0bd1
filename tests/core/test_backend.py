"""A custom backend lives in its own process: a device is named once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import tensorrt_lite as trt
from tensorrt_lite import backend

allocated = []

def allocate(nbytes):
    allocated.append(nbytes)
    return bytearray(nbytes)

backend.register_backend("toy", allocate)

@backend.kernel("mul")
def mul(a, b, out):
    result = trt.empty_like(a) if out is None else out
    cpu = [t if t.is_cpu else backend.as_cpu(t) for t in (a, b)]
    backend.as_cpu(result).copy_(cpu[0] * cpu[1])
    return result

@backend.kernel("add")
def add(a, b, alpha, out):
    result = trt.empty_like(a) if out is None else out
    backend.as_cpu(result).copy_(backend.as_cpu(a) + alpha * backend.as_cpu(b))
    return result

x = trt.tensor([1.0, 2.0, 3.0]).to("toy").requires_grad_()
assert str(x.device) == "toy" and allocated == [12], (x.device, allocated)
y = x * x
assert y.cpu().tolist() == [1, 4, 9] and type(y.grad_fn).__name__ == "MulBackward0"
y.backward(trt.ones(3).to("toy"))
assert x.grad.is_cpu is False and x.grad.device == x.device and x.grad.cpu().tolist() == [2, 4, 6]
assert x.detach().view(3, 1).t()[0, 1:].cpu().tolist() == [2, 3]          # views need no kernel
assert x.detach().clone().fill_(7).cpu().tolist() == [7, 7, 7]
assert trt.empty(2, device="toy").half().dtype is trt.float16

def refused(error, text, f):
    try:
        f()
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)

refused(NotImplementedError, "'sin' with arguments from the 'toy' backend", lambda: x.sin())
refused(RuntimeError, "same device", lambda: x + trt.ones(3))
refused(ValueError, "no operator 'no_such'", lambda: backend.register_kernel("no_such", mul))
refused(RuntimeError, "already named 'toy'", lambda: backend.register_backend("other"))

seen = []
def fallback(operator, *arguments):
    seen.append(operator)
    return arguments[0]
backend.register_backend("toy", lambda n: bytearray(n // 2), fallback)
x.detach().sin()
assert seen == ["sin"]
refused(RuntimeError, "too few", lambda: trt.empty(4, device="toy"))
print("done")
"""


def test_custom_backend() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr

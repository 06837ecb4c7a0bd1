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


# The host may touch this device's memory only while one of its kernels runs: anything else dies of a segmentation fault.
GUARDED = """
import ctypes, mmap
import tensorrt_lite as trt
from tensorrt_lite import backend

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
regions, depth, ran = [], 0, []

def allocate(nbytes):
    size = (nbytes + 4095) // 4096 * 4096
    address = libc.mmap(None, size, 3 if depth else 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    regions.append((address, size))
    return (ctypes.c_char * nbytes).from_address(address)

def protect(access):
    for address, size in regions:
        assert libc.mprotect(address, size, access) == 0

def on_device(function):
    def kernel(*arguments):
        global depth
        depth += 1
        protect(3)
        try:
            return function(*arguments)
        finally:
            depth -= 1
            if not depth:
                protect(0)
    return kernel

backend.register_backend("guarded", allocate)
for name, function in backend._MOVES.items():
    backend.register_kernel(name, on_device(function))

def host(t):
    return backend.as_cpu(t) if isinstance(t, trt.Tensor) and not t.is_cpu else t

def register(name, function):
    def kernel(*arguments):
        *given, out = arguments
        ran.append(name)
        value = function(*[host(x) for x in given])
        result = trt.empty(value.shape, dtype=value.dtype, device="guarded") if out is None else out
        backend.as_cpu(result).copy_(value)
        return result
    backend.register_kernel(name, on_device(kernel))

for name in ("mul", "div", "exp", "sigmoid", "tanh", "relu", "where", "gt", "le", "eq", "neg", "pow", "log", "sqrt", "reciprocal", "sign"):
    register(name, getattr(trt, name))
register("add", lambda a, b, alpha: trt.add(a, b, alpha=alpha))
register("sub", lambda a, b, alpha: trt.sub(a, b, alpha=alpha))
register("rsub", lambda a, b, alpha: trt.rsub(a, b, alpha=alpha))

def gradients(device, *values):
    a, b = [trt.tensor(v).to(device).requires_grad_() for v in values]
    y = (a * b).sigmoid() + (a / b).tanh() * a.exp() + (a - b).relu() + b.log()
    ran.clear()
    y.backward(trt.ones(3).to(device))
    return [g.cpu().tolist() for g in (a.grad, b.grad)]

values = [0.5, 1.0, -2.0], [1.0, 0.25, 3.0]
expected = gradients("cpu", *values)
got = gradients("guarded", *values)
assert all(abs(x - y) < 1e-5 for g, e in zip(got, expected) for x, y in zip(g, e)), (got, expected)
assert {"mul", "add"} <= set(ran) and not any("backward" in name for name in ran), ran

# a backend may bring the fused derivative itself
register("sigmoid_backward_self", lambda grad, result: grad * result * (1 - result))
again = gradients("guarded", *values)
assert "sigmoid_backward_self" in ran and again == got, (ran, again)
print("done")
"""


def test_the_backward_pass_runs_on_the_device() -> None:
    done = subprocess.run([sys.executable, "-c", GUARDED], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", (done.returncode, done.stderr)

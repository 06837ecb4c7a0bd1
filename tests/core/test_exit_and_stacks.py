"""The end of the interpreter amid daemon threads, and threads with small stacks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite

ROOT = Path(__file__).resolve().parents[2]

WORK = {
    "product": "x @ x",
    "elementwise": "(x * x).exp()",
    "backward": "(leaf @ x).sum().backward()",
    "sort": "x.sort()",
    "linalg": "(trt.linalg.svd(x), trt.linalg.inv(x))",
    "convolution": "F.conv2d(x.view(1, 3, 100, 300), w)",
}
DAEMONS = """
import threading, time
import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
x, w, leaf = trt.rand(300, 300), trt.rand(8, 3, 3, 3), trt.rand(300, 300, requires_grad=True)
def work():
    while True:
        {work}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.parametrize("name", WORK)
def test_the_interpreter_ends_while_daemon_threads_run(name):
    for _ in range(6 if name == "product" else 2):
        done = subprocess.run([sys.executable, "-c", DAEMONS.format(work=WORK[name])], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stderr[-2000:]}"


FIRST = """
import os, threading
import tensorrt_lite as trt
x = trt.rand(300, 300)
start = threading.Barrier(8)
def work():
    start.wait()
    x @ x
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
child = os.fork()
if child == 0:
    x @ x
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_threads_whose_first_products_coincide_leave_a_process_that_forks_and_ends():
    """The library's handlers are registered once: each takes the library's lock."""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=120)
        assert done.stdout.strip() == "7", f"status {done.returncode}\n{done.stderr[-2000:]}"


STACKS = """
import sys, threading
import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F

def everything():
    for dtype in (trt.float32, trt.float64, trt.float16, trt.bfloat16):
        x = trt.rand(90, 130, dtype=trt.float64).to(dtype)
        i = trt.randint(0, 90, (90, 130))
        image, last = x[:64, :128].reshape(2, 4, 32, 32), x[:64, :128].reshape(2, 4, 32, 32).contiguous(memory_format=trt.channels_last)
        leaf = x.clone().requires_grad_()
        results = [
            x + x.t().contiguous().t(), x.t() * 2, trt.where(x > 0.5, x, x.t().contiguous().t()), x.t().contiguous(), x.to(trt.float64).t() + x.t(), trt.addcmul(x, x, x),
            x.lerp(x, 0.5), x.exp(), x.sum(), x.sum(0), x.sum(1), x.t().sum(0), x.mean(0), x.var(0), x.std(1), x.norm(), x.norm(3, 0), x.prod(0), x.amax(0), x.argmax(1),
            x.max(0), x.logsumexp(0), x.cumsum(0), x.cumsum(1), x.cumprod(1), x.cummax(0), x.softmax(0), x.softmax(1), x.log_softmax(0), x.view(-1, 9, 10).softmax(1),
            x.view(50, -1, 2).softmax(1), x.view(2, -1, 3).log_softmax(1), x.sort(0), x.sort(1), x.topk(5), x.kthvalue(3), x.median(0), x.mode(0), x.unique(),
            x.flatten().sort(), i.flatten().sort(), i.to(trt.uint8).flatten().sort(), i.unique(return_counts=True), x.msort(),
            x @ x.t(), x.t() @ x, trt.mv(x, x[0]), trt.dot(x[0], x[0]), trt.bmm(x[None], x.t()[None]), F.linear(x, x, x[:, 0]), x[:5] @ x.t(), x @ x[:5].t(),
            x.gather(0, i), x.scatter(0, i, x), x.scatter_add(0, i, x), x.index_select(0, i[0]), x[i[0]], x[i[0], i[1]], x.masked_fill(i > 40, 1.0), x.masked_select(i > 40),
            (i > 40).nonzero(), trt.bincount(i.flatten()), trt.searchsorted(x.sort().values, x), F.one_hot(i), F.embedding(i[0], x), x.take(i), x.index_add(0, i[0, :50], x[:50]),
            F.layer_norm(x, (130,), x[0], x[1]), F.rms_norm(x, (130,)), F.batch_norm(x, None, None, None, None, True), F.group_norm(x, 10), F.batch_norm(last, None, None, None, None, True),
            F.conv2d(image, image[:, :, :3, :3]), F.conv2d(last, image[:, :, :3, :3]), F.conv2d(image, image[:, :1, :3, :3].repeat(2, 1, 1, 1), groups=4),
            F.conv_transpose2d(image, image[:1, :, :3, :3].transpose(0, 1)), F.conv1d(x[None, :4], x[:3, :12].reshape(3, 4, 3)), F.conv2d(image, image[:, :, :1, :1]),
            F.max_pool2d(image, 2), F.max_pool2d(last, 3), F.avg_pool2d(image, 3), F.adaptive_avg_pool2d(image, 7), F.adaptive_max_pool2d(last, 5), F.avg_pool2d(last, 2),
            F.interpolate(image, scale_factor=2), F.interpolate(image, scale_factor=2, mode="bilinear"), F.interpolate(last, scale_factor=1.5, mode="bicubic"),
            F.grid_sample(image, x[:64, :64].reshape(2, 32, 32, 2)), F.grid_sample(image, x[:64, :64].reshape(2, 32, 32, 2), mode="bicubic"), F.unfold(image, 3),
            F.cross_entropy(x, i[:, 0]), F.nll_loss(x, i[:, 0]), F.kl_div(x, x), F.mse_loss(x, x), F.cross_entropy(x, i[:, 0], label_smoothing=0.1),
            F.scaled_dot_product_attention(image, image, image), F.scaled_dot_product_attention(image, image, image, is_causal=True), F.multi_head_attention_forward,
            trt.cat([x, x]), trt.stack([x, x]), x.flip(0), x.roll(3, 0), x.tril(), F.pad(image, (1, 2, 3, 4)), F.pad(image, (1, 2, 3, 4), mode="reflect"), F.dropout(x, 0.5),
            trt.randn(1000, dtype=dtype), trt.rand(1000, dtype=dtype), trt.randperm(1000), trt.multinomial(x, 5), trt.bernoulli(x), repr(x), x.tolist(), x.histc() if dtype.itemsize > 2 else 0,
        ]
        (leaf.softmax(0).sum() + F.layer_norm(leaf, (130,)).sum() + leaf.t().softmax(0).mean() + (leaf @ leaf.t()).sum() + leaf.view(50, -1, 2).softmax(1).sum() + leaf.std() + leaf.sort().values.sum()
         + F.grid_sample(image, leaf[:64, :64].reshape(2, 32, 32, 2)).sum() + F.cross_entropy(leaf, i[:, 0]) + F.scaled_dot_product_attention(leaf, leaf, leaf).sum()
         + F.conv2d(leaf[:64, :128].reshape(2, 4, 32, 32), leaf[:64, :128].reshape(2, 4, 32, 32)[:, :, :3, :3]).sum() + F.max_pool2d(leaf[None, None], 2).sum()).backward()
        if dtype in (trt.float32, trt.float64):
            for matrix in (x[:70, :70] + 70 * trt.eye(70, dtype=dtype), trt.complex(x[:70, :70], x[20:, :70])):
                matrix = matrix @ matrix.mH + trt.eye(70, dtype=dtype)
                results += [trt.linalg.inv(matrix), trt.linalg.svd(matrix), trt.linalg.eigh(matrix), trt.linalg.eig(matrix), trt.linalg.qr(matrix), trt.linalg.cholesky(matrix), trt.linalg.lu(matrix),
                            trt.linalg.det(matrix), trt.linalg.lstsq(matrix, matrix), trt.linalg.ldl_factor(matrix), trt.linalg.matrix_exp(matrix / 100) if hasattr(trt.linalg, "matrix_exp") else 0,
                            matrix @ matrix, matrix.t() + matrix, matrix.sum(0), matrix.cumsum(0), matrix.sort if matrix.is_complex() else matrix.sort()]
    optimizer = [trt.rand(300, 300, requires_grad=True)]
    optimizer[0].sum().backward()
    for kind in (trt.optim.SGD, trt.optim.Adam, trt.optim.AdamW):
        kind(optimizer, lr=0.1).step()
    print("done")

trt.set_num_threads(int(sys.argv[2]))
everything()             # imports happen on the large stack
threading.stack_size(int(sys.argv[1]))
thread = threading.Thread(target=everything)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_every_family_of_operators_runs_on_a_stack_of_128_kilobytes(threads):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", STACKS, str(128 * 1024), str(threads)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.split() == ["done", "done"], f"status {done.returncode} {done.stdout}\n{done.stderr[-3000:]}"


def test_frames_of_compiled_functions_are_small():
    """No function puts more than 48 KB on the stack: two of them and Python's own fit in 128."""
    if shutil.which("objdump") is None:
        pytest.skip("needs objdump")
    folder = Path(tensorrt_lite.__file__).parent / "_C"
    frame = r"/sub +\$0x[0-9a-f]{5,7},%rsp|lea +-0x[0-9a-f]{5,7}\(%rsp\),%r11/"
    large = []
    for library in [*folder.glob("core/*.so"), *folder.glob("ops/**/*.so")]:
        lines = subprocess.run(["sh", "-c", f"objdump -d --no-show-raw-insn '{library}' | awk '{frame}'"], capture_output=True, text=True, check=True).stdout
        sizes = [int(line.split("0x")[1].split(",")[0].split("(")[0], 16) for line in lines.splitlines()]
        large += [f"{library.name}: {size}" for size in sizes if size > 48 * 1024]
    assert not large


def test_the_work_of_daemons_is_work():
    """The programs above do what they say when nothing ends them."""
    program = DAEMONS.split("def work")[0] + "\n".join(WORK.values())
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

"""OpenBLAS, which has the complex products, on the package's pool: forked children, thread limits, Python threads, changing thread counts, big
and odd sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import tensorrt_lite as trt


def run_alone(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter, which must end within five minutes."""
    r = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stderr
    return r.stdout.strip()


def ramp(*shape: int) -> trt.Tensor:
    n = 1
    for s in shape:
        n *= s
    return trt.tensor([complex(i % 7 - 3, i % 5) for i in range(n)], dtype=trt.complex64).reshape(shape)


def same(a: trt.Tensor, b: trt.Tensor) -> bool:
    return a.tolist() == b.tolist()


CHECK = """
import tensorrt_lite as trt
a = trt.tensor([complex(i % 7 - 3, i % 5) for i in range(90000)], dtype=trt.complex64).reshape(300, 300)
def right():
    c = a @ a
    row, column = a.select(0, 17).tolist(), a.select(1, 23).tolist()
    return c.select(0, 17).select(0, 23).item() == sum(x * y for x, y in zip(row, column))
"""


def test_library_is_found_and_named():
    from tensorrt_lite._C.core import blas

    path, configuration = blas.library()
    assert os.path.exists(path)
    assert "OpenBLAS" in configuration


def test_neither_import_nor_real_products_open_the_library():
    code = """
    import tensorrt_lite as trt
    maps = open("/proc/self/maps").read()
    print("openblas" in maps)
    trt.ones(200, 200) @ trt.ones(200, 200)
    print("openblas" in open("/proc/self/maps").read())
    a = trt.ones(200, 200, dtype=trt.complex64)
    a @ a
    print("openblas" in open("/proc/self/maps").read())
    """
    assert run_alone(code).split() == ["False", "False", "True"]


def test_forked_child_multiplies_after_the_parent_used_all_threads():
    code = CHECK + textwrap.dedent("""
    import os
    trt.set_num_threads(2)
    assert right()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0 if right() and right() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert right()
    print("done")
    """)
    assert run_alone(code) == "done"


def test_fork_while_another_thread_multiplies():
    code = CHECK + textwrap.dedent("""
    import os, threading
    trt.set_num_threads(2)
    stop = False
    def work():
        while not stop:
            assert right()
    t = threading.Thread(target=work)
    t.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(0 if right() else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    t.join()
    print("done")
    """)
    assert run_alone(code) == "done"


@pytest.mark.parametrize(
    "environment",
    [{"OMP_THREAD_LIMIT": "1"}, {"OMP_DYNAMIC": "true"}, {"OMP_MAX_ACTIVE_LEVELS": "0"}, {"OMP_NUM_THREADS": "1"}, {"OPENBLAS_NUM_THREADS": "1"}],
    ids=lambda e: next(iter(e)),
)
def test_thread_limits_of_the_environment(environment):
    code = CHECK + "trt.set_num_threads(4)\nassert right()\nprint('done')\n"
    assert run_alone(code, **environment) == "done"


def test_python_threads_multiply_at_the_same_time():
    before = trt.get_num_threads()
    trt.set_num_threads(2)
    a = ramp(200, 200)
    expected = a @ a
    right = []

    def work():
        for _ in range(10):
            right.append(same(a @ a, expected))

    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert not any(t.is_alive() for t in threads)
        assert right == [True] * 30
    finally:
        trt.set_num_threads(before)


def test_thread_count_may_change_between_products():
    before = trt.get_num_threads()
    a = ramp(256, 256)
    expected = None
    try:
        for n in (1, 3, 2, 1, 4, 2):
            trt.set_num_threads(n)
            c = a @ a
            expected = c if expected is None else expected
            assert same(c, expected)             # small integers: exact in any order
    finally:
        trt.set_num_threads(before)


def test_batches_run_in_parallel_on_single_threaded_calls():
    before = trt.get_num_threads()
    a, b = ramp(8, 90, 70), ramp(8, 70, 110)
    try:
        trt.set_num_threads(1)
        one = trt.bmm(a, b)
        trt.set_num_threads(2)
        two = trt.bmm(a, b)
    finally:
        trt.set_num_threads(before)
    assert same(one, two)
    assert same(two.select(0, 5), a.select(0, 5) @ b.select(0, 5))


def test_products_and_loops_share_one_pool():
    """Two pools that take turns cost tens of milliseconds for a product and a loop: whatever threads the library made stay idle.

    A thread of the library spins for a while when it is made, so windows of products and loops are looked at until one had two threads at
    work. With a second pool every window has three.
    """
    busy = run_alone("""
        import os, time
        import tensorrt_lite as trt

        def spent():  # the processor time of each thread, whose clock the kernel numbers so (clock_getcpuclockid(3))
            return {t: time.clock_gettime(~int(t) << 3 | 6) for t in os.listdir("/proc/self/task")}

        trt.set_num_threads(2)
        x, a = trt.ones(1 << 20), trt.ones(256, 256, dtype=trt.complex64)
        for window in range(100):
            before = spent()
            for _ in range(20):
                a @ a
                x * 2.0
            ran = sum(seconds > before.get(thread, 0) for thread, seconds in spent().items())
            if ran <= 2:
                break
        print(ran <= 2)
    """)
    assert busy == "True"


LIMITED = """
import resource
import tensorrt_lite as trt
trt.set_num_threads({threads})
real, wide, batch = trt.rand(200, 200), trt.rand(200, 200).to(trt.complex64), trt.rand(32, 80, 80).to(trt.complex64)
trt.rand(300, 300) @ trt.rand(300, 300)                     # the pool of threads is there
if {opened}:
    wide @ wide
limits = resource.getrlimit(resource.RLIMIT_AS)
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + ({megabytes} << 20), limits[1]))
for product in (lambda: wide @ wide, lambda: trt.bmm(batch, batch), lambda: trt.linalg.svd(real), lambda: trt.linalg.inv(wide), lambda: trt.matrix_exp(wide), lambda: trt.linalg.eig(real)):
    try:
        product()
    except MemoryError:
        pass
    except RuntimeError as error:
        assert "can't allocate memory" in str(error), error
resource.setrlimit(resource.RLIMIT_AS, limits)
print((wide @ wide).shape == wide.shape and trt.bmm(batch, batch).shape == batch.shape)
"""


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("threads, megabytes", [(1, 45), (2, 20), (2, 90), (5, 45)])
def test_a_first_product_without_memory_is_an_exception(threads, megabytes, opened):
    assert run_alone(LIMITED.format(threads=threads, megabytes=megabytes, opened=opened)) == "True"

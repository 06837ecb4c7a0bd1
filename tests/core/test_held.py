"""What a kernel reads stays as it was checked: filters of warnings, outputs that are operands, objects that lie, threads (test_safety_threads.py)."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from tests.free_threading import needs_gil
from tools import guard
from tools.codegen import functions, schema

ROOT = Path(__file__).resolve().parents[2]

# (operands, function): what out= receives has another shape
OUTPUTS = {
    "mm": (((8, 6), (6, 5)), lambda a, b, **out: trt.mm(a, b, **out)),
    "matmul": (((3, 8, 6), (6, 5)), lambda a, b, **out: trt.matmul(a, b, **out)),
    "addmm": (((5,), (8, 6), (6, 5)), lambda c, a, b, **out: trt.addmm(c, a, b, **out)),
    "bmm": (((2, 8, 6), (2, 6, 5)), lambda a, b, **out: trt.bmm(a, b, **out)),
    "baddbmm": (((1, 1, 5), (2, 8, 6), (2, 6, 5)), lambda c, a, b, **out: trt.baddbmm(c, a, b, **out)),
    "mv": (((8, 6), (6,)), lambda a, b, **out: trt.mv(a, b, **out)),
    "sum": (((8, 6),), lambda a, **out: trt.sum(a, 0, **out)),
    "cumsum": (((8, 6),), lambda a, **out: trt.cumsum(a, 0, **out)),
    "softmax": (((8, 6),), lambda a, **out: trt.softmax(a, 0, **out)),
    "cat": (((8, 6), (3, 6)), lambda a, b, **out: trt.cat([a, b], **out)),
    "stack": (((8, 6), (8, 6)), lambda a, b, **out: trt.stack([a, b], **out)),
    "index_select": (((8, 6),), lambda a, **out: trt.index_select(a, 0, trt.tensor([1, 7, 1]), **out)),
    "gather": (((8, 6),), lambda a, **out: trt.gather(a, 0, trt.tensor([[1, 7, 1]]), **out)),
    "take": (((8, 6),), lambda a, **out: trt.take(a, trt.tensor([1, 47]), **out)),
    "tril": (((8, 6),), lambda a, **out: trt.tril(a, **out)),
    "cholesky_solve": (((6, 2), (6, 6)), lambda a, b, **out: trt.cholesky_solve(a, b + 6 * trt.eye(6), **out)),
    "inverse": (((6, 6),), lambda a, **out: trt.inverse(a + 6 * trt.eye(6), **out)),
    "add": (((8, 6), (6,)), lambda a, b, **out: trt.add(a, b, **out)),
    "where": (((8, 6), (6,)), lambda a, b, **out: trt.where(a > 0.5, a, b, **out)),
}



def operands_of(shapes, factor):
    """Tensors of these shapes; factor: of the sizes of vectors and matrices, so that kernels release the GIL."""
    factor = factor if max(map(len, shapes)) < 3 else 1
    return [trt.rand([n * factor if n > 1 else n for n in s]) for s in shapes]


@pytest.fixture
def filtered(monkeypatch):
    """Replaces what shows a warning by a function that changes tensors; returns the list of those."""
    changed: list = []

    def show(*args, **kwargs):
        for t in changed:
            t.data = trt.zeros(1, 1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        yield changed


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("factor", [1, 40])
def test_a_filter_of_warnings_that_changes_the_operands_changes_no_result(name, factor, filtered):
    shapes, function = OUTPUTS[name]
    operands = operands_of(shapes, 1 if "inverse" in name or "cholesky" in name else factor)
    expected = function(*operands)
    out = trt.zeros(3)
    filtered += operands
    function(*operands, out=out)
    trt.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    assert all(t.shape == (1, 1) for t in operands), "the filter was called"


@pytest.mark.parametrize("function", [trt.add, trt.mul, trt.atan2, trt.logical_and])
def test_a_pointwise_output_that_is_an_operand_is_not_resized(function):
    """As in PyTorch."""
    x = trt.rand(6)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        function(x, trt.rand(8, 6), out=x)
    assert x.shape == (6,)


@pytest.mark.parametrize("name", [n for n in OUTPUTS if n not in ("add", "where", "inverse")])
@pytest.mark.parametrize("factor", [1, 40])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_output_that_is_an_operand_may_be_resized(name, factor):
    shapes, function = OUTPUTS[name]
    operands = operands_of(shapes, 1 if "cholesky" in name else factor)
    expected = function(*operands)
    for i in range(len(operands)):
        again = [t.clone() for t in operands]
        out = again[i]
        try:
            assert function(*again, out=out) is out
        except RuntimeError as error:  # where PyTorch refuses, too
            assert name in ("index_select", "gather", "take") and "single memory location" in str(error)
            continue
        trt.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_the_warning_of_a_resized_output_names_the_callers_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trt.mm(trt.ones(2, 3), trt.ones(3, 2), out=trt.ones(3))
        trt.sort(trt.ones(5), out=(trt.ones(2), trt.ones(2, dtype=trt.int64)))
    assert [c.category for c in caught] == [UserWarning] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="resized"):
            trt.mm(trt.ones(2, 3), trt.ones(3, 2), out=trt.ones(3))
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            trt.mm(trt.ones(2, 3), trt.ones(2, 2), out=trt.ones(3))
    with pytest.warns(UserWarning, match="resized"):
        trt.mm(trt.ones(2, 3), trt.ones(3, 2), out=trt.ones(3))


@pytest.mark.parametrize("kind", ["linear", "softmax", "sum", "flip", "roll", "masked_fill", "dropout", "pad", "cumsum", "index_select", "max_pool2d", "sort", "to"])
def test_results_of_large_operands_share_no_memory_with_them_unawares(kind):
    """A kernel sees held operands, which have storages of their own: what it returns must not be one of them or a view."""
    x = trt.rand(200, 200)
    functions = {
        "linear": lambda: F.linear(x, x), "softmax": lambda: x.softmax(0), "sum": lambda: x.sum(0), "flip": lambda: x.flip(()),
        "roll": lambda: x.roll(0, 0), "masked_fill": lambda: x.masked_fill(x > 2, 0.0), "dropout": lambda: F.dropout(x, 0.0), "pad": lambda: F.pad(x, (0, 0)),
        "cumsum": lambda: x.cumsum(0), "index_select": lambda: x.index_select(0, trt.arange(200)), "max_pool2d": lambda: F.max_pool2d(x[None, None], 1),
        "sort": lambda: x.sort().values, "to": lambda: x.to(trt.float32),
    }  # fmt: skip
    result = functions[kind]()
    if result is x:
        return
    if result.data_ptr() == x.data_ptr():
        assert result.untyped_storage()._cdata == x.untyped_storage()._cdata
    before = x.sum().item()
    result.detach().add_(1)
    assert x.sum().item() == before or result.untyped_storage()._cdata == x.untyped_storage()._cdata


@pytest.mark.parametrize("shape", [(20, 20), (200, 200)])
def test_in_place_operators_write_to_the_tensor_itself(shape):
    x = trt.rand(shape)
    version, address = x._version, x.data_ptr()
    assert x.tril_() is x and x.cumsum_(0) is x and x.index_fill_(0, trt.tensor([0]), 7.0) is x
    assert x._version == version + 3 and x.data_ptr() == address
    assert bool((x[0] == 7).all())
    mean = trt.zeros(shape[0])
    F.batch_norm(trt.rand(300, shape[0]), mean, trt.ones(shape[0]), training=True)
    assert mean.abs().sum().item() > 0 and mean._version == 1


class Lies:
    """Compares and divides as it likes, and is no index."""

    def __lt__(self, other):
        return False

    __ge__ = __gt__ = __le__ = __lt__

    def __mod__(self, other):
        return -(1 << 40)

    __add__ = __radd__ = __rmod__ = __mod__


class Index(Lies):
    def __index__(self):
        return -2


def test_an_index_is_converted_before_it_is_compared():
    storage = trt.tensor([1, 2, 3, 4], dtype=trt.uint8).untyped_storage()
    with pytest.raises(TypeError):
        storage[Lies()]
    assert storage[Index()] == 3 and storage[-4] == 1
    for i in (4, -5, 2**62, -(2**62), 2**70):
        with pytest.raises(IndexError):
            storage[i]
    assert storage[1:3].tolist() == [2, 3]


class LyingInt(int):
    __lt__ = __gt__ = __le__ = __ge__ = Lies.__lt__


def test_a_count_that_lies_about_its_size_is_refused():
    with pytest.raises(ValueError):
        trt.frombuffer(bytearray(64), dtype=trt.float32, count=LyingInt(1 << 30))
    with pytest.raises(ValueError):
        trt.frombuffer(bytearray(64), dtype=trt.float32, offset=LyingInt(1 << 30))


def test_private_functions_refuse_what_they_would_trust():
    from tensorrt_lite._C.core import symbols, tensor
    from tensorrt_lite._C.ops import creation

    with pytest.raises(TypeError):
        creation._ArrayView(None)
    for pair in ((None, None), (int, int), (tensor.TensorBase, tensor.TensorBase), (trt.Tensor, int)):
        with pytest.raises(TypeError):
            symbols.install(*pair)
    with pytest.raises(TypeError):
        tensor._register_types(None, None, list)
    with pytest.raises(RuntimeError):
        tensor._register_types(trt.Tensor, None, None)


def test_a_custom_allocator_that_returns_too_little_is_refused():
    program = """
    import tensorrt_lite as trt
    from tensorrt_lite import backend
    class Wrong(backend.HostMemoryInterface):
        def allocate(self, nbytes, index):
            return wrong
    backend.register_device("toy", Wrong("toy"))
    for wrong in (None, 0, "memory", (1, 2, 3), -1, 1 << 64, trt.zeros(3)):
        try:
            trt.empty(1000, device="toy").fill_(1)
            raise SystemExit(f"accepted {wrong}")
        except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError):
            pass
    for given in (lambda n: bytearray(n // 2), lambda n: bytes(n), lambda n: None, lambda n: trt.empty(n, device="meta")):
        backend.register_backend("host" + str(len(backend.registered())), given)
        try:
            trt.empty(1000, device=backend.registered()[-1].name).fill_(1)
            raise SystemExit("accepted")
        except (RuntimeError, TypeError):
            pass
    try:
        trt.empty(1, device="privateuseone:3")
        raise SystemExit("accepted")
    except RuntimeError:
        pass
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_limits_of_dtypes_are_pickled_by_every_protocol(protocol):
    for limits in (trt.finfo(trt.float16), trt.finfo(trt.complex64), trt.iinfo(trt.int8)):
        assert repr(pickle.loads(pickle.dumps(limits, protocol))) == repr(limits)


def test_an_event_that_was_never_initialised_is_destroyed_quietly(recwarn):
    event = trt.cuda.Event.__new__(trt.cuda.Event)
    assert event.cuda_event == 0 and "uninitialized" in repr(event)
    del event


# ---- which kernels see held operands --------------------------------------------------------------------------------

# Without a derivative an operator may be composed of operators that record, which held operands would not; these are.
COMPOSED = {
    "linalg_lu_factor", "linalg_solve_ex", "linalg_solve", "linalg_inv", "inverse", "linalg_det", "det", "linalg_slogdet", "slogdet", "logdet",
    "linalg_cholesky", "cholesky", "orgqr", "linalg_eigh", "linalg_eigvalsh", "linalg_eig", "linalg_eigvals", "linalg_svd", "linalg_svdvals",
}  # fmt: skip
# Their kernels read all geometry before anything else may run; `contiguous` may return its operand.
AT_ONCE = {"_fused_sgd_", "_fused_adam_", "_fused_adamw_", "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_", "clone", "contiguous", "_lazy_clone", "_to_copy", "copy", "fill", "zero", "_local_scalar_dense"}


def test_every_kernel_sees_held_operands():
    operators = [op for op in schema.load(ROOT / "cysrc" / "ops") if op.kind in ("structured", "function") and not op.row.get("view")]
    bare = {op.name for op in operators if not op.row.get("held", bool(op.backward))}
    assert bare == COMPOSED | AT_ONCE


def test_every_operand_of_a_held_kernel_is_held():
    """Lists of optional tensors too: an index of many elements lets threads run although what it indexes has few."""
    for op in schema.load(ROOT / "cysrc" / "ops"):
        if op.kind in ("structured", "function") and op.row.get("held", bool(op.backward) and not op.row.get("view")):
            c: list[str] = []
            functions.emit_held(op, "kernel", [], c, [])
            masks = re.search(r"= \{\w+, (\d+), (\d+), NULL\}", c[0])
            assert masks is not None
            for i, a in enumerate(op.arguments):
                if a.type.startswith("Tensor") and "|" not in a.type and not a.written:  # Tensor|Scalar: a number, or one element
                    assert (int(masks[1]) | int(masks[2])) >> i & 1, f"{op.name} holds {a.name}"
                    assert re.search(rf"trt_(list_)?is_large\({a.name}\)", c[1]), f"{op.name} counts the elements of {a.name}"


def test_composed_kernels_read_no_memory():
    """What sees its operands as they are calls other operators and nothing else."""
    text = (ROOT / "cysrc" / "ops" / "linalg" / "linalg.pyx").read_text()
    rows = {op.name: op for op in schema.load(ROOT / "cysrc" / "ops")}
    for name in COMPOSED:
        kernel = rows[name].row.get("kernel", f"{name}_kernel")
        body = re.search(rf"^cdef \w+ {kernel}\(.*?(?=^cdef |^def |\Z)", text, re.S | re.M)
        assert body is not None and not re.search(r"data_of\(|nogil|stack_of\(", body[0]), name


# ---- under the guard ------------------------------------------------------------------------------------------------

GUARDED = """
import threading, time, warnings
import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode
x, w, out = trt.rand(64, 64), trt.rand(64, 64), trt.zeros(3)
def show(*args, **kwargs):
    x.data = trt.zeros(1, 1)
    w.data = trt.zeros(1, 1)
warnings.showwarning = show
warnings.simplefilter("always")
for function in (trt.mm, trt.matmul, lambda a, b, out: trt.addmm(a, a, b, out=out), lambda a, b, out: trt.bmm(a[None], b[None], out=out)):
    x.data, w.data, out.data = trt.rand(64, 64), trt.rand(64, 64), trt.zeros(3)
    function(x, w, out=out)
warnings.simplefilter("ignore")
for n in (3, 40):  # no classes: there is nothing to read
    F.cross_entropy(trt.zeros(2, 0, n, dtype=trt.float64), trt.full((2, n), -100))

classes = trt.arange(6).reshape(2, 3).t()
class Shrinking(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        classes.data = trt.zeros(1, dtype=trt.int64)
        return result
with Shrinking():
    assert F.one_hot(classes).shape == (3, 2, 6)
    for function in (lambda: classes.squeeze_(), lambda: classes.unsqueeze_(0), lambda: classes.transpose_(0, 1), lambda: classes.t_()):
        classes.data = trt.arange(6).reshape(2, 3).t()
        try:
            function()
        except RuntimeError as error:
            assert "was given other memory" in str(error)
        else:
            raise AssertionError("a view in place of memory that went away")

few = trt.rand(2, 3)
trt.mm(few, trt.rand(3, 10000), out=few)

trt.set_num_threads(2)
x, w, g = trt.rand(1, 3, 90, 90), trt.rand(300, 300), trt.rand(1, 90, 90, 2)
i, o = trt.randint(1, 300, (300, 300)), trt.zeros(300, 300)
stop = False
def meddle():
    while not stop:
        for t, shapes in ((g, ((1, 2, 2, 2), (1, 90, 90, 2))), (w, ((10, 10), (300, 300))), (i, ((2, 2), (300, 300))), (o, ((1,), (300, 300)))):
            for shape in shapes:
                try: t.data = trt.ones(shape, dtype=t.dtype)
                except RuntimeError: pass
        time.sleep(0)
thread = threading.Thread(target=meddle)
thread.start()
end, made = time.monotonic() + 3, 0
leaf = trt.rand(1, 3, 90, 90, requires_grad=True)
while time.monotonic() < end:
    for function in (lambda: F.grid_sample(x, g), lambda: F.grid_sample(leaf, g).sum().backward(), lambda: w @ w.t(), lambda: trt.addmm(w, w.t(), w), lambda: trt.mm(w[:1].expand(300, 300), w, out=o), lambda: i // i.t()):
        try:
            function()
            made += 1
        except RuntimeError: pass
stop = True
thread.join()
print("made", made)
"""


@needs_gil
def test_no_kernel_leaves_guarded_memory():
    guard.build()
    done = subprocess.run([guard.interpreter(), "-c", GUARDED], env=guard.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "made" in done.stdout, f"status {done.returncode}\n{done.stderr[-3000:]}"


def test_the_guard_finds_overruns_underruns_and_use_after_free(tmp_path):
    guard.build()
    for what in ("x.data_ptr() + 4 * 7", "x.data_ptr() - 1", "gone"):
        program = f"""
        import ctypes, tensorrt_lite as trt
        x = trt.zeros(7)
        gone = trt.zeros(5).data_ptr()
        ctypes.memset({what}, 1, 1)
        del x
        """
        done = subprocess.run([guard.interpreter(), "-c", textwrap.dedent(program)], env=guard.environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode < 0, what

"""Indices, lengths and names that say something else than the operator was told at first: an error, and memory stays inside."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from tests.free_threading import needs_gil
from tools import guard

torch = pytest.importorskip("torch")

FAR = [10**9, -(10**9), 8, -1, 2**62, -(2**63)]


def guarded(program: str, seconds: int = 300) -> subprocess.CompletedProcess:
    """A program under the allocator in which one element outside of a tensor's memory faults."""
    guard.build()
    return subprocess.run([guard.interpreter(), "-c", textwrap.dedent(program)], env=guard.environment(), cwd=guard.ROOT, capture_output=True, text=True, timeout=seconds)


# ---- indices that change before the backward pass


@pytest.mark.parametrize("value", FAR)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(8, 8), (3, 8, 4)])
def test_nll_loss_refuses_a_class_that_changed_before_its_backward_pass(shape, reduction, value):
    x = trt.rand(shape, requires_grad=True)
    target = trt.zeros(shape[:1] + shape[2:], dtype=trt.int64)
    loss = F.nll_loss(x, target, trt.rand(8), reduction=reduction)
    target.numpy()[...] = value
    with pytest.raises(IndexError, match=f"Target {value} is out of bounds"):
        loss.sum().backward()
    assert x.grad is None


def test_every_operator_with_indices_survives_their_change_before_its_backward_pass():
    """Twenty changes of each, in both passes and in double backward passes."""
    done = guarded("""
        import collections
        import tensorrt_lite as trt
        from tools import fuzz_indices
        made, number = collections.Counter(), 0
        while min(made[name] for name in fuzz_indices.OPERATORS) < 20:
            wrong = fuzz_indices.run_program(trt, None, 3, number)
            if wrong: print(wrong)
            made[fuzz_indices.name_of(3, number)] += 1
            number += 1
        print("programs", number)
    """)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 1 and lines[0].startswith("programs"), done.stdout + done.stderr[-3000:]


# ---- sums that wrap


@pytest.mark.parametrize("lengths", [[2**61] * 7 + [2**61 + 6], [2**62] * 4 + [6] * 4, [2**63 - 1] * 8])
def test_ctc_loss_refuses_target_lengths_whose_sum_wraps(lengths):
    for library in (torch, trt):
        loss = library.nn.functional.ctc_loss
        for steps in (0, 3):
            with pytest.raises(RuntimeError):
                loss(library.zeros(steps, 8, 5), library.zeros(6, dtype=library.int64), [steps] * 8, lengths)


@pytest.mark.parametrize("shape", [(0, 2, 5), (3, 0, 5)])
def test_ctc_loss_refuses_log_probabilities_without_elements(shape):
    for library in (torch, trt):
        with pytest.raises(RuntimeError, match="log_probs tensor must not be empty"):
            library.nn.functional.ctc_loss(library.zeros(shape), library.zeros(0, dtype=library.int64), [0] * shape[1], [0] * shape[1])


def test_segment_reduce_refuses_lengths_whose_sum_wraps():
    with pytest.raises(RuntimeError, match="Expected all rows of lengths along axis to sum to"):
        trt.segment_reduce(trt.ones(5), "sum", lengths=trt.tensor([2**62] * 4 + [5]))


@pytest.mark.parametrize("join", [trt.cat, trt.hstack, trt.concat])
def test_sizes_of_joined_tensors_that_add_up_beyond_64_bits_are_refused(join):
    with pytest.raises(RuntimeError, match="add up to more than"):
        join([trt.ones(1, dtype=trt.int8).expand(2**55)] * 512)


def test_batch_sizes_whose_sum_wraps_are_refused():
    module, hidden = trt.nn.GRU(4, 3), trt.zeros(1, 1, 3).expand(1, 2**55, 3)
    with pytest.raises(RuntimeError, match="do not fit packed data"):
        trt.gru(trt.rand(0, 4), trt.tensor([2**55] * 512), hidden, [module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0, module.bias_hh_l0], True, 1, 0.0, False, False)


def test_places_at_the_ends_of_64_bits():
    for library in (torch, trt):
        with pytest.raises(RuntimeError, match="exceeds dimension size"):
            library.ones(5).narrow(0, 3, 2**63 - 1)
        assert library.ones(3, 3).diagonal(-(2**63)).shape == library.ones(3, 3).diagonal(2**63 - 1).shape == (0,)
        assert library.ones(5)[:: 2**62].shape == (1,)
    assert trt.ops.aten.slice.Tensor(trt.ones(5), 0, 0, 5, 2**63 - 1).shape == (1,)
    assert len(trt.ones(5).chunk(2**63 - 1)) == 5
    with pytest.raises(RuntimeError):
        trt.histogramdd(trt.ones(5, 3), bins=[2**22] * 3)


# ---- scalars where a dimension is read


@pytest.mark.parametrize("places", [{"offsets": 10_000_000}, {"lengths": 1000}])
def test_segment_reduce_refuses_a_scalar(places):
    for library in (torch, trt):
        given = {name: library.zeros(n, dtype=library.int64) for name, n in places.items()}
        with pytest.raises(RuntimeError):
            library.segment_reduce(library.tensor(1.0), "sum", unsafe=True, **given)
        with pytest.raises(RuntimeError):
            library.segment_reduce(library.ones(3), "sum", unsafe=True, **{name: library.zeros((), dtype=library.int64) for name in places})


@pytest.mark.parametrize("name", ["sort", "topk", "kthvalue", "mode", "median", "cumsum", "cummax", "logcumsumexp", "softmax", "max", "index_select", "index_fill", "gather",
                                  "unfold", "select", "narrow", "split", "chunk", "unbind", "flip", "roll", "squeeze", "transpose", "diff", "std", "flatten", "renorm"])  # fmt: skip
def test_a_scalar_has_no_dimension_to_be_read(name):
    """What takes a dimension takes 0 of a scalar or refuses it, as PyTorch does."""
    extra = {
        "topk": (1,), "kthvalue": (1,), "index_select": "index", "index_fill": "fill", "gather": "index", "unfold": (1, 1), "select": (0,), "narrow": (0, 1), "split": (1,), "chunk": (2,), "roll": (1,),
        "transpose": (0,), "renorm": (2, 1.0), "diff": (1,),
    }.get(name, ())  # fmt: skip
    found = []
    for library in (torch, trt):
        index = library.zeros(1 if name != "gather" else (), dtype=library.int64)
        arguments = {"index": (0, index), "fill": (0, index, 2.0)}.get(extra, (*extra, 0) if name in ("topk", "kthvalue", "split", "chunk", "roll", "diff") else (0, *extra)) if extra else (0,)
        if name == "renorm":
            arguments = (2, 0, 1.0)
        try:
            result = getattr(library.tensor(3.0), name)(*arguments)
        except (RuntimeError, IndexError) as error:
            result = type(error).__name__
        parts = result if isinstance(result, (tuple, list)) else [result]
        found.append([part if isinstance(part, str) else str(part.tolist()) for part in parts])
    assert found[0] == found[1]


# ---- gradients of private functions


def test_rows_of_an_embeddings_gradient_are_counted():
    from tensorrt_lite._C.ops import indexing

    for grad in (trt.ones(1, 4), trt.ones(4), trt.tensor(1.0), trt.ones(0, 4)):
        with pytest.raises(RuntimeError):
            indexing.embedding_dense_backward(grad, trt.zeros(100000, dtype=trt.int64), 10, -1, False)
    assert indexing.embedding_dense_backward(trt.ones(3, 4), trt.tensor([1, 1, 0]), 2, -1, False).tolist() == [[1.0] * 4, [2.0] * 4]


# ---- values on another device, numbers of storage types


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex64"])
def test_index_fill_refuses_a_value_on_another_device(dtype):
    x, value = trt.ones(3, dtype=getattr(trt, dtype)), trt.tensor(1.0, device="meta")
    for function in (x.index_fill, x.index_fill_):
        with pytest.raises(RuntimeError, match="on the same device"):
            function(0, trt.tensor([0]), value)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("stored", ["uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("name", ["mul", "div", "true_divide", "floor_divide", "mul_", "div_", "add", "sub", "pow", "maximum", "cross", "inner", "lerp"])
def test_halves_take_a_number_of_a_type_without_loops_as_pytorch_does(name, stored, half):
    """The result, or an error: PyTorch refuses some pairs of types."""
    found = []
    for library in (torch, trt):
        x = library.ones(3, dtype=getattr(library, half)) * 6
        number = library.tensor(3).to(getattr(library, stored))
        try:
            result = getattr(library, name)(x, number) if hasattr(library, name) and not name.endswith("_") else getattr(x, name)(number)
            found.append((str(result.dtype).split(".")[-1], result.float().tolist()))
        except (RuntimeError, TypeError, NotImplementedError, IndexError) as error:
            found.append(type(error).__name__)
    if isinstance(found[1], str) or isinstance(found[0], str):
        assert isinstance(found[1], str) or found[0] in ("NotImplementedError", "RuntimeError"), found
    else:
        assert found[0] == found[1]


# ---- windows that are longer than the input


@pytest.mark.parametrize("pool", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_window_beyond_32_bits_is_refused_at_once(pool, n):
    x = trt.ones(1, 1, *[6] * n)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
        getattr(F, f"{pool}{n}d")(x, 2**32, padding=2**31, stride=2**32)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(2**31 - 1, 2**30, 2**30 - 1), (2**31 - 1, 1, 2**30 - 1), (101, 1, 50), (101, 7, 50), (101, 40, 50), (40, 3, 20)])
def test_windows_over_padding_end_at_once_with_pytorchs_numbers(kernel, stride, padding, last):
    for name, extra in (("max_pool2d", {}), ("avg_pool2d", {}), ("avg_pool2d", {"count_include_pad": False})):
        found = []
        for library in (torch, trt):
            x = (library.arange(2 * 3 * 6 * 5, dtype=library.float64).reshape(2, 3, 6, 5) % 17).contiguous(memory_format=library.channels_last if last else library.contiguous_format)
            x.requires_grad_()
            y = getattr(library.nn.functional, name)(x, kernel, stride, padding, **extra)
            y.pow(2).sum().backward()
            found.append((y.detach().numpy(), x.grad.numpy()))
        for expected, got in zip(*found):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


# ---- names of shared memory


@pytest.fixture
def victim():
    path = Path(f"/dev/shm/tensorrt_lite_victim_{os.getpid()}")
    path.write_bytes(bytes(200))
    yield path
    path.unlink(missing_ok=True)


def test_a_name_of_shared_memory_is_no_path(victim, tmp_path):
    other = tmp_path / "file"
    other.write_bytes(bytes(200))
    up = "/../.." + str(other)
    for name in (up, f"/{victim.parent.name}/{victim.name}", str(victim), f"//{victim.name}", "", "/", "/.", "/..", "x", "/a\0b"):
        with pytest.raises(RuntimeError, match="unable to open shared memory object"):
            trt.UntypedStorage._new_shared_filename_cpu(b"", name.encode(), 10)
        with pytest.raises(RuntimeError, match="unable to open shared memory object"):
            trt.multiprocessing.reductions.rebuild_storage_filename(trt.UntypedStorage, b"", name.encode(), 10)
    assert other.read_bytes() == bytes(200) and victim.read_bytes() == bytes(200)


def test_a_file_that_is_not_ours_is_neither_counted_nor_removed(victim):
    for content in (bytes(200), (1).to_bytes(8, "little") + bytes(192), b"x" * 200, b""):
        victim.write_bytes(content)
        with pytest.raises(RuntimeError, match="not one that this package has made"):
            trt.UntypedStorage._new_shared_filename_cpu(b"", f"/{victim.name}".encode(), 10)
        assert victim.read_bytes() == content


def test_a_link_in_the_place_of_shared_memory_is_not_followed(victim):
    storage = trt.UntypedStorage._new_using_filename_cpu(16)
    _, name, size = storage._share_filename_cpu_()
    link = Path(f"{victim}_link")
    link.symlink_to("/dev/shm" + name.decode())
    try:
        with pytest.raises(RuntimeError, match="unable to open shared memory object"):
            trt.UntypedStorage._new_shared_filename_cpu(b"", f"/{link.name}".encode(), size)
    finally:
        link.unlink()
    again = trt.UntypedStorage._new_shared_filename_cpu(b"", name, size)
    again[3] = 7
    assert storage[3] == 7


def test_a_file_that_took_a_name_is_not_removed():
    storage = trt.UntypedStorage._new_using_filename_cpu(16)
    _, name, _ = storage._share_filename_cpu_()
    path = Path("/dev/shm" + name.decode())
    path.unlink()
    path.write_bytes(b"another's")
    try:
        del storage
        assert path.read_bytes() == b"another's"
    finally:
        path.unlink(missing_ok=True)


def test_a_mapped_file_of_more_bytes_than_there_are_is_refused(tmp_path):
    trt.ones(4).numpy().tofile(tmp_path / "x")
    for shared in (False, True):
        with pytest.raises(RuntimeError, match="unable to mmap"):
            trt.from_file(str(tmp_path / "x"), shared=shared, size=2**62, dtype=trt.float64)


# ---- stages of one operator


STAGES = {
    "conv3d": "F.conv3d(x, w, b)",
    "conv3d of groups": "F.conv3d(x, w[:, :2].contiguous(), b, groups=2)",
    "conv3d backward": "F.conv3d(x.detach().requires_grad_(), w, b).sum().backward()",
    "conv_transpose3d": "F.conv_transpose3d(x, w, b)",
    "conv3d in channels_last": "F.conv3d(x.contiguous(memory_format=trt.channels_last_3d), w, b)",
    "conv2d": "F.conv2d(x[:, :, 0], w[:, :, 0], b)",
    "conv3d of halves": "F.conv3d(x.bfloat16(), w.bfloat16(), b.bfloat16())",
}
STAGES_PROGRAM = """
import random, threading, time
import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
trt.set_num_threads(2)
trt._C.core.parallel._split_small_work(64)
x, w, b = trt.rand(2, 4, 12, 12, 12), trt.rand(4, 4, 3, 3, 3), trt.rand(4)
shapes = [tuple(t.shape) for t in (x, w, b)]
stop = False

def meddle():
    draw = random.Random(1)
    while not stop:
        t, shape = draw.choice(list(zip((x, w, b), shapes)))
        try:
            match draw.randrange(4):
                case 0: t.data = trt.rand(draw.choice([(1,), shape]))
                case 1: t.resize_(draw.choice([(1,), shape, shape[::-1]]))
                case 2: t.set_(trt.rand(shape))
                case _: t.untyped_storage().resize_(draw.choice([0, 4, 10**5]))
        except RuntimeError: pass
        time.sleep(0)

thread = threading.Thread(target=meddle)
thread.start()
end, made = time.monotonic() + 1.0, 0
while time.monotonic() < end:
    try:
        {call}
        made += 1
    except (RuntimeError, ValueError, IndexError, TypeError): pass
stop = True
thread.join()
print("calls", made)
"""


@needs_gil
@pytest.mark.parametrize("name", STAGES)
def test_stages_of_a_convolution_whose_operands_another_thread_changes(name):
    done = guarded(STAGES_PROGRAM.format(call=STAGES[name]))
    assert done.returncode == 0 and "calls" in done.stdout, f"status {done.returncode}\n{done.stderr[-3000:]}"

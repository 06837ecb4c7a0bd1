"""finfo and iinfo beside PyTorch; the device modules, backends and settings."""

import json
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

import tensorrt_lite as trt
from tensorrt_lite import info
from tools.core_sources import core_sources_digest


def test_limits_are_pytorchs():
    torch = pytest.importorskip("torch")
    for d in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        ours, theirs = trt.finfo(getattr(trt, d)), torch.finfo(getattr(torch, d))
        assert repr(ours) == repr(theirs)
        for a in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
            assert getattr(ours, a) == getattr(theirs, a), (d, a)
    for d in ("uint8", "int8", "int16", "int32", "int64"):
        ours, theirs = trt.iinfo(getattr(trt, d)), torch.iinfo(getattr(torch, d))
        assert repr(ours) == repr(theirs)
        for a in ("bits", "max", "min", "dtype"):
            assert getattr(ours, a) == getattr(theirs, a), (d, a)


def test_limits():
    assert trt.finfo().dtype == "float32" and trt.finfo(type=trt.float64).bits == 64
    assert trt.finfo(trt.float32) == trt.finfo(trt.float32) != trt.finfo(trt.float64)
    assert trt.iinfo(trt.int8) == trt.iinfo(trt.int8) != trt.iinfo(trt.int16)
    assert 1 + trt.finfo(trt.float64).eps > 1 == 1 + trt.finfo(trt.float64).eps / 2
    with pytest.raises(TypeError, match="requires a floating point input type"):
        trt.finfo(trt.int32)
    with pytest.raises(TypeError, match="requires an integer input type"):
        trt.iinfo(trt.float32)
    with pytest.raises(TypeError, match="bool is not supported"):
        trt.iinfo(trt.bool)
    with pytest.raises(TypeError):
        trt.iinfo()
    with pytest.raises(TypeError, match="must be torch.dtype, not str"):
        trt.finfo("float32")
    with pytest.raises(TypeError):
        hash(trt.finfo())


def test_cpu_module():
    assert trt.cpu.is_available() and trt.cpu.device_count() == 1 and trt.cpu.current_device() == "cpu"
    trt.cpu.synchronize()
    s = trt.cpu.Stream()
    with trt.cpu.stream(s):
        assert trt.cpu.current_stream() is s
    assert trt.cpu.current_stream() is not s
    trt.cpu.reset_peak_memory_stats()
    before = trt.cpu.memory_allocated()
    t = trt.empty(1 << 20)
    assert trt.cpu.memory_allocated() >= before + t.nbytes
    del t
    assert trt.cpu.max_memory_allocated() >= before + (4 << 20)
    trt.cpu.empty_cache()
    assert trt.cpu.memory_stats()["cached_bytes.current"] == 0


def test_cuda_module_without_devices():
    begin = time.thread_time()
    assert trt.cuda.is_available() is False and trt.cuda.device_count() == 0
    assert time.thread_time() - begin < 1
    trt.cuda.manual_seed_all(3)
    trt.cuda.empty_cache()
    assert trt.cuda.memory_allocated() == 0
    for call in (lambda: trt.cuda.current_device(), lambda: trt.cuda.synchronize(), lambda: trt.cuda.Stream(), lambda: trt.cuda.get_device_name(0), lambda: trt.cuda.device(0).__enter__()):
        with pytest.raises(RuntimeError, match="CUDA"):
            call()
    with trt.cuda.device(None), trt.cuda.device(-1):
        pass
    with pytest.raises(AttributeError):
        trt.cuda.no_such_function  # noqa: B018


def test_backends():
    b = trt.backends
    assert b.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    assert not b.mkldnn.is_available() and not b.mps.is_available() and not b.cudnn.is_available() and b.openmp.is_available()
    before = b.cuda.matmul.allow_tf32
    b.cuda.matmul.allow_tf32 = True
    assert b.cuda.matmul.allow_tf32
    b.cuda.matmul.allow_tf32 = before
    with pytest.raises(RuntimeError, match="expects a bool"):
        b.cuda.matmul.allow_tf32 = 1
    with pytest.raises(AttributeError, match="Unknown attribute"):
        b.cuda.matmul.allow_tf16 = True
    assert b.cuda.preferred_blas_library().value == "default" and b.cuda.cublaslt_workspace_size() > 0
    with pytest.raises(RuntimeError, match="Choose from"):
        b.cuda.preferred_blas_library("none")
    with pytest.raises(RuntimeError, match="expects a bool"):
        b.cudnn.benchmark = 3
    with b.cudnn.flags(enabled=False, deterministic=True):
        assert b.cudnn.deterministic and not b.cudnn.enabled
    assert not b.cudnn.deterministic and b.cudnn.enabled
    b.cudnn.benchmark = True
    assert b.cudnn.benchmark
    b.cudnn.benchmark = False
    import sys

    assert sys.modules["tensorrt_lite.backends.cudnn"] is b.cudnn


@pytest.mark.parametrize("precision", [3, None, True])
def test_precision_of_products_is_a_str(precision):
    with pytest.raises(RuntimeError, match=f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}"):
        trt.set_float32_matmul_precision(precision)


def test_precision_of_products():
    """The three ways to say it agree, as in PyTorch."""
    matmul = trt.backends.cuda.matmul
    matmul.fp32_precision = "none"
    assert matmul.fp32_precision == "none" and not matmul.allow_tf32
    try:
        for precision, tf32 in (("high", True), ("highest", False), ("medium", True)):
            trt.set_float32_matmul_precision(precision)
            assert matmul.allow_tf32 is tf32 and matmul.fp32_precision == ("tf32" if tf32 else "ieee")
            assert trt.get_float32_matmul_precision() == precision
        matmul.allow_tf32 = False
        assert trt.get_float32_matmul_precision() == "highest"
        matmul.fp32_precision = "tf32"
        assert trt.get_float32_matmul_precision() == "high"
        matmul.fp32_precision = "none"
        trt.backends.fp32_precision = "tf32"
        assert matmul.allow_tf32
        with pytest.raises(RuntimeError, match="Unknown precision"):
            matmul.fp32_precision = "fp16"
    finally:
        trt.backends.fp32_precision = matmul.fp32_precision = "none"
    assert not matmul.allow_tf32 and trt.get_float32_matmul_precision() == "highest"


def test_flags_of_onednn_are_kept_and_choose_the_precision_of_products():
    from tensorrt_lite._C.ops.matmul.packed import bf16_kernel

    m = trt.backends.mkldnn
    assert not m.is_available() and m.VERBOSE_ON == 1
    with m.flags(enabled=True, deterministic=True, fp32_precision="bf16"):
        assert m.enabled and m.deterministic and m.conv.fp32_precision == "bf16" and m.matmul.fp32_precision in ("bf16", "ieee")
    assert not m.enabled and not m.deterministic and m.fp32_precision == "none"
    with m.verbose(m.VERBOSE_OFF):
        pass
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        m.matmul.fp32_precision = "x"
    a, b = trt.randn(100, 100), trt.randn(100, 100)
    exact = a @ b
    try:
        for precision in ("tf32", "bf16", "ieee", "none"):
            m.matmul.fp32_precision = precision
            assert trt.equal(a @ b, exact) == (precision in ("ieee", "none") or bf16_kernel() != "tiles")
        trt.set_float32_matmul_precision("medium")
        assert m.matmul.fp32_precision == "bf16"
        trt.backends.cuda.matmul.allow_tf32 = False
        assert trt.get_float32_matmul_precision() == "highest" and trt.equal(a @ b, exact)
    finally:
        trt.set_float32_matmul_precision("highest")


def test_attention_kernels():
    """The flags choose between the tiled kernel and the composition, whose bits differ."""
    from tensorrt_lite.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = trt.randn(3, 1, 2, 70, 16).unbind()
    attend = trt.nn.functional.scaled_dot_product_attention
    tiled = attend(q, k, v)
    with sdpa_kernel(SDPBackend.MATH):
        composed = attend(q, k, v)
        assert not trt.backends.cuda.flash_sdp_enabled() and trt.backends.cuda.math_sdp_enabled()
    assert trt.allclose(tiled, composed, atol=1e-6) and not trt.equal(tiled, composed)
    for backend in (SDPBackend.FLASH_ATTENTION, [SDPBackend.EFFICIENT_ATTENTION], [SDPBackend.CUDNN_ATTENTION]):
        with sdpa_kernel(backend):
            assert trt.equal(attend(q, k, v), tiled)
            with pytest.raises(RuntimeError, match="No viable backend"):
                attend(q, k, v, dropout_p=0.5)
    with sdpa_kernel([]), pytest.raises(RuntimeError, match="No viable backend"):
        attend(q, k, v)
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel("math"):
        pass
    assert trt.equal(attend(q, k, v), tiled) and trt.backends.cuda.flash_sdp_enabled()


def test_settings():
    trt.use_deterministic_algorithms(True, warn_only=True)
    assert trt.are_deterministic_algorithms_enabled() and trt.is_deterministic_algorithms_warn_only_enabled() and trt.get_deterministic_debug_mode() == 1
    trt.set_deterministic_debug_mode("default")
    assert not trt.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        trt.set_deterministic_debug_mode(5)
    with pytest.raises(TypeError):
        trt.use_deterministic_algorithms(1)
    assert trt.get_float32_matmul_precision() == "highest"
    trt.set_float32_matmul_precision("high")
    assert trt.get_float32_matmul_precision() == "high"
    trt.set_float32_matmul_precision("highest")
    with pytest.warns(UserWarning, match="not one of"):
        trt.set_float32_matmul_precision("x")
    assert trt.get_num_interop_threads() >= 1
    with pytest.raises(RuntimeError, match="positive"):
        trt.set_num_interop_threads(0)


def test_interop_threads_are_set_once():
    code = (
        "import tensorrt_lite as trt\ntrt.set_num_interop_threads(2)\nassert trt.get_num_interop_threads() == 2\n"
        "try:\n    trt.set_num_interop_threads(3)\nexcept RuntimeError as e:\n    assert 'cannot set number of interop threads' in str(e)\nelse:\n    raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_build_info():
    record = trt._build_info()
    assert isinstance(record["compiler"], str) and isinstance(record["debug"], bool)
    assert record["instruction_set"] in record["instruction_sets"] and record["openmp_threads"] == trt.get_num_threads()
    assert record["cuda"] == {"available": False, "driver": None, "devices": []}
    json.dumps(record)


def test_a_core_older_than_its_sources_is_said(tmp_path, monkeypatch):
    root = pathlib.Path(__file__).resolve().parent.parent
    (tmp_path / "tools").mkdir()
    for name in ("core_sources.py", "build_core.py"):
        shutil.copy(root / "tools" / name, tmp_path / "tools" / name)
    (tmp_path / "cysrc").mkdir()
    source = tmp_path / "cysrc" / "a.pyx"
    source.write_text("x = 1")
    compiled = core_sources_digest(tmp_path)
    monkeypatch.setattr(info, "build", lambda: {"sources": compiled})
    assert not info.core_is_stale(tmp_path)
    source.write_text("x = 2")
    assert info.core_is_stale(tmp_path)
    source.rename(source.with_name("b.pyx"))
    assert info.core_is_stale(tmp_path)
    shutil.rmtree(source.parent)
    assert not info.core_is_stale(tmp_path), "an installed package has no sources beside it"

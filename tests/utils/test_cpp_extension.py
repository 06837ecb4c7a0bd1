"""Extensions in C, C++ and Cython: compiled here against the installed headers, loaded, called, differentiated, replaced."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import cpp_extension

pytestmark = pytest.mark.skipif(not cpp_extension.check_compiler_ok_for_platform(cpp_extension.get_cxx_compiler()) or shutil.which("cc") is None, reason="no compiler")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension"
ROOT = str(Path(trt.__file__).resolve().parents[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(scope="module")
def kinds(folder):
    """A module with functions of all kinds of arguments and results."""
    return cpp_extension.load_inline(
        "kinds_of_values",
        r"""
        #include <cmath>
        #include <limits>
        using trtl::Tensor;
        Tensor twice(const Tensor& x) { return trtl::call("aten::mul", x, 2.0); }
        std::tuple<Tensor, int64_t, double, bool> several(const Tensor& x, int64_t i, double d, bool b) { return {x, i + 1, d / 2, !b}; }
        int64_t length(const std::string& s) { return (int64_t)s.size(); }
        double total(const std::vector<double>& v) { double t = 0; for (double x : v) t += x; return t; }
        Tensor shaped(const std::vector<int64_t>& sizes, int dtype) { return trtl::full(sizes, 7, dtype); }
        std::vector<Tensor> reversed(const std::vector<Tensor>& xs) { return {xs.rbegin(), xs.rend()}; }
        bool given(std::optional<Tensor> x) { return x.has_value(); }
        Tensor nothing() { return {}; }
        void refuse(const Tensor& x) { TRTL_CHECK(x.dim() == 7, "refuse: got ", x.dim(), " dimensions"); }
        void beyond() { std::vector<int>().at(3); }
        void strange() { throw 5; }
        std::vector<int64_t> layout(const Tensor& x);
        int64_t described(const Tensor& x, int64_t d) {
          return x.size(d) * 1000000 + x.stride(d) * 10000 + x.dtype() * 100 + x.device_type() * 10 + x.is_contiguous() * 2 + x.requires_grad();
        }
        void fill(const Tensor& x, double value) {
          double* p = x.data_ptr<double>();
          for (int64_t i = 0; i < x.numel(); i++) p[i] = value;
        }
        double first(const Tensor& x) { return *x.const_data_ptr<double>(); }
        static int deleted = 0;
        Tensor lent(int64_t n) {
          double* memory = new double[n];
          for (int64_t i = 0; i < n; i++) memory[i] = (double)i;
          return Tensor::owned(trtl::api().from_memory(memory, 1, &n, TRTL_FLOAT64, [](void* p) { deleted++; delete[] static_cast<double*>(p); }, memory));
        }
        int64_t times_deleted() { return deleted; }
        Tensor wait_without_gil(const Tensor& x) {
          void* state = trtl::api().release_gil();
          double s = 0;
          for (int i = 0; i < 30000000; i++) s += std::sqrt((double)i);
          trtl::api().acquire_gil(state);
          return s > 0 ? x : Tensor();
        }
        int64_t covered(int64_t n, int64_t grain) {
          std::vector<char> seen((size_t)n, 0);
          trtl::parallel_for(n, grain, [&](int64_t a, int64_t b) { for (int64_t i = a; i < b; i++) seen[(size_t)i]++; });
          int64_t once = 0;
          for (char c : seen) once += c == 1;
          return once;
        }
        Tensor called(const std::string& name, const Tensor& x) { return trtl::call(name.c_str(), x); }
        int64_t warned() { return trtl::api().warn("from C"); }
        """,
        functions={name: f"{name}'s \"documentation\"" for name in (
            "twice", "several", "length", "total", "shaped", "reversed", "given", "nothing", "refuse", "beyond", "strange", "described", "fill", "first", "lent",
            "times_deleted", "wait_without_gil", "covered", "called", "warned")},
        build_directory=str(folder / "kinds"),
    )  # fmt: skip


# ---- values


def test_arguments_and_results_of_all_kinds(kinds):
    x = trt.ones(2, 3)
    assert trt.equal(kinds.twice(x), x * 2)
    same, i, d, b = kinds.several(x, 41, 3.0, False)
    assert same is x and (i, d, b) == (42, 1.5, True)
    assert kinds.length("größer") == 8 and kinds.total([1, 2]) == 3 and kinds.total((0.5, 1)) == 1.5
    a, b = trt.zeros(1), trt.ones(1)
    back = kinds.reversed([a, b])
    assert back[0] is b and back[1] is a and kinds.reversed([]) == []
    assert kinds.given(None) is False and kinds.given(x) is True and kinds.nothing() is None
    assert kinds.twice.__name__ == "twice" and kinds.twice.__doc__ == 'twice\'s "documentation"'


@pytest.mark.parametrize(("number", "name"), [
    (0, "uint8"), (1, "int8"), (2, "int16"), (3, "int32"), (4, "int64"), (5, "float16"), (6, "float32"), (7, "float64"), (8, "complex32"), (9, "complex64"),
    (10, "complex128"), (11, "bool"), (15, "bfloat16"), (23, "float8_e5m2"), (24, "float8_e4m3fn"), (27, "uint16"), (28, "uint32"), (29, "uint64"),
])  # fmt: skip
def test_dtypes_have_the_headers_numbers(kinds, number, name):
    made = kinds.shaped([2], number)
    assert str(made.dtype).endswith("." + name) and made.shape == (2,)
    assert kinds.described(made, 0) // 100 % 100 == number


def test_geometry_and_memory(kinds):
    x = trt.arange(12, dtype=trt.float64).reshape(3, 4).t().requires_grad_()
    assert kinds.described(x, -1) == 3 * 1000000 + 4 * 10000 + 7 * 100 + 0 + 0 + 1
    y = trt.arange(4, dtype=trt.float64)[2:]
    assert kinds.first(y) == 2.0
    kinds.fill(y, 5.0)
    assert y.tolist() == [5.0, 5.0]
    clone = trt._lazy_clone(y)
    kinds.fill(clone, 6.0)
    assert y.tolist() == [5.0, 5.0] and clone.tolist() == [6.0, 6.0]
    with pytest.raises(TypeError, match="asked for as"):
        kinds.first(trt.ones(1))
    with pytest.raises(RuntimeError, match="no memory"):
        kinds.first(trt.ones(1, dtype=trt.float64, device="meta"))
    with pytest.raises(IndexError, match="out of range"):
        kinds.described(trt.ones(2), 1)
    import numpy

    frozen = numpy.zeros(2)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning):
        read_only = trt.from_numpy(frozen)
    with pytest.raises((RuntimeError, ValueError)):
        kinds.fill(read_only, 1.0)
    assert frozen.tolist() == [0.0, 0.0]


def test_lent_memory_goes_back_once(kinds):
    before = kinds.times_deleted()
    x = kinds.lent(5)
    view = x[2:]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    del x
    assert kinds.times_deleted() == before and view.tolist() == [2.0, 3.0, 4.0]
    del view
    assert kinds.times_deleted() == before + 1


def test_errors_are_python_s(kinds):
    with pytest.raises(RuntimeError, match="^refuse: got 1 dimensions$"):
        kinds.refuse(trt.ones(2))
    with pytest.raises(IndexError):
        kinds.beyond()
    with pytest.raises(RuntimeError, match="unknown type"):
        kinds.strange()
    with pytest.raises(TypeError, match="takes 1 arguments, and the call has 0"):
        kinds.twice()
    with pytest.raises(TypeError, match="expected a tensor"):
        kinds.twice(3)
    with pytest.raises(TypeError, match="cannot be handed"):
        kinds.twice(object())
    with pytest.raises(TypeError, match="ints, floats or tensors"):
        kinds.total(["a"])
    with pytest.raises(ValueError, match="no dtype"):
        kinds.shaped([1], 12)
    with pytest.raises(RuntimeError):
        kinds.shaped([-1], 6)
    with pytest.raises(AttributeError):
        kinds.called("aten::no_such_operator", trt.ones(1))
    with pytest.raises(ValueError, match="namespace::name"):
        kinds.called("relu", trt.ones(1))
    with pytest.raises(RuntimeError):
        kinds.called("aten::linalg_inv", trt.ones(2, 3))
    with pytest.warns(UserWarning, match="from C"):
        assert kinds.warned() == 0
    assert trt.equal(kinds.called("aten::neg", trt.ones(1)), -trt.ones(1))


def test_other_threads_run_while_the_gil_is_given_up(kinds):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    kinds.wait_without_gil(trt.ones(1))
    after = counted[0]
    done.set()
    thread.join()
    assert after > before
    assert kinds.covered(100_000, 1000) == 100_000 and kinds.covered(3, 0) == 3


# ---- operators


@pytest.fixture(scope="module")
def silu_mul(folder):
    return cpp_extension.load("silu_mul", [str(EXAMPLE / "silu_mul.cpp")], build_directory=str(folder / "silu_mul"), extra_cflags=["-O3"])


def test_an_operator_in_cpp_computes_and_differentiates(silu_mul):
    op = trt.ops.example.silu_mul
    x, gate = trt.randn(3, 5, requires_grad=True), trt.randn(3, 5, requires_grad=True)
    reference = (trt.nn.functional.silu(x) * gate).sum()
    expected = trt.autograd.grad(reference, (x, gate))
    result = op(x, gate)
    assert trt.allclose(result.sum(), reference, atol=1e-5)
    for ours, theirs in zip(trt.autograd.grad(result.sum(), (x, gate)), expected):
        assert trt.allclose(ours, theirs, atol=1e-5)
    assert op(x.detach().to("meta"), gate.detach().to("meta")).shape == (3, 5)
    assert op(x.t(), gate.t()).shape == (5, 3)
    # its backward is a C++ function and no operator: it has no form for fake tensors, which the further test of the default would run it on
    trt.library.opcheck(op.default, (x, gate), test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    with pytest.raises(RuntimeError, match="one shape"):
        op(x, gate[0])
    with pytest.raises(RuntimeError, match="missing|Missing|expected|argument"):
        op(x)
    assert trt.equal(silu_mul.silu_mul(x.detach(), gate.detach()), op(x.detach(), gate.detach()))


def test_what_was_saved_may_not_be_written_to(silu_mul):
    x, gate = trt.randn(4, requires_grad=True), trt.randn(4)
    loss = trt.ops.example.silu_mul(x, gate).sum()
    gate.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_profiles_name_operators_of_extensions(silu_mul):
    x = trt.randn(4)
    with trt.profiler.profile() as recorded:
        trt.ops.example.silu_mul(x, x)
    assert [event.name for event in recorded.events()][:1] == ["example::silu_mul"]


def test_a_library_in_c_is_loaded(folder):
    path = cpp_extension.load("running_max", [str(EXAMPLE / "running_max.c")], is_python_module=False, build_directory=str(folder / "c"), extra_cflags=["-std=c11", "-Werror", "-Wextra"])
    assert path in trt.ops.loaded_libraries
    x = trt.randn(3, 7, dtype=trt.float64)
    assert trt.equal(trt.ops.example.running_max(x), x.cummax(1).values)
    assert trt.ops.example.running_max(x[:, :0]).shape == (3, 0)
    with pytest.raises(TypeError, match="expected a float64 tensor"):
        trt.ops.example.running_max(x.float())
    with pytest.raises(NotImplementedError, match="no kernel is registered|There was no fake|CPU"):
        trt.library.impl("example::running_max", "CUDA", lambda x: x)
        trt.ops.example.running_max.default._refuse("PrivateUse1", [])
    plain = folder / "plain.c"
    plain.write_text("int nothing(void) { return 0; }\n")
    with pytest.raises(OSError, match="trtl_library_init"):
        cpp_extension.load("plain", [str(plain)], is_python_module=False, build_directory=str(folder / "plain"))
    with pytest.raises(OSError):
        trt.ops.load_library(str(folder / "is_not_there.so"))
    failing = folder / "failing.c"
    failing.write_text('#include <tensorrt_lite.h>\nint trtl_library_init(const trtl_api* api) { return api->define("no schema"); }\n')
    with pytest.raises((ValueError, RuntimeError)):
        cpp_extension.load("failing", [str(failing)], is_python_module=False, build_directory=str(folder / "failing"))


def test_an_operator_may_be_defined_again(folder):
    def operator(factor):
        return cpp_extension.load_inline(
            "replaced",
            f'trtl::Tensor f(const trtl::Tensor& x) {{ return trtl::call("aten::mul", x, {factor}.0); }}\n'
            'TRTL_LIBRARY(replaced, m) { m.def("f(Tensor x) -> Tensor"); m.impl("f", "CompositeExplicitAutograd", TRTL_FN(f)); }',
            functions=["f"], build_directory=str(folder / "replaced"),
        )  # fmt: skip

    first = operator(2)
    held = trt.ops.replaced.f
    assert held(trt.ones(1)).item() == 2
    second = operator(3)
    assert (first.f(trt.ones(1)).item(), second.f(trt.ones(1)).item()) == (2, 3)
    assert trt.ops.replaced.f(trt.ones(1)).item() == 3 and held(trt.ones(1)).item() == 3


def test_a_custom_op_may_be_defined_again_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def run(library):
        def two(x: library.Tensor) -> library.Tensor:
            return x * 2

        def three(x: library.Tensor) -> library.Tensor:
            return x * 3

        for f in (two, three):
            f.__annotations__ = {"x": library.Tensor, "return": library.Tensor}
        first = library.library.custom_op("defined_again::f", two, mutates_args=())
        second = library.library.custom_op("defined_again::f", three, mutates_args=())
        x = library.ones(1)
        return first(x).item(), second(x).item(), library.ops.defined_again.f(x).item()

    assert run(trt) == run(torch)


def test_registration_from_c_of_gradients_that_fail(folder):
    module = cpp_extension.load_inline(
        "failing_gradient",
        r"""
        trtl::Tensor f(const trtl::Tensor& x, double factor) { return trtl::call("aten::mul", x, factor); }
        TRTL_LIBRARY(failing_gradient, m) {
          m.def("f(Tensor x, float factor) -> Tensor").impl("f", "CPU", TRTL_FN(f));
          m.gradient("f", [](trtl::Context c, trtl::Values in, trtl::Values) { c.set("factor", trtl::from_value<double>(in.first[1])); },
                     [](trtl::Context c, const std::vector<trtl::Tensor>& g) -> std::vector<trtl::Tensor> {
                       const double factor = c.get("factor");
                       if (factor == 1) return {g[0]};
                       TRTL_CHECK(factor != 2, "no gradient of two");
                       TRTL_CHECK(c.needs_gradient(0) && !c.needs_gradient(1), "needs");
                       if (factor == 3) c.saved(0);
                       return {trtl::call("aten::mul", g[0], factor), {}};
                     });
        }
        """,
        functions=["f"], build_directory=str(folder / "failing_gradient"),
    )  # fmt: skip
    assert module.f(trt.ones(1), 2.0).item() == 2
    x = trt.ones(2, requires_grad=True)
    for factor, message in ((1.0, "1 gradients of 2"), (2.0, "no gradient of two"), (3.0, "0 tensors were saved")):
        with pytest.raises((RuntimeError, IndexError), match=message):
            trt.ops.failing_gradient.f(x, factor).sum().backward()
    trt.ops.failing_gradient.f(x, 4.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


# ---- compiling


def test_cython_sources(folder):
    pytest.importorskip("Cython")
    module = cpp_extension.load("runs", [str(EXAMPLE / "runs.pyx")], build_directory=str(folder / "cython"))
    x = trt.tensor([1, 1, 2, 2, 2, 5])
    counts = sys.getrefcount(x)
    assert module.run_lengths(x).tolist() == [2, 3, 1] and module.run_lengths(x[::2]).tolist() == [1, 2]
    with pytest.raises(TypeError, match="one-dimensional int64"):
        module.run_lengths(trt.ones(2))
    with pytest.raises(TypeError, match="expected a tensor, got list"):
        module.run_lengths([1])
    found, other = module.run_lengths(x), trt.ones(1)
    assert sys.getrefcount(x) == counts and sys.getrefcount(found) == sys.getrefcount(other)


def test_what_was_compiled_is_found_again(folder, monkeypatch):
    def build(text, **options):
        return cpp_extension.load_inline("found_again", text, functions=["f"], build_directory=str(folder / "again"), **options)

    text = "int64_t f() { return VALUE; }"
    assert build(text, extra_cflags=["-DVALUE=1"]).f() == 1
    ran = []
    compile_ = cpp_extension._run
    monkeypatch.setattr(cpp_extension, "_run", lambda command, *rest: (ran.append(command), compile_(command, *rest)))
    assert build(text, extra_cflags=["-DVALUE=1"]).f() == 1 and ran == []
    assert build(text, extra_cflags=["-DVALUE=2"]).f() == 2 and len(ran) == 2
    assert build(text, extra_cflags=["-DVALUE=1"]).f() == 1 and len(ran) == 2


def test_changed_headers_compile_again(folder):
    header, source = folder / "constants" / "constant.h", folder / "constants" / "source.cpp"
    header.parent.mkdir()
    source.write_text('#include <tensorrt_lite.hpp>\n#include "constant.h"\nint64_t f() { return CONSTANT; }\nTRTL_MODULE(TRTL_EXTENSION_NAME) { m.def("f", TRTL_FN(f)); }\n')
    for value in (1, 2):
        header.write_text(f"#define CONSTANT {value}\n")
        assert cpp_extension.load("constants", [str(source)], build_directory=str(folder / "built_constants")).f() == value


def test_what_the_compiler_says_is_in_the_error(folder):
    with pytest.raises(RuntimeError, match="no_such_name"):
        cpp_extension.load_inline("wrong", "int64_t f() { return no_such_name; }", functions=["f"], build_directory=str(folder / "wrong"))
    with pytest.raises(RuntimeError, match="tensorrt_lite.hpp"):
        cpp_extension.load_inline("foreign", "#include <torch/extension.h>\n", functions=[], build_directory=str(folder / "foreign"))
    with pytest.raises(FileNotFoundError):
        cpp_extension.load("absent", [str(folder / "absent.cpp")])
    with pytest.raises(ValueError, match="sources end in"):
        (folder / "x.f90").write_text("")
        cpp_extension.load("fortran", [str(folder / "x.f90")], build_directory=str(folder))
    with pytest.raises(ValueError, match="no name of a module"):
        cpp_extension.load("not-a-name", [])
    with pytest.raises(TypeError, match="list of flags"):
        cpp_extension.load("silu_mul", [str(EXAMPLE / "silu_mul.cpp")], extra_cflags="-O3")
    with pytest.raises(NotImplementedError):
        cpp_extension.load_inline("sycl", "", sycl_sources="x")


def test_cuda_needs_nvcc(folder, monkeypatch):
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    with pytest.raises(OSError, match="CUDA_HOME"):
        cpp_extension.CUDAExtension("x", ["x.cu"])
    with pytest.raises(OSError, match="CUDA_HOME"):
        cpp_extension.load_inline("cuda_source", "", cuda_sources="__global__ void f() {}", build_directory=str(folder / "cuda"))
    with pytest.raises(OSError):
        cpp_extension.include_paths("cuda")
    assert Path(cpp_extension.include_paths()[0], "tensorrt_lite.h").is_file()


def test_a_missing_compiler_is_named(folder, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(OSError, match="no compiler 'no-such-compiler'"):
        cpp_extension.load_inline("uncompiled", "int64_t f() { return 1; }", functions=["f"], build_directory=str(folder / "uncompiled"))
    assert not cpp_extension.check_compiler_ok_for_platform("no-such-compiler")


@pytest.mark.parametrize(("compiler", "flags"), [("cc", ["-std=c11", "-xc"]), ("c++", ["-std=c++17", "-xc++"]), ("c++", ["-std=c++20", "-xc++"])])
def test_headers_compile_without_warnings(compiler, flags):
    name = "tensorrt_lite.h" if "-xc" in flags else "tensorrt_lite.hpp"
    includes = [f"-I{folder}" for folder in cpp_extension.include_paths()]
    source = f"#include <{name}>\n" + ("int main() { return sizeof(trtl::Tensor) ? 0 : 1; }\n" if name.endswith("hpp") else "int main(void) { return TRTL_VERSION != 1; }\n")
    done = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", *includes, "-fsyntax-only", "-"], input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_setup_script_builds_the_example(tmp_path):
    pytest.importorskip("setuptools")
    pytest.importorskip("Cython")
    for name in ("setup.py", "silu_mul.cpp", "runs.pyx"):
        shutil.copy(EXAMPLE / name, tmp_path)
    done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    program = "import tensorrt_lite as trt, silu_mul, runs; x = trt.ones(3); print(trt.ops.example.silu_mul(x, x).shape, runs.run_lengths(trt.tensor([1, 1])).tolist())"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": ROOT}, capture_output=True, text=True)
    assert done.stdout == "torch.Size([3]) [2]\n", done.stderr


def test_the_example_runs(tmp_path):
    done = subprocess.run([sys.executable, str(EXAMPLE / "run.py")], env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin", "TORCH_EXTENSIONS_DIR": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "C++: the same" in done.stdout and "C: the same" in done.stdout and "different" not in done.stdout
    losses = [float(line.rpartition(" ")[2]) for line in done.stdout.splitlines() if line.startswith("step")]
    assert losses[-1] < 0.2 * losses[0]


def test_a_table_of_another_version_is_refused(folder):
    header = (Path(cpp_extension.include_paths()[0]) / "tensorrt_lite.h").read_text()
    (folder / "changed.h").write_text(header.replace("TRTL_VERSION = 1", "TRTL_VERSION = 99"))
    text = """
        #include <Python.h>
        #include "HEADER"
        static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "versions", 0, -1, 0, 0, 0, 0, 0};
        PyMODINIT_FUNC PyInit_versions(void) { return trtl_import() ? PyModule_Create(&definition) : NULL; }
    """
    source = folder / "versions.c"
    source.write_text(text.replace("HEADER", "tensorrt_lite.h"))
    assert cpp_extension.load("versions", [str(source)], build_directory=str(folder / "versions"))
    source.write_text(text.replace("HEADER", "changed.h"))
    with pytest.raises(ImportError, match="compile it again"):
        cpp_extension.load("versions", [str(source)], build_directory=str(folder / "versions"))

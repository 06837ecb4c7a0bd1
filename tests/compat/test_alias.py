"""`import torch` under the alias: the same module objects, PyTorch's names in files, honest errors for what is missing, and nothing left afterwards."""

from __future__ import annotations

import gc
import ast
import io
import operator
import os
import pickletools
import subprocess
import sys
import weakref
import zipfile
from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite.compat import VERSION, absent, is_installed, names, torch_alias

ROOT = Path(__file__).resolve().parents[2]
ROWS = [line.split("\t") for line in (Path(__file__).parent / "package_names.tsv").read_text(encoding="utf-8").splitlines()[1:]]


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module


def test_modules_are_the_same_objects(torch):
    for path in ("", "nn", "nn.functional", "nn.modules.linear", "optim", "optim.lr_scheduler", "utils.data", "autograd", "cuda.amp", "linalg", "jit", "_C", "utils._pytree"):
        assert import_module(f"torch.{path}".rstrip(".")) is import_module(f"tensorrt_lite.{path}".rstrip(".")), path
    import torch.nn.functional as F

    assert F is torch.nn.functional is trt.nn.functional
    assert (torch.__name__, F.__name__) == ("torch", "torch.nn.functional")


def test_outside_nothing_is_left():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    finders, module_of = list(sys.meta_path), trt.nn.Linear.__module__
    with torch_alias():
        import_module("torch.export")
        import_module("torch.optim.rmsprop")
        assert trt.__version__ == VERSION and trt.nn.Linear.__module__ == "torch.nn.modules.linear"
        with torch_alias():
            pass
        assert is_installed()
    assert not is_installed()
    assert {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"} == before
    assert sys.meta_path == finders
    assert (trt.__name__, trt.__version__, trt.nn.Linear.__module__, trt.Tensor.__module__) == ("tensorrt_lite", "0.1.0", module_of, "tensorrt_lite.tensor")
    assert not hasattr(trt, "export") and not hasattr(trt.jit, "__path__")
    with pytest.raises(AttributeError, match="it is not implemented"):
        _ = trt.quantize_per_tensor


def test_version(torch):
    assert torch.__version__ >= "2.13" and torch.__version__ >= (2, 13) and "2.9" < torch.__version__ < "2.14.0.dev1"
    assert torch.__version__.split("+")[0] == "2.13.0"
    assert version("torch") == VERSION == torch.version.__version__
    assert "torch" in packages_distributions()["torch"]
    assert find_spec("torch") is not None and find_spec("torch.nn") is not None and find_spec("torch.no_such") is None


def test_versions_compare_as_pytorchs():
    real = pytest.importorskip("torch").torch_version.TorchVersion
    ours = import_module("tensorrt_lite.compat.modules.torch_version").TorchVersion
    for left in ("2.13.0+cpu", "2.0", "1.13.1", "2.14.0.dev20260101", "2.13.0rc1", "2.13.0.post1"):
        for right in ("2.13", "2.13.0", "2.13.0+cpu", (2, 13), (2, 13, 1), "1.9.1", "2.14.0a0"):
            for test in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
                assert test(ours(left), right) == test(real(left), right), (left, test, right)


def test_names_of_classes(torch):
    assert str(torch.float32) == "torch.float32"
    homes = {torch.Tensor: "torch", torch.nn.Parameter: "torch.nn.parameter", torch.nn.Linear: "torch.nn.modules.linear", torch.optim.RMSprop: "torch.optim.rmsprop", torch.Size: "torch"}
    assert {kind: kind.__module__ for kind in homes} == homes
    for kind, home in homes.items():
        assert getattr(import_module(home), kind.__name__) is kind
    assert "Linear" in dir(torch.nn) and "RMSprop" in dir(torch.optim)


def test_names_of_pytorchs_private_modules_lead_to_the_public_objects(torch):
    assert import_module("torch.optim.rmsprop").RMSprop is trt.optim.RMSprop
    assert import_module("torch.functional").einsum is trt.einsum
    assert import_module("torch.storage").UntypedStorage is trt.UntypedStorage


def test_absent_names_are_refused_when_used(torch):
    from torch.export import ExportedProgram, export

    groups = torch.distributed.ProcessGroup | None  # as in an annotation

    def annotated(group, op=torch.distributed.ReduceOp.SUM, dtype=torch.qint8):
        assert isinstance(group, groups)
        return ExportedProgram(0, 1)

    class Mine(torch.nn.Module, ExportedProgram):
        pass

    for use in (lambda: ExportedProgram(0, 1), lambda: export(1, 2), Mine, lambda: annotated(None), lambda: torch.quantize_per_tensor(len)):
        with pytest.raises(NotImplementedError, match=r"^torch\.\S+: it is not implemented \(docs/gaps.md, or tensorrt-lite missing\)"):
            use()
    assert not isinstance(1, ExportedProgram) and ExportedProgram.__module__ == "torch.export"
    assert not hasattr(torch, "quantize_per_tensor") and getattr(torch, "quantize_per_tensor", None) is None and not hasattr(torch.distributed, "ReduceOp")
    assert absent.used["torch.quantize_per_tensor"] and not absent.used["torch.distributed.ProcessGroup"]


def test_names_that_pytorch_does_not_have_are_plain_errors(torch):
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        _ = torch.export.no_such
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        _ = torch.distributions.no_such
    with pytest.raises(ModuleNotFoundError, match="No module named 'torch.no_such'"):
        import_module("torch.no_such")
    with pytest.raises(ImportError):
        from torch.nn import NoSuchLayer  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import_module("torch.bench")  # of this package, and none of PyTorch's


def test_what_packages_import_can_be_imported(torch):
    """Of the names that published packages import, only what no program can use may raise, and then by name."""
    failed = []
    for name, how, _ in ROWS:
        if how == "import":
            module, _, last = name.rpartition(".")
            try:
                exec(f"from {module} import {last}" if module else f"import {name}", {})
            except ImportError as error:
                failed.append(f"{name}: {error}")
    assert failed == []


def test_attributes_that_packages_use_exist_or_are_refused_by_name(torch):
    """Module attributes that packages look up when they are imported or run: a constant may be missing, a function may not."""
    missing = []
    for name, _, users in ROWS:
        module, _, last = name.rpartition(".")
        if not module or names.is_module(name.removeprefix("torch").removeprefix(".")):
            continue
        try:
            owner = import_module(module)
        except ImportError:
            continue  # attributes of classes
        if hasattr(owner, last):
            continue
        try:
            eval(f"owner.{last}", {"owner": owner})
        except AttributeError:
            missing.append((name, users))
        except NotImplementedError:
            pass
    assert len(missing) < 30, missing


def globals_of(file: io.BytesIO) -> set[str]:
    archive = zipfile.ZipFile(file)
    pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    return {str(argument) for opcode, argument, _ in pickletools.genops(pickled) if opcode.name == "GLOBAL"}


def model(torch):
    torch.manual_seed(0)
    nn = torch.nn
    block = nn.TransformerEncoderLayer(8, 2, 16, activation=nn.functional.gelu, batch_first=True)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 8), nn.LayerNorm(8), block).eval()


def test_whole_modules_go_to_pytorch_and_back():
    real = pytest.importorskip("torch")
    with torch_alias() as torch:
        torch.save(model(torch), file := io.BytesIO())
        expected = model(torch)(torch.ones(3, 1, 4, 4)).tolist()
    assert {name.partition(".")[0].partition(" ")[0] for name in globals_of(file)} <= {"torch", "collections", "__builtin__"}
    file.seek(0)
    there = real.load(file, weights_only=False)
    real.testing.assert_close(there(real.ones(3, 1, 4, 4)), real.tensor(expected))
    there.register_forward_hook(lambda module, inputs, output: None)
    real.save(model(real), back := io.BytesIO())
    back.seek(0)
    with torch_alias() as torch:
        again = torch.load(back, weights_only=False)
        assert type(again) is torch.nn.Sequential
        real.testing.assert_close(real.tensor(again(torch.ones(3, 1, 4, 4)).tolist()), real.tensor(expected))


def test_state_dicts_go_to_pytorch(torch):
    torch.save({"model": model(torch).state_dict(), "optimizer": torch.optim.AdamW(model(torch).parameters()).state_dict()}, file := io.BytesIO())
    assert all(name.partition(" ")[0].partition(".")[0] in ("torch", "collections") for name in globals_of(file))


def test_compile_runs_what_it_is_given(torch):
    with pytest.warns(UserWarning, match="torch.compile is not implemented") if not import_module("tensorrt_lite.compiler")._warned else nullcontext():
        assert torch.compile(len) is len
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default"):
        torch.compile(len, mode="fast")
    assert torch.compile(mode="max-autotune")(len) is len
    layer = torch.nn.Linear(2, 1)
    assert layer.compile(mode="max-autotune") is None and layer(torch.ones(3, 2)).shape == (3, 1)
    assert import_module("torch._dynamo").is_compiling() is False


@pytest.mark.filterwarnings("ignore")
def test_compiled_modules_keep_pytorchs_state_dicts():
    real = pytest.importorskip("torch")

    def results(torch, **options):
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.0))
        compiled = torch.compile(model, **options).eval()
        compiled.extra = 3
        return (
            list(compiled.state_dict()), type(compiled).__name__, isinstance(compiled, torch.nn.Module), compiled._orig_mod is model, model.extra,
            model.training, compiled.training, len(list(compiled.parameters())), repr(compiled), hasattr(compiled, "no_such"), torch.compile(len) is len if not options else True,
        )  # fmt: skip

    expected = results(real, backend="eager")
    with torch_alias() as torch:
        assert results(torch) == expected
        x = torch.ones(1, 2, requires_grad=True)
        compiled = torch.compile(torch.nn.Linear(2, 1))
        compiled(x).sum().backward()
        assert compiled.weight.grad.tolist() == [[1.0, 1.0]]


def test_checks_raise_pytorchs_errors():
    real = pytest.importorskip("torch")

    def outcome(torch, call):
        try:
            return call(torch)
        except Exception as error:
            return type(error).__name__, str(error)

    calls = [
        lambda t: t._check(True), lambda t: t._check(False), lambda t: t._check(False, lambda: "said"), lambda t: t._check(3), lambda t: t._check_index(False, lambda: "i"),
        lambda t: t._check_value(False), lambda t: t._check_type(False), lambda t: t._check_with(KeyError, False, lambda: "k"), lambda t: t._check_tensor_all(t.tensor([True, False])),
        lambda t: t._check_tensor_all(t.tensor([1])), lambda t: t._assert(t.tensor(False), "m"), lambda t: t._assert_async(t.tensor(0)), lambda t: t._shape_as_tensor(t.zeros(2, 3)).tolist(),
        lambda t: t._softmax_backward_data(t.tensor([1.0, 2.0]), t.tensor([0.25, 0.75]), 0, t.float32).tolist(), lambda t: t._C._nn._parse_to(dtype=t.int8)[2:], lambda t: t._C._get_tracing_state(),
    ]  # fmt: skip
    expected = [outcome(real, call) for call in calls]
    with torch_alias() as torch:
        assert [outcome(torch, call) for call in calls] == expected


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_utils_of_tensors_are_pytorchs():
    real = pytest.importorskip("torch")

    def results(torch):
        utils = import_module("torch._utils")
        tensors = [torch.arange(6.0).view(2, 3), torch.arange(4.0), torch.zeros(0)]
        flat = utils._flatten_dense_tensors(tensors)
        groups = [[t.numel() for t in group] for group in utils._take_tensors([*tensors, torch.zeros(2, dtype=torch.int64)], 24)]
        rebuilt = utils._rebuild_tensor_v2(torch.arange(6.0).storage(), 1, (2, 2), (2, 1), True, {})
        return flat.tolist(), [t.tolist() for t in utils._unflatten_dense_tensors(flat, tensors)], groups, rebuilt.tolist(), rebuilt.requires_grad, utils._element_size(torch.float16)

    expected = results(real)
    with torch_alias() as torch:
        assert results(torch) == expected


def test_private_names_that_packages_import(torch):
    from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys
    from torch.utils._pytree import _dict_flatten, _dict_unflatten, _get_node_type

    result = torch.nn.Linear(2, 2).load_state_dict({}, strict=False)
    assert isinstance(result, _IncompatibleKeys) and _EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    assert _dict_unflatten(*_dict_flatten({"a": 1, "b": 2})) == {"a": 1, "b": 2} and _get_node_type([1]) is list
    assert not import_module("torch.distributed.rpc").is_available() and not import_module("torch.xpu").is_available()
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        import_module("torch.distributed.rpc.api")._require_initialized(len)([])
    with pytest.raises(OSError, match="libops.so"):
        torch.ops.load_library("/somewhere/libops.so")


def test_programs_find_all_optimizers_in_the_module(torch):
    """pyro makes a wrapper of each class that it finds among `torch.optim.__dict__`, others are imported on first use."""
    classes = {name for name, value in torch.optim.__dict__.items() if isinstance(value, type) and issubclass(value, torch.optim.Optimizer)}
    assert {"Adam", "LBFGS", "RAdam", "Rprop", "Adagrad"} <= classes


def test_tables_of_operators_may_name_absent_ones(torch):
    from torch.fx import PH

    table = {torch.ops.aten._sparse_mm_reduce_impl.default: 1, torch.ops.aten.add.Tensor: 2, PH: 3}
    assert table[torch.ops.aten._sparse_mm_reduce_impl.default] == 1
    assert not hasattr(torch.ops.aten, "_sparse_mm_reduce_impl")
    with pytest.raises(NotImplementedError, match=r"torch.ops.aten._sparse_mm_reduce_impl.default: it is not implemented"):
        torch.ops.aten._sparse_mm_reduce_impl.default(1)
    with pytest.raises(NotImplementedError, match=r"torch.fx.PH"):
        bool(PH)


def test_fakes_wait_for_their_operators(torch):
    @torch.library.register_fake("compat_test::later")
    def fake(x):
        return x.new_empty(2)

    torch.library.define("compat_test::later", "(Tensor x) -> Tensor")
    assert torch.ops.compat_test.later(torch.empty(3, device="meta")).shape == (2,)


def test_absent_functions_of_absent_modules_and_other_distributions():
    with torch_alias(), pytest.raises(NotImplementedError, match="torch.fx.symbolic_trace"):
        import_module("torch.fx").symbolic_trace(None)
    with pytest.raises(PackageNotFoundError):
        version("no-such-distribution")


def test_functorch_is_the_older_name_of_func(torch):
    import functorch

    x = torch.randn(3)
    with pytest.warns(FutureWarning, match=r"functorch\.grad is deprecated: use torch\.func\.grad"):
        assert torch.equal(functorch.grad(lambda t: t.sin().sum())(x), x.cos())
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    with pytest.warns(FutureWarning, match="make_functional"):
        function, params = functorch.make_functional(model)
    assert torch.equal(function(params, x), model(x))
    assert all(p.is_meta for p in function.stateless_model.parameters())
    assert [p.requires_grad for p in params] == [True] * 4 and params[0] is not model[0].weight
    with pytest.warns(FutureWarning, match="combine_state"):
        function, params, buffers = functorch.combine_state_for_ensemble([model, model])
    both = torch.func.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(both, model(x).expand(2, 2))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(torch.nn.BatchNorm1d(3))


def test_functorch_goes_with_the_alias():
    before = sys.modules.get("functorch")
    with torch_alias():
        import functorch

        assert functorch.__version__ == VERSION
    assert sys.modules.get("functorch") is before


def test_what_optimizers_of_packages_ask(torch):
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

    a, b, c = torch.ones(2), torch.ones(3, dtype=torch.float64), torch.zeros(2)
    groups = _group_tensors_by_device_and_dtype([[a, b, c], [None, b, a], []], with_indices=True)
    device = torch.device("cpu")
    assert list(groups) == [(device, torch.float32), (device, torch.float64)]
    (first, second, third), indices = groups[device, torch.float32]
    assert [id(t) for t in first] == [id(a), id(c)] and second == [None, a] and third == [] and indices == [0, 2]
    with pytest.raises(RuntimeError, match="first list"):
        _group_tensors_by_device_and_dtype([[None]])
    assert torch.distributed.autograd.is_available() is False and torch._dynamo.is_dynamo_supported() is False


def test_reparametrize_module_puts_back(torch):
    layer = torch.nn.Linear(2, 2)
    own = layer.weight
    with torch.nn.utils.stateless._reparametrize_module(layer, {"weight": torch.zeros(2, 2)}):
        assert torch.equal(layer(torch.ones(2)), layer.bias)
    assert layer.weight is own


def test_warnings_and_names_of_functions_say_pytorchs_package(torch):
    with pytest.warns(FutureWarning, match=r"^`torch\.cuda\.amp\.autocast\(args\.\.\.\)` is deprecated. Please use `torch\.amp\.autocast\('cuda', args\.\.\.\)` instead"):
        torch.cuda.amp.autocast(enabled=False)
    with pytest.warns(FutureWarning, match=r"^`torch\.cuda\.amp\.GradScaler\(args\.\.\.\)` is deprecated. Please use `torch\.amp\.GradScaler\('cuda', args\.\.\.\)`"):
        torch.cuda.amp.GradScaler(enabled=False)
    with pytest.warns(FutureWarning, match=r"^`torch\.cpu\.amp\.autocast\(args\.\.\.\)` is deprecated"):
        torch.cpu.amp.autocast()
    with pytest.warns(FutureWarning, match=r"^`torch\.cpu\.amp\.GradScaler\(args\.\.\.\)` is deprecated"):
        torch.cpu.amp.GradScaler()
    assert torch.overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert torch.overrides.resolve_name(torch.nn.functional.relu) == "torch.nn.functional.relu"
    assert torch.overrides.resolve_name(len) is None


def test_a_missing_name_keeps_no_frame_alive():
    """The error of a look-up and the frame that made it must not hold each other: they would keep every caller's objects until a collection."""

    class Held:
        pass

    def look():
        held = Held()
        assert not hasattr(torch.utils.data, "no_such_name") and not hasattr(torch, "no_such_name")
        return weakref.ref(held)

    gc.disable()
    try:
        with torch_alias() as torch:
            assert look()() is None
    finally:
        gc.enable()


WRAPPED = """
import builtins, sys
from tensorrt_lite.compat import install

install()
original = builtins.__import__

def wrapper(name, globals=None, locals=None, fromlist=(), level=0):
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = wrapper
import torch
import torch.nn as nn
torch.manual_seed(0)
with torch.autocast("cpu"):
    loss = nn.Linear(3, 2)(torch.ones(2, 3)).sum()
loss.backward()
torch.ops.aten.add.Tensor(torch.ones(2), 1)
torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(torch.ones(2, 2))
torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)
torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).sum()
torch.eye(2).to_sparse() @ torch.ones(2, 2)
torch.library.custom_op("wrapped::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")(torch.ones(2))
torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, differentiable=True)
torch.use_deterministic_algorithms(True)
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.data import DataLoader
list(DataLoader(torch.arange(4), num_workers=1))
try:
    import torch._declarations
except ModuleNotFoundError:
    print("ok")
"""


def test_programs_that_wrap_import_change_nothing(tmp_path):
    """Lazy importers and tracers put a frame of theirs between the package's imports and importlib."""
    done = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True, cwd=tmp_path, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout == "ok\n", done.stderr


def test_the_package_imports_its_private_modules_by_their_full_names():
    """`from tensorrt_lite import _x` looks for torch._x while the alias is in force, where `_x` is not loaded yet."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import tensorrt_lite, sys; print(*sys.modules)"], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout.split()
    wrong = []
    for file in sorted((ROOT / "tensorrt_lite").rglob("*.py")):
        package = file.parent.relative_to(ROOT).parts
        if package[:2] in (("tensorrt_lite", "_C"), ("tensorrt_lite", "bench"), ("tensorrt_lite", "compat")):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            owner = ".".join([*(package[: len(package) - node.level + 1] if node.level else ()), *filter(None, [node.module])])
            path = owner.partition(".")[2]
            if owner.partition(".")[0] != "tensorrt_lite" or path.startswith(("_C", "bench")) or path and not names.is_module(path):
                continue
            for alias in node.names:
                module = f"{owner}.{alias.name}"
                place = ROOT.joinpath(*module.split("."))
                is_module = place.with_suffix(".py").exists() or (place / "__init__.py").exists()
                if is_module and module not in loaded and not names.is_module(module.partition(".")[2]) and alias.name not in ("info",):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}: {alias.name}")
    assert wrong == []

"""Public classes have the public members that PyTorch's have, and those of the steps that subclasses replace do what PyTorch's do."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

MODULES = (
    "nn nn.utils.rnn nn.utils.parametrize nn.attention.flex_attention nn.attention.bias optim optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint utils.flop_counter "
    "utils.module_tracker autograd.graph autograd.profiler distributions distributions.constraints distributions.transforms multiprocessing amp amp.grad_scaler func "
    "futures hub library overrides profiler quasirandom random serialization utils.hooks utils.weak utils.tensorboard utils.benchmark"
).split()
# Members that are not here, by the class that has them first.
ABSENT = {
    "Tensor": "grad_dtype index int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme to_mkldnn to_padded_tensor",
    "Module": "T_destination",
    "MultiheadAttention": "merge_masks",
    "Optimizer": "OptimizerPostHook OptimizerPreHook",
    "ConcatDataset": "cummulative_sizes",  # deprecated, misspelt
    "FileWriter": "add_onnx_graph",
    "Library": "fallback register_symm_mem_args",
    "RemovableHandle": "next_id",
    "GradientEdge": "ownership_token",
    "FunctionEvent": "metadata_json",
    "profile": "config create_trace_id default_trace_id",
    # members of a compiled enumeration: instances have them
    "DeviceType": "FPGA HIP IDEEP IPU Lazy MAIA MKLDNN Metal OPENCL OPENGL VE Vulkan XLA name value",
    "ProfilerActivity": "name value",
    "ProcessException": "error_index error_pid",  # slots there, attributes here
    "ProcessExitedException": "exit_code",
}
FUNCTION = {name for name in dir(torch.autograd.Function) if not name.startswith("_")}  # of its graph nodes, which are classes of their own here


@pytest.mark.parametrize("module", MODULES)
def test_public_classes_have_pytorchs_members(module: str):
    theirs, ours = importlib.import_module(f"torch.{module}"), importlib.import_module(f"tensorrt_lite.{module}")
    lacking = {}
    for name in getattr(theirs, "__all__", None) or [n for n in vars(theirs) if not n.startswith("_")]:
        its, mine = getattr(theirs, name, None), getattr(ours, name, None)
        if not (inspect.isclass(its) and inspect.isclass(mine)) or issubclass(its, torch.autograd.Function):
            continue
        absent = {member for base in its.__mro__ for member in ABSENT.get(base.__name__, "").split()}
        missing = {m for m in dir(its) if not m.startswith("_") and not hasattr(mine, m)} - absent
        if missing:
            lacking[name] = sorted(missing)
    assert lacking == {}


def test_packed_sequences_convert_by_name():
    both = [lib.nn.utils.rnn.pack_sequence([lib.tensor([1.5, 2.0]), lib.tensor([3.0])]) for lib in (trt, torch)]
    for name in ("double", "float", "half", "long", "int", "short", "char", "byte", "cpu"):
        mine, its = (getattr(p, name)() for p in both)
        assert type(mine) is type(both[0]) and (mine.data.tolist(), str(mine.data.dtype), mine.batch_sizes.tolist()) == (its.data.tolist(), str(its.data.dtype), its.batch_sizes.tolist())
    assert both[0].is_pinned() == both[1].is_pinned() is False
    assert both[0].float() is both[0] and both[1].float() is both[1]
    assert [str(p.cpu(lib.float64).data.dtype) for p, lib in zip(both, (trt, torch))] == ["torch.float64"] * 2


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}])
def test_recurrent_layers_say_which_states_they_take(kind: str, options: Any):
    said = []
    for lib in (trt, torch):
        layer = getattr(lib.nn, kind)(3, 5, **options)
        x = lib.zeros(4, 2, 3)
        sizes = [layer.get_expected_hidden_size(x, None), layer.get_expected_hidden_size(x[0], lib.tensor([2, 1]))]
        if kind == "LSTM":
            sizes.append(layer.get_expected_cell_size(x, None))
        hidden = lib.arange(float(sizes[0][0] * sizes[0][1] * sizes[0][2])).reshape(sizes[0])
        hidden = (hidden, hidden + 1) if kind == "LSTM" else hidden
        layer.check_forward_args(x, hidden, None)
        turned = layer.permute_hidden(hidden, lib.arange(sizes[0][1] - 1, -1, -1))
        assert layer.permute_hidden(hidden, None) is hidden
        with pytest.raises(RuntimeError) as error:
            layer.check_forward_args(x, (hidden[0], hidden[1][:, :, :2]) if kind == "LSTM" else hidden[:, :, :2], None)
        said.append((sizes, [t.tolist() for t in (turned if kind == "LSTM" else (turned,))], str(error.value)))
    assert said[0] == said[1]


def test_devices_that_are_not_here_are_refused_where_there_is_something_to_move():
    for name in ("xpu", "mtia", "ipu"):
        assert isinstance(getattr(trt.nn.ReLU(), name)(), trt.nn.ReLU)
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(trt.nn.Linear(1, 1), name)()


def test_collating_functions_have_their_names():
    import numpy as np

    from tensorrt_lite.utils.data._utils import collate as ours
    from torch.utils.data._utils import collate as theirs

    batches = {
        "collate_tensor_fn": lambda lib: [lib.tensor([1, 2]), lib.tensor([3, 4])],
        "collate_numpy_array_fn": lambda lib: [np.arange(2.0), np.arange(2.0)],
        "collate_numpy_scalar_fn": lambda lib: [np.float32(1), np.float32(2)],
        "collate_float_fn": lambda lib: [1.0, 2.0],
        "collate_int_fn": lambda lib: [1, 2],
        "collate_str_fn": lambda lib: ["a", "b"],
    }
    for name, batch in batches.items():
        mine, its = (getattr(m, name)(batch(lib), collate_fn_map=m.default_collate_fn_map) for m, lib in ((ours, trt), (theirs, torch)))
        assert (mine, its) == (["a", "b"],) * 2 if name == "collate_str_fn" else (mine.tolist(), str(mine.dtype)) == (its.tolist(), str(its.dtype)), name


def test_a_map_made_of_the_default_one_takes_arrays():
    import numpy as np

    from tensorrt_lite.utils.data._utils import collate as ours
    from torch.utils.data._utils import collate as theirs

    class Name(str):
        pass

    batch = [(np.arange(2), np.float64(3), Name("a")), (np.arange(2), np.float64(4), Name("b"))]
    results = []
    for module in (ours, theirs):
        own = {Name: lambda names, *, collate_fn_map=None: "+".join(names), **module.default_collate_fn_map}
        arrays, numbers, names = module.collate(batch, collate_fn_map=own)
        results.append((arrays.tolist(), numbers.tolist(), str(numbers.dtype), names))
    assert results[0] == results[1]


def test_an_output_that_is_a_leaf_in_place_is_refused_in_pytorchs_words():
    said = []
    for lib in (trt, torch):

        class Doubled(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 2

        with pytest.raises(RuntimeError) as error:
            Doubled.apply(lib.ones(2, requires_grad=True))
        said.append(str(error.value))
    assert said[0] == said[1]

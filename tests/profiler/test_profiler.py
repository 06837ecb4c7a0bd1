"""The profiler beside PyTorch's: schedules, averages, shapes, operations, memory, traces."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite._C.core import profiler as core
from tensorrt_lite.autograd import profiler_util
from tensorrt_lite.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

torch = pytest.importorskip("torch")
from torch.profiler.python_tracer import _prefix_regex  # noqa: E402

SHOWN = next((__file__[len(prefix) :] for prefix in _prefix_regex() if __file__.startswith(prefix)), __file__)  # as PyTorch's profiles name this file


def train_step(library, model, x):
    loss = model(x).square().mean()
    loss.backward()
    return loss


def small_model(library):
    library.manual_seed(0)
    return library.nn.Sequential(library.nn.Conv2d(3, 8, 3), library.nn.ReLU(), library.nn.Flatten(), library.nn.Linear(8 * 6 * 6, 3))


@pytest.fixture(scope="module")
def recorded():
    model = small_model(trt)
    optimizer = trt.optim.SGD(model.parameters(), lr=0.1)
    x = trt.randn(4, 3, 8, 8)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as p:
        with record_function("model"):
            train_step(trt, model, x)
        optimizer.step()
        optimizer.zero_grad()
    return p


def named(events, name):
    return [event for event in events if event.name == name]


# ---- what is recorded


def test_operators_nodes_ranges_and_steps_of_the_optimizer_are_events(recorded):
    names = [event.name for event in recorded.events()]
    for name in ("model", "aten::conv2d", "aten::convolution", "aten::relu", "aten::linear", "aten::square", "aten::mean", "autograd::engine::execute",
                 "MeanBackward0", "SquareBackward0", "LinearBackward0", "ReluBackward0", "ConvolutionBackward0", "torch::autograd::AccumulateGrad",
                 "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"):  # fmt: skip
        assert name in names, name
    assert names.count("torch::autograd::AccumulateGrad") == 4
    assert [event.id for event in recorded.events()] == list(range(len(names)))


def test_children_lie_in_their_parents_and_self_times_add_up(recorded):
    events = recorded.events()
    for event in events:
        for child in event.cpu_children:
            assert child.cpu_parent is event
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end
        assert event.self_cpu_time_total >= -1e-6
    top = [event for event in events if event.cpu_parent is None]
    assert events.self_cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in top))
    convolution = named(events, "aten::convolution")[0]
    assert convolution.cpu_parent.name == "aten::conv2d"
    calls = []  # of Python functions around the operator, up to the module's
    outer = convolution.cpu_parent.cpu_parent
    while outer is not None and outer.name != "nn.Module: Conv2d_0":
        calls.append(outer)
        outer = outer.cpu_parent
    assert outer is named(events, "nn.Module: Conv2d_0")[0] and calls[0].name.endswith(": _conv_forward" if len(calls) > 1 else ": forward")
    assert all(event.is_python_function and event.activity_type == "python_function" for event in calls)


def test_shapes_types_and_values_of_arguments_are_pytorchs(recorded):
    ours = named(recorded.events(), "aten::conv2d")[0]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
        small_model(torch)(torch.randn(4, 3, 8, 8))
    theirs = [event for event in p.events() if event.name == "aten::conv2d"][0]
    assert ours.input_shapes == theirs.input_shapes
    assert ours.input_dtypes == theirs.input_dtypes
    assert ours.concrete_inputs[3:] == theirs.concrete_inputs[3:]
    joined = trt.ones(2, 3)
    with profile(record_shapes=True) as p:
        trt.cat([joined, joined], dim=1)
        joined.add(joined, alpha=2.5)
        joined.reshape(3, 2).sum(0, dtype=trt.float64)
        (joined * 1j).conj()
    cat, add, _, view, total, mul = p.events()[:6]
    assert cat.input_shapes[0] == [[2, 3], [2, 3]]
    assert add.input_shapes[:2] == [[2, 3], [2, 3]] and add.concrete_inputs[2] == 2.5
    assert view.name == "aten::view" and view.concrete_inputs[1] == [3, 2]
    assert total.concrete_inputs[1:] == [[0], False, "torch.float64"]
    assert mul.name == "aten::mul"


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.ones(5, 6) @ t.ones(6, 7),
        lambda t: t.bmm(t.ones(2, 5, 6), t.ones(2, 6, 7)),
        lambda t: t.addmm(t.ones(7), t.ones(5, 6), t.ones(6, 7)),
        lambda t: t.ones(3, 4) * t.ones(3, 4),
        lambda t: t.ones(3, 4) + t.ones(3, 4),
        lambda t: t.nn.functional.conv2d(t.ones(2, 4, 9, 8), t.ones(6, 2, 3, 2), None, 2, 1, 1, 2),
        lambda t: t.nn.functional.linear(t.ones(5, 6), t.ones(7, 6), t.ones(7)),
    ],
)
def test_floating_point_operations_are_pytorchs(call):
    with profile(with_flops=True) as ours:
        call(trt)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as theirs:
        call(torch)
    assert ours.key_averages().total_average().flops == theirs.key_averages().total_average().flops


def test_memory_is_what_the_allocator_gave_and_took(recorded):
    x = trt.ones(1000)
    with profile(profile_memory=True) as p:
        y = x + 1
        with record_function("kept and dropped"):
            z = x * 2
            del z
        del y
    add = named(p.events(), "aten::add")[0]
    assert 4000 <= add.self_cpu_memory_usage <= 4096
    outer = named(p.events(), "kept and dropped")[0]
    assert outer.cpu_memory_usage == 0
    assert outer.self_cpu_memory_usage == -named(p.events(), "aten::mul")[0].cpu_memory_usage
    assert named(p.events(), "[memory]")[-1].cpu_memory_usage == -add.cpu_memory_usage
    total = sum(event.self_cpu_memory_usage for event in p.events())
    assert total == sum(change.nbytes for change in p.profiler._profile.memory) == 0
    assert "CPU Mem" in p.key_averages().table()


def test_stacks_end_in_the_callers_line_and_nodes_have_their_calls(recorded):
    square = named(recorded.events(), "aten::square")[0]
    assert square.stack[0].startswith(SHOWN + "(") and square.stack[0].endswith("): train_step")
    node = named(recorded.events(), "SquareBackward0")[0]
    assert node.stack == square.stack and node.fwd_thread == square.thread and node.sequence_nr == square.sequence_nr
    averages = recorded.key_averages(group_by_stack_n=1)
    assert {average.stack[0].rpartition(" ")[2] for average in averages if average.key == "aten::mean"} == {"train_step"}


def test_a_training_step_is_accounted_for():
    model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4096, 10))
    optimizer = trt.optim.SGD(model.parameters(), lr=0.01)
    x = trt.randn(128, 1, 8, 8)
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1)) as p:
        for _ in range(4):
            optimizer.zero_grad()
            train_step(trt, model, x)
            optimizer.step()
            p.step()
    steps = named(p.events(), "ProfilerStep*")
    assert [event.trace_name for event in steps] == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    # the best of the steps: other processes may have taken the processor between two operators of the others
    assert max(sum(child.cpu_time_total for child in event.cpu_children) / event.cpu_time_total for event in steps) > 0.9



def share_of_steps(p):
    """Of the wall time of a step what the events in it account for: the best of the steps, as other processes take the processor between two events."""
    steps = named(p.events(), "ProfilerStep*")
    return max(sum(child.cpu_time_total for child in event.cpu_children) / event.cpu_time_total for event in steps)


def small_transformer():
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)
    x = trt.randn(4, 16, 32)
    return layers, lambda: layers(x).square().mean()


def tiny_perceptron():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    x, y = trt.randn(8, 16), trt.randint(0, 4, (8,))
    return model, lambda: nn.functional.cross_entropy(model(x), y)


@pytest.mark.parametrize("make", [small_transformer, tiny_perceptron])
def test_with_stacks_python_functions_account_for_the_rest(make):
    """Steps of some ten microseconds, too, whose time is mostly Python's."""
    model, loss_of = make()
    optimizer = trt.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    with profile(schedule=schedule(wait=0, warmup=1, active=8, repeat=1), with_stack=True) as p:
        for _ in range(9):
            step()
            p.step()
    assert share_of_steps(p) > 0.9


def test_a_backward_pass_is_one_event_from_its_call_on():
    """With the gradient that it begins with; also of `autograd.backward`, `autograd.grad` and a pass that raises."""
    w = trt.ones(3, requires_grad=True)
    with profile() as p:
        (w * 2).sum().backward()
        trt.autograd.backward([(w * 2).sum(), w.sum()])
        trt.autograd.grad(w.sum(), w)
        with pytest.raises(RuntimeError):
            trt.ones(3).sum().backward()
    passes = named(p.events(), "autograd::engine::execute")
    assert len(passes) == 4 and all(event.cpu_parent is None for event in passes)
    assert [[child.name for child in event.cpu_children if child.name == "aten::ones_like"] for event in passes] == [["aten::ones_like"], ["aten::ones_like"] * 2, [], []]


def test_calls_of_python_functions_are_events_with_stacks_alone(tmp_path):
    def inner(x):
        return x + 1

    def fails(x):
        raise ValueError

    def outer(x):
        with contextlib.suppress(ValueError):
            fails(x)
        return inner(x)

    @contextlib.contextmanager
    def region(name):
        with record_function(name):
            yield

    with profile(with_stack=True) as p:
        outer(trt.ones(3))
        with region("spans"):
            trt.ones(3) * 2
    assert sys.getprofile() is None
    calls = {event.name.rpartition(" ")[2]: event for event in p.events() if event.is_python_function}
    add = named(p.events(), "aten::add")[0]
    assert add.cpu_parent is calls["inner"] and calls["inner"].cpu_parent is calls["outer"] and calls["fails"].cpu_parent is not None
    assert calls["inner"].name == f"{SHOWN}({inner.__code__.co_firstlineno}): inner"
    span = named(p.events(), "spans")[0]
    assert [child.name for child in span.cpu_children if child.name.startswith("aten::")] == ["aten::ones", "aten::mul"]
    assert not any("profiler/profiler.py" in event.name for event in p.events())
    with profile() as p:
        outer(trt.ones(3))
    assert not any(event.is_python_function for event in p.events())

    seen = []
    sys.setprofile(lambda frame, what, argument: seen.append(what))  # another profiler's function stays where it is
    try:
        with profile(with_stack=True) as p:
            inner(trt.ones(3))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "call" in seen and named(p.events(), "aten::add")


def test_in_place_forms_and_named_operators_have_pytorchs_names():
    x = trt.ones(4, 4)
    with profile() as p:
        x.add_(1).relu_()
        x.max(1)
        x.view(trt.int32)
        trt.linalg.inv(trt.eye(2))
        trt.einsum("ij,jk->ik", x, x)
    names = [event.name for event in p.events()]
    assert names[:2] == ["aten::add_", "aten::relu_"]
    assert {"aten::max", "aten::view", "aten::einsum", "aten::eye"} <= set(names)
    assert any(name.startswith("aten::linalg_inv") for name in names)


def test_custom_operators_and_functions_are_recorded():
    @trt.library.custom_op("profiled::triple", mutates_args=())
    def triple(x: trt.Tensor) -> trt.Tensor:
        return x * 3

    class Twice(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = trt.ones(3, requires_grad=True)
    with profile() as p:
        triple(x.detach())
        Twice.apply(x).sum().backward()
    names = [event.name for event in p.events()]
    assert "profiled::triple" in names and "TwiceBackward" in names
    assert named(p.events(), "profiled::triple")[0].cpu_children[0].name == "aten::mul"


def test_results_are_those_without_a_profiler():
    x = trt.randn(8, 3, 8, 8)
    trt.manual_seed(1)
    plain = small_model(trt)
    first = train_step(trt, plain, x)
    profiled = small_model(trt)
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        second = train_step(trt, profiled, x)
    assert first.item() == second.item()
    for a, b in zip(plain.parameters(), profiled.parameters()):
        assert trt.equal(a.grad, b.grad)
    with profile(), trt.autocast("cpu", dtype=trt.bfloat16):
        assert (x.flatten(1) @ x.flatten(1).t()).dtype is trt.bfloat16
    with profile():
        assert (trt.ones(2, device="meta") + 1).device.type == "meta"
        assert trt.ones(2, dtype=trt.uint16).flip(0).tolist() == [1, 1]
        with trt.autograd.forward_ad.dual_level():
            dual = trt.autograd.forward_ad.make_dual(trt.ones(2), trt.full((2,), 3.0))
            assert trt.autograd.forward_ad.unpack_dual(dual * dual).tangent.tolist() == [6.0, 6.0]
        with pytest.raises(RuntimeError):
            trt.ones(2) @ trt.ones(3)
        (trt.ones(2, requires_grad=True) ** 2).sum().backward(create_graph=True)


# ---- where it is recorded


def test_nothing_is_left_behind_when_it_ends():
    with profile():
        trt.ones(2) + 1
    assert not core.is_recording() and trt._C.core.dispatch is not None
    assert core.begin_range("x") == -1
    with pytest.raises(ZeroDivisionError), profile() as p:
        raise ZeroDivisionError
    assert not core.is_recording() and p.events() == []
    with profile(), pytest.raises(RuntimeError, match="running already"):
        profile().start()


def test_threads_are_recorded_where_asked_for():
    def work():
        with record_function("in a thread"):
            trt.ones(3) + 1

    def run():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with profile() as p:
        run()
        trt.ones(2)
    assert named(p.events(), "in a thread") == [] and len(p.events()) == 1
    from tensorrt_lite.profiler import _ExperimentalConfig

    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as p:
        run()
        trt.ones(2)
    inside = named(p.events(), "in a thread")[0]
    assert [child.name for child in inside.cpu_children] == ["aten::ones", "aten::add"]
    assert inside.thread != named(p.events(), "aten::ones")[-1].thread or len(named(p.events(), "aten::ones")) == 2
    assert threading.getprofile() is None


def test_a_thread_that_outlives_a_profile_does_not_write_into_the_next():
    begin, go_on = threading.Event(), threading.Event()
    from tensorrt_lite.profiler import _ExperimentalConfig

    def work():
        with record_function("across"):
            begin.set()
            go_on.wait(20)
            trt.ones(2) + 1

    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as first:
        thread = threading.Thread(target=work)
        thread.start()
        begin.wait(20)
    with profile() as second:
        go_on.set()
        thread.join(20)
        trt.ones(2) * 2
    across = named(first.events(), "across")[0]
    assert across.time_range.end <= first.profiler._profile.end_ns / 1e3
    assert "across" not in [event.name for event in second.events()]
    assert "aten::mul" in [event.name for event in second.events()]


def test_deeply_nested_backward_passes_are_recorded():
    @trt.enable_grad()
    def nested(depth):
        x = trt.ones(1, requires_grad=True)
        if depth:
            x2 = x * 2
            x2.register_hook(lambda grad: nested(depth - 1))
            x2.sum().backward()

    with profile() as p:
        nested(45)
    assert len(named(p.events(), "autograd::engine::execute")) >= 40


def test_errors_leave_no_range_open():
    class Failing(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ArithmeticError

    with profile() as p:
        with pytest.raises(ArithmeticError):
            Failing.apply(trt.ones(2, requires_grad=True)).sum().backward()
        with pytest.raises(RuntimeError):
            trt.ones(2) @ trt.ones(3)
        core.begin_range("never closed")
        trt.ones(2) * 3
    node = named(p.events(), "FailingBackward")[0]
    assert node.cpu_parent.name == "autograd::engine::execute" and node.time_range.end <= node.cpu_parent.time_range.end
    assert named(p.events(), "aten::ones")[-1].cpu_parent.name == "never closed"
    assert named(p.events(), "never closed")[0].cpu_parent is None


def test_recording_may_be_paused():
    with profile() as p:
        trt.ones(2) + 1
        p.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        trt.ones(2) * 2
        p.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        trt.ones(2) - 3
    assert [event.name for event in p.events()] == ["aten::ones", "aten::add", "aten::ones", "aten::sub"]


def test_ranges_are_contexts_and_decorators():
    @record_function("decorated")
    def f(n):
        """Says so."""
        return f(n - 1) + 1 if n else trt.zeros(1)

    assert f(1).item() == 1 and f.__doc__ == "Says so."
    again = record_function("entered twice")
    with profile() as p:
        f(2)
        with again, again:
            pass
    assert len(named(p.events(), "decorated")) == 3 and len(named(p.events(), "entered twice")) == 2
    assert named(p.events(), "decorated")[2].cpu_parent is named(p.events(), "decorated")[1]


# ---- schedules


def test_schedules_are_pytorchs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wait, warmup, active, repeat, skip, skip_wait in itertools.product((0, 1, 2), (0, 1), (1, 2), (0, 2), (0, 3), (0, 1)):
            arguments = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip, "skip_first_wait": skip_wait}
            ours, theirs = schedule(**arguments), torch.profiler.schedule(**arguments)
            assert [ours(step).name for step in range(20)] == [theirs(step).name for step in range(20)], arguments
        for bad in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
            with pytest.raises(AssertionError) as ours_error:
                schedule(**bad)
            with pytest.raises(AssertionError) as theirs_error:
                torch.profiler.schedule(**bad)
            assert str(ours_error.value) == str(theirs_error.value)


@pytest.mark.parametrize(("plan", "steps"), [((1, 1, 2, 2), 9), ((0, 0, 1, 0), 4), ((1, 0, 3, 1), 3), ((2, 1, 1, 0), 8)])
def test_traces_are_ready_when_pytorchs_are(plan, steps):
    def run(library):
        ready = []
        plans = dict(zip(("wait", "warmup", "active", "repeat"), plan))
        x = library.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cpu = [library.profiler.ProfilerActivity.CPU]
            plan_of_library = library.profiler.schedule(**plans)
            with library.profiler.profile(activities=cpu, schedule=plan_of_library, on_trace_ready=lambda p: ready.append((p.step_num, names(p)))) as p:
                for _ in range(steps):
                    x * x
                    p.step()
        return ready

    def names(p):
        return sorted(event.name for event in p.events() if event.name.startswith(("ProfilerStep", "aten::mul")))

    assert run(trt) == run(torch)


def test_handlers_write_traces_that_tensorboard_looks_for(tmp_path):
    plan = schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "logs"), "worker", use_gzip=True)) as p:
        for _ in range(4):
            trt.ones(2)
            p.step()
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == 2 and all(file.name.startswith("worker.") and file.name.endswith(".pt.trace.json.gz") for file in files)
    assert json.loads(gzip.open(files[0]).read())["traceEvents"]


# ---- averages and the table


def test_averages_group_by_shape_and_stack():
    a, b = trt.ones(2, 2), trt.ones(3, 3)
    with profile(record_shapes=True) as p:
        for _ in range(3):
            a + a
        b + b
    (average,) = [x for x in p.key_averages() if x.key == "aten::add"]
    assert average.count == 4 and average.input_shapes == "" and average.cpu_time == pytest.approx(average.cpu_time_total / 4)
    by_shape = {str(x.input_shapes[0]): x.count for x in p.key_averages(group_by_input_shape=True)}
    assert by_shape == {"[2, 2]": 3, "[3, 3]": 1}


@pytest.mark.parametrize("value", [0.0, 0.5, 12.3456, 999.9994, 1000.0, 54321.0, 1e6, 7.5e8])
def test_times_and_sizes_read_as_pytorchs(value):
    from torch.autograd import profiler_util as theirs

    assert profiler_util._format_time(value) == theirs._format_time(value)
    assert profiler_util._format_time_share(value, 3e6) == theirs._format_time_share(value, 3e6)
    for sign in (1, -1):
        assert profiler_util._format_memory(sign * int(value)) == theirs._format_memory(sign * int(value))


def test_the_table_has_pytorchs_columns_and_order(recorded):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as p:
        model = small_model(torch)
        train_step(torch, model, torch.randn(4, 3, 8, 8))
    model = small_model(trt)
    with profile(record_shapes=True, profile_memory=True) as q:
        train_step(trt, model, trt.randn(4, 3, 8, 8))
    for by_shape in (False, True):
        theirs = p.key_averages(group_by_input_shape=by_shape).table(sort_by="cpu_time_total", row_limit=3).splitlines()
        ours = q.key_averages(group_by_input_shape=by_shape).table(sort_by="cpu_time_total", row_limit=3).splitlines()
        assert ours[1].split() == theirs[1].split() and len(ours) == len(theirs)
        assert ours[0].strip("- ") == "" and ours[-1].startswith("Self CPU time total: ")
    counts = [int(line.split()[-1]) for line in q.key_averages().table(sort_by="count").splitlines()[3:-2]]
    assert counts == sorted(counts, reverse=True)
    with pytest.raises(AttributeError):
        q.key_averages().table(sort_by="no_such")
    with pytest.raises(ValueError, match="time_unit"):
        q.key_averages().table(time_unit="h")
    assert "ms" in q.key_averages().table(time_unit="ms") and "us" not in q.key_averages().table(time_unit="ms")
    assert q.key_averages().table(header="Title").splitlines()[1] == "Title"
    assert profiler_util.EventList([]).table() == ""


def test_results_are_refused_before_there_are_any(tmp_path):
    for call in (lambda p: p.key_averages(), lambda p: p.events(), lambda p: p.export_chrome_trace(str(tmp_path / "x"))):
        with pytest.raises(AssertionError) as ours:
            call(profile())
        assert str(ours.value).startswith("Profiler must be initialized before")
    with profile() as p:
        with pytest.raises(RuntimeError, match="didn't finish"):
            p.events()
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])
    with pytest.raises(TypeError):
        profile(schedule=3)
    with pytest.raises(AssertionError, match="No valid profiler activities.*ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.raises(ValueError, match="profile_memory=True required"):
        p.export_memory_timeline(str(tmp_path / "m.html"))
    with pytest.raises(AssertionError, match="with_stack"):
        p.export_stacks(str(tmp_path / "s"))


# ---- files


def test_chrome_traces_are_valid(recorded, tmp_path):
    path = tmp_path / "trace.json"
    recorded.add_metadata("who", "a test")
    recorded.add_metadata_json("numbers", "[1, 2]")
    recorded.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    assert trace["who"] == "a test" and trace["numbers"] == [1, 2] and trace["record_shapes"] == 1 and trace["trace_id"]
    entries = trace["traceEvents"]
    assert {entry["ph"] for entry in entries} == {"M", "X", "s", "f", "i", "C"}
    for entry in entries:
        assert {"ph", "name", "pid", "tid", "ts"} <= entry.keys()
        assert entry["ts"] >= 0 and entry.get("dur", 0) >= 0
    ranges = [entry for entry in entries if entry["ph"] == "X"]
    assert {entry["cat"] for entry in ranges} == {"cpu_op", "user_annotation", "python_function"}
    # of one thread, two ranges lie in each other or apart
    open_ends: list[float] = []
    for entry in sorted(ranges, key=lambda entry: (entry["ts"], -entry["dur"])):
        while open_ends and open_ends[-1] <= entry["ts"]:
            open_ends.pop()
        assert not open_ends or entry["ts"] + entry["dur"] <= open_ends[-1] + 1e-3
        open_ends.append(entry["ts"] + entry["dur"])
    starts, ends = ({entry["id"]: entry for entry in entries if entry["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys() and len(starts) >= 5 and all(starts[key]["ts"] < ends[key]["ts"] for key in starts)
    recorded.events().export_chrome_trace(str(tmp_path / "again.json.gz"))
    assert len(json.loads(gzip.open(tmp_path / "again.json.gz").read())["traceEvents"]) == len(entries)


def test_stacks_flame_graph_and_memory_pages(recorded, tmp_path):
    recorded.export_stacks(str(tmp_path / "stacks"))
    for line in (tmp_path / "stacks").read_text().splitlines():
        frames, _, number = line.rpartition(" ")
        assert int(number) > 0 and frames.split(";")[0].endswith(("<module>", "main"))
    with pytest.raises(ValueError, match="metric should be one of"):
        recorded.events().export_stacks(str(tmp_path / "stacks"), "nonsense")

    recorded.export_flame_graph(str(tmp_path / "flame.svg"))
    root = ElementTree.parse(tmp_path / "flame.svg").getroot()
    bars = root.findall("{http://www.w3.org/2000/svg}g")
    titles = [bar.find("{http://www.w3.org/2000/svg}title").text for bar in bars]
    assert titles[0].startswith("all\n") and any(title.startswith("aten::convolution\n") for title in titles)
    assert all(0 <= float(bar.get("data-x")) and float(bar.get("data-x")) + float(bar.get("data-w")) <= 1200.01 for bar in bars)

    for name in ("memory.html", "memory.json", "memory.json.gz", "memory.raw.json.gz"):
        recorded.export_memory_timeline(str(tmp_path / name))
    times, in_use = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(in_use) > 10 and times == sorted(times)
    raw = json.loads(gzip.open(tmp_path / "memory.raw.json.gz").read())
    assert {entry[1] for entry in raw} == {"create", "destroy"} and len(raw) == len(times)
    page = (tmp_path / "memory.html").read_text()
    data = json.loads(page[page.index("const data = ") + 13 :].partition(";\n")[0])
    assert data["peak"] == max(in_use) and data["bytes"] == in_use and sum(row[1] for row in data["at_peak"]) == data["peak"]
    assert "http" not in page


def test_the_command_profiles_a_program(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys\nimport torch\nassert torch.__name__ == 'tensorrt_lite' or True\n"
        "x = torch.ones(50, 50)\nfor _ in range(5):\n    x = x @ x * 1e-2\nprint('arguments', sys.argv[1:])\nsys.exit(3)\n"
    )
    command = [sys.executable, "-m", "tensorrt_lite", "profile", "--as-torch", "--stacks", "--flops", "--rows", "5", "--memory", "m.html", "program.py", "--epochs", "2"]
    root = str(Path(trt.__file__).parents[1])
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": root, "PATH": ""}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "arguments ['--epochs', '2']" in done.stdout and "aten::mm" in done.stdout and "FLOPs" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {"trace.json", "flame.svg", "m.html"}
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "program.py(6): &lt;module&gt;" in (tmp_path / "flame.svg").read_text()
    for wrong in (["profile"], ["profile", "--nonsense", "program.py"], ["profile", "--sort-by", "x", "program.py"]):
        done = subprocess.run([sys.executable, "-m", "tensorrt_lite", *wrong], cwd=tmp_path, env={"PYTHONPATH": root, "PATH": ""}, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr


def test_the_command_answers_to_torch_where_there_is_none(tmp_path):
    (tmp_path / "program.py").write_text(
        "import importlib.util\nassert importlib.util.find_spec('torch') is None\nimport torch.nn as nn\nimport torch\n"
        "print('alias', torch.nn is nn, nn.Linear(3, 2)(torch.ones(4, 3)).shape)\n"
    )
    (tmp_path / "idle.py").write_text("print('nothing to do')\n")
    (tmp_path / "profile.py").write_text(  # in an environment whose PyTorch, if there is one, is not found
        "import sys\nfrom importlib.machinery import PathFinder\nfind = PathFinder.find_spec\n"
        "PathFinder.find_spec = classmethod(lambda cls, name, path=None, target=None: None if name == 'torch' else find(name, path, target))\n"
        "from tensorrt_lite.profiler.command import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    environment = {"PYTHONPATH": str(Path(trt.__file__).parents[1]), "PATH": ""}

    def run(program):
        return subprocess.run([sys.executable, "profile.py", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    done = run("idle.py")
    assert done.returncode == 0 and "nothing was recorded" in done.stdout
    assert not {"trace.json", "flame.svg"} & {path.name for path in tmp_path.iterdir()}
    done = run("program.py")
    assert done.returncode == 0, done.stderr
    assert "alias True" in done.stdout and "aten::linear" in done.stdout and "answers to `import torch`, as with --as-torch" in done.stderr
    assert (tmp_path / "trace.json").exists()


# ---- autograd.profiler


def test_autograds_profiler():
    with trt.autograd.profiler.profile(record_shapes=True) as p:
        trt.ones(3).sum()
    assert [event.name for event in p.function_events] == ["aten::ones", "aten::sum"]
    assert str(p) == p.table() and p.total_average().key == "Total" and p.total_average().count == 2
    assert p.self_cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in p.function_events))
    with trt.autograd.profiler.profile(enabled=False) as off:
        trt.ones(3)
    assert str(off) == "<unfinished torch.autograd.profile>"
    with trt.autograd.profiler.profile(acc_events=True) as p:
        trt.ones(1)
    with p:
        trt.zeros(1)
    assert trt.autograd.profiler_legacy.profile is trt.autograd.profiler.profile
    unique = trt.autograd.profiler.EnforceUnique()
    unique.see(1)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see(1)


def test_events_accumulate_over_cycles_where_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = schedule(wait=0, warmup=0, active=1, repeat=3)
        with profile(schedule=plan, acc_events=True) as p:
            for _ in range(3):
                trt.ones(2) * 2
                p.step()
    assert len(named(p.events(), "aten::mul")) == 3


def test_nvtx_gets_every_range(monkeypatch):
    pushed, depth = [], [0]

    class Recorder:
        @staticmethod
        def mark(text):
            pass

        @staticmethod
        def range_push(text):
            pushed.append(text)
            depth[0] += 1

        @staticmethod
        def range_pop():
            depth[0] -= 1

    monkeypatch.setattr(trt.cuda, "nvtx", Recorder, raising=False)
    with trt.autograd.profiler.emit_nvtx():
        x = trt.ones(2, requires_grad=True)
        with record_function("outer"):
            (x * 2).sum().backward()
    assert depth[0] == 0
    names = [text.partition(",")[0] for text in pushed]
    assert names[:4] == ["aten::ones", "outer", "aten::mul", "aten::sum"] and "MulBackward0" in names
    with pytest.raises(RuntimeError), trt.autograd.profiler.emit_itt():
        pass


def test_actions_and_activities_have_pytorchs_names():
    assert [action.name for action in ProfilerAction] == list(torch.profiler.ProfilerAction.__members__)
    assert {a.name: a.value for a in ProfilerActivity} == {name: int(a.value) for name, a in torch.profiler.ProfilerActivity.__members__.items()}
    assert ProfilerActivity.CPU in trt.profiler.supported_activities()
    assert trt.profiler.kineto_available() and trt.autograd.kineto_available()
    for name in torch.profiler.__all__:
        assert hasattr(trt.profiler, name) or name == "ExecutionTraceObserver", name

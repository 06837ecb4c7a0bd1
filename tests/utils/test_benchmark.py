"""The benchmark tools beside PyTorch's: the same texts of the same times, the same random arguments of the same seed."""

from __future__ import annotations

import re

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import benchmark as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.benchmark")

TIMES = {
    "one": (1000, [0.5]), "steady": (10, [1e-3, 1.01e-3, 1.02e-3, 1.0e-3, 1.005e-3]), "odd": (10, [1e-3, 1.2e-3, 1.15e-3, 1.0e-3, 1.3e-3]),
    "wild": (100, [1e-3, 2e-3, 1.15e-3, 1.0e-3, 1.9e-3, 7e-3]), "slow": (1, [12.5, 12.6]), "exact": (100_000, [0.0412] * 7), "three": (7, [0.1, 0.2, 0.3]),
}  # fmt: skip
TASKS = [
    {"stmt": "x + y", "setup": "pass"}, {"stmt": "x + y", "setup": "x = 1\ny = 2", "label": "add", "sub_label": "ints", "description": "here", "num_threads": 4},
    {"stmt": "x = 1\nx + 1", "setup": "a", "sub_label": "two lines"}, {"stmt": "z", "setup": "", "label": "add", "env": "box", "description": "there"},
]  # fmt: skip


def measured(lib, name, task=0):
    number, times = TIMES[name]
    return lib.Measurement(number_per_run=number, raw_times=list(times), task_spec=lib.TaskSpec(**TASKS[task]))


@pytest.mark.parametrize("task", range(len(TASKS)))
@pytest.mark.parametrize("name", TIMES)
def test_measurements(name, task):
    found, expected = (measured(lib, name, task) for lib in (ours, theirs))
    for attribute in ("times", "median", "mean", "iqr"):
        assert getattr(found, attribute) == pytest.approx(getattr(expected, attribute), rel=1e-9, abs=1e-15)
    for attribute in ("has_warnings", "title", "as_row_name", "num_threads", "label", "stmt", "significant_figures"):
        assert getattr(found, attribute) == getattr(expected, attribute), attribute
    texts = [repr(m).split("\n", 1)[1] for m in (found, expected)]
    assert texts[0] == texts[1]
    assert found.meets_confidence(0.3) == expected.meets_confidence(0.3) and found.task_spec.summarize() == expected.task_spec.summarize()


def test_units_and_figures():
    for t in (3e-10, 1e-9, 2.5e-7, 1e-6, 9.99e-4, 1e-3, 0.5, 1.0, 70.0):
        assert ours.select_unit(t) == theirs.select_unit(t)
        for n in (1, 2, 4):
            assert ours.trim_sigfig(t, n) == pytest.approx(theirs.trim_sigfig(t, n), rel=1e-6)
    assert [ours.unit_to_english(u) for u in ("ns", "us", "ms", "s")] == [theirs.unit_to_english(u) for u in ("ns", "us", "ms", "s")]
    assert ours.ordered_unique("abcab") == ["a", "b", "c"]


def tables(lib, *, envs, missing):
    results = []
    for i, name in enumerate(TIMES):
        for j, description in enumerate(("first", "second one")):
            for threads in (1, 2):
                if missing and (i + j + threads) % 4 == 0:
                    continue
                number, times = TIMES[name]
                spec = lib.TaskSpec(stmt="f(x)", setup="pass", label=f"table {i % 2}", sub_label=name, description=description, num_threads=threads, env=f"env {j}" if envs else None)
                results.append(lib.Measurement(number_per_run=number, raw_times=[t * (1 + j + 3 * threads) for t in times], task_spec=spec))
    return lib.Compare(results)


@pytest.mark.parametrize("colour", [None, False, True])
@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("highlight", [False, True])
@pytest.mark.parametrize(("envs", "missing"), [(False, False), (True, False), (False, True)])
def test_tables(colour, trim, highlight, envs, missing):
    texts = []
    for lib in (ours, theirs):
        table = tables(lib, envs=envs, missing=missing)
        if colour is not None:
            table.colorize(rowwise=colour)
        if trim:
            table.trim_significant_figures()
        if highlight:
            table.highlight_warnings()
        texts.append(str(table))
    assert texts[0] == texts[1]


def test_compare_takes_measurements_alone():
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`, got <class 'int'> instead"):
        ours.Compare([1])


def test_timers():
    calls = []
    timer = ours.Timer("f(2)", "f(1)", globals={"f": calls.append}, label="calls", num_threads=2)
    measurement = timer.timeit(300)
    assert measurement.number_per_run == 300 and len(measurement.raw_times) == 1 and calls.count(2) == 303 and measurement.median > 0
    seen = []
    blocks = ours.Timer("torch.ones(2)").blocked_autorange(callback=lambda n, t: seen.append((n, t)), min_run_time=0.02)
    assert blocks.number_per_run in (10, 100, 1000, 10_000, 100_000) and [t for _, t in seen] == blocks.raw_times and sum(blocks.raw_times) >= 0.02
    adaptive = ours.Timer("pass").adaptive_autorange(1e9, min_run_time=0.001, max_run_time=1)
    assert len(adaptive.raw_times) > 3
    threads = trt.get_num_threads()
    assert re.search(r"Median|\d", repr(blocks)) and trt.get_num_threads() == threads
    inside = []
    ours.Timer("inside.append(torch.get_num_threads())", globals={"inside": inside}, num_threads=threads + 1).timeit(2)
    assert set(inside) == {threads + 1}


@pytest.mark.parametrize(("options", "error", "match"), [
    ({"stmt": print}, ValueError, "Currently only a `str` stmt is supported"), ({"language": "fortran"}, ValueError, "Invalid language `fortran`"),
    ({"global_setup": "x"}, ValueError, r"global_setup is C\+\+ only, got `x`"), ({"language": "c++"}, NotImplementedError, "not implemented"),
])  # fmt: skip
def test_what_timers_refuse(options, error, match):
    with pytest.raises(error, match=match):
        ours.Timer(**options)
    for name in ("repeat", "autorange", "collect_callgrind"):
        with pytest.raises(NotImplementedError):
            getattr(ours.Timer(), name)()


def fuzzed(lib, package):
    sizes = [lib.FuzzedParameter(f"k{i}", 1, 64, "loguniform") for i in range(3)]
    return lib.Fuzzer(
        [lib.FuzzedParameter("dim", 1, 3, "uniform", strict=True), sizes, lib.FuzzedParameter("s", 1, 3, "uniform"), lib.FuzzedParameter("p", 0.0, 1.0, "uniform")],
        [
            lib.FuzzedTensor("x", ("k0", "k1", "k2"), ("s", 1, "s"), min_elements=4, max_elements=4000, dim_parameter="dim", probability_contiguous=0.3),
            [lib.FuzzedTensor("y", ("k2", 3), dtype=package.int32, max_allocation_bytes=400)],
        ],
        constraints=[lambda params: params["k0"] != 3], seed=12,
    )  # fmt: skip


def test_random_arguments_are_pytorchs():
    fuzzers = [fuzzed(ours, trt), fuzzed(theirs, torch)]
    for (found, kinds, params), (tensors, properties, expected) in zip(fuzzers[0].take(12), fuzzers[1].take(12), strict=True):
        assert params == expected
        for name, tensor in found.items():
            assert (tensor.tolist(), tensor.stride()) == (tensors[name].tolist(), tensors[name].stride())
            assert {k: str(v) for k, v in kinds[name].items()} == {k: str(v) for k, v in properties[name].items()}
    assert fuzzers[0].rejection_rate == fuzzers[1].rejection_rate > 0


def test_distributions_and_aliases():
    """PyTorch's check asks by mistake that probabilities do not add up to 1, so there is nothing to compare with."""
    size = ours.FuzzedParameter("k", distribution={1: 0.25, 8: 0.75})
    same = ours.FuzzedParameter("a", distribution={ours.ParameterAlias("k"): 0.5, 2: 0.5})
    drawn = [(params["k"], params["a"]) for _, _, params in ours.Fuzzer([size, same], [], seed=3).take(200)]
    assert set(drawn) == {(1, 1), (8, 8), (1, 2), (8, 2)} and 0.6 < sum(k == 8 for k, _ in drawn) / 200 < 0.9
    with pytest.raises(AssertionError, match="Distribution is not normalized"):
        ours.FuzzedParameter("k", distribution={1: 0.25})


def test_what_fuzzers_refuse():
    with pytest.raises(AssertionError, match="Unknown distribution: normal"):
        ours.FuzzedParameter("x", 1, 2, "normal")
    with pytest.raises(AssertionError, match="Probabilities cannot be negative"):
        ours.FuzzedParameter("x", distribution={1: -1.0})
    with pytest.raises(ValueError, match="Duplicate names"):
        ours.Fuzzer([ours.FuzzedParameter("x", 1, 2, "uniform")], [ours.FuzzedTensor("x", (1,))])
    never = ours.Fuzzer([ours.FuzzedParameter("x", 1, 2, "uniform")], [], [lambda params: False], seed=1)
    with pytest.raises(ValueError, match="Failed to generate a set of valid parameters"):
        next(never.take(1))
    with pytest.raises(ValueError, match="ParameterAlias cycle detected"):
        ours.Fuzzer._resolve_aliases({"a": ours.ParameterAlias("b"), "b": ours.ParameterAlias("a")})

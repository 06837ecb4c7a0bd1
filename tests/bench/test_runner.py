"""The benchmark runner: what a row yields, how libraries are compared, what the command line promises.

NumPy stands in for the library under test where any library will do: the runner must not depend on which one it times.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tensorrt_lite import info
from tensorrt_lite.bench import cli, markdown, measure, report, rows, saved, svg
from tensorrt_lite.bench.cli import main
from tensorrt_lite.bench.measure import Plan, Result, Spread
from tensorrt_lite.bench.rows import Row
from tensorrt_lite.bench.suites import classes
from tensorrt_lite.bench.worker import WorkerSide

FAST = Plan(block=1e-4, rounds=5, least=3, budget=0.05)
NUMPY_ROW = "^overhead/add, 4 elements$"


class ScriptedSide:
    """A side whose blocks return the given figures in turn and which notes when it was asked."""

    def __init__(self, name: str, figures: list[float], log: list[str] | None = None, status: str = "ok") -> None:
        self.name, self.figures, self.log, self.status = name, list(figures), log if log is not None else [], status

    def build(self, row: Row, threads: int) -> str:
        return self.status

    def once(self) -> float:
        return 1e-6

    def block(self, number: int) -> float:
        self.log.append(self.name)
        return self.figures.pop(0)

    def close(self) -> None:
        pass


def row_of(build, **options) -> Row:
    return Row("row", "overhead", build, build, **options)


def local_result(build, **options) -> Result:
    return measure.measure(row_of(build, **options), [measure.LocalSide("numpy")], 1, FAST)


# rows


@pytest.mark.parametrize("suite", [*rows.SUITES, *rows.SWEEPS])
def test_every_suite_has_rows_of_its_own(suite):
    found = rows.load([suite])
    assert found
    assert all(row.suite == suite for row in found)


def test_row_keys_are_unique():
    keys = [row.key for row in rows.load()]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("function", ["add", "mul", "exp", "tanh", "gelu", "sigmoid", "where", "transpose copy", "cat"])
@pytest.mark.parametrize("size", ["1M", "16M"])
def test_large_pointwise_operators_have_rows_in_both_sizes(function, size):
    assert f"pointwise/{function} {size}" in {row.key for row in rows.load(["pointwise"])}


@pytest.mark.parametrize("function", ["sum dim 0", "sum dim 1", "mean", "max", "softmax dim 1"])
@pytest.mark.parametrize("size", ["1M", "16M"])
def test_reductions_have_rows_in_both_sizes(function, size):
    assert f"reduction/{function} {size}" in {row.key for row in rows.load(["reduction"])}


@pytest.mark.parametrize("label", ["short rows of a slice", "bfloat16 channels_last images"])
def test_rows_of_classes_run(label):
    """Each call of the search for slow rows works on a class; those of results without gradients say so."""
    found = [row for row in rows.load(["classes"]) if row.name.endswith(f", {label}") and row.name.removesuffix(f", {label}").removesuffix(" gradient") in classes.CALLS.keys() | classes.IMAGE_CALLS]
    assert len(found) > 40
    side = measure.LocalSide("tensorrt_lite")
    statuses = {row.name: side.build(row, 1) for row in found}
    assert not [f"{name}: {status}" for name, status in statuses.items() if status.startswith("failed") or "AttributeError" in status]
    assert sum(status == "ok" for status in statuses.values()) > 0.8 * len(found)


def test_sweeps_are_left_out_unless_named():
    assert not any(row.suite in rows.SWEEPS for row in rows.load())


def test_above_keeps_the_rows_that_stay_above_the_ratio(capsys):
    """The least of three measurements counts; one below the ratio ends the row."""
    ours = {"slow": [3.0, 2.0, 4.0], "noisy": [3.0, 1.0], "fast": [0.5]}
    chosen = [dataclasses.replace(row_of(lambda lib, threads: None), name=name) for name in ours]

    def measured(row, sides, threads, plan):
        ratio = ours[row.name].pop(0)
        return Result(row, threads, {}, {"torch": Spread.of([ratio])}, {"numpy": "ok", "torch": "ok"})

    sides = [ScriptedSide("numpy", []), ScriptedSide("torch", [])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "measure", measured)
        found = cli._run_above(chosen, sides, [1], FAST, 1.2)
    assert [(result.row.name, result.ratios["torch"].median) for result, _ in found] == [("slow", 2.0)]
    assert not any(ours.values())
    assert "3 rows compared, 1 above 1.2 of the time of torch" in capsys.readouterr().out


def test_the_pattern_selects_by_suite_and_name():
    assert [row.key for row in rows.load(pattern="^overhead/view$")] == ["overhead/view"]


def test_quick_leaves_slow_rows_out():
    everything, quick = rows.load(["train"]), rows.load(["train"], quick=True)
    assert {row.key for row in everything} - {row.key for row in quick} == {row.key for row in everything if row.slow}
    assert len(quick) < len(everything)


def test_an_unknown_suite_is_an_error_that_names_the_suites():
    with pytest.raises(ValueError, match="unknown suite 'gem'; suites are startup, overhead"):
        rows.load(["gem"])


# measuring


class Clock:
    """Stands in for the measurement's clock: goes on by what `advance` is told and by nothing else."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    return clock


def test_the_figure_is_the_time_of_one_call(clock):
    result = local_result(lambda lib, threads: lambda: clock.advance(2e-3))
    assert result.figures["numpy"].median == pytest.approx(2e-3)


def test_the_loop_and_the_empty_call_are_subtracted(clock, monkeypatch):
    monkeypatch.setattr(measure, "empty", lambda: clock.advance(3e-7))
    figures = [local_result(lambda lib, threads: lambda: clock.advance(1e-6), subtract_loop=subtract).figures["numpy"] for subtract in (False, True)]
    assert [figure.median for figure in figures] == [pytest.approx(1e-6), pytest.approx(7e-7)]


def test_a_row_with_its_own_clock_returns_its_figure():
    result = local_result(lambda lib, threads: lambda: 42.0, own_clock=True, unit="modules")
    assert result.figures["numpy"] == Spread(42.0, 42.0, 42.0)


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError, ImportError])
def test_a_missing_operator_is_reported_and_does_not_fail(error):
    def build(lib, threads):
        raise error("no such operator")

    assert local_result(build).status["numpy"] == f"missing: {error.__name__}: no such operator"


def test_an_exception_of_a_row_is_reported_as_failure():
    def build(lib, threads):
        return lambda: 1 // 0

    assert local_result(build).status["numpy"].startswith("failed: ZeroDivisionError")


def test_libraries_take_turns_and_the_first_changes_every_round():
    log: list[str] = []
    sides = [ScriptedSide("a", [1.0] * 9, log), ScriptedSide("b", [1.0] * 9, log)]
    measure.measure(row_of(lambda lib, threads: None), sides, 1, Plan(rounds=4, least=4))
    assert log == ["a", "b", "b", "a", "a", "b", "b", "a"]


def test_the_ratio_is_the_median_of_ratios_within_rounds():
    # The machine slows down tenfold in the last two rounds; within each round the ratio stays what it is.
    own, other = ScriptedSide("a", [1.0, 1.0, 10.0, 30.0, 1.0]), ScriptedSide("b", [2.0, 2.0, 20.0, 20.0, 2.0])
    result = measure.measure(row_of(lambda lib, threads: None), [own, other], 1, Plan(rounds=5, least=5))
    assert result.ratios["b"] == Spread(0.5, 0.5, 0.5)
    assert result.figures["a"].median == 1.0


def test_a_library_that_lacks_the_row_leaves_the_others_measured():
    sides = [ScriptedSide("a", [], status="missing: x"), ScriptedSide("b", [1.0] * 5)]
    result = measure.measure(row_of(lambda lib, threads: None), sides, 1, Plan(rounds=5, least=5))
    assert set(result.figures) == {"b"}
    assert not result.ratios


def test_a_side_that_fails_while_measured_is_a_failure_of_the_row():
    sides = [ScriptedSide("a", [1.0] * 5), ScriptedSide("b", [1.0])]
    result = measure.measure(row_of(lambda lib, threads: None), sides, 1, Plan(rounds=5, least=5))
    assert result.status["b"].startswith("failed: IndexError")
    assert set(result.figures) == {"a"}


def test_slow_rows_get_fewer_rounds_but_never_less_than_the_least():
    side = ScriptedSide("a", [1.0] * 25)
    side.once = lambda: 10.0
    result = measure.measure(row_of(lambda lib, threads: None), [side], 1, Plan(rounds=25, least=7, budget=1.5))
    assert result.rounds == 7


def test_the_spread_is_median_and_quartiles():
    assert Spread.of([1.0, 2.0, 3.0, 4.0, 5.0]) == Spread(3.0, 2.0, 4.0)


def test_thread_counts_reach_the_library():
    seen = []
    measure.set_threads("torch", SimpleNamespace(set_num_threads=seen.append), 3)
    assert seen == [3]


# worker processes


@pytest.fixture
def worker():
    side = WorkerSide("numpy")
    yield side
    side.close()


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, state: str) -> bool:
    deadline = time.monotonic() + 60
    while process_state(pid) != state and time.monotonic() < deadline:
        time.sleep(0.01)
    return process_state(pid) == state


def test_a_worker_measures_the_same_row_as_this_process(worker):
    [row] = rows.load(pattern=NUMPY_ROW)
    result = measure.measure(row, [worker], 1, FAST)
    assert result.status == {"numpy": "ok"}
    assert 1e-9 < result.figures["numpy"].median < 1


def test_an_idle_worker_is_stopped(worker):
    [row] = rows.load(pattern=NUMPY_ROW)
    assert wait_for_state(worker.pid, "T")
    worker.build(row, 1)
    assert wait_for_state(worker.pid, "T")


def test_a_worker_holds_only_its_own_library(worker):
    facts = worker.facts()
    assert facts["version"] != "unknown"
    assert facts["openmp_runtimes"] == []


def test_closing_ends_a_stopped_worker(worker):
    worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


def test_a_worker_that_died_fails_one_row_and_serves_the_next(worker):
    [row] = rows.load(pattern=NUMPY_ROW)
    assert worker.build(row, 1) == "ok"
    os.kill(worker.pid, signal.SIGKILL)
    result = measure.measure(row, [worker], 1, FAST)
    if result.status["numpy"] != "ok":  # the death was noticed while asking, so this row pays for it
        assert result.status["numpy"].startswith("failed: RuntimeError: the worker of numpy ended")
        result = measure.measure(row, [worker], 1, FAST)
    assert result.status == {"numpy": "ok"}


def test_a_library_that_is_not_installed_is_a_usage_error(capsys):
    assert cli.main(["--library", "numpy", "--against", "no_such_library", "--isolate", "always", "--rows", NUMPY_ROW]) == 2
    said = capsys.readouterr().err
    assert "No module named 'no_such_library'" in said and "pip install no_such_library" in said and "usage:" not in said


# reports


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (96.4e-9, "s", "96.4 ns"),
        (1.384e-3, "s", "1.38 ms"),
        (250e-6, "s", "250 µs"),
        (1.5, "s", "1.50 s"),
        (12.4e6, "bytes", "12.4 MB"),
        (71.0, "modules", "71 modules"),
    ],
)
def test_figures_are_printed_in_the_unit_of_their_size(value, unit, text):
    assert report.quantity(value, unit) == text


def run_of(median: float, q1: float | None = None, q3: float | None = None) -> dict:
    result = Result(row_of(lambda lib, threads: None), 1, {"numpy": Spread(median, q1 or median, q3 or median)})
    result.status = {"numpy": "ok"}
    return report.as_json([result], ["numpy"], {})


def test_a_row_slower_by_more_than_five_percent_is_listed():
    assert report.slower(run_of(1e-6), run_of(1.2e-6)) == ["overhead/row, 1 threads: 1.00 µs to 1.20 µs (1.20 times)"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((1e-6, 1e-6, 1e-6), (1.04e-6, 1.04e-6, 1.04e-6), id="within five percent"),
        pytest.param((1e-6, 0.9e-6, 1.3e-6), (1.2e-6, 1.1e-6, 1.4e-6), id="within noise"),
        pytest.param((1e-6, 1e-6, 1e-6), (0.5e-6, 0.5e-6, 0.5e-6), id="faster"),
    ],
)
def test_a_row_within_noise_is_not_listed(before, after):
    assert report.slower(run_of(*before), run_of(*after)) == []


def test_a_row_over_its_limit_says_by_how_much():
    result = Result(row_of(lambda lib, threads: None, limit=0.25), 1)
    result.figures, result.ratios = {"numpy": Spread(1e-6, 1e-6, 1e-6)}, {"torch": Spread(0.5, 0.4, 0.6)}
    result.status = {"numpy": "ok", "torch": "ok"}
    assert report.over_limit(result) == "0.50 of torch's time, allowed 0.25"
    result.ratios["torch"] = Spread(0.2, 0.1, 0.3)
    assert report.over_limit(result) is None


def test_a_time_over_its_absolute_limit_says_so():
    result = Result(row_of(lambda lib, threads: None, limit_seconds=120e-9), 1)
    result.figures, result.status = {"numpy": Spread(150e-9, 150e-9, 150e-9)}, {"numpy": "ok"}
    assert report.over_limit(result) == "150 ns, allowed 120 ns"


# command line


def bench(*arguments: str) -> int:
    return cli.main(["--library", "numpy", "--quick", "--isolate", "never", "--rows", NUMPY_ROW, *arguments])


def test_the_run_is_saved_as_json(tmp_path, capsys):
    assert bench("--threads", "1,2", "--json", str(tmp_path / "run.json")) == 0
    saved = report.load(tmp_path / "run.json")
    assert [(row["name"], row["threads"]) for row in saved["rows"]] == [("add, 4 elements", 1), ("add, 4 elements", 2)]
    assert all(row["figures"]["numpy"]["median"] > 0 for row in saved["rows"])
    assert saved["facts"]["libraries"]["numpy"]["version"]


def test_the_table_names_row_and_libraries(capsys):
    assert bench() == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["row", "threads", "numpy"] for line in lines)
    assert any(line.startswith("add, 4 elements") and line.rstrip().endswith("ns") for line in lines)


def test_a_missing_operator_is_printed_and_the_run_succeeds(capsys):
    assert cli.main(["--library", "math", "--quick", "--isolate", "never", "--rows", "^gemm/64x64x64$"]) == 0
    printed = capsys.readouterr().out
    assert "missing: AttributeError" in printed
    assert "1 rows are missing in math" in printed


def test_a_failing_row_makes_the_run_fail(monkeypatch, capsys):
    broken = row_of(lambda lib, threads: lambda: 1 // 0)
    monkeypatch.setattr(rows, "load", lambda *arguments: [broken])
    assert bench() == 1
    assert "1 rows failed" in capsys.readouterr().out


@pytest.mark.parametrize(("saved_median", "status"), [(1e-12, 1), (1.0, 0)])
def test_comparison_with_a_saved_run_decides_the_exit_status(tmp_path, capsys, saved_median, status):
    path = tmp_path / "run.json"
    bench("--json", str(path))
    saved = json.loads(path.read_text())
    for row in saved["rows"]:
        row["figures"]["numpy"] = {"median": saved_median, "q1": saved_median, "q3": saved_median}
    path.write_text(json.dumps(saved))
    assert bench("--compare", str(path)) == status


def test_a_row_over_budget_three_times_fails_the_check(monkeypatch, capsys):
    calls = []

    def build(lib, threads):
        calls.append(threads)
        return lambda: time.sleep(1e-4)

    monkeypatch.setattr(rows, "load", lambda *arguments: [row_of(build, limit_seconds=1e-9)])
    assert bench("--threads", "1") == 0
    calls.clear()
    assert bench("--threads", "1", "--check") == 1
    assert len(calls) == 3
    assert "1 rows missed their budget in 3 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--threads", "0"], id="no threads"),
        pytest.param(["--threads", "two"], id="threads in words"),
        pytest.param(["--rows", "("], id="malformed pattern"),
        pytest.param(["--rows", "no such row"], id="no row"),
        pytest.param(["--against", "numpy"], id="a library against itself"),
        pytest.param(["--compare", "no/such/file.json"], id="no saved run"),
        pytest.param(["--chart", "chart.png"], id="a chart of one library"),
        pytest.param(["no-such-suite"], id="unknown suite"),
    ],
)
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        bench(*arguments)
    assert stopped.value.code == 2


def saved_run(**ratios):
    """A run with rows of these ratios to torch, and times of the library under test that are the ratios in seconds."""
    results = []
    for name, ratio in ratios.items():
        result = Result(dataclasses.replace(row_of(lambda lib, threads: None), name=name), 1)
        result.ratios = {"torch": Spread(ratio, ratio * 0.9, ratio * 1.1)}
        result.figures = {"numpy": Spread(ratio, ratio * 0.99, ratio * 1.01), "torch": Spread(1.0, 1.0, 1.0)}
        results.append(result)
    facts = {"libraries": {"numpy": {"version": "1"}, "torch": {"version": "2"}}, "cpu": {"model": "a processor", "cores": 2}}
    return report.as_json(results, ["numpy", "torch"], facts)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_chart_is_an_image_of_the_ratios(suffix, tmp_path):
    if suffix == "png":
        pytest.importorskip("matplotlib")
    from tensorrt_lite.bench import chart

    chart.draw(saved_run(add=0.2), tmp_path / f"chart.{suffix}")
    assert (tmp_path / f"chart.{suffix}").read_bytes().startswith(b"\x89PNG" if suffix == "png" else b"<svg")


@pytest.mark.parametrize("theme", list(svg.THEMES))
def test_bars_of_an_svg_grow_from_one(theme):
    root = ElementTree.fromstring(svg.svg(svg.bars(saved_run(**{"a & b": 0.1, "over": 3.0})["rows"], "torch"), "title", "axis", theme))
    space = "{http://www.w3.org/2000/svg}"
    background, less, more = root.findall(f"{space}rect")
    one = next(line for line in root.findall(f"{space}line") if line.get("stroke") == svg.THEMES[theme][1])
    assert float(less.get("x")) + float(less.get("width")) == pytest.approx(float(one.get("x1")), abs=0.2) == float(more.get("x"))
    assert background.get("fill") == svg.THEMES[theme][0] and (less.get("fill"), more.get("fill")) == svg.THEMES[theme][3:]
    assert {"a & b", "0.10", "3.00"} <= {text.text for text in root.findall(f"{space}text")}
    with pytest.raises(ValueError, match="ratios"):
        svg.svg([], "title", "axis")


def test_the_chart_of_a_terminal_keeps_its_width():
    lines = svg.lines(svg.bars(saved_run(**{"a name " * 20: 0.1, "over": 3.0})["rows"], "torch"), 60)
    assert max(map(len, lines)) <= 60 and lines[0].endswith("0.10")
    assert [("█" in line, "▒" in line) for line in lines] == [(True, False), (False, True)]


def test_a_saved_run_is_drawn(tmp_path, capsys):
    report.save(saved_run(add=0.5, mul=2.5), tmp_path / "run.json")
    assert main(["draw", str(tmp_path / "run.json"), "--rows", "add"]) == 0
    printed = capsys.readouterr().out
    assert "0.50" in printed and "mul" not in printed
    assert main(["draw", str(tmp_path / "run.json"), "--summary", "--chart", str(tmp_path / "c.svg"), "--theme", "dark"]) == 0
    assert svg.THEMES["dark"][0] in (tmp_path / "c.svg").read_text()
    with pytest.raises(SystemExit) as stopped:
        main(["draw", str(tmp_path / "run.json"), "--rows", "nothing"])
    assert stopped.value.code == 2


def test_two_saved_runs_are_compared(tmp_path, capsys):
    report.save(saved_run(add=1.0, mul=1.0, sub=1.0), tmp_path / "a.json")
    report.save(saved_run(add=2.0, mul=0.5, sub=1.01, new=1.0), tmp_path / "b.json")
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert main(["compare", *files]) == 0
    printed = capsys.readouterr().out
    assert "2.00" in printed and "0.50" in printed and "sub" not in printed
    assert "3 rows in both, geometric mean of B/A 1.00; 1 slower beyond noise" in printed
    assert main(["compare", *files, "--fail"]) == 1
    report.save(saved_run(other=1.0), tmp_path / "b.json")
    assert main(["compare", *files]) == 2


def test_a_shared_run_names_no_path_and_is_compared(tmp_path, capsys):
    run = saved_run(add=1.0)
    run["facts"]["environment"] = {"TENSORRT_LITE_CACHE": "/home/somebody/cache", "OMP_NUM_THREADS": "2"}
    run["facts"]["libraries"]["numpy"]["openmp_runtimes"] = ["/home/somebody/lib/libgomp.so.1"]
    shared = saved.shared(run, info.collect(), 0.5)
    text = json.dumps(shared)
    assert "somebody" not in text and "libgomp.so.1" in text and shared["facts"]["environment"]["OMP_NUM_THREADS"] == "2"
    assert str(Path.home()) not in text
    report.save(shared, tmp_path / "s.json")
    assert main(["compare", str(tmp_path / "s.json"), str(tmp_path / "s.json"), "--all"]) == 0
    assert "load average 0.5" in capsys.readouterr().out


def test_handicapping_variables_are_warned_about_and_can_be_dropped(monkeypatch, capsys):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert bench() == 0
    assert "OPENBLAS_CORETYPE=Haswell" in capsys.readouterr().err
    assert bench("--clean-environment") == 0
    assert "OPENBLAS_CORETYPE" not in capsys.readouterr().err


@pytest.mark.parametrize(("load", "warned"), [(0.0, False), (1e6, True)])
def test_a_busy_machine_is_warned_about(monkeypatch, capsys, load, warned):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    assert bench() == 0
    assert ("other processes are running" in capsys.readouterr().err) == warned


def test_two_openmp_runtimes_give_each_library_its_own_process(monkeypatch, capsys):
    paths = iter([["/a/libgomp.so.1"], ["/b/libgomp.so.1"]])
    monkeypatch.setattr(WorkerSide, "facts", lambda self: {"version": "1", "openmp_runtimes": next(paths)})
    sides, _ = cli._open_sides(["numpy", "math"], "auto", clean=False)
    for side in sides:
        side.close()
    assert all(isinstance(side, WorkerSide) for side in sides)
    assert "two OpenMP runtimes, so each library has its own process" in capsys.readouterr().err


def test_libraries_that_share_an_openmp_runtime_share_this_process(monkeypatch):
    shared = {"version": "1", "openmp_runtimes": ["/a/libgomp.so.1"]}
    monkeypatch.setattr(WorkerSide, "facts", lambda self: shared)
    sides, _ = cli._open_sides(["numpy", "math"], "auto", clean=False)
    assert all(isinstance(side, measure.LocalSide) for side in sides)


# facts about the machine


@pytest.mark.parametrize("name", ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_blas_and_thread_limits_are_handicaps(name):
    assert list(info.blas_handicaps({name: "1", "HOME": "/root"})) == [name]


def test_each_openmp_runtime_is_counted_once():
    maps = """\
7f00-7f01 r-xp 00000000 08:01 42      /site-packages/torch/lib/libgomp.so.1
7f01-7f02 r--p 00001000 08:01 42      /site-packages/torch/lib/libgomp.so.1
7f02-7f03 r-xp 00000000 08:01 43      /usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0
7f03-7f04 r-xp 00000000 08:01 44      /opt/a folder/libiomp5.so
7f04-7f05 r-xp 00000000 08:01 45      /usr/lib/x86_64-linux-gnu/libc.so.6
7f05-7f06 rw-p 00000000 00:00 0
"""
    assert info.openmp_runtimes(maps) == [
        "/opt/a folder/libiomp5.so",
        "/site-packages/torch/lib/libgomp.so.1",
        "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0",
    ]


def test_info_prints_what_the_build_says_of_itself(monkeypatch, capsys):
    monkeypatch.setattr(info, "build", lambda: {"compiler": "gcc 12.2", "debug": False, "instruction_set": "avx2"})
    assert info.main([]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["build"] == "compiler gcc 12.2"
    assert "instruction set  avx2" in {f"{key} {value}" for key, value in lines.items()}


def test_info_tolerates_a_build_that_says_nothing(monkeypatch, capsys):
    monkeypatch.setattr(info, "build", dict)
    assert info.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["build"] == {}


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 0), (["no-such-command"], 2)])
def test_the_command_explains_its_usage(arguments, status, capsys):
    from tensorrt_lite.__main__ import main

    assert main(arguments) == status
    captured = capsys.readouterr()
    assert "usage: tensorrt-lite" in captured.out + captured.err


def test_a_saved_run_names_no_folder_of_the_machine(tmp_path):
    path = tmp_path / "run.json"
    runtime = "/home/someone/env/lib/python3.11/site-packages/torch/lib/libgomp.so.1"
    report.save({"format": report.FORMAT, "facts": {"openmp_runtimes": [runtime, "/lib/libgomp.so.1"]}}, path)
    assert report.load(path)["facts"]["openmp_runtimes"] == ["site-packages/torch/lib/libgomp.so.1", "/lib/libgomp.so.1"]


# the page of tables


def test_a_page_of_tables_keeps_other_processors_and_other_suites(tmp_path):
    page = tmp_path / "performance.md"
    options = ["--library", "numpy", "--threads", "1", "--rows", NUMPY_ROW, "--rounds", "3", "--quick"]
    assert cli.main(["overhead", *options, "--markdown", str(page)]) == 0
    first = page.read_text()
    machine = markdown.processor(info.cpu(), info.build())
    assert f"## {machine}\n" in first and "### overhead" in first and "| add, 4 elements | 1 |" in first
    other = markdown.replaced(first, "Another processor", {"gemm": "### gemm\n\nof another day\n"})
    again = markdown.replaced(other, machine, {"conv": "### conv\n\nrows\n", "overhead": "### overhead\n\nmeasured again\n"})
    assert again.count("## Another processor\n\n### gemm\n\nof another day\n") == 1
    assert "### conv\n\nrows\n\n### overhead\n\nmeasured again\n" in again and "add, 4 elements" not in again
    assert again.startswith(markdown.INTRODUCTION) and markdown.replaced(again, machine, {}) == again


def test_a_table_says_its_date_versions_and_means():
    spread = {"median": 0.5, "q1": 0.4, "q3": 0.6}
    figures = {"ours": {"median": 1e-3}, "torch": {"median": 2e-3}}
    rows_of_run = [{"suite": "gemm", "name": "8x8", "threads": 1, "unit": "s", "figures": figures, "ratios": {"torch": spread}}]
    facts = {"libraries": {"ours": {"version": "1"}, "torch": {"version": "2"}}}
    run = {"library": "ours", "against": ["torch"], "facts": facts, "rows": rows_of_run}
    text = markdown.table(run, "gemm", datetime.date(2026, 1, 2), "bench gemm", 0.25)
    assert "*2026-01-02, ours 1, torch 2; load average 0.2.* `bench gemm`" in text
    assert "Geometric mean beside torch 0.50 over 1 rows, 0 of them above 1.05." in text
    assert "| 8x8 | 1 | 1.00 ms | 2.00 ms | 0.50 (0.40 to 0.60) |" in text

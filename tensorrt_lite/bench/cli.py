"""The command line of the benchmark runner: chooses rows, sides and processes, then prints, saves and judges.

Two OpenMP runtimes in one process cost milliseconds whenever work passes from one to the other, so libraries that do
not share one are measured in processes of their own, in turns (`worker`).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import info
from . import markdown, measure, report, rows, saved, svg
from .worker import WorkerSide
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_chart = _LazyModule("tensorrt_lite.bench.chart")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .measure import Plan, Result, Side
    from .rows import Row

_CHECK_RUNS = 3  # a row misses its budget when it does so in this many runs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorrt-lite bench",
        description="Measure the library, alone or beside others, round by round in turns.",
        epilog="tensorrt-lite bench draw RUN.json draws a saved run, tensorrt-lite bench compare A.json B.json compares two. exit status: 0 fine; 1 a row failed, got slower (--compare) or missed its budget (--check); 2 usage",
    )
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"of {', '.join(rows.SUITES)}, all when left out; or {', '.join(rows.SWEEPS)}, which looks for slow rows")
    parser.add_argument("--library", default="tensorrt_lite", metavar="NAME", help="library under test")
    parser.add_argument("--against", default="", metavar="NAMES", help="compare with these, as in torch,numpy")
    parser.add_argument("--threads", default=None, metavar="COUNTS", help="as in 1,2; all cores when left out")
    parser.add_argument("--rows", default=None, metavar="REGEX", help="only rows whose suite/name matches")
    parser.add_argument("--list", action="store_true", help="print the names of the chosen rows and measure nothing")
    parser.add_argument("--quick", action="store_true", help="few short rounds, without the slow rows")
    parser.add_argument("--rounds", type=int, default=None, metavar="N", help="rounds a row, instead of the plan's")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the run")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="keep a page of tables by processor, as docs/performance.md")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="list rows slower than in a saved run")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the ratios as an image: .svg, with matplotlib .png and others")
    parser.add_argument("--plot", action="store_true", help="draw the ratios in the terminal")
    parser.add_argument("--share", type=Path, metavar="FILE", help="save the run with the installation's facts and no paths, for `bench compare`")
    parser.add_argument("--above", type=float, metavar="RATIO", help="print only the rows above this ratio to the first library of --against, measured three times")
    parser.add_argument("--check", action="store_true", help="measure rows over their budget again, fail after three")
    parser.add_argument(
        "--isolate",
        choices=("auto", "always", "never"),
        default="auto",
        help="a process for each library; auto: when they bring different OpenMP runtimes",
    )
    parser.add_argument(
        "--clean-environment",
        action="store_true",
        help="run the libraries without the variables that handicap BLAS or threads (implies --isolate always)",
    )
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _thread_counts(text: str | None, parser: argparse.ArgumentParser) -> list[int]:
    if text is None:
        return [info.cpu()["cores"]]
    try:
        counts = [int(count) for count in _names(text)]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        parser.error(f"--threads wants positive numbers, as in 1,2; got {text!r}")
    return counts


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _open_sides(libraries: Sequence[str], isolate: str, clean: bool) -> tuple[list[Side], dict[str, Any]]:
    """The sides in the order of the libraries, and facts about each library's process."""
    if info.core_is_stale():
        _warn("tensorrt_lite's core was compiled from other sources than those of this checkout; build it before you measure")
    handicaps = info.blas_handicaps()
    environment = {name: value for name, value in os.environ.items() if not (clean and name in handicaps)}
    if not clean:
        for name, effect in handicaps.items():
            _warn(f"{name}={os.environ[name]} {effect}; --clean-environment measures without it")
    facts: dict[str, Any] = {}
    workers: list[WorkerSide] = []
    try:
        if clean or isolate == "always" or (isolate == "auto" and len(libraries) > 1):
            for name in libraries:
                workers.append(WorkerSide(name, environment))
                facts[name] = workers[-1].facts()
            runtimes = sorted({path for fact in facts.values() for path in fact["openmp_runtimes"]})
            if clean or isolate == "always" or len(runtimes) > 1:
                if len(runtimes) > 1:
                    _warn(f"two OpenMP runtimes, so each library has its own process: {', '.join(runtimes)}")
                return list(workers), facts
            for worker in workers:
                worker.close()
            workers.clear()
    except BaseException:
        for worker in workers:
            worker.close()
        raise
    sides = []
    for name in libraries:
        side = measure.LocalSide(name)
        side.load()
        facts[name] = {"version": str(getattr(side.module, "__version__", "unknown"))}
        sides.append(side)
    runtimes = info.openmp_runtimes()
    for name in libraries:
        facts[name]["openmp_runtimes"] = runtimes
    if len(runtimes) > 1:
        _warn(f"this process holds two OpenMP runtimes, which slows both: {', '.join(runtimes)}")
    return list(sides), facts


def _status_line(text: str) -> None:
    """What is being measured, on a terminal only, overwritten by the next."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def _measure(row: Row, sides: Sequence[Side], threads: int, plan: Plan, check: bool) -> tuple[Result, str]:
    """The row's result and, with `check`, what to say of its budget: an excess counts once it happened three times."""
    result = measure.measure(row, sides, threads, plan)
    if not check:
        return result, ""
    excess = report.over_limit(result)
    for _ in range(_CHECK_RUNS - 1):
        if excess is None:
            break
        result = measure.measure(row, sides, threads, plan)
        excess = report.over_limit(result)
    judged = row.limit is not None and "torch" in result.ratios
    return result, f"over: {excess}" if excess else "within" if judged else ""


def _ratio(result: Result, sides: Sequence[Side]) -> float:
    """The median ratio to the first library of --against; 0 where there is none."""
    spread = result.ratios.get(sides[1].name)
    return spread.median if spread is not None else 0.0


def _run_above(chosen: Sequence[Row], sides: Sequence[Side], counts: Sequence[int], plan: Plan, above: float) -> list[tuple[Result, str]]:
    """Measure every row, those above the ratio three times, and print and return those that stay above; the least of the three counts."""
    found, compared = [], 0
    for number, row in enumerate(chosen):
        for threads in counts:
            _status_line(f"[{number + 1} of {len(chosen)}] {row.key}, {threads} threads")
            result = measure.measure(row, sides, threads, plan)
            for _ in range(_CHECK_RUNS - 1):
                if _ratio(result, sides) <= above:
                    break
                result = min(result, measure.measure(row, sides, threads, plan), key=lambda r: _ratio(r, sides))
            compared += _ratio(result, sides) > 0
            if _ratio(result, sides) > above:
                found.append((result, ""))
    _status_line("")
    found.sort(key=lambda pair: -_ratio(pair[0], sides))
    if found:
        results, verdicts = zip(*found, strict=True)
        report.print_table(f"rows above {above:g}", results, [side.name for side in sides], verdicts)
    print(f"{compared} rows compared, {len(found)} above {above:g} of the time of {sides[1].name}")
    return found


def _run(
    chosen: Sequence[Row], sides: Sequence[Side], counts: Sequence[int], plan: Plan, check: bool
) -> list[tuple[Result, str]]:
    """Measure every row at every thread count, printing each suite's table when the suite is done."""
    libraries = [side.name for side in sides]
    done: list[tuple[Result, str]] = []
    for suite in dict.fromkeys(row.suite for row in chosen):
        first = len(done)
        for row in (row for row in chosen if row.suite == suite):
            # Thread counts mean nothing to what fresh interpreters do on import.
            for threads in counts[:1] if suite == "startup" else counts:
                _status_line(f"[{len(done) + 1}] {row.key}, {threads} threads")
                done.append(_measure(row, sides, threads, plan, check))
        _status_line("")
        results, verdicts = zip(*done[first:], strict=True)
        report.print_table(suite, results, libraries, verdicts)
        for result in results:
            for name, status in result.status.items():
                if status != "ok" and not status.endswith(rows.NO_COUNTERPART):
                    print(f"  {result.row.name} in {name}: {status}")
        sys.stdout.flush()
    return done


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["draw"]:
        return saved.draw(arguments[1:])
    if arguments[:1] == ["compare"]:
        return saved.compare(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        chosen = rows.load(options.suites or rows.SUITES, options.rows, options.quick)
        before = report.load(options.compare) if options.compare else None
    except (ValueError, re.error) as error:
        parser.error(str(error))
    if not chosen:
        parser.error("no row matches")
    if options.list:
        print("\n".join(row.key for row in chosen))
        return 0
    libraries = [options.library, *_names(options.against)]
    if len(set(libraries)) != len(libraries):
        parser.error("a library is named twice")
    if options.above is not None and len(libraries) == 1:
        parser.error("--above compares: name a library with --against")
    if (options.chart or options.plot) and len(libraries) == 1:
        parser.error(f"--{'chart' if options.chart else 'plot'} shows ratios: name a library with --against")
    plan = measure.QUICK if options.quick else measure.Plan()
    if options.rounds is not None:
        if options.rounds < 1:
            parser.error("--rounds wants a positive number")
        plan = measure.Plan(plan.block, options.rounds, options.rounds, plan.budget)
    counts = _thread_counts(options.threads, parser)

    load, cores = os.getloadavg()[0], info.cpu()["cores"]
    if load > cores / 2:
        _warn(f"load {load:.1f} on {cores} cores: other processes are running, and rows with several threads suffer most")
    try:
        sides, facts = _open_sides(libraries, options.isolate, options.clean_environment)
    except (ImportError, RuntimeError) as error:
        name = next((name for name in libraries[1:] if name in str(error)), None)
        _warn(f"cannot load {name or 'a library'} ({error})" + (f": pip install {name}, or leave it out of --against" if name else ""))
        return 2
    try:
        done = _run(chosen, sides, counts, plan, options.check) if options.above is None else _run_above(chosen, sides, counts, plan, options.above)
    except KeyboardInterrupt:
        _status_line("")
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        for side in sides:
            side.close()
    return _conclude(options, done, libraries, facts, before, load)


def _conclude(
    options: argparse.Namespace,
    done: Sequence[tuple[Result, str]],
    libraries: Sequence[str],
    facts: dict[str, Any],
    before: dict[str, Any] | None,
    load: float,
) -> int:
    """Write the files, print what is wrong, and turn it into the exit status."""
    results = [result for result, _ in done]
    run = report.as_json(results, libraries, {"libraries": facts, **_machine(options.clean_environment)})
    status = 0
    if options.json:
        report.save(run, options.json)
    if options.markdown:
        machine = markdown.processor(info.cpu(), info.build())
        markdown.write(run, options.markdown, machine, _command(options), load)
    if options.chart:
        try:
            _chart.draw(run, options.chart)
        except ValueError as error:
            _warn(str(error))
            status = 1
        except ImportError as error:
            _warn(f"{options.chart.suffix} needs matplotlib ({error}); .svg does not")
            status = 1
    if options.share:
        report.save(saved.shared(run, info.collect(), load), options.share)
    if options.plot and (bars := svg.bars(run["rows"], libraries[1])):
        print(f"\ntime of {libraries[0]} over time of {libraries[1]}; left of the line is faster")
        print("\n".join(svg.lines(bars, shutil.get_terminal_size((80, 24)).columns)))
    failed = [result for result in results if any(text.startswith("failed") for text in result.status.values())]
    if failed:
        print(f"\n{len(failed)} rows failed")
        status = 1
    missing = sum(result.status[libraries[0]].startswith("missing") for result in results)
    if missing:
        print(f"\n{missing} rows are missing in {libraries[0]}")
    if options.check and (over := [result for result, verdict in done if verdict.startswith("over")]):
        print(f"\n{len(over)} rows missed their budget in {_CHECK_RUNS} runs")
        status = 1
    if before is not None:
        regressions = report.slower(before, run)
        print(f"\n{len(regressions)} rows slower than in {options.compare}")
        for line in regressions:
            print(f"  {line}")
        status = 1 if regressions else status
    return status


def _command(options: argparse.Namespace) -> str:
    """What chose the rows and how they were measured, as it is typed."""
    words = ["tensorrt-lite bench", *options.suites]
    words += [f"--{name} {value}" for name in ("against", "threads", "rows", "rounds") if (value := getattr(options, name))]
    return " ".join([*words, *["--quick"] * options.quick])


def _machine(clean: bool) -> dict[str, Any]:
    environment = {} if clean else info.relevant_environment()
    return {"cpu": info.cpu(), "python": platform.python_version(), "environment": environment}

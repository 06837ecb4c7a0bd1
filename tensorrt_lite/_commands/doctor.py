"""The command `tensorrt-lite doctor`: what of this installation, process and machine makes programs slow or lets libraries disturb each other.

Each check reads facts (`info.collect`) or files of the operating system below `root`, so that tests can hand over others, and returns findings.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module as _import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_info = _LazyModule("tensorrt_lite.info")

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MB = 1 << 20


class Finding(NamedTuple):
    """What was found: "slow" (fix it), "note" (know it) or "fine"; a sentence; what to do."""

    level: str
    what: str
    advice: str = ""


def _read(root: Path, path: str) -> str | None:
    try:
        return (root / path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def core(facts: Mapping[str, Any]) -> Iterable[Finding]:
    """The compiled core: there, not a debug build, with the loops that the processor could run."""
    build = facts["build"]
    if not build:
        yield Finding("slow", "there is no compiled core", "build it: pip install . in a checkout")
        return
    if build.get("stale"):
        yield Finding("slow", "the core was compiled from other sources than those of this checkout", "build it again: pip install -e .")
    if build.get("debug"):
        yield Finding("slow", "the core is a debug build, which checks every index", "build it without TENSORRT_LITE_DEBUG")
    chosen, features = build.get("instruction_set"), facts["cpu"]["features"]
    best = "avx512" if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(features) else "avx2" if {"avx2", "fma"} <= set(features) else None
    if best and chosen in ("base", "avx2") and chosen != best:
        cause = (
            "TENSORRT_LITE_ISA is set"
            if "TENSORRT_LITE_ISA" in facts["environment"]
            else f"the core has loops for {', '.join(build.get('instruction_sets', [chosen]))} alone"
        )
        yield Finding(
            "slow", f"loops for {chosen} run on a processor with {best}: {cause}", "unset TENSORRT_LITE_ISA, or build without TENSORRT_LITE_NATIVE"
        )
    else:
        yield Finding("fine", f"loops for {chosen}")


def variables(facts: Mapping[str, Any]) -> Iterable[Finding]:
    """Variables that force kernels for another processor or limit threads, in BLAS and OpenMP."""
    environment = facts["environment"]
    for name, effect in facts["handicaps"].items():
        value = environment.get(name, "")
        level = "note" if re.match(r"(OMP|OPENBLAS|GOTO|MKL)_(NUM_THREADS|THREAD_LIMIT|DYNAMIC)|OMP_WAIT_POLICY|GOMP_SPINCOUNT", name) else "slow"
        yield Finding(level, f"{name}={value} {effect}", f"unset {name}, unless this is meant")
    threads = environment.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) > facts["cpu"]["cores"]:
        yield Finding(
            "slow",
            f"OMP_NUM_THREADS={threads} on {facts['cpu']['cores']} cores: threads wait for each other",
            f"OMP_NUM_THREADS={facts['cpu']['cores']}",
        )
    if environment.get("OMP_WAIT_POLICY", "").lower() == "active":
        yield Finding("slow", "OMP_WAIT_POLICY=active: idle threads keep their cores busy", "unset it where anything else runs")
    if not facts["handicaps"]:
        yield Finding("fine", "no variable limits BLAS, OpenMP or loops")


def openmp(facts: Mapping[str, Any]) -> Iterable[Finding]:
    """Several OpenMP runtimes in one process, each with a pool of threads on the same cores."""
    runtimes = facts["openmp"]["runtimes"]
    if len(runtimes) > 1:
        yield Finding(
            "slow",
            f"this process holds {len(runtimes)} OpenMP runtimes: {', '.join(runtimes)}",
            "import the package that brings its own (scikit-learn, PyTorch before 2.10) before the first operator, or set OMP_WAIT_POLICY=passive",
        )
    else:
        yield Finding("fine", f"OpenMP runtime: {runtimes[0] if runtimes else 'not loaded yet'}")


def limits(facts: Mapping[str, Any], root: Path) -> Iterable[Finding]:
    """What a container grants: processor time below the cores that are seen, memory, the size of /dev/shm."""
    cores, threads = facts["cpu"]["cores"], facts["openmp"]["threads"] or facts["cpu"]["cores"]
    granted = _cpu_limit(root)
    if granted is not None and granted < threads:
        whole = max(int(granted), 1)
        yield Finding(
            "slow",
            f"the container grants the time of {granted:g} cores, {cores} are seen and {threads} threads run: they are stopped in the middle of operators",
            f"OMP_NUM_THREADS={whole}, or set_num_threads({whole})",
        )
    elif granted is not None:
        yield Finding("fine", f"the container grants the time of {granted:g} cores for {threads} threads")
    memory = _read(root, "sys/fs/cgroup/memory.max") or _read(root, "sys/fs/cgroup/memory/memory.limit_in_bytes")
    total = re.search(r"MemTotal:\s+(\d+) kB", _read(root, "proc/meminfo") or "")
    if memory and memory.isdigit() and total and int(memory) < int(total[1]) * 1024:
        yield Finding(
            "note", f"the container grants {int(memory) // _MB} MB of memory: a process that needs more is ended without a Python error", ""
        )
    if root == Path("/") and os.path.isdir("/dev/shm"):
        space = os.statvfs("/dev/shm")
        size = space.f_frsize * space.f_blocks
        if size <= 64 * _MB:
            yield Finding(
                "slow",
                f"/dev/shm has {size // _MB} MB, through which DataLoader's workers pass batches",
                "docker run --shm-size=1g (or --ipc=host), or worker_threads=True",
            )


def _cpu_limit(root: Path) -> float | None:
    """Cores whose time the control group grants (both versions); None where it limits nothing."""
    second = (_read(root, "sys/fs/cgroup/cpu.max") or "").split()
    if len(second) == 2 and second[0].isdigit():
        return int(second[0]) / int(second[1])
    quota, period = (_read(root, f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota and period and quota.isdigit() and int(period):
        return int(quota) / int(period)
    return None


def machine(facts: Mapping[str, Any], root: Path) -> Iterable[Finding]:
    """Huge pages, the processor's clock, other processes on the cores."""
    pages = re.search(r"\[(\w+)\]", _read(root, "sys/kernel/mm/transparent_hugepage/enabled") or "")
    if pages and pages[1] == "never":
        yield Finding(
            "slow",
            "huge pages are off: fresh large tensors cost a page fault for every 4 kB",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    elif pages:
        yield Finding("fine", f"huge pages: {pages[1]}")
    governor = _read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor == "powersave" and not _read(root, "sys/devices/system/cpu/intel_pstate/status"):
        yield Finding("slow", "the processor's clock is kept low (governor powersave)", "sudo cpupower frequency-set -g performance")
    load = float((_read(root, "proc/loadavg") or "0").split()[0])
    cores = facts["cpu"]["cores"]
    if load > cores / 2:
        yield Finding(
            "note",
            f"load {load:.1f} on {cores} cores: other processes are running, and work that is split among threads waits for the slowest",
            "set_num_threads(1) is often faster until they end; measure when they have",
        )
    lost = facts["openmp"].get("shared", {}).get("lost", 0)
    if lost:
        yield Finding("note", f"{lost} regions that were split just now took longer than one thread would have", "")


def findings(facts: Mapping[str, Any], root: Path = Path("/")) -> list[Finding]:
    """All findings about these facts (those of `info.collect`) and the machine below root."""
    return [*core(facts), *variables(facts), *openmp(facts), *limits(facts, root), *machine(facts, root)]


def main(argv: list[str]) -> int:
    """`tensorrt-lite doctor [--json] [MODULE ...]`: print the findings; the exit status: 1 where something makes programs slow."""
    import argparse
    import json

    parser = argparse.ArgumentParser(
        prog="tensorrt-lite doctor",
        description="Tell what makes programs slow here, and what to do about it.",
        epilog="exit status: 0 nothing; 1 something; 2 usage",
    )
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="import these first, as your program does (sklearn torch), to see what they bring along"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of lines")
    options = parser.parse_args(argv)
    try:
        for name in options.modules:
            _import_module(name)
    except ImportError as error:
        parser.error(str(error))

    found = findings(_info.collect())
    slow = [f for f in found if f.level == "slow"]
    if options.json:
        print(json.dumps([f._asdict() for f in found], indent=2))
    else:
        for f in sorted(found, key=lambda f: ("slow", "note", "fine").index(f.level)):
            print(f"{f.level:<5} {f.what}" + (f"\n      -> {f.advice}" if f.advice else ""))
        print(f"\n{len(slow)} to fix" if slow else "\nnothing to fix", file=sys.stdout)
    return 1 if slow else 0

"""What this installation is and what it runs on: the facts behind `tensorrt-lite info`.

Reads the operating system's files and the compiled core's build record; computes nothing but a probe of some milliseconds, whether
the cores are shared. The benchmark runner uses
`blas_handicaps` and `openmp_runtimes` to judge whether a comparison is fair. Importing this module loads nothing heavy.

The compiled core supplies `tensorrt_lite._build_info() -> dict`, every key optional: `compiler` (str), `debug` (bool),
`sources` (str, the digest of what was compiled),
`instruction_set` (str, the loops chosen at import), `instruction_sets` (list of str, the loops compiled in),
`bfloat16_products` (str, the kernel: tiles of AMX, pairs of AVX512-BF16, or widened to float32), `blas`
(dict: library, config, core, threads), `openmp_threads` (int), `openmp_runtime` (str, the file in use), `cuda` (dict:
available, driver, devices).
"""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import import_module as _import_module
from importlib import metadata as _metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Instruction sets that decide which loops and which BLAS kernels can run.
_CPU_FEATURES = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni",
    "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd", "asimdhp", "bf16", "sve",
)  # fmt: skip

# Variables that can change what is measured: (name pattern, what it does).
_VARIABLES: tuple[tuple[str, str], ...] = (
    (r"OPENBLAS_CORETYPE", "forces OpenBLAS kernels for another CPU"),
    (r"OPENBLAS_L2_SIZE", "overrides the cache size that OpenBLAS blocks for"),
    (r"(OPENBLAS|GOTO)_NUM_THREADS", "limits BLAS threads"),
    (r"MKL_(NUM_THREADS|DYNAMIC)", "limits MKL threads"),
    (r"MKL_(ENABLE_INSTRUCTIONS|DEBUG_CPU_TYPE|CBWR)", "forces MKL kernels for another CPU"),
    (r"ONEDNN_MAX_CPU_ISA|DNNL_MAX_CPU_ISA", "forces oneDNN kernels for another CPU"),
    (r"ATEN_CPU_CAPABILITY", "forces PyTorch's loops for another CPU"),
    (r"OMP_(NUM_THREADS|THREAD_LIMIT|DYNAMIC)", "limits OpenMP threads"),
    (r"OMP_(PROC_BIND|PLACES)|GOMP_CPU_AFFINITY|KMP_AFFINITY", "pins OpenMP threads to cores"),
    (r"OMP_WAIT_POLICY|GOMP_SPINCOUNT|KMP_BLOCKTIME", "changes how idle OpenMP threads wait"),
    (r"NPY_DISABLE_CPU_FEATURES", "turns NumPy's vector loops off"),
)

_OPENMP_LIBRARY = re.compile(r"/lib(?:gomp|iomp5|omp)[^/]*\.so[^/]*$")


def version() -> str:
    """The version of the installed package, or `unknown` when its metadata is absent."""
    try:
        return _metadata.version("tensorrt_lite")
    except _metadata.PackageNotFoundError:
        return "unknown"


def relevant_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every variable that is set and changes threads, kernels or the package's own behaviour, by name."""
    environ = os.environ if environ is None else environ
    known = re.compile("|".join(f"(?:{pattern})" for pattern, _ in _VARIABLES))
    return {
        name: value
        for name, value in sorted(environ.items())
        if known.fullmatch(name) or name.startswith("TENSORRT_LITE_") or name == "CUDA_VISIBLE_DEVICES"
    }


def blas_handicaps(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that are set and slow BLAS or loops down unseen, with the effect of each."""
    environ = os.environ if environ is None else environ
    return {
        name: effect
        for pattern, effect in _VARIABLES
        for name in sorted(environ)
        if re.fullmatch(pattern, name) and environ[name] != ""
    }


def openmp_runtimes(maps: str | None = None) -> list[str]:
    """Paths of the OpenMP runtimes mapped into this process; `maps` stands in for the text of /proc/self/maps."""
    if maps is None:
        try:
            with open("/proc/self/maps") as file:
                maps = file.read()
        except OSError:
            return []
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count(" ") >= 5 and "/" in line}
    return sorted(path for path in paths if _OPENMP_LIBRARY.search(path))


def cpu() -> dict[str, Any]:
    """The processor: model, cores this process may use, and the vector features that matter here."""
    model, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    model = value.strip()
                elif key.strip() in ("flags", "Features"):
                    flags = set(value.split())
                    break
    except OSError:
        pass
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return {
        "model": model,
        "cores": cores,
        "features": [feature for feature in _CPU_FEATURES if feature in flags],
    }


def build() -> dict[str, Any]:
    """The compiled core's record of itself; empty when the package is without one."""
    package = sys.modules.get("tensorrt_lite")
    supplied = getattr(package, "_build_info", None)
    return dict(supplied()) if callable(supplied) else {}


def core_is_stale(root: Path | None = None) -> bool:
    """Whether the core was compiled from other sources than those in `root`, the folder that the package lies in; False where it holds no sources."""
    from importlib.util import module_from_spec, spec_from_file_location

    root = Path(__file__).resolve().parent.parent if root is None else root
    compiled = build().get("sources")
    script = root / "tools" / "core_sources.py"
    spec = spec_from_file_location("tensorrt_lite_core_sources", script)
    if compiled is None or spec is None or spec.loader is None or not (script.is_file() and (root / "cysrc").is_dir()):
        return False
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return bool(module.core_sources_digest(root) != compiled)


def shared_cores() -> dict[str, Any]:
    """Whether other processes have the cores that operators would use: what `core.parallel.shared_cores` counts, after a probe.

    Work that was split and took longer than one thread would have is not split for a while; results are the same.
    """
    try:
        parallel = _import_module("tensorrt_lite._C.core.parallel")
    except ImportError:
        return {}
    return dict(parallel.probe_cores(20)) if parallel.get_num_threads() > 1 else {}


def collect() -> dict[str, Any]:
    """Everything `tensorrt-lite info` tells, as one dictionary that JSON can hold."""
    record = build()
    if record.pop("sources", None) is not None and core_is_stale():
        record["stale"] = True
    package = sys.modules.get("tensorrt_lite")
    threads = record.pop("openmp_threads", None)
    get_num_threads = getattr(package, "get_num_threads", None)
    if threads is None and get_num_threads is not None:
        threads = get_num_threads()
    cuda = record.pop("cuda", None)
    if cuda is None:
        module = getattr(package, "cuda", None)
        cuda = {"available": bool(module is not None and module.is_available())}
    return {
        "version": version(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()).strip()}",
        "cpu": cpu(),
        "blas": record.pop("blas", {}),
        "openmp": {"threads": threads, "runtime": record.pop("openmp_runtime", None), "runtimes": openmp_runtimes(), "shared": shared_cores()},
        "cuda": cuda,
        "build": record,
        "environment": relevant_environment(),
        "handicaps": blas_handicaps(),
    }


def _sharing(figures: Mapping[str, Any]) -> str:
    if not figures:
        return "one thread"
    regions = figures["split"] + figures["serial"]
    if not figures["lost"]:
        return f"no ({figures['split']} of {regions} regions were split, none lost time)"
    return f"yes ({figures['lost']} of {figures['split']} split regions lost time, {figures['serial']} ran in one thread; last pause {figures['pause'] * 1e3:.0f} ms)"


def _blas_lines(blas: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The library's version, kernels and threads, and its file."""
    if not blas:
        return [("blas", "unknown")]
    version = " ".join(str(blas.get("config", "OpenBLAS")).split()[:2])
    return [("blas", f"{version}, kernels for {blas.get('core')}, {blas.get('threads')} threads"), ("blas library", str(blas.get("library")))]


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    def joined(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {joined(item)}" for key, item in value.items()) or "unknown"
        if isinstance(value, (list, tuple)):
            return ", ".join(str(item) for item in value) or "none"
        return "unknown" if value is None else str(value)

    processor, record = facts["cpu"], dict(facts["build"])
    chosen, products = record.pop("instruction_set", None), record.pop("bfloat16_products", None)
    lines = [
        ("version", facts["version"]),
        ("build", joined({"compiler": record.pop("compiler", None), **({"debug": True} if record.pop("debug", None) else {}), **record})),
        ("python", facts["python"]),
        ("system", facts["system"]),
        ("cpu", f"{processor['model']}, {processor['cores']} cores"),
        ("cpu features", joined(processor["features"])),
        ("instruction set", joined(chosen)),
        ("bf16 products", joined(products)),
        *_blas_lines(facts["blas"]),
        ("openmp threads", joined(facts["openmp"]["threads"])),
        ("openmp runtime", joined(facts["openmp"]["runtime"])),
        ("openmp runtimes", joined(facts["openmp"]["runtimes"])),
        ("shared cores", _sharing(facts["openmp"].get("shared", {}))),
        ("cuda", joined(facts["cuda"])),
    ]
    for name, value in facts["environment"].items():
        effect = facts["handicaps"].get(name)
        lines.append(("environment", f"{name}={value}" + (f" ({effect})" if effect else "")))
    return lines


def main(argv: list[str] | None = None) -> int:
    """`tensorrt-lite info [--json]`: print the facts, one to a line; the exit status."""
    import argparse
    import json

    parser = argparse.ArgumentParser(prog="tensorrt-lite info", description="Show the build, CPU, BLAS, threads and CUDA.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    options = parser.parse_args(argv)
    facts = collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in _lines(facts):
            print(f"{name:<16} {value}")
    return 0

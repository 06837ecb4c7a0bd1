"""One OpenMP runtime serves the process: beside PyTorch and scikit-learn in any order of imports, from the system or from the wheel.

Tests run in processes of their own. TENSORRT_LITE_WHEEL names a wheel to test in place of the package at hand.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tensorrt_lite as trt

USE = """
import tensorrt_lite as trt
from tensorrt_lite._C.core.parallel import runtime
from tensorrt_lite.info import openmp_runtimes
trt.set_num_threads(2)
a = trt.ones(300, 1000)
assert (a + a).sum().item() == 600000 and (a @ a.T)[7, 9].item() == 1000
"""
# Two pools, or one that is made anew whenever the libraries take turns, would show in the threads of the process.
SWITCH = """
import os, torch
torch.set_num_threads(2)
ta, tb, tc = torch.ones(100000), torch.ones(100000), torch.empty(100000)
a, b, c = trt.ones(100000), trt.ones(100000), trt.empty(100000)
def theirs(): torch.add(ta, tb, out=tc)
def ours(): trt.add(a, b, out=c)
def threads(): return set(os.listdir("/proc/self/task"))
theirs()
alone = threads()
ours()
assert threads() == alone, (alone, threads())
for _ in range(200):
    theirs()
    ours()
assert threads() == alone, (alone, threads())
"""
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")


@pytest.fixture(scope="session")
def package(tmp_path_factory) -> Path:
    """The folder that holds the package under test."""
    wheel = os.environ.get("TENSORRT_LITE_WHEEL")
    if not wheel:
        return Path(trt.__file__).parent.parent
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(code: str, package: Path, succeeds: bool = True, **environment: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    result = subprocess.run([sys.executable, "-c", code], env={**clean, "PYTHONPATH": str(package), **environment}, cwd=package,
                            capture_output=True, text=True, timeout=300)  # fmt: skip
    assert (result.returncode == 0) == succeeds, result.stderr
    return result.stdout if succeeds else result.stderr


def with_runtime_beside(package: Path, folder: Path) -> Path:
    """A copy of the package, of links, that brings an OpenMP runtime as wheels do; the folder it lies in."""
    inner = folder / "tensorrt_lite" / "_C"
    inner.mkdir(parents=True)
    for source, target in ((package / "tensorrt_lite", folder / "tensorrt_lite"), (package / "tensorrt_lite" / "_C", inner)):
        for entry in source.iterdir():
            if entry.name not in ("_C", "libgomp.so.1"):
                (target / entry.name).symlink_to(entry)
    shutil.copyfile(run(USE + "print(runtime(), end='')", package), inner / "libgomp.so.1")
    return folder


def broken_system(folder: Path) -> str:
    """A folder for LD_LIBRARY_PATH with which the loader finds no libgomp that it can open."""
    (folder / "lib").mkdir()
    (folder / "lib" / "libgomp.so.1").touch()
    return str(folder / "lib")


def test_import_opens_no_runtime(package):
    code = "import tensorrt_lite as trt\nfrom tensorrt_lite.info import openmp_runtimes\nprint(openmp_runtimes(), trt.get_num_threads() > 0)"
    assert run(code, package) == "[] True\n"


@needs_torch
@pytest.mark.parametrize("first", ["import torch", "import tensorrt_lite; import torch", USE + "import torch"], ids=["torch", "ours", "ours, used"])
def test_one_runtime_beside_pytorch(package, first):
    """PyTorch's wheel has libgomp under its own soname: the loader gives both libraries the one that came first."""
    code = f"{first}\n{USE}\n{SWITCH}\nassert openmp_runtimes() == [runtime()], openmp_runtimes()"
    run(code, package)


@needs_sklearn
@pytest.mark.parametrize("order", ["sklearn.cluster, tensorrt_lite", "tensorrt_lite, sklearn.cluster"])
def test_a_renamed_runtime_is_shared(package, order):
    """scikit-learn's wheel has libgomp under another name, which the loader does not take for ours."""
    run(f"import {order}\n{USE}\nassert openmp_runtimes() == [runtime()], openmp_runtimes()", package)


def test_the_wheels_runtime_where_the_system_has_none(package, tmp_path):
    folder = with_runtime_beside(package, tmp_path)
    path = run(USE + "print(runtime(), end='')", folder, LD_LIBRARY_PATH=broken_system(tmp_path))
    assert path == str(folder / "tensorrt_lite" / "_C" / "libgomp.so.1")


def test_the_systems_runtime_before_the_wheels(package, tmp_path):
    assert str(tmp_path) not in run(USE + "print(runtime(), end='')", with_runtime_beside(package, tmp_path))


@pytest.mark.skipif("TENSORRT_LITE_WHEEL" in os.environ, reason="a wheel has a runtime")
def test_import_fails_without_any_runtime(package, tmp_path):
    assert "ImportError: tensorrt_lite needs an OpenMP runtime" in run(USE, package, succeeds=False, LD_LIBRARY_PATH=broken_system(tmp_path))


@pytest.mark.parametrize("value, threads", [("3", 3), ("5,2", 5), (" 2 ", 2), ("0", None), ("-1", None), ("many", None), ("", None)])
def test_threads_by_the_environment(package, value, threads):
    told = int(run("import tensorrt_lite as trt\nprint(trt.get_num_threads())", package, OMP_NUM_THREADS=value))
    assert told == (threads or len(os.sched_getaffinity(0)))


def test_pytorchs_thread_count_is_its_own(package):
    pytest.importorskip("torch")
    run("import torch, tensorrt_lite\ntorch.set_num_threads(1)\n" + USE + "assert trt.get_num_threads() == 2 and torch.get_num_threads() == 1", package)


def test_a_forked_child_that_opens_nothing(package):
    code = "import os, tensorrt_lite as trt\nif os.fork() == 0:\n    os._exit(int((trt.ones(10**6) * 2).sum().item() != 2e6) + int(trt.get_num_threads() != 1))\n"
    run(code + "assert os.wait()[1] == 0", package)

"""Builds the extension modules with tools/build_core.py; everything else about the package is in pyproject.toml."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


def shared_cache():
    """The folder of TENSORRT_LITE_CACHE for results of this Cython and this compiler: wheels of several Pythons share what they can."""
    if not os.environ.get("TENSORRT_LITE_CACHE"):
        return None
    import Cython

    compiler = subprocess.run([*os.environ.get("CC", "gcc").split(), "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return Path(os.environ["TENSORRT_LITE_CACHE"]).resolve() / f"cython-{Cython.__version__}-gcc-{compiler}"


class BuildCore(build_ext):
    """The whole core in one step: the builder knows the modules, setuptools only where they go."""

    def run(self):
        from tools.build_core import Builder

        target = ROOT if self.inplace else Path(self.build_lib).resolve()
        debug = os.environ.get("TENSORRT_LITE_DEBUG", "") not in ("", "0")
        Builder(ROOT / "build" / ("debug" if debug else "core"), target, cache=shared_cache()).run()

    def get_outputs(self):
        return [str(p) for p in (Path(self.build_lib) / "tensorrt_lite" / "_C").rglob("*") if p.is_file()]

    def get_output_mapping(self):
        return {}


setup(distclass=BinaryDistribution, ext_modules=[Extension("tensorrt_lite._C", [])], cmdclass={"build_ext": BuildCore})

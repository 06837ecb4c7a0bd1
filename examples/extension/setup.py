"""Builds the example as an installable package: `pip install --no-build-isolation .` in this folder."""

from setuptools import setup

from tensorrt_lite.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="tensorrt-lite-extension-example",
    version="1.0",
    ext_modules=[CppExtension("silu_mul", ["silu_mul.cpp"]), CppExtension("runs", ["runs.pyx"])],
    py_modules=[],
    cmdclass={"build_ext": BuildExtension},
)

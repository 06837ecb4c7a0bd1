"""Does what docs/contributing.md says, in a copy of the checkout: `python -m tools.try_contributing FOLDER`.

Blocks whose first line names a file are appended to it or begin it, the core is built there (from this checkout's objects where it was built), and the programs
run with what they print compared with their comments; those marked `cuda` run on the emulator.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "contributing.md"


def additions(text: str) -> list[tuple[str, str]]:
    """(file, what is appended to it), in the order of the text."""
    return re.findall(r"^```\w+ (\S+/\S+)\n(.*?)^```$", text, re.S | re.M)


def programs(text: str) -> list[tuple[str, str]]:
    """(device, Python program) of the text; the device is empty or `cuda`."""
    return re.findall(r"^```python ?(cuda)?\n(.*?)^```$", text, re.S | re.M)


def apply(folder: Path) -> list[str]:
    """Append the blocks to the files below a folder, which a block may begin; the files."""
    changed = []
    for name, block in additions(DOCUMENT.read_text(encoding="utf-8")):
        path = folder / name
        gap = "\n\n" if path.suffix != ".yaml" else ""
        before = path.read_text(encoding="utf-8").rstrip() + "\n" + gap if path.exists() else ""
        path.write_text(before + block, encoding="utf-8")
        changed.append(name)
    return changed


def copy_checkout(folder: Path) -> None:
    """Tracked files, and what was built from them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for built in ("build/core", "tensorrt_lite/_C"):
        if (ROOT / built).exists():
            shutil.copytree(ROOT / built, folder / built, symlinks=True, dirs_exist_ok=True)
    for link in (folder / "build").rglob("*"):
        if link.is_symlink() and link.readlink().is_absolute() and ROOT in link.readlink().parents:
            target = folder / link.readlink().relative_to(ROOT)
            link.unlink()
            link.symlink_to(target)


def main(arguments: list[str]) -> int:
    """Copy, append, build, run."""
    if len(arguments) != 1 or Path(arguments[0]).exists():
        print("usage: python -m tools.try_contributing NEW_FOLDER", file=sys.stderr)
        return 2
    folder, start = Path(arguments[0]).resolve(), time.monotonic()
    copy_checkout(folder)
    print("changed:", *apply(folder))
    subprocess.run([sys.executable, "-m", "tools.build_core"], cwd=folder, check=True)
    print(f"built after {time.monotonic() - start:.0f} s")
    for device, program in programs(DOCUMENT.read_text(encoding="utf-8")):
        environment = os.environ | ({"TENSORRT_LITE_CUDA": "emulate"} if device else {})
        expected = re.findall(r"^print\(.*\)  # (.*)$", program, re.M)
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True)
        if done.stdout.splitlines() != expected:
            print(f"expected {expected}, printed {done.stdout.splitlines()}\n{done.stderr}", file=sys.stderr)
            return 1
    print(f"done after {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the builder refuses before it compiles, what it leaves behind, and which interpreters the wheel tool takes."""

from __future__ import annotations

import fcntl
import random
import sys
import zipfile
from pathlib import Path

import pytest

build_core = pytest.importorskip("tools.build_core", reason="an installed package has no builder")


def test_an_older_python_than_the_package_takes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit, match="it is Python 3.10, and the package needs 3.11 or newer"):
        build_core.Builder(tmp_path / "build", tmp_path).run()
    assert not list(tmp_path.iterdir())
    assert 'requires-python = ">=3.11"' in (Path(build_core.__file__).parents[1] / "pyproject.toml").read_text()


def test_a_second_build_of_a_folder_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    builder = build_core.Builder(tmp_path / "build", tmp_path)

    def others_would_wait() -> None:
        with open(tmp_path / "build" / "lock") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr(builder, "build_all", others_would_wait)
    builder.run()
    with open(tmp_path / "build" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_absent_interpreters_are_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    from tools.wheels.__main__ import present

    assert present([sys.executable, "/nowhere/python3.99"]) == [sys.executable]
    assert capsys.readouterr().out == "/nowhere/python3.99: not there, left out\n"


def test_archives_that_are_deflated_again_have_the_same_members(tmp_path: Path) -> None:
    pytest.importorskip("zopfli")
    from tools.wheels.__main__ import deflated

    rng = random.Random(0)
    members = {"a/b.so": bytes(rng.choices(range(40), k=50_000)), "a/c.py": b"x = 1\n" * 100, "a/empty.so": b"", "d/": b""}
    with zipfile.ZipFile(tmp_path / "one.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
            info.external_attr = 0o755 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    made = deflated(tmp_path / "one.whl", tmp_path / "two.whl")
    with zipfile.ZipFile(tmp_path / "one.whl") as one, zipfile.ZipFile(made) as two:
        assert two.testzip() is None
        assert {n: two.read(n) for n in two.namelist()} == members
        assert [(m.date_time, m.external_attr) for m in two.infolist()] == [(m.date_time, m.external_attr) for m in one.infolist()]
        assert two.getinfo("a/b.so").compress_size < one.getinfo("a/b.so").compress_size


def test_a_failed_translation_leaves_nothing_that_an_older_stamp_vouches_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cython writes a file of one line when it fails; with the mistake undone, the text is that of the last success."""
    builder = build_core.Builder(tmp_path, tmp_path)
    output = tmp_path / "module.c"

    def translate(label: str, arguments: list[str]) -> None:
        output.write_text("#include \"Python.h\"\n/* AddTraceback.proto */\nstatic void __Pyx_AddTraceback(int);\n/* AddTraceback */\n" if good else "#error Do not use this file\n")
        if not good:
            raise build_core.CompileError(label)

    monkeypatch.setattr(builder, "translate", translate)
    good = True
    builder.cython("cython module", [], output, "right")
    good = False
    with pytest.raises(build_core.CompileError):
        builder.cython("cython module", [], output, "wrong")
    assert not output.exists()
    good = True
    builder.cython("cython module", [], output, "right")
    assert "AddTraceback" in output.read_text()


def test_files_that_the_sources_lack_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "kept.pxd").write_text("new")
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "gone.pxd").write_text("old")
    build_core.copy_only(folder, [tmp_path / "kept.pxd"])
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("kept.pxd", "new")]


@pytest.mark.parametrize("mistake, message", [("return undeclared(x);", "implicit declaration of function"), ("char* p = x; return p != 0;", "makes pointer from integer")])
def test_mistakes_that_c_forbids_stop_the_build(mistake: str, message: str, tmp_path: Path) -> None:
    builder = build_core.Builder(tmp_path, tmp_path)
    builder.generated = tmp_path
    source = tmp_path / "loop.c"
    source.write_text(f"int loop(int x) {{ {mistake} }}\n")
    with pytest.raises(build_core.CompileError, match=f"(?s)loop.o failed.*loop.c:1:.*{message}"):
        builder.compile(source, tmp_path / "loop.o", [])
    source.write_text("int loop(const int* x) { int* y = x; return *y; }\n")  # as in Cython's C
    builder.compile(source, tmp_path / "loop.o", [])


def test_long_messages_keep_their_beginning_and_their_end() -> None:
    lines = [f"error {i}" for i in range(2000)]
    kept = build_core.shortened("\n".join(lines)).split("\n")
    assert len(kept) < 1000 and kept[0] == lines[0] and kept[-1] == lines[-1]
    assert set(kept) - {"..."} < set(lines)
    assert build_core.shortened("one\ntwo") == "one\ntwo"

"""The pages of docs: every Python block runs and prints what its comments say, charts are those of saved runs, every public name is documented, the site builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tools.site import charts, pages, reference
from tools.site.__main__ import unlisted

ROOT = Path(__file__).resolve().parent.parent
# The blocks of contributing.md belong to a copy of the checkout: tools/try_contributing.py runs them.
PAGES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name != "contributing.md" and re.search(r"^```python", p.read_text(), re.M)]
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```", re.M | re.S)
# Public names that say nothing of themselves yet: this list can only become shorter.
UNDOCUMENTED: set[str] = set()


def programs(page: Path) -> dict[str, str]:
    """The blocks of a page joined in their order, by the word behind the language ("cuda" blocks are a program of their own)."""
    joined: dict[str, str] = {}
    for word, body in BLOCK.findall(page.read_text()):
        joined[word] = joined.get(word, "") + body + "\n"
    return joined


def expected(program: str) -> list[str]:
    """What comments say is printed: behind a print, or in lines of their own below a loop that prints tuples."""
    return [behind or below for behind, below in re.findall(r"^ *print\(.*\)  # (.*)$|^# (\(.*)$", program, re.M)]


@pytest.mark.parametrize(
    ("page", "word"), [(p, w) for p in PAGES for w in programs(p)], ids=lambda v: v.stem if isinstance(v, Path) else v or "python"
)
def test_blocks_of_a_page_run_and_print_what_they_say(page: Path, word: str, tmp_path: Path) -> None:
    program = programs(page)[word]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if word:
        assert word == "cuda"
        environment |= {"TENSORRT_LITE_CUDA": "emulate"}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.splitlines())
    said = expected(program)
    assert said, "a page with programs shows what one of them prints"
    assert [line for line in said if line not in printed] == [], done.stdout  # in this order, other lines between them


def test_the_table_of_contents_names_pages_that_exist_and_gets_those_it_does_not_name() -> None:
    nav = (ROOT / "tools" / "site" / "mkdocs.yml").read_text()
    listed = set(re.findall(r"([\w/]+\.md)$", nav, re.M))
    assert [page for page in listed - {"operators.md"} if not (ROOT / "docs" / page).exists()] == []  # operators.md is written by the build
    assert unlisted(nav.replace("func.md", "train.md"), ROOT / "docs") == sorted([*unlisted(nav, ROOT / "docs"), "func.md"])


def test_the_charts_are_those_of_the_saved_runs() -> None:
    """`python -m tools.site.charts` draws them again after a new run."""
    drawn = charts.charts()
    assert {p.name for p in (ROOT / "docs" / "charts").iterdir()} == set(drawn)
    assert [name for name, text in drawn.items() if (ROOT / "docs" / "charts" / name).read_text() != text] == []
    page = (ROOT / "docs" / "charts.md").read_text()
    assert [name for name in drawn if f"(charts/{name}#only-" not in page] == []


def test_links_out_of_the_docs_become_names_of_files() -> None:
    page = ROOT / "docs" / "tutorials" / "train.md"
    text = "[a](../gaps.md#missing) [b](../../tools/site) [c](#d) `[e](../../f)`\n```python cuda\n[g](h)\n```\n"
    assert (
        pages.rewritten(text, page, ROOT / "docs")
        == '[a](../gaps.md#missing) b (`tools/site`) [c](#d) `[e](../../f)`\n```python title="cuda"\n[g](h)\n```\n'
    )


def test_every_public_name_is_documented() -> None:
    missing = {f"{name}.{n}".lstrip(".") for name in reference.MODULES for n in reference.undocumented(name)}
    assert sorted(missing - UNDOCUMENTED) == [], "public names without a docstring"
    assert sorted(UNDOCUMENTED - missing) == [], "documented by now: take them out of the list"


def test_the_reference_has_an_entry_with_signature_text_and_row() -> None:
    page = reference.page("linalg")
    entry = page[page.index("### `solve`") :]
    entry = entry[: entry.index("</div>")]
    assert "tensorrt_lite.linalg.solve(A, B, *, left=True, out=None)" in entry
    assert "LinAlgError when A is singular" in entry and "linalg_solve(Tensor A, Tensor B" in entry
    assert "\n\n" not in entry[entry.index("<div") :]  # HTML would end there
    assert {"nn", "optim", "utils.data", "Tensor"} <= set(reference.MODULES)


def test_the_reference_lists_parameters_and_shows_an_example() -> None:
    text = reference.prose(reference.module("").conv2d.__doc__)
    assert "<li><code>stride</code> (int or tuple of ints, default 1): how far the filter moves each time</li>" in text
    assert "<code>&gt;&gt;&gt; import tensorrt_lite as trt\n" in text and "torch.Size([8, 16, 32, 32])" in text


def test_public_modules_have_pages() -> None:
    """All but those whose names stand elsewhere: on the page of a module inside, of the command line, or of what returns them."""
    trt = reference.module("")
    modules = {n for n in dir(trt) if not n.startswith("_") and isinstance(getattr(trt, n), ModuleType)}
    assert modules - set(reference.MODULES) <= {"bench", "info", "quasirandom", "return_types", "signal", "version"}  # some are imported by other tests alone


@pytest.mark.skipif(find_spec("mkdocs") is None or find_spec("material") is None, reason="needs the extra docs")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: links and anchors that lead nowhere, and pages in no table of contents, are warnings."""
    done = subprocess.run([sys.executable, "-m", "tools.site", str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "http.server" in done.stdout
    assert (tmp_path / "html" / "narrow.css").exists()
    assert (tmp_path / "html" / "search" / "search_index.json").stat().st_size > 500_000
    foreign = {
        link
        for page in (tmp_path / "html").rglob("*.html")
        for link in re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?(https?://[^" >]+)', page.read_text(encoding="utf-8"))
    }
    assert foreign == set()  # nothing is fetched from another host

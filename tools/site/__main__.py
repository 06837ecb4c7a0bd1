"""`python -m tools.site [FOLDER]`: builds the documentation site into FOLDER/html (build/site), without network; any warning is a failure.

Needs the extra `docs` and a built core, whose docstrings and rows are the API reference.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
import time
from pathlib import Path

from . import pages, reference

ROOT = Path(__file__).resolve().parent.parent.parent


def assemble(folder: Path) -> Path:
    """Write the pages and the configuration below `folder`; the path of the configuration."""
    sources = folder / "pages"
    shutil.rmtree(sources, ignore_errors=True)
    pages.copy(ROOT / "docs", sources)
    shutil.copy(ROOT / "tools" / "site" / "narrow.css", sources)
    reference.write(sources / "reference")
    text = (ROOT / "tools" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    entries = [f"      - {title}: reference/{page}.md" for page, title in reference.contents()]
    text = text.replace("      - REFERENCE\n", "\n".join(entries) + "\n")
    text = text.replace("      - UNLISTED\n", "".join(f"      - {page}\n" for page in unlisted(text, sources)))
    configuration = folder / "mkdocs.yml"
    configuration.write_text(text, encoding="utf-8")
    return configuration


def unlisted(text: str, sources: Path) -> list[str]:
    """Pages below `sources` that the table of contents in `text` does not name: they come last."""
    listed = set(re.findall(r"([\w/]+\.md)$", text, re.M))
    there = sorted(str(p.relative_to(sources)) for p in sources.rglob("*.md"))
    return [page for page in there if page not in listed and not page.startswith("reference/")]


class _Warnings(logging.Handler):
    """Prints the warnings of mkdocs and counts them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        print(f"{record.levelname.lower()}: {record.getMessage()}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Build; the exit status: 1 where mkdocs had anything to warn of."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    folder = parser.parse_args(argv).folder.resolve()
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # an announcement of the theme's, on standard error
    from mkdocs.commands import build
    from mkdocs.config import load_config

    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    configuration = assemble(folder)
    warnings = _Warnings()
    logging.getLogger("mkdocs").addHandler(warnings)
    config = load_config(str(configuration), strict=True)
    config.plugins.run_event("startup", command="build", dirty=False)
    build.build(config)
    config.plugins.run_event("shutdown")
    count = sum(1 for _ in (folder / "html").rglob("*.html"))
    print(f"{count} pages in {folder / 'html'}, {warnings.count} warnings, {time.perf_counter() - start:.1f} s")
    print(f"python -m http.server --directory {folder / 'html'} shows them with their search, which browsers refuse to files")
    return 1 if warnings.count else 0


if __name__ == "__main__":
    sys.exit(main())

"""The documents hold together: links lead somewhere, decisions are listed, and what docs/architecture.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "cysrc").glob("*/README.md"), *(ROOT / "tools").glob("*/README.md")])


def anchor(heading: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.S)):
        if "://" in target or target.startswith(("reference/", "../reference/")):  # written with the site, whose build checks them
            continue
        path, _, name = target.partition("#")
        other = document.parent / path if path else document
        assert other.exists(), target
        assert not name or other.suffix != ".md" or name in map(anchor, headings(other.read_text())), target


def test_every_decision_has_a_date_and_a_status_and_is_in_the_table() -> None:
    table = (ROOT / "docs" / "decisions.md").read_text()
    rooms = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    listed = [(room.name, *found) for room in rooms for found in re.findall(r"^## (.*)\n\n(.*)\n", room.read_text(), re.M)]
    assert len(listed) > 70 and not re.search("^## ", table, re.M), "decisions are in docs/decisions/<room>.md"
    decisions = [(title, line) for _, title, line in listed]
    for room, title, line in listed:
        status = re.fullmatch(r"\*(\d{4}-\d\d-\d\d) · (accepted|superseded by [^;*]+)(;[^*]*)?\*", line)
        assert status, f"{title}: no date and status below the heading"
        assert f"| [{title}](decisions/{room}#{anchor(title)}) | {status[1]} | {status[2]} |\n" in table + "\n", title
        if status[2] != "accepted":
            assert status[2].removeprefix("superseded by ") in (t for t, _ in decisions), title
    assert len(re.findall(r"^\| \[", table, re.M)) == len(decisions)
    assert len({anchor(t) for t, _ in decisions}) == len(decisions)


def test_files_and_functions_of_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    paths = {p for p in re.findall(r"`([\w./-]+)`", text) if "/" in p}
    assert len(paths) > 30
    built = ("build/", "tensorrt_lite/_C")
    assert [p for p in sorted(paths) if not p.startswith(built) and not (ROOT / p).exists()] == []
    walked = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.M)
    assert len(walked) > 15
    assert [(p, f) for p, f in walked if not re.search(rf"\b{re.escape(f)}", (ROOT / p).read_text())] == []


def test_what_is_missing_and_different_has_no_times() -> None:
    """Times are one machine's of one day: docs/benchmarks and the table of what is slower have them."""
    text = (ROOT / "docs" / "gaps.md").read_text()
    assert re.findall(r"^## (.*)$", text, re.M) == ["Missing", "Different", "Slower"]
    assert len(re.findall(r"^# ", text, re.M)) == 1, "a page of the site has one title"
    assert re.findall(r"\d (?:ms|µs|ns|s)\b", text[: text.index("## Slower\n")]) == []


def sentences(text: str) -> list[str]:
    """Those of paragraphs and lists; code, tables, headings and dates aside."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = "\n".join(line for line in text.split("\n") if not line.startswith(("|", "#", "*2", "    ")))
    blocks = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", text)
    return [s for block in blocks for s in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[])", re.sub(r"`[^`]*`", "X", " ".join(block.split()))) if len(s.split()) > 1]


def test_sentences_are_short() -> None:
    """The 90th percentile of all documents' has at most 30 words."""
    lengths = sorted(len(s.split()) for document in DOCUMENTS if document.name != "operators.md" for s in sentences(document.read_text()))
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_sentences_of_a_text() -> None:
    text = "# A title\n\nOne two three. Four `a. B` five;\nsix: Seven eight.\n\n| a | b |\n- An item.\n\n```\nNo. Code here.\n```\n"
    assert sentences(text) == ["One two three.", "Four X five; six:", "Seven eight.", "- An item."]

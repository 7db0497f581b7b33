"""Every link of every document leads somewhere, and every page can be found."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.meta.tree import ROOT, markdown_files, name_of

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DOCS = ROOT / "docs"


def links(page: Path) -> list[str]:
    """What a page links to within the repository."""
    found = LINK.findall(FENCED.sub("", page.read_text()))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def leads(page: Path, target: str) -> Path | None:
    """The file that a link means, if it and its anchor exist."""
    file, _, anchor = target.partition("#")
    found = (page.parent / unquote(file)).resolve() if file else page
    if not found.exists() or (anchor and found.suffix == ".md" and anchor not in anchors(found)):
        return None
    return found


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", markdown_files(), ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert [target for target in links(page) if leads(page, target) is None] == []


def test_the_index_leads_to_every_page() -> None:
    reported = {leads(DOCS / "README.md", target) for target in links(DOCS / "README.md")}
    elsewhere = (DOCS / "decisions", DOCS / "benchmarks")
    pages = {page for page in DOCS.rglob("*.md") if page.parent not in elsewhere and page != DOCS / "README.md"}
    assert sorted(map(name_of, pages - reported)) == []


def test_a_link_to_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n```sh\n# Not a heading\n```\n[a](#one-thing) [b](#not-a-heading) [c](gone.md)\n")
    assert [target for target in links(page) if leads(page, target) is None] == ["#not-a-heading", "gone.md"]

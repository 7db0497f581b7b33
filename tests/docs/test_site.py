"""The documentation as a site: it builds, every link of it leads somewhere, and it loads nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

LOADED = {
    **dict.fromkeys(("audio", "embed", "iframe", "img", "script", "source", "video"), "src"),
    "link": "href",
    "object": "data",
}
"""What a browser loads by itself; a link that a reader may follow can lead anywhere."""
OUTSIDE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
NO_BANNER = {"NO_MKDOCS_2_WARNING": "1"}


class Loads(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address is not None and dict(attrs).get("rel") != "canonical":
            self.found.append(address)


def outside(file: Path) -> list[str]:
    """What a page or a style sheet loads from elsewhere."""
    text = file.read_text()
    styles = re.findall(r"@import\s+[\"']?([^\"')\s;]+)|url\([\"']?([^\"')]+)", text)
    loaded = [*Loads(text).found, *(address for pair in styles for address in pair if address)]
    return [address for address in loaded if OUTSIDE.match(address)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does: a link or an anchor that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=os.environ | NO_BANNER, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


def test_every_document_is_a_page_and_can_be_searched(site: Path) -> None:
    documents = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    names = {"README.md": "index.html"}
    expected = {str(page.with_name(names.get(page.name, f"{page.stem}.html"))) for page in documents}
    index = json.loads((site / "search" / "search_index.json").read_text())
    searched = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert sorted(page for page in expected if not (site / page).exists()) == []
    assert sorted(expected - searched) == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 50
    assert {str(file.relative_to(site)): outside(file) for file in files if outside(file)} == {}


def test_what_a_page_loads_from_elsewhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="https://a.org">a link</a> <img src="//b.org/x.png"> <script src="here.js"></script>'
        '<link href="https://c.org/fonts.css"><style>@import "https://d.org"; p { background: url(//e.org) }</style>'
    )
    assert outside(page) == ["//b.org/x.png", "https://c.org/fonts.css", "https://d.org", "//e.org"]


def test_a_link_to_the_code_is_its_name_and_one_to_a_document_a_page(site: Path) -> None:
    walk, guide = (site / "walk.html").read_text(), (site / "project" / "CONTRIBUTING.html").read_text()
    assert "src/windlass/client/tasks/task.py</code>" in walk
    assert 'href="../walk.html"' in guide


def test_a_bar_in_the_code_of_a_table_is_shown_without_its_escape(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text()
    assert "<td><code>str | None</code></td>" in page
    assert "\\|" not in page

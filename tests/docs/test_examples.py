"""Every example of the documentation is run; one that fails, or prints something else, fails here."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.page import MARKS, PARSED, RUN, SHOWN, Block, blocks
from tests.docs.reader import Reader, read_ini
from tests.meta.tree import ROOT, name_of

DOCS = ROOT / "docs"
MADE = (DOCS / "reference", DOCS / "decisions", DOCS / "benchmarks")
"""Written from the code, or history."""
PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page.parent not in MADE)]
MAX_SKIPPED = 6
AT_ONCE = 3
SERVICE = {
    "KillMode": "mixed",
    "Restart": "always",
}


class Readings:
    """Pages being read: each is begun a little before its turn, because most of the time is starting processes."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._read: dict[Path, Future[int]] = {}
        self.pool = ThreadPoolExecutor(AT_ONCE)

    def blocks_of(self, page: Path) -> int:
        """The number of its blocks that are true."""
        place = PAGES.index(page)
        for ahead in PAGES[place : place + AT_ONCE]:
            if ahead not in self._read:
                self._read[ahead] = self.pool.submit(read, ahead, self._new_folder(ahead.stem))
        return self._read[page].result()


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readings]:
    readings = Readings(tmp_path_factory.mktemp)
    yield readings
    readings.pool.shutdown(cancel_futures=True)


def read(page: Path, folder: Path) -> int:
    """Do what a page says, from top to bottom; the number of blocks."""
    reader = Reader(folder)
    followed = [block for block in blocks(page) if block.mark != "skip"]
    try:
        for block in followed:
            try:
                reader.follow(block)
            except AssertionError as error:
                raise AssertionError(f"{name_of(page)}:{block.line}: {error}") from None
    finally:
        reader.close()
    return len(followed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_examples_of_a_page_work_in_their_order(page: Path, readings: Readings) -> None:
    assert readings.blocks_of(page) == len([block for block in blocks(page) if block.mark != "skip"])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    strange = [
        f"{name_of(page)}:{block.line}"
        for block in blocks(page)
        if block.kind not in (*RUN, *PARSED, *SHOWN) or block.mark not in ("", *MARKS)
    ]
    assert strange == []


def test_few_examples_are_skipped_and_each_for_a_reason() -> None:
    skipped = [block for page in PAGES for block in blocks(page) if block.mark == "skip"]
    assert [block.text for block in skipped if not block.reason] == []
    assert len(skipped) <= MAX_SKIPPED


def test_there_is_something_to_run() -> None:
    assert len([block for page in PAGES for block in blocks(page) if block.kind in RUN and block.mark != "skip"]) > 50


def test_a_service_for_systemd_gives_the_worker_longer_than_its_drain() -> None:
    services = [read_ini(block.text) for block in _services()]
    assert services
    for service in services:
        assert service["Service"].items() >= SERVICE.items()
        assert service["Service"]["Type"] in ("exec", "notify")
        assert {"User", "WorkingDirectory", "ExecStart"} <= service["Service"].keys()
        drain = service["Service"]["ExecStart"].partition("--drain ")[2].split()[0]
        assert int(service["Service"]["TimeoutStopSec"]) >= int(drain.removesuffix("s")) + 10


def test_an_orchestrator_gives_the_worker_longer_than_its_drain() -> None:
    pages = [
        block.text for page in PAGES for block in blocks(page) if block.kind == "yaml" and "--drain" in block.text
    ]
    assert len(pages) == 2
    for text in pages:
        drain, grace = (re.search(rf"{word}\D+(\d+)", text) for word in ("--drain", "(?:grace_p|GraceP)eriod"))
        assert drain is not None
        assert grace is not None
        assert int(grace[1]) >= int(drain[1]) + 10


def _services() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.kind == "ini" and "[Service]" in block.text]

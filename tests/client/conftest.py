"""An app on a store of its own, and a runner for its jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.labour import Labour
from windlass import App


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file that the jobs are in, if they are in one."""
    return tmp_path / "jobs.db"


@pytest.fixture
def app(address: str) -> Iterator[App]:
    """An app without tasks, on an empty store."""
    made = App(address)
    yield made
    made.close()


@pytest.fixture
def labour(app: App) -> Labour:
    """A worker's part, played by hand."""
    return Labour(app)

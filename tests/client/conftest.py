"""An app on a file of its own, and somebody who works its jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.labour import Labour
from windlass import App


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the app's jobs are kept; nothing is there yet."""
    return tmp_path / "jobs.db"


@pytest.fixture
def app(path: Path) -> Iterator[App]:
    """An app without tasks, on an empty store."""
    made = App(f"sqlite:///{path}?durability=relaxed")
    yield made
    made.close()


@pytest.fixture
def labour(app: App) -> Labour:
    """A worker's part, played by hand."""
    return Labour(app)

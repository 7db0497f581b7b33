"""An app that keeps its large payloads in a folder, and a runner for its jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.labour import Labour
from windlass import App


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of the blobs, not made yet."""
    return tmp_path / "blobs"


@pytest.fixture
def app(address: str, root: Path) -> Iterator[App]:
    made = App(address, blobs=str(root))
    yield made
    made.close()


@pytest.fixture
def labour(app: App) -> Labour:
    """A worker's part, played by hand."""
    return Labour(app)

"""An app as a test would make it, and a real one on a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass import App


@pytest.fixture
def app() -> Iterator[App]:
    """An app under test."""
    made = App.testing()
    yield made
    made.close()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[App]:
    """An app on a file of its own, as programs have it."""
    made = App(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed")
    yield made
    made.close()

"""A stage for each test, cleared whatever happens on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    try:
        yield stage
    finally:
        stage.processes.end()
        stage.app.close()

"""A stage for each test, cleared whatever happens on it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import SHOP, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    try:
        yield stage
    finally:
        stage.processes.end()
        stage.app.close()


@pytest.fixture
def den(stage: Stage) -> Stage:
    """A stage for handlers that misbehave."""
    shutil.copy(SHOP.with_name("rogues.py"), stage.folder / "rogues.py")
    return stage

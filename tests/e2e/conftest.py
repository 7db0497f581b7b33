"""A stage for each test, cleared whatever happens on it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import SHOP, Stage
from tests.support.addresses import ADDRESSES


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file, as durable as it is by default, unless a test says `on_every_store`."""
    kind = getattr(request, "param", "sqlite")
    if kind != "sqlite":
        return ADDRESSES[kind](tmp_path)
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
def stage(tmp_path: Path, address: str) -> Iterator[Stage]:
    stage = Stage(tmp_path, address)
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

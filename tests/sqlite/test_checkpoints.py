"""The log is copied into the file beside the jobs, so that no commit has to."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.support.seed import enqueue, new_job
from windlass.core.moments import SECOND
from windlass.store.drive import drive
from windlass.store.open import open_store
from windlass.store.sqlite.connection.base import MAX_LOG_PAGES
from windlass.store.sqlite.connection.checkpoints import MAX_PAUSE, PAGES, CheckpointPace


@pytest.mark.parametrize("options", ["", "?driver=sqlite3"], ids=["apsw", "sqlite3"])
async def test_tidying_copies_the_log_into_the_file(tmp_path: Path, options: str) -> None:
    file = tmp_path / "store.db"
    store = open_store(f"sqlite:///{file}{options}")
    jobs = await enqueue(store, 20)
    assert not any(job.encode() in _content(file) for job in jobs)
    await store.tidy()
    assert all(job.encode() in _content(file) for job in jobs)
    await store.close()


def test_tidying_works_without_an_event_loop(tmp_path: Path) -> None:
    file, job = tmp_path / "store.db", new_job()
    store = open_store(f"sqlite:///{file}")
    drive(store.jobs.enqueue([job]))
    drive(store.tidy())
    assert job.id.encode() in _content(file)
    asyncio.run(store.close())


@pytest.mark.parametrize("options", ["", "&driver=sqlite3"], ids=["apsw", "sqlite3"])
async def test_without_a_worker_the_log_stays_short(tmp_path: Path, options: str) -> None:
    # A commit that makes the log longer also flushes the new size of the file.
    file = tmp_path / "store.db"
    store = open_store(f"sqlite:///{file}?durability=relaxed{options}")
    for _ in range(600):  # three pages each
        await store.jobs.enqueue([new_job()])
    assert file.with_name("store.db-wal").stat().st_size < 1.1 * MAX_LOG_PAGES * 4096
    await store.close()


def _content(file: Path) -> bytes:
    """Read by another process: closing a descriptor of ours would drop the locks of this one."""
    return subprocess.run(["cat", str(file)], capture_output=True, check=True).stdout


def test_the_first_checkpoint_is_due_at_once_and_the_next_when_the_log_has_its_length() -> None:
    pace = CheckpointPace()
    assert pace.is_due(100 * SECOND)
    pace.note(PAGES, 100 * SECOND)
    pace.note(2 * PAGES, 104 * SECOND)
    assert not pace.is_due(106 * SECOND - 1)
    assert pace.is_due(106 * SECOND)


def test_a_log_that_hardly_grows_is_copied_after_the_longest_pause() -> None:
    pace = CheckpointPace()
    pace.note(1, 100 * SECOND)
    pace.note(0, 200 * SECOND)
    assert not pace.is_due(200 * SECOND + MAX_PAUSE - 1)
    assert pace.is_due(200 * SECOND + MAX_PAUSE)

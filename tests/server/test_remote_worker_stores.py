"""Python workers that reach only a REST server, whose store is PostgreSQL or Redis: the same tests as on SQLite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server import test_remote_worker as on_sqlite
from tests.server.remote_stage import Remote

DRIVEN: tuple[Callable[[Remote], None], ...] = (
    on_sqlite.test_every_kind_of_handler_runs_without_the_store,
    on_sqlite.test_a_cancelled_job_ends,
    on_sqlite.test_the_jobs_of_a_killed_worker_run_again,
    on_sqlite.test_a_killed_runner_is_reported_by_its_supervisor_at_once,
    on_sqlite.test_a_worker_that_stood_still_for_longer_than_its_lease_writes_nothing_late,
    on_sqlite.test_jobs_outlive_a_server_that_is_away_for_longer_than_a_lease,
)
pytestmark = pytest.mark.parametrize("address", ["postgres", "redis"], indirect=True)


@pytest.fixture
def remote(tmp_path: Path, address: str) -> Iterator[Remote]:
    made = Remote(tmp_path, address)
    yield made
    made.end()


@pytest.mark.parametrize("drive", DRIVEN, ids=lambda drive: drive.__name__.removeprefix("test_"))
def test_a_remote_worker_does_the_same_on_other_stores(remote: Remote, drive: Callable[[Remote], None]) -> None:
    drive(remote)
    assert not remote.server.ended


@pytest.mark.parametrize("path", ["/claims", "/claims/settle"])
def test_a_lost_answer_neither_loses_a_job_nor_runs_it_twice(remote: Remote, path: str) -> None:
    on_sqlite.test_a_lost_answer_neither_loses_a_job_nor_runs_it_twice(remote, path)
    assert not remote.server.ended

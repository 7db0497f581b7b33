"""SQLite: the bare loops do all of their work, and what is read from a store is what is there."""

from pathlib import Path

import apsw
import pytest
from bench.run import find_store_bench
from bench.stores.sqlite import SqliteBench
from bench.stores.sqlite_bare import Bare

from windlass.client.app import App
from windlass.errors import ConfigError


@pytest.fixture
def store_bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(f"sqlite:///{tmp_path}/{{run}}.db")


def test_the_bare_drain_moves_every_job_into_history_and_flushes_every_commit(tmp_path: Path) -> None:
    bare = Bare(tmp_path / "bare.db")
    bare.insert(1_234)
    assert bare.drain().rate > 0
    bare.close()
    connection = apsw.Connection(str(tmp_path / "bare.db"))
    jobs, ended = connection.execute("SELECT (SELECT count(*) FROM job), count(*) FROM history").fetchall()[0]
    assert (jobs, ended) == (0, 1_234)
    connection.close()


def test_bare_loops_leave_nothing_behind(tmp_path: Path, store_bench: SqliteBench) -> None:
    assert store_bench.bare_drain(200).cpu > 0
    assert store_bench.bare_bulk(2_500, with_making=True) > 0
    assert store_bench.bare_bulk(2_500, with_making=False) > 0
    assert store_bench.bare_commits(5) > 0
    assert list(tmp_path.iterdir()) == []


def test_history_that_is_put_there_directly_looks_like_history(store_bench: SqliteBench) -> None:
    address = store_bench.fresh()
    app = App(address)
    app.stats.counts()
    store_bench.fill_history(address, 30)
    assert app.stats.counts().totals["completed"] == 30
    jobs = app.jobs.list(limit=100).items
    app.close()
    assert len({job.id for job in jobs}) == 30
    assert {(job.status, job.type, job.payload["n"], job.attempt) for job in jobs} == {("completed", "noop", 1, 1)}
    assert store_bench.span(address).jobs == 30
    assert sum(count for _, count in store_bench.finishes(address)) == 30


def test_a_store_that_is_dropped_is_gone_with_all_that_belongs_to_it(
    tmp_path: Path, store_bench: SqliteBench
) -> None:
    address = store_bench.fresh()
    app = App(address)
    app.stats.counts()
    app.close()
    assert list(tmp_path.iterdir()) != []
    store_bench.drop(address)
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_store_is_never_one_that_is_there_already(tmp_path: Path, store_bench: SqliteBench) -> None:
    (tmp_path / "1.db").touch()
    assert store_bench.fresh().endswith("/2.db")


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("sqlite:///one.db", "write {run}"),
        ("sqlite:////no/such/folder/{run}.db", "there is no folder /no/such/folder"),
        ("mysql://user:secret@host/0", "the bench knows sqlite:, postgresql: and redis: only"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(template: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        find_store_bench(template)
    assert "secret" not in str(refused.value)

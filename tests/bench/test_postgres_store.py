"""PostgreSQL: the bare loops do all of their work on a server of the bench's own."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from bench.run import find_store_bench
from bench.stores import postgres_bare as bare
from bench.stores.postgres import PostgresBench, drain_bare
from bench.stores.postgres_server import serve

from tests.bench.command import environment
from windlass.client.app import App
from windlass.errors import ConfigError


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    # Not in pytest's own folder: as root the server runs as nobody, which may not enter it.
    with serve(Path(tempfile.gettempdir())) as template:
        yield template


@pytest.fixture
def store_bench(server: str) -> PostgresBench:
    return PostgresBench(server)


def _ask(dsn: str, question: str) -> list[Any]:
    async def ask() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        rows = await connection.fetch(question)
        await connection.close()
        return list(rows)

    return asyncio.run(ask())


def _databases(server: str) -> set[str]:
    return {row[0] for row in _ask(server.replace("{run}", "postgres"), "SELECT datname FROM pg_database")}


def test_every_commit_is_flushed_on_a_server_of_our_own(store_bench: PostgresBench) -> None:
    facts = store_bench.facts()
    assert (facts["fsync"], facts["synchronous_commit"]) == ("on", "on")
    assert facts["store"] == "PostgreSQL"


def test_a_fresh_store_is_never_one_that_is_there_already_and_is_gone_when_dropped(
    server: str, store_bench: PostgresBench
) -> None:
    _ask(server.replace("{run}", "postgres"), "CREATE DATABASE windlass_bench_1")
    address = store_bench.fresh()
    assert address.endswith("/windlass_bench_2")
    assert "windlass_bench_2" in _databases(server)
    store_bench.drop(address)
    assert "windlass_bench_2" not in _databases(server)
    _ask(server.replace("{run}", "postgres"), "DROP DATABASE windlass_bench_1")


@pytest.mark.parametrize("loops", [1, 2])
def test_bare_loops_move_every_job_into_history(store_bench: PostgresBench, loops: int) -> None:
    address = store_bench.fresh()
    asyncio.run(bare.prepare(address, 1_234))
    with store_bench.hold_snapshot(address):
        drained = drain_bare(address, loops)
    assert drained.rate > 0
    assert drained.cpu > 0
    ((left, ended),) = _ask(address, "SELECT (SELECT count(*) FROM l_jobs), count(*) FROM h_jobs")
    store_bench.drop(address)
    assert (left, ended) == (0, 1_234)


def test_bare_loops_leave_nothing_behind(server: str, store_bench: PostgresBench) -> None:
    before = _databases(server)
    assert store_bench.bare_drain(500).rate > 0
    assert store_bench.bare_together(500) > 0
    assert store_bench.bare_bulk(2_500, with_making=True) > 0
    assert store_bench.bare_bulk(2_500, with_making=False) > 0
    assert store_bench.bare_commits(5) > 0
    assert _databases(server) == before


def test_a_bare_wake_up_is_timed_for_every_job(store_bench: PostgresBench) -> None:
    taken = store_bench.bare_wake(4)
    assert len(taken) == 4
    assert all(each > 0 for each in taken)


def test_a_held_snapshot_is_seen_by_the_server_and_ends(store_bench: PostgresBench) -> None:
    holding = "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND state = 'idle in transaction'"
    address = store_bench.fresh()
    with store_bench.hold_snapshot(address):
        assert _ask(address, holding)[0][0] == 1
    assert _ask(address, holding)[0][0] == 0
    store_bench.drop(address)


def test_history_that_is_put_there_directly_looks_like_history(store_bench: PostgresBench) -> None:
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
    store_bench.drop(address)


COUNTED = """
import sys, pathlib, asyncio, asyncpg
from bench.probes.postgres_trips import count_trips

async def main():
    await (await asyncpg.connect(sys.argv[2])).close()
    count_trips(pathlib.Path(sys.argv[1]))
    connection = await asyncpg.connect(sys.argv[2])
    before = int(open(sys.argv[1]).read())
    for n in range(7):
        await connection.execute("SELECT 1")
    print(int(open(sys.argv[1]).read()) - before)
    statement = await connection.prepare("SELECT $1::int")
    before = int(open(sys.argv[1]).read())
    for n in range(11):
        await statement.fetch(n)
    print(int(open(sys.argv[1]).read()) - before)

asyncio.run(main())
"""


def test_round_trips_of_the_driver_are_counted(tmp_path: Path, server: str) -> None:
    command = [sys.executable, "-c", COUNTED, str(tmp_path / "trips"), server.replace("{run}", "postgres")]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    assert said.split() == ["7", "11"]


def test_the_server_counts_its_log(store_bench: PostgresBench) -> None:
    address = store_bench.fresh()
    before = store_bench.counters(address)
    _ask(address, "CREATE TABLE t AS SELECT generate_series(1, 10000)")
    assert store_bench.counters(address).log_bytes > before.log_bytes + 10_000
    store_bench.drop(address)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("postgresql://user:secret@127.0.0.1/fixed", "write {run} as the database"),
        ("postgresql://user:secret@127.0.0.1/{run}?colour=red", "unknown option 'colour'"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(template: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        find_store_bench(template)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match="no database can be made"):
        PostgresBench("postgresql://user:secret@127.0.0.1:1/{run}").fresh()

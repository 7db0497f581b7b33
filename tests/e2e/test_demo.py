"""The demo on a server: in a corner of its own, beside other users's jobs, and nothing is left of it."""

from pathlib import Path

import psycopg
import pytest
import redis

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import Processes
from tests.support.servers.redis_places import shared_redis

on_postgres = pytest.mark.parametrize("address", ["postgres"], indirect=True)


@on_postgres
def test_the_tour_leaves_nothing_in_the_database_and_other_jobs_alone(stage: Stage) -> None:
    others = stage.enqueue("quick", 3)
    said = stage.command("demo", "--store", stage.url)
    assert "The store is a schema of its own, windlass_demo_" in said
    assert "Nothing was lost." in said
    with psycopg.connect(stage.url) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'windlass%'").fetchall()
    assert found == [("windlass",)]
    assert [stage.job(id_).status for id_ in others] == ["pending"] * 3


@on_every_store
def test_a_store_that_is_named_to_the_last_must_be_empty(stage: Stage) -> None:
    stage.enqueue("quick", 1)
    unnamed = stage.url.startswith("postgresql:") and "schema=" not in stage.url
    schema = f"{'&' if '?' in stage.url else '?'}schema=windlass" if unnamed else ""
    demo = stage.processes.start("demo", "-m", "windlass", "demo", "--store", stage.url + schema)
    assert demo.wait() == 2
    assert "has jobs in it; the demo needs an empty store" in demo.output


@on_postgres
def test_a_server_that_cannot_be_reached_is_one_line(stage: Stage) -> None:
    demo = stage.processes.start("demo", "-m", "windlass", "demo", "--store", "postgresql://me:hunter2@127.0.0.1:1/x")
    assert demo.wait() == 1
    assert len(demo.output.splitlines()) == 1, demo.output
    assert "hunter2" not in demo.output


def test_the_tour_leaves_nothing_in_redis(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        demo = processes.start("demo", "-m", "windlass", "demo", "--store", shared_redis())
        assert demo.wait() == 0, demo.output
    finally:
        processes.end()
    assert "The store is a prefix of its own, windlass_demo_" in demo.output
    assert "Nothing was lost." in demo.output
    with redis.Redis.from_url(shared_redis()) as client:
        assert list(client.scan_iter(match="windlass_demo_*")) == []

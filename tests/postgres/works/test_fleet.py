"""A fleet behind PgBouncer: many worker trees and many more claim loops share a few connections to the server."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgres.works.plant import Plant
from tests.support.processes import Process, until
from tests.support.servers.address import Address
from tests.support.servers.pgbouncer import pgbouncer
from tests.support.stores import postgres_url as migrated_url

HOME = Path(__file__).parents[3]


class Size(NamedTuple):
    """How large the fleet is."""

    trees: int
    processes: int
    """Of claim loops."""
    loops: int
    """In each of them."""
    jobs: int


SIZES = {"small": Size(4, 2, 20, 6_000), "full": Size(20, 3, 60, 20_000)}
SIZE = SIZES[os.environ.get("WINDLASS_TEST_FLEET", "small")]
POOL = 20
LEASE_SECONDS = 30
"""The default."""


@pytest.fixture
def fleet(tmp_path: Path, postgres: Address) -> Iterator[Plant]:
    direct = migrated_url(tmp_path)
    with pgbouncer(postgres, pool=POOL) as bouncer:
        made = Plant(tmp_path, direct, bouncer.address.dsn(direct.rpartition("/")[2]))
        yield made
        made.close()


@pytest.mark.extended
def test_every_job_ends_once_and_no_runner_loses_a_lease(fleet: Plant) -> None:
    lease = str(LEASE_SECONDS)
    trees = [fleet.start_worker("--lease", f"{lease}s") for _ in range(SIZE.trees)]
    environment = {"PYTHONPATH": os.pathsep.join([str(HOME), os.environ.get("PYTHONPATH", "")])}
    loops = [
        fleet.processes.start(
            "loops", "-m", "tests.postgres.works.loops", fleet.url, str(SIZE.loops), lease, environment=environment
        )
        for _ in range(SIZE.processes)
    ]
    all_workers = SIZE.trees + SIZE.processes * SIZE.loops
    until(lambda: len(fleet.app.workers.list()) == all_workers, f"{all_workers} workers are registered", 120)
    until(lambda: _ready(trees), "every tree claims", 120)
    leases = _leases(fleet)
    assert len(leases) == all_workers

    ids = fleet.enqueue("quick", SIZE.jobs)
    fleet.until_completed(SIZE.jobs, 120)
    (sessions,) = fleet.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")[0]

    assert _leases(fleet) == leases, "a worker continues under another lease"
    fleet.stop([*trees, *loops])
    fleet.check(ids)
    assert _leases(fleet) == set()
    assert fleet.app.workers.list() == []
    assert sessions <= POOL + 3, "there are more than the pooler's and the test's own"


def _ready(trees: list[Process]) -> bool:
    return all(" is ready" in tree.output for tree in trees)


def _leases(fleet: Plant) -> set[str]:
    return {runner for (runner,) in fleet.ask("SELECT runner FROM windlass.leases")}

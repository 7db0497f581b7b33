"""A stranger locks tables or rows of ours for longer than a lease: live workers lose nothing, no job runs twice."""

import json

import psycopg

from tests.postgres.works.plant import Plant
from tests.support.processes import let_pass, until

LEASE = 0.5
JOBS = 3
LONGER_THAN_A_CALL = 6.5
"""Seconds. A supervisor's call ends after five, and is tried again."""
LOCKS = {
    "LOCK windlass.jobs IN ACCESS EXCLUSIVE MODE": LONGER_THAN_A_CALL,
    "LOCK windlass.jobs IN SHARE MODE": 2 * LEASE,  # as CREATE INDEX does
    "SELECT FROM windlass.jobs FOR UPDATE": 2 * LEASE,
    "LOCK windlass.history IN ACCESS EXCLUSIVE MODE": 2 * LEASE,
    "LOCK windlass.queues, windlass.watermarks, windlass.idempotency_keys IN ACCESS EXCLUSIVE MODE": 2 * LEASE,
    "LOCK windlass.workers, windlass.leadership IN ACCESS EXCLUSIVE MODE": 2 * LEASE,
    # No lease can be renewed: that is an outage, not the death of a worker.
    "LOCK windlass.leases, windlass.lease_activity IN ACCESS EXCLUSIVE MODE": 2 * LEASE,
    "SELECT FROM windlass.leases FOR UPDATE": 2 * LEASE,
}


def test_no_running_job_is_started_twice_and_every_outcome_is_written(plant: Plant) -> None:
    plant.worker("--lease", f"{LEASE}s", "--processes", "2", "--concurrency", "10")
    ids: list[str] = []
    for number, (lock, seconds) in enumerate(LOCKS.items()):
        early, late = f"early{number}", f"late{number}"
        ids += plant.enqueue("linger", JOBS, json.dumps({"until": early}))
        ids += plant.enqueue("linger", JOBS, json.dumps({"until": late}))
        _until_started(plant, len(ids))
        with psycopg.connect(plant.direct, application_name="a stranger") as stranger:
            stranger.execute(lock)
            let_pass(seconds)
            (plant.folder / early).touch()  # these end while it is locked
        let_pass(2.5 * LEASE)  # in which the jobs of the dead would be put back
        (plant.folder / late).touch()
        plant.until_completed(len(ids))
        assert sorted(plant.runs()) == sorted(ids), f"a job was started twice because of {lock}"


def _until_started(plant: Plant, jobs: int) -> None:
    until(lambda: len(plant.runs()) >= jobs, f"{jobs} jobs have started")
